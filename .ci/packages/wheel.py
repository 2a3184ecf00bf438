"""The wheel, with the command line inside, and the sdist."""

from tools import DIST, ROOT, VERSION, environment, run, tool

PACKAGE = ROOT / "bindings-python"


def build(platform, _built):
    run(
        tool("maturin"), "build", "--release", "--locked", "--zig", "--target", platform.triple, "--compatibility",
        platform.manylinux, "--compression-level", "9", "--out", DIST, cwd=PACKAGE, env=environment())
    found = next(DIST.glob(f"*{platform.triple.split('-')[0]}.whl"))
    # Whether it keeps to the stable interface of Python, and to what the name of the platform promises.
    run(tool("abi3audit"), "--strict", "--summary", found)
    run(tool("auditwheel"), "show", found)
    if not (DIST / f"stanchion-{VERSION}.tar.gz").exists():
        run(tool("maturin"), "sdist", "--out", DIST, cwd=PACKAGE, env=environment())
