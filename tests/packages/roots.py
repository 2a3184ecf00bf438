"""Empty systems to install packages in: folders with a Debian of some release, entered by chroot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "packages" / "roots"
# Without one, that of mmdebstrap.
MIRROR = os.environ.get("STANCHION_DEBIAN_MIRROR")
COMPILERS = ("cc", "gcc", "clang", "rustc", "cargo", "zig")
# What `uname -m` and qemu say, and what Debian says.
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
BINFMT = Path("/proc/sys/fs/binfmt_misc")


class Missing(Exception):
    """A root that cannot be had here, and why."""


class Root:
    """A release of Debian with these packages, for this processor; another one than this machine's is emulated by qemu."""

    def __init__(self, suite, packages, machine="amd64"):
        self.suite, self.machine = suite, machine
        # As the names of packages have it.
        self.cpu = next(cpu for cpu, debian in MACHINES.items() if debian == machine)
        self.place = WORK / f"{suite}-{machine}"
        self.is_emulated = machine != MACHINES.get(os.uname().machine)
        if self.is_emulated and not emulated(machine):
            raise Missing(f"{machine} is not emulated here: qemu-user-static and binfmt_misc are needed")
        mark = self.place / "packages"
        wanted = " ".join(packages)
        if not mark.exists() or mark.read_text() != wanted:
            self._make(packages)
            mark.write_text(wanted)
        found = self.run("; ".join(f"command -v {name}" for name in COMPILERS) + "; true").stdout.split()
        if found:
            raise SystemExit(f"{suite}: the root is not empty, it has {found}")

    def _make(self, packages):
        shutil.rmtree(self.place, ignore_errors=True)
        WORK.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--architectures={self.machine}",
             "--aptopt=APT::Install-Recommends \"false\"",
             # A mirror that is kept for long has lists that have expired.
             "--aptopt=Acquire::Check-Valid-Until \"false\"", f"--include={','.join(packages)}", self.suite,
             str(self.place), *([MIRROR] if MIRROR else [])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(self.place, ignore_errors=True)
            raise Missing(f"Debian {self.suite} cannot be had here: {(done.stdout.splitlines() or ['mmdebstrap failed'])[-1]}")

    def fresh(self, name):
        """An empty folder in it: where it is outside, and where inside."""
        place = self.place / "cases" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place, f"/cases/{name}"

    def run(self, script, cwd="/", **env):
        """A shell's script inside, with a clean environment, whose caches are in the folder of the case."""
        bare = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": cwd, "LANG": "C.UTF-8", **env}
        return subprocess.run(
            # With /proc: runtimes find themselves by it.
            ["unshare", "--mount-proc", f"--root={self.place}", "sh", "-c", f"cd {cwd} && {script}"],
            env={**inherited(), **bare},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)


def emulated(machine):
    """Whether programs of that processor run here; if not, they are made to, as far as that can be."""
    name = next(cpu for cpu, debian in MACHINES.items() if debian == machine)
    known = BINFMT / f"qemu-{name}"
    if not known.exists():
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", "qemu-user-static", "binfmt-support"],
                       stdout=subprocess.DEVNULL, check=False)
        if not (BINFMT / "register").exists():
            subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)], check=False)
        subprocess.run(["update-binfmts", "--enable", f"qemu-{name}"], stdout=subprocess.DEVNULL, check=False)
    return known.exists()


def inherited():
    """How packages of others are fetched, if that is not the usual way."""
    kept = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "npm_config_registry")
    return {name: os.environ[name] for name in kept if name in os.environ}


def check_rights():
    if os.geteuid() != 0:
        sys.exit("tests/packages: roots are entered by chroot; run it as root")
    if shutil.which("mmdebstrap") is None:
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", "mmdebstrap"], check=True)
