"""Compiles the libraries and the command line, against the oldest glibc that a platform promises.

Zig is the C compiler and linker: it has the symbols of every glibc, so that no old system is needed to build on.
"""

from tools import WORK, environment, run, tool


def build(platform):
    """The folder with what was built."""
    packages = [part for name in ("c", "node", "cli") for part in ("--package", f"stanchion-{name}")]
    run(
        tool("cargo-zigbuild"), "zigbuild", "--release", "--locked", "--target", f"{platform.triple}.{platform.glibc}",
        *packages, env=environment())
    return WORK / "cargo" / platform.triple / "release"
