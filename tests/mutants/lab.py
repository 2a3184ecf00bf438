"""A copy of the sources, with a target folder of its own: the working tree is never touched."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mutants
import suites

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"
SOURCES, BUILD = HOME / "sources", HOME / "build"
# Is there while something is built.
BUILDING = HOME / "building"
# What cargo reads.
COPIED = ["Cargo.toml", "Cargo.lock", "README.md", "docs", "core", "cli", "tests", "bindings-python", "bindings-node", "bindings-c"]
LEFT_OUT = {"target", "node_modules", "vendor", "dist", "__pycache__", "packs"}
# Debug information makes up half of the time to link.
ENVIRONMENT = {
    "CARGO_TARGET_DIR": str(BUILD), "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_TERM_COLOR": "never", **suites.ENVIRONMENT}
# The first build compiles every dependency.
BUILD_LIMIT_S = 1800
# What is said of a script that is no Lua, of SQL that is none, and of code that comes to nothing when it runs: no mutant, as
# what does not compile.
BROKEN = re.compile("|".join([
    r"Error compiling script", r"(?i:attempt to (?:call|index|compare|concatenate|get length|perform arithmetic|modify))",
    r"nonexistent global variable", r"bad argument #", r"Wrong number of args", r"(?i:unknown (?:Redis )?command)",
    r"(?i:wrong number of arguments)", r"command arguments must be strings or integers", r"at least one argument for this",
    r"'for' \w+ must be a number", r"table index is n", r"invalid value \(\w+\) at index", r"stack overflow",
    # What a store says of a request that it did not understand.
    r"answered with an unexpected error", r"a record of the lock or queue that this library did not write",
    r"syntax error", r"no such (?:column|table|function)", r"refused a request of this library",
    # Python.
    r"^E? *(?:NameError|SyntaxError|IndentationError|ImportError|ModuleNotFoundError|UnboundLocalError)\b",
]), re.M)
LINES_SHOWN = 40
RUNNING = set()

# The copy reads its scripts when it starts: a mutant of a script then needs no build.
READ = 'std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/redis/lua/", $path)).unwrap_or_default()'
# What else differs in the copy: file, text, and what takes its place.
DIFFERENCES = [
    ("core/src/store/redis/script.rs",
     'const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("lua/", $path))),)+];',
     f'static SOURCES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| vec![$(($name, {READ}),)+]);'),
    ("core/src/store/redis/script.rs",
     'const SHARED: &[(&str, &str)] = &[$(($name, include_str!(concat!("lua/", $path))),)+];',
     f'static SHARED: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| vec![$(($name, {READ}),)+]);'),
    # It would be built with every program of tests; no mutant is caught by what uses it.
    ("tests/Cargo.toml", '[[bin]]\nname = "player"\npath = "players/rust/main.rs"\ntest = false\n', ""),
    ("tests/suites/faults/main.rs", "mod fuzz;\n", ""),
]


@dataclass
class Outcome:
    build: float
    test: float
    verdict: str
    problem: str = ""


class Lab:
    def __init__(self):
        HOME.mkdir(parents=True, exist_ok=True)
        self.lock = open(HOME / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run uses {HOME}")
        if BUILDING.exists():
            # A compiler that was ended in the middle leaves pieces that do not fit together.
            shutil.rmtree(BUILD / "debug" / "incremental", ignore_errors=True)
        copy()

    def passes(self, suite, tests, limit):
        """Why these tests do not all pass without a mutant, each in a line."""
        build, status, output = built(suite)
        if status != 0:
            return [f"{suite} does not compile:\n{end_of(output)}"]
        took, status, results, output = run(suite, tests, limit)
        print(f"    {suite}: {len(tests)} tests, built in {build:.1f} s, run in {took:.1f} s", flush=True)
        wrong = [f"{suite}: {test} does not pass without a mutant" for test in tests if results.get(test) != "ok"]
        return wrong and [*wrong, f"the output ends:\n{end_of(output)}"]

    def fails(self, mutant, limit):
        """Whether all tests that are named for the mutant fail in time, and those that it does not touch pass."""
        build, status, output = built(mutant.suite)
        if status != 0:
            return Outcome(build, 0, "does not compile", f"it does not compile:\n{end_of(output)}")
        took, status, results, output = run(mutant.suite, [*mutant.caught_by, *mutant.control], limit)
        survived = [test for test in mutant.caught_by if results.get(test) != "FAILED"]
        harmed = [test for test in mutant.control if results.get(test) != "ok"]
        if status is None:
            return Outcome(build, took, "no verdict in time", f"still running after {limit} s:\n{end_of(output)}")
        if broken := BROKEN.search(output):
            return Outcome(build, took, "does not run", f"it does not run: {line_of(output, broken)}")
        if survived:
            return Outcome(build, took, "NOT CAUGHT", f"not caught by {', '.join(survived)}")
        if harmed:
            return Outcome(build, took, "BREAKS MORE", f"what it should leave alone fails, too: {', '.join(harmed)}")
        return Outcome(build, took, f"{mutant.suite} {', '.join(mutant.caught_by)}")

    @contextmanager
    def mutated(self, mutant):
        path = SOURCES / mutant.file
        whole = path.read_text()
        path.write_text(mutants.mutated(mutant, whole))
        try:
            yield
        finally:
            path.write_text(whole)


def built(suite):
    """The time it took, the exit code (None: too long), and what was said."""
    took, said = 0, ""
    BUILDING.touch()
    for command in suites.build(suite, BUILD):
        seconds, status, output = execute(command, BUILD_LIMIT_S)
        took, said = took + seconds, said + output
        if status != 0:
            break
    if status is not None:
        BUILDING.unlink()
    return took, status, said


def run(suite, tests, limit):
    """The time it took, the exit code (None: too long), each test's result, and what was said."""
    took, status, output = execute(suites.play(suite, tests, BUILD), limit)
    return took, status, suites.results(suite, tests, output), output


