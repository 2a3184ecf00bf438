"""Debian's packages, and the tarball: the C library and the command line."""

import re

from dist import SAID, bring, installed, says, times


def deb(root, url):
    place, inside = root.fresh("deb")
    bring(place, "libstanchion0_*_amd64.deb", "stanchion_*_amd64.deb", "libstanchion-dev_*_amd64.deb")
    took = installed(root, "dpkg --install ./*.deb", inside)
    try:
        example = says(root, f"stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
        loads(root, "libstanchion.so.0", inside)
        assert root.run("test -s /usr/share/man/man1/stanchion.1 -o -s /usr/share/man/man1/stanchion.1.gz").returncode == 0
    finally:
        removed = root.run("dpkg --purge stanchion libstanchion-dev libstanchion0")
    assert removed.returncode == 0, removed.stdout
    left = root.run("find / -xdev -name '*stanchion*' -not -path '/cases/*' -not -path '/proc/*'").stdout
    assert not left, f"left behind: {left}"
    return times(took, example)


def tarball(root, url):
    place, inside = root.fresh("tarball")
    bring(place, "stanchion-*-x86_64-unknown-linux-gnu.tar.gz")
    took = installed(root, "tar -xzf *.tar.gz --strip-components=1", inside)
    example = says(root, f"bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
    loads(root, f"{inside}/lib/libstanchion.so.0", inside)
    return times(took, example)


def loads(root, library, inside):
    """Nobody compiles here: Python's ctypes calls the library."""
    code = f"import ctypes; f = ctypes.CDLL('{library}').stanchion_version; f.restype = ctypes.c_char_p; print(f().decode())"
    done = root.run(f'python3 -c "{code}"', inside)
    assert done.returncode == 0 and re.fullmatch(r"\d+\.\d+\.\d+", done.stdout.strip()), done.stdout


CASES = {"deb": deb, "tarball": tarball}
ONCE = {}
