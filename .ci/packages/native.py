"""Compiles the libraries and the command line, for the oldest libc that a platform promises.

Zig is the C compiler and linker: it has the symbols of every glibc, and musl, so that no old system is needed to build on.
"""

import os

import toolchain
from platforms import HERE
from tools import WORK, environment, run, tool

# Whose programs run here, and print their manual page.
OWN = next((one for one in HERE if one.name == f"linux-{os.uname().machine}-gnu"), None)
LIBRARIES = ("c", "node")


def build(platform):
    """The folder with what was built."""
    if platform.glibc:
        return _cargo(platform, f"{platform.triple}.{platform.glibc}", (*LIBRARIES, "cli"), compiler(platform))
    # The program has its libc inside, and so runs on every Linux; a library takes that of its process.
    static = _cargo(platform, platform.triple, ("cli",), {**compiler(platform), "CARGO_TARGET_DIR": str(WORK / "static")})
    built = _cargo(platform, platform.triple, LIBRARIES, compiler(platform, "-C target-feature=-crt-static"))
    (built / "stanchion").write_bytes((static / "stanchion").read_bytes())
    (built / "stanchion").chmod(0o755)
    return built


def compiler(platform, flags=""):
    """The environment of its builds; with one libc for the libraries, and those flags."""
    return environment(flags, toolchain.environment(platform.triple))


def folder(platform):
    return WORK / "cargo" / platform.triple / "release"


def _cargo(platform, target, names, env):
    packages = [part for name in names for part in ("--package", f"stanchion-{name}")]
    run(tool("cargo-zigbuild"), "zigbuild", "--release", "--locked", "--target", target, *packages, env=env)
    return WORK / os.path.basename(env["CARGO_TARGET_DIR"]) / platform.triple / "release"
