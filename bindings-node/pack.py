#!/usr/bin/env python3
"""Packs the npm packages: `pack.py FOLDER LIBRARY PLATFORM` puts the main package and that of one platform there.

PLATFORM is the end of the package's name, such as linux-x64-gnu; LIBRARY what cargo built for it. The main package has
to be compiled before (tsc).
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
LICENSES = [PACKAGE.parent / "LICENSE-APACHE", PACKAGE.parent / "LICENSE-MIT"]
LIBC = {"gnu": "glibc", "musl": "musl"}


def manifest(platform, main):
    """The package.json of a platform package: npm installs it only where it fits."""
    system, cpu, *rest = platform.split("-")
    made = {
        "name": f"@stanchion/{platform}",
        "version": main["version"],
        "description": f"The native half of stanchion for {platform}.",
        "license": main["license"],
        "repository": main["repository"],
        "engines": main["engines"],
        "main": "stanchion.node",
        "files": ["stanchion.node", "LICENSE-*"],
        "os": [system],
        "cpu": [cpu],
    }
    if rest and rest[0] in LIBC:
        made["libc"] = [LIBC[rest[0]]]
    return made


def pack(source, target):
    done = subprocess.run(
        ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(target)], cwd=source, check=True,
        stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    entry = found[0] if isinstance(found, list) else next(iter(found.values()))
    return target / entry["filename"]


def main(target, library, platform):
    target.mkdir(parents=True, exist_ok=True)
    described = json.loads((PACKAGE / "package.json").read_text())
    if f"@stanchion/{platform}" not in described["optionalDependencies"]:
        raise SystemExit(f"package.json does not know the platform {platform}")
    with tempfile.TemporaryDirectory() as place:
        staged = Path(place) / "main"
        staged.mkdir()
        for name in ("package.json", "README.md", "native.d.ts", "dist", "esm"):
            copy(PACKAGE / name, staged / name)
        native = Path(place) / platform
        native.mkdir()
        (native / "package.json").write_text(json.dumps(manifest(platform, described), indent=2) + "\n")
        (native / "README.md").write_text(f"The native half of `stanchion` for {platform}. Install `stanchion`.\n")
        shutil.copy(library, native / "stanchion.node")
        for folder in (staged, native):
            for licence in LICENSES:
                copy(licence, folder / licence.name)
        return [pack(staged, target), pack(native, target)]


def copy(source, target):
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    for packed in main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]):
        print(packed)
