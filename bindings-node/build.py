#!/usr/bin/env python3
"""Builds the npm packages: `build.py FOLDER` puts the main package and that of this machine's platform there.

`build.py FOLDER LIBRARY PLATFORM` takes a library that cargo has built for another platform, such as linux-arm64-gnu.
Then `npm install ./FOLDER/*.tgz` in a project: without the dot npm looks for a repository of that name.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PACKAGE.parent / "target")).resolve()
LICENSES = [PACKAGE.parent / "LICENSE-APACHE", PACKAGE.parent / "LICENSE-MIT"]
LIBC = {"gnu": "glibc", "musl": "musl"}
QUIET = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


def run(*command, cwd=PACKAGE, **options):
    return subprocess.run([str(part) for part in command], cwd=cwd, check=True, **options)


def library(profile, **env):
    """The library of this machine, built anew if need be."""
    # With the whole workspace, as the other tests: with other features everything would be built again.
    what = ["--workspace"] if profile == "dev" else ["--package", "stanchion-node"]
    run("cargo", "build", "--locked", "--profile", profile, *what,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET), **env})
    return built(profile)


def built(profile):
    """The library, as cargo has left it."""
    folder = TARGET / ("debug" if profile == "dev" else profile)
    names = ("libstanchion_node.so", "libstanchion_node.dylib")
    return next(folder / name for name in names if (folder / name).exists())


def tools():
    """node_modules with tsc, and what the examples need."""
    return kept_modules("node-tools", PACKAGE / "tools")


def kept_modules(name, source):
    """node_modules as the lock file says; kept as long as that does not change."""
    place = TARGET / name
    kept, mark = source / "package-lock.json", place / "package-lock.json"
    if not mark.exists() or mark.read_text() != kept.read_text():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        try:
            run("npm", "ci", *QUIET, cwd=place, stdout=sys.stderr)
        except subprocess.CalledProcessError:
            mark.unlink()
            raise
    return place / "node_modules"


def tsc(modules, *arguments, **options):
    """Runs the compiler with the types of Node."""
    return run(modules / ".bin" / "tsc", "--typeRoots", modules / "@types", *arguments, **options)


def facade(modules):
    """Compiles the TypeScript half."""
    shutil.rmtree(PACKAGE / "dist", ignore_errors=True)
    tsc(modules, "-p", PACKAGE / "tsconfig.json")


def platform():
    """The end of the name of this machine's platform package."""
    script = "const r = process.report.getReport().header; console.log(JSON.stringify(" \
             "[process.platform, process.arch, r.glibcVersionRuntime ? 'gnu' : 'musl']))"
    found = run("node", "-e", script, stdout=subprocess.PIPE, text=True).stdout
    system, cpu, libc = json.loads(found)
    return f"{system}-{cpu}-{libc}" if system == "linux" else f"{system}-{cpu}"


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
    done = run(
        "npm", "pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", target, cwd=source,
        stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    entry = found[0] if isinstance(found, list) else next(iter(found.values()))
    return target / entry["filename"]


def packages(target, built, platform, licences=LICENSES):
    """The main package and the one of a platform, as npm publishes them."""
    # npm runs elsewhere.
    target = target.resolve()
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
        shutil.copy(built, native / "stanchion.node")
        for folder in (staged, native):
            for licence in licences:
                copy(licence, folder / licence.name)
        return [pack(staged, target), pack(native, target)]


def app(name, packs):
    """An empty project with the packages as a user gets them."""
    place = TARGET / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "package.json").write_text('{ "private": true }\n')
    # All that npm installs is here: nothing is looked up, least of all packages of the same names.
    run("npm", "install", "--offline", *QUIET, *packs, cwd=place, stdout=sys.stderr)
    return place


def copy(source, target):
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("library", type=Path, nargs="?")
    parser.add_argument("platform", nargs="?")
    given = parser.parse_args()
    if given.library is not None and given.platform is None:
        parser.error("a library of which platform?")
    built, name = given.library, given.platform
    facade(tools())
    if built is None:
        built, name = library("release", CARGO_PROFILE_RELEASE_STRIP="symbols"), platform()
    for packed in packages(given.folder, built, name):
        print(packed)


if __name__ == "__main__":
    main()
