"""The programs that build packages, from PyPI, kept in target; and where things are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent
ROOT = PLACE.parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "target" / "packages"
REQUIREMENTS = PLACE / "requirements.txt"
VERSION = next(line.split('"')[1] for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version"))
# Of what is linked in; .ci/packages/linked.py writes it.
THIRD_PARTY = WORK / "LICENSE-THIRD-PARTY.html"
LICENSES = [ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", THIRD_PARTY]


def run(*command, cwd=ROOT, **options):
    return subprocess.run([str(part) for part in command], cwd=cwd, check=True, **options)


def tool(name):
    """A program of the requirements; they are installed anew when they change."""
    place = WORK / "tools"
    mark = place / "requirements.txt"
    if not mark.exists() or mark.read_text() != REQUIREMENTS.read_text():
        shutil.rmtree(place, ignore_errors=True)
        run(sys.executable, "-m", "venv", place)
        run(place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS)
        shutil.copy(REQUIREMENTS, mark)
    return place / "bin" / name


# What SQLite brings along and nobody here uses: search in texts, trees of rectangles, JSON, and the like.
UNUSED = ("FTS3", "FTS3_PARENTHESIS", "FTS5", "RTREE", "STAT4", "DBSTAT_VTAB", "LOAD_EXTENSION", "COLUMN_METADATA")
LEFT_OUT = ("JSON", "DATETIME_FUNCS", "AUTHORIZATION", "DECLTYPE", "DEPRECATED", "SHARED_CACHE", "DESERIALIZE", "GET_TABLE",
            "INCRBLOB", "PROGRESS_CALLBACK", "TRACE", "UTF16")


def environment(flags="", toolchain=None):
    """For builds whose results do not depend on where they were made."""
    cargo = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    moved = {str(ROOT): "/stanchion", cargo: "/cargo"}
    places = " ".join(f"--remap-path-prefix={old}={new}" for old, new in moved.items())
    maps = " ".join(f"-ffile-prefix-map={old}={new}" for old, new in moved.items())
    return {
        **os.environ,
        "PATH": f"{tool('maturin').parent}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(WORK / "cargo"),
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_RELEASE_DEBUG": "false",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        # Packages are built once and fetched often.
        "CARGO_PROFILE_RELEASE_LTO": "fat",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "1",
        "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} {places} {flags}".strip(),
        # No panic and no exception goes through C.
        "CFLAGS": f"{os.environ.get('CFLAGS', '')} {maps} -fno-asynchronous-unwind-tables -fno-unwind-tables".strip(),
        "LIBSQLITE3_FLAGS": " ".join(
            [f"-USQLITE_ENABLE_{name}" for name in UNUSED] + [f"-DSQLITE_OMIT_{name}" for name in LEFT_OUT]),
        **(toolchain or {}),
    }
