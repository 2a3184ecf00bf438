"""Debian's packages, and the tarball: the C library and the command line."""

import re
import shutil
import subprocess

from dist import SAID, bring, example, installed, says, times
from roots import WORK, Missing


def deb(root, url):
    place, inside = root.fresh("deb")
    bring(place, *(f"{name}_*_{root.machine}.deb" for name in ("libstanchion0", "stanchion", "libstanchion-dev")))
    took = installed(root, "dpkg --install ./*.deb", inside)
    try:
        ran = says(root, f"stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
        loads(root, "libstanchion.so.0", inside)
        assert root.run("test -s /usr/share/man/man1/stanchion.1 -o -s /usr/share/man/man1/stanchion.1.gz").returncode == 0
    finally:
        removed = root.run("dpkg --purge stanchion libstanchion-dev libstanchion0")
    assert removed.returncode == 0, removed.stdout
    left = root.run("find / -xdev -name '*stanchion*' -not -path '/cases/*' -not -path '/proc/*'").stdout
    assert not left, f"left behind: {left}"
    return times(took, ran)


def tarball(root, url):
    place, inside = root.fresh("tarball")
    bring(place, f"stanchion-*-{root.cpu}-unknown-linux-gnu.tar.gz")
    took = installed(root, "tar -xzf *.tar.gz --strip-components=1", inside)
    ran = says(root, f"bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
    loads(root, f"{inside}/lib/libstanchion.so.0", inside)
    return times(took, ran)


def static(root, url):
    """The command line with its libc inside: nothing of the system is used."""
    place, inside = root.fresh("static")
    bring(place, f"stanchion-*-{root.cpu}-unknown-linux-musl.tar.gz")
    took = installed(root, "tar -xzf *.tar.gz --strip-components=1", inside)
    # Only the program.
    shutil.rmtree(place / "lib")
    return times(took, says(root, f"bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside))


def musl(root, url):
    """The shared library for musl, in a program for musl: README's example, which zig compiles outside."""
    zig = WORK.parent / "tools" / "bin" / "python"
    if not zig.exists():
        raise Missing("the compiler of make packages is not here")
    place, inside = root.fresh("musl")
    bring(place, f"stanchion-*-{root.cpu}-unknown-linux-musl.tar.gz")
    took = installed(root, "tar -xzf *.tar.gz --strip-components=1", inside)
    (place / "example.c").write_text(example("bindings-c", "c"))
    # The sanitizer that zig adds unasked needs a newer musl than ours does.
    subprocess.run(
        [zig, "-m", "ziglang", "cc", "-target", f"{root.cpu}-linux-musl", "-dynamic", "-fno-sanitize=undefined",
         "-Iinclude", "example.c", "-Llib", "-lstanchion", "-Wl,-rpath,$ORIGIN/lib", "-o", "example"], cwd=place, check=True)
    return times(took, says(root, f"./example {url}", inside))


def loads(root, library, inside):
    """Nobody compiles here: Python's ctypes calls the library."""
    code = f"import ctypes; f = ctypes.CDLL('{library}').stanchion_version; f.restype = ctypes.c_char_p; print(f().decode())"
    done = root.run(f'python3 -c "{code}"', inside)
    assert done.returncode == 0 and re.fullmatch(r"\d+\.\d+\.\d+", done.stdout.strip()), done.stdout


CASES = {"deb": deb, "tarball": tarball, "static": static, "musl": musl}
ONCE = {}
