"""A compiler with the standard library of a platform: this machine's own, with rustup's help; or Debian's, beside it.

Debian's newest has a compiler with the sources of the standard library, which is then compiled for the platform. It runs by
its own dynamic loader, so that nothing of this machine is changed.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tools import WORK

SUITE = "forky"
MIRROR = os.environ.get("STANCHION_DEBIAN_MIRROR")
PLACE = WORK / "rust"


class Missing(Exception):
    """A platform that cannot be built for here, and why."""


def environment(triple):
    """What cargo has to be told to compile for it."""
    if _is_there(triple) or _added(triple):
        return {}
    if not (PLACE / "rustc").exists():
        _unpack(triple)
    return {
        "RUSTC": str(PLACE / "rustc"),
        # To compile the standard library is not stable yet.
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_UNSTABLE_BUILD_STD": "std,panic_unwind",
    }


def _is_there(triple):
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    return (Path(sysroot) / "lib" / "rustlib" / triple / "lib").is_dir()


def _added(triple):
    if shutil.which("rustup") is None:
        return False
    return subprocess.run(["rustup", "target", "add", triple], capture_output=True, check=False).returncode == 0


def _unpack(triple):
    if shutil.which("mmdebstrap") is None:
        raise Missing(f"rustup has no standard library for {triple}, and for Debian's compiler mmdebstrap is missing")
    root = PLACE / "root"
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=extract", f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
         "--aptopt=APT::Install-Recommends \"false\"", "--aptopt=Acquire::Check-Valid-Until \"false\"",
         "--include=rustc,rust-src", SUITE, str(root), *([MIRROR] if MIRROR else [])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    libraries = root / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
    loader = next(libraries.glob("ld-linux-*.so.*"), None)
    if done.returncode != 0 or loader is None:
        last = (done.stdout.splitlines() or ["mmdebstrap failed"])[-1]
        raise Missing(f"rustup has no standard library for {triple}, and Debian's compiler cannot be had: {last}")
    # Last: it says that all is there.
    script = PLACE / "rustc"
    script.write_text(
        f'#!/bin/sh\nexec {loader} --library-path {libraries} {root}/usr/bin/rustc --sysroot {root}/usr "$@"\n')
    script.chmod(0o755)
