"""The wheel, with the command line inside, and the sdist."""

import shutil

import linked
import native
from tools import DIST, ROOT, THIRD_PARTY, VERSION, run, tool

PACKAGE = ROOT / "bindings-python"


def build(platform, _built):
    shutil.copy(THIRD_PARTY, PACKAGE)
    env = native.compiler(platform, "" if platform.glibc else "-C target-feature=-crt-static")
    run(
        tool("maturin"), "build", "--release", "--locked", "--zig", "--target", platform.triple, "--compatibility",
        platform.tag, "--compression-level", "9", "--sbom-include", linked.bill("python", platform), "--out", DIST,
        cwd=PACKAGE, env=env)
    found = next(DIST.glob(f"*{platform.tag}*_{platform.triple.split('-')[0]}.whl"))
    # Whether it keeps to the stable interface of Python, and to what the name of the platform promises.
    run(tool("abi3audit"), "--strict", "--summary", found)
    # Of musl it would look for the files on this machine.
    if platform.glibc:
        run(tool("auditwheel"), "show", found)
    if not (DIST / f"stanchion-{VERSION}.tar.gz").exists():
        run(tool("maturin"), "sdist", "--out", DIST, cwd=PACKAGE, env=env)
