"""Programs that are built against the installed library, and run: passed, failed, ignored."""

import os
import re
import signal
import subprocess
import textwrap
import time

from checks import check, total
from install import HERE, PACKAGE, VERSION

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]
SOURCES = sorted((HERE / "c").glob("*.c"))
LIMIT_S = 300
# Every password of the tests: what says it tells a secret.
CANARY = "c4n4ry-pa55w0rd"
SEED = 20240229
# For each store, together about 10 s.
FUZZ_S = (6, 2, 2)
# What the library keeps for its threads until the process ends is no leak; what nobody refers to is.
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--num-callers=30"]


class Build:
    """A way to build: language, standard, shared or static, a checker."""

    def __init__(self, installed, name, compiler, standard, static=False, flags=()):
        self.installed, self.name, self.static = installed, name, static
        language = "c++" if "++" in standard else "c"
        self.command = [compiler, f"-std={standard}", *WARNINGS, f'-DVERSION="{VERSION}"', *flags, "-x", language]

    def program(self, name, sources, *more):
        path = self.installed.programs / f"{name}-{self.name}"
        link = ["-x", "none", *self.installed.flags(self.static), "-lpthread", "-o", path]
        done = subprocess.run([str(part) for part in [*self.command, *more, *sources, *link]], text=True,
                              stderr=subprocess.PIPE, cwd=self.installed.programs)
        if done.returncode != 0:
            print(done.stderr, flush=True)
        return path if done.returncode == 0 else None


def with_sanitizers(installed):
    return Build(installed, "asan", "gcc", "gnu11", flags=["-fsanitize=address,undefined", "-fno-sanitize-recover"])


def jobs(installed, stores):
    c = Build(installed, "c", "gcc", "gnu99")
    cpp = Build(installed, "c++", "g++", "gnu++17")
    static_c = Build(installed, "static-c", "clang", "gnu99", static=True)
    static_cpp = Build(installed, "static-c++", "clang++", "gnu++17", static=True)
    asan = with_sanitizers(installed)
    return [
        lambda: fuzz(installed, stores, SEED, FUZZ_S),
        lambda: suite(c, ["memory:", stores.redis()], checker=VALGRIND),
        lambda: suite(c, ["memory:", stores.sqlite(), stores.redis()]),
        lambda: suite(asan, ["memory:", stores.sqlite(), stores.redis()]),
        lambda: suite(static_cpp, ["memory:", stores.redis()]),
        lambda: suite(static_c, ["memory:"]),
        lambda: suite(cpp, ["memory:"]),
        lambda: examples([c, cpp, static_c], stores),
        lambda: readmes(c, stores),
        lambda: demo(c, stores),
    ]


