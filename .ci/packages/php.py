"""The package for Composer, with the libraries of all platforms inside: an archive for its `artifact` repositories."""

import json
import shutil

import archive
from tools import DIST, LICENSES, ROOT, VERSION, WORK

PACKAGE = ROOT / "bindings-c" / "php"
PARTS = ("README.md", "bin", "preload.php", "src", "stanchion.ffi.h")


def build(platform, built):
    place = WORK / "php"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in PARTS:
        source = PACKAGE / name
        shutil.copytree(source, place / name) if source.is_dir() else shutil.copy(source, place / name)
    described = json.loads((PACKAGE / "composer.json").read_text())
    del described["autoload-dev"]
    (place / "composer.json").write_text(json.dumps({**described, "version": VERSION}, indent=4) + "\n")
    for licence in LICENSES:
        shutil.copy(licence, place)
    # Those of the platforms that were built before stay.
    kept = WORK / "php-libraries"
    (kept / platform.name).mkdir(parents=True, exist_ok=True)
    shutil.copy(built / "libstanchion.so", kept / platform.name / "libstanchion.so")
    shutil.copytree(kept, place / "lib")
    archive.zipped(place, DIST / f"stanchion-php-{VERSION}.zip")