def execute(command, limit):
    """Runs a command in a process group of its own, and ends what is left of it."""
    inherited = {name: value for name, value in os.environ.items() if name != "STANCHION_URL"}
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=SOURCES, env={**inherited, **ENVIRONMENT}, text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    RUNNING.add(process)
    try:
        output, status = process.communicate(timeout=limit)[0], process.returncode
    except subprocess.TimeoutExpired:
        end(process)
        output, status = process.communicate()[0], None
    end(process)
    return time.monotonic() - began, status, output


def end(process):
    RUNNING.discard(process)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def end_all():
    for process in list(RUNNING):
        end(process)


def line_of(output, found):
    return output[output.rfind("\n", 0, found.start()) + 1:].split("\n", 1)[0].strip()[:300]


def end_of(output):
    return "\n".join(f"    | {line}" for line in output.rstrip().splitlines()[-LINES_SHOWN:])


def problems():
    """Which differences do not fit the sources any more."""
    for name, before, _ in DIFFERENCES:
        found = (ROOT / name).read_text().count(before)
        if found != 1:
            yield f"{Path(__file__).name}: what the copy has otherwise occurs {found} times in {name}"


def copy():
    """Brings the copy up to date. What has not changed keeps its time: cargo builds it no second time."""
    wanted = set()
    for top in COPIED:
        paths = [ROOT / top] if (ROOT / top).is_file() else files(ROOT / top)
        for path in paths:
            copied = SOURCES / path.relative_to(ROOT)
            wanted.add(copied)
            content = in_copy(path)
            if not copied.is_file() or copied.read_bytes() != content:
                copied.parent.mkdir(parents=True, exist_ok=True)
                # With the time of now: cargo must see that it has changed, however old it is.
                copied.write_bytes(content)
                shutil.copymode(path, copied)
    for path in list(SOURCES.rglob("*")):
        if path.is_file() and path not in wanted:
            path.unlink()


def in_copy(path):
    content = path.read_bytes()
    for name, before, after in DIFFERENCES:
        if path == ROOT / name:
            content = content.replace(before.encode(), after.encode())
    return content


def files(folder):
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT or path.is_symlink():
            continue
        if path.is_dir():
            yield from files(path)
        elif path.suffix != ".so":
            yield path
