"""The crates, as they are published; each is compiled from its archive alone."""

import shutil

from tools import DIST, WORK, run

NAMES = ("stanchion", "stanchion-cli")


def build(_platform, _built):
    # They are the same for all platforms.
    if list(DIST.glob("*.crate")):
        return
    place = WORK / "crates"
    run("cargo", "package", "--locked", "--quiet", "--target-dir", place,
        *(part for name in NAMES for part in ("--package", name)))
    for made in (place / "package").glob("*.crate"):
        shutil.copy(made, DIST)