def environment(build):
    # The checker's own look for leaks needs rights that a container may not have; valgrind looks for them.
    return {**build.installed.environment(), "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


def execute(build, *command, limit=LIMIT_S, **options):
    """Its exit code, none if it hung or told a secret; and what it said."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command], env=environment(build), text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **options)
    try:
        said, status = process.communicate(timeout=limit)[0], process.returncode
    except subprocess.TimeoutExpired:
        # With its children, which have its output, too.
        os.killpg(process.pid, signal.SIGKILL)
        said, status = f"{process.communicate()[0]}\nit took more than {limit} s", None
    if CANARY in said:
        said, status = f"{said.replace(CANARY, '(the password)')}\na password was told", None
    return status, said, time.monotonic() - begin


def suite(build, urls, checker=()):
    """All tests on these stores."""
    title = f"tests {build.name}{' valgrind' if checker else ''}"
    # A forked child has lost the threads of its parent, and what only they knew: leaks, to valgrind. The locks of the
    # address sanitizer itself may be among it.
    checked = checker or build.name == "asan"
    sources = [source for source in SOURCES if not (checked and source.name == "forks.c")]
    program = build.program(f"tests{'-checked' if checker else ''}", sources)
    if program is None:
        return check(f"{title} build", False)
    results = []
    for url in urls:
        status, said, seconds = execute(build, *checker, program, url, *(["--here"] if checker else []))
        counts = re.search(r"^(\d+) passed; (\d+) failed; (\d+) ignored;$", said, re.M)
        passed, failed, ignored = map(int, counts.groups()) if counts else (0, 1, 0)
        failed = failed or int(status != 0)
        store = url.partition(":")[0]
        print(f"{title} on {store}: {passed} passed, {failed} failed, {seconds:.1f} s", flush=True)
        for why in re.findall(r"^skipped: (.*)$", said, re.M):
            # As the project's tests/run reads them.
            print(f"test {title} on {store} ... ignored, {why}", flush=True)
        said = re.sub(r"^.*(panicked at|on purpose|RUST_BACKTRACE).*\n", "", said, flags=re.M)
        if failed:
            print(said, flush=True)
        results.append((passed, failed, ignored))
    return total(results)


def fuzz(installed, stores, seed, seconds):
    """Hostile calls for these times on memory, a file and a server."""
    build = with_sanitizers(installed)
    program = build.program("fuzz", [HERE / "fuzz.c"])
    if program is None:
        return check("fuzz build", False)
    results = []
    for url, time_s in zip(("memory:", stores.sqlite(), stores.redis()), seconds):
        status, said, _ = execute(build, program, url, seed, time_s, limit=time_s + LIMIT_S)
        title = f"fuzz on {url.partition(':')[0]}, seed {seed}"
        results.append(check(title, status == 0, said.strip()[-3000:]))
    return total(results)


def examples(builds, stores):
    results = []
    for build in builds:
        for source in sorted((PACKAGE / "examples").glob("*.c")):
            program = build.program(f"example-{source.stem}", [source])
            title = f"example {source.name} as {build.name}"
            if program is None:
                results.append(check(f"{title} build", False))
                continue
            for url in (stores.sqlite(), stores.redis()):
                status, said, _ = execute(build, program, url, *(["-"] if source.stem == "worker" else []))
                results.append(check(f"{title} on {url.partition(':')[0]}", status == 0, "" if status == 0 else said))
    return total(results)


def readmes(build, stores):
    """The C of the READMEs and of the guides, run in folders of their own."""
    results = []
    guides = {path.stem: path for path in sorted((PACKAGE.parent / "docs" / "guides").glob("*.md"))}
    for name, path in {"project": PACKAGE.parent / "README.md", "package": PACKAGE / "README.md", **guides}.items():
        # Also those in tabs, which are indented.
        found = re.findall(r"^( *)```c\n(.*?)^\1```", path.read_text(), re.M | re.S)
        blocks = [textwrap.dedent(block) for _, block in found]
        for number, block in enumerate(blocks):
            folder = build.installed.programs / f"readme-{name}-{number}"
            os.makedirs(folder, exist_ok=True)
            source = folder / "main.c"
            source.write_text(block if "main(" in block else f"#include <stanchion.h>\n{block}")
            program = build.program(f"readme-{name}-{number}-run", [source])
            status, said, _ = execute(build, program, stores.redis(), cwd=folder) if program else (1, "", 0)
            results.append(check(f"README of the {name}, block {number}", status == 0, "" if status == 0 else said))
        if not blocks and name not in guides:
            results.append(check(f"README of the {name} has C", False))
    return total(results)


def demo(build, stores):
    """Buyers in C beside those in Rust, in one sale; and some that do not lock, who must be found out."""
    source = PACKAGE / "demo" / "buyers.c"
    careless = build.installed.programs / "careless.c"
    careless.write_text(source.read_text().replace("if (client == 0) return 0;", "return 0;"))
    programs = build.program("buyers", [source]), build.program("careless", [careless], "-Wno-unused-variable")
    if None in programs:
        return check("demo build", False)
    honest, thoughtless = programs
    right = ["1,000 in Rust, 1,000 in C\n", "sold 10 of 10, to 10 different buyers",
             "fences: 2,000, every one larger than the one before"]
    results = []
    for url in ("", stores.redis()):
        status, said, _ = sale(build, honest, url)
        ok = status == 0 and all(words in said for words in right)
        results.append(check(f"demo with buyers in C on {url.partition(':')[0] or 'a file'}", ok, "" if ok else said))
    status, said, _ = sale(build, thoughtless, "")
    ok = status == 1 and "WRONG" in said
    results.append(check("demo with buyers in C that do not lock is wrong", ok, "" if ok else said))
    return total(results)


def sale(build, buyers, url):
    command = ["env", *([f"STANCHION_URL={url}"] if url else []), build.installed.flash_sale, "--buyers", "C", buyers]
    return execute(build, *command)
