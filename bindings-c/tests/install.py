"""The library, installed into an empty folder as a user would."""

import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
VERSION = re.search(r'^version = "(.*)"', (PACKAGE.parent / "Cargo.toml").read_text(), re.M)[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PACKAGE.parent / "target")).resolve()


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def output(*command, **options):
    return run(*command, stdout=subprocess.PIPE, text=True, **options).stdout


class Installed:
    """Where it is: once with both libraries, once with the static one only."""

    def __init__(self, alone=False):
        packages = ["--package", "stanchion-c", "--package", "stanchion"] if alone else ["--workspace"]
        # Of the profile, and with the features, that the other tests have built already.
        examples = ["--example", "headers", "--example", "flash_sale"]
        run("cargo", "build", "--quiet", "--locked", *packages, *examples, cwd=PACKAGE,
            env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
        self.headers = TARGET / "debug" / "examples" / "headers"
        # The program of the demo that the buyers serve in.
        self.flash_sale = TARGET / "debug" / "examples" / "flash_sale"
        self.prefix = TARGET / "c-prefix"
        self.static_prefix = TARGET / "c-prefix-static"
        # Programs are built here: not in the source tree.
        self.programs = TARGET / "c-programs"
        for folder in (self.prefix, self.static_prefix, self.programs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for prefix in (self.prefix, self.static_prefix):
            run("make", "--silent", "-C", PACKAGE, "install", f"PREFIX={prefix}", "PROFILE=dev",
                f"PACKAGES=--quiet {' '.join(packages)}", env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
        for library in self.static_prefix.glob("lib/*.so*"):
            library.unlink()

    def flags(self, static=False):
        """What pkg-config tells to give to a compiler."""
        prefix = self.static_prefix if static else self.prefix
        env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
        words = output("pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "stanchion", env=env)
        return words.split()

    def environment(self):
        """In which programs with the shared library run. A store in the environment is the developer's."""
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.prefix / "lib"), "RUST_BACKTRACE": "0"}
        env.pop("STANCHION_URL", None)
        return env
