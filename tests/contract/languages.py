"""The players: how each is built and started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from players import Language

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PLAYERS = TESTS / "players"


def rust(face="blocking"):
    program = built("player", "--workspace")
    return Language("rust" if face == "blocking" else f"rust-{face}", [program, face])


def rust_async():
    return rust("async")


def python():
    interpreter = needed(TARGET / "venv-python" / "bin" / "python", "bindings-python/tests/run")
    return Language("python", [interpreter, PLAYERS / "python" / "player.py"])


def node():
    modules = needed(TARGET / "node-app" / "node_modules", "bindings-node/tests/run")
    return Language("node", ["node", PLAYERS / "node" / "player.cjs"], {"NODE_PATH": str(modules)})


def c():
    library = kept("c-player", "libstanchion.so.0")
    folder = library.parent
    program = folder / "player"
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{ROOT / 'bindings-c' / 'include'}",
         *sorted((PLAYERS / "c").glob("*.c")), library, "-Wl,-rpath,$ORIGIN", "-ljansson",
         "-o", program], check=True)
    return Language("c", [program])


def php():
    library = kept("php-player", "libstanchion.so")
    return Language(
        "php", ["php", "-d", "ffi.enable=1", PLAYERS / "php" / "player.php"], {"STANCHION_LIB": str(library)},
        threads=False)


def earlier():
    """Python with the package of the release before, or None and why there is none here."""
    wheel = next((TESTS / "compatibility").glob("*.whl"))
    name = f"python-{wheel.name.split('-')[1]}"
    place = TARGET / f"venv-{name}"
    if not (place / "installed").exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        done = subprocess.run(
            [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            return None, f"its package does not fit here: {(done.stdout.splitlines() or ['pip failed'])[-1]}"
        (place / "installed").touch()
    return Language(name, [place / "bin" / "python", PLAYERS / "python" / "player.py"]), None


def proxy():
    """The program of contract/proxy.py."""
    return built("proxy", "--workspace")


def kept(folder, name):
    """A copy of the C library, since others may build it again meanwhile."""
    library = built("libstanchion.so", "--workspace")
    (TARGET / folder).mkdir(exist_ok=True)
    return Path(shutil.copy(library, TARGET / folder / name))


def built(name, *what):
    """What cargo builds, of the profile that the other tests have built already."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", *what, "--target-dir", str(TARGET)], cwd=ROOT, check=True)
    return TARGET / "debug" / name


def needed(path, made_by):
    """What the tests of a package have left there."""
    if not path.exists():
        sys.exit(f"{path} is missing; run first: {made_by}")
    return path


LANGUAGES = {
    "rust": rust, "rust-async": rust_async, "python": python, "node": node, "c": c, "php": php,
}
