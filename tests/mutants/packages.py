"""The suites that are no programs of cargo: the tests of the packages in C, Python and Node.

Each has `tests`, the paths of all tests; `build` and `play`, commands; and `results`, by the test.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


class C:
    """On a store in memory, each test in a process of its own."""

    def tests(self):
        return {(name,) for path in (ROOT / "bindings-c" / "tests" / "c").glob("*.c")
                for name in re.findall(r"^TEST\((\w+)\)", path.read_text(), re.M)}

    def build(self, packages, target):
        libraries = target / "debug"
        link = f"ln -sf libstanchion.so {libraries}/libstanchion.so.0 && " \
               f"cc -std=gnu99 -Ibindings-c/include bindings-c/tests/c/*.c {libraries}/libstanchion.so.0 " \
               f"-Wl,-rpath,{libraries} -lpthread -o {target}/c-tests"
        return [["cargo", "build", "--locked", *packages, "-p", "stanchion-c", "--lib"], ["sh", "-c", link]]

    def play(self, tests, target):
        return [str(target / "c-tests"), "memory:", *tests]

    def results(self, tests, output):
        failed = re.findall(r"^FAILED (\S+) ", output, re.M)
        counts = re.search(r"^(\d+) passed; (\d+) failed; (\d+) ignored;$", output, re.M)
        if counts is None or int(counts[1]) + int(counts[2]) != len(tests):
            return {}
        return {test: "FAILED" if test in failed else "ok" for test in tests}


class Python:
    """The package in Python over the native module that bindings-python/tests/run has installed: that is not built anew."""

    def tests(self):
        return {(path.name, name) for path in (ROOT / "bindings-python" / "tests").glob("test_*.py")
                for name in re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.M)}

    def build(self, packages, target):
        native = TARGET / "venv-python" / "lib" / "python3*" / "site-packages" / "stanchion" / "_stanchion*.so"
        place = target / "python"
        return [["sh", "-c", f"ls {native} >/dev/null 2>&1 || {{ echo run first: bindings-python/tests/run; exit 1; }}; "
                 f"rm -rf {place} && mkdir -p {place} && cp -r bindings-python/python/stanchion {place} && "
                 f"cp {native} {place}/stanchion"]]

    def play(self, tests, target):
        python = TARGET / "venv-python" / "bin" / "python"
        return ["env", f"PYTHONPATH={target / 'python'}", "PYTHONDONTWRITEBYTECODE=1", str(python), "-m", "pytest", "-q", "-rA",
                "-p", "no:cacheprovider", *(f"bindings-python/tests/{test}" for test in tests)]

    def results(self, tests, output):
        told = re.findall(r"^(PASSED|FAILED|ERROR) (?:bindings-python/tests/)?(\S+)", output, re.M)

        def result(test):
            # On each store, in each face.
            words = {word for word, name in told if name.split("[")[0] == test}
            return "FAILED" if "FAILED" in words or "ERROR" in words else "ok" if words else None

        return {test: result(test) for test in tests}


class Node:
    """The facade in TypeScript over the addon that bindings-node/tests/run has installed: that is not built anew."""

    def tests(self):
        return {(path.name, name) for path in (ROOT / "bindings-node" / "tests").glob("*.test.mjs")
                for name in re.findall(r"^(?:test|onEveryStore)\('(.*?)',", path.read_text(), re.M)}

    def build(self, packages, target):
        app, place, tools = TARGET / "node-app", target / "node-app", TARGET / "node-tools" / "node_modules"
        return [["sh", "-c", f"ls {app}/package.json >/dev/null 2>&1 || {{ echo run first: bindings-node/tests/run; exit 1; }}; "
                 f"rm -rf {place} && cp -a {app} {place} && rm -rf {place}/tests && cp -r bindings-node/tests {place}/tests && "
                 f"{tools}/.bin/tsc --typeRoots {tools}/@types -p bindings-node/tsconfig.json "
                 f"--outDir {place}/node_modules/stanchion/dist"]]

    def play(self, tests, target):
        # Whole files: what Node leaves out takes those with it that it waits for.
        files = sorted({test.split("::")[0] for test in tests})
        return ["env", "-C", str(target / "node-app"), "node", "--test", "--test-concurrency=1", "--test-reporter=tap",
                *(f"tests/{file}" for file in files)]

    def results(self, tests, output):
        told = re.findall(r"^ *(ok|not ok) \d+ - (.*?)(?: # .*)?$", output, re.M)

        def result(test):
            # On each store.
            words = {word for word, name in told if name.startswith(test.split("::")[1])}
            return "FAILED" if "not ok" in words else "ok" if words else None

        return {test: result(test) for test in tests}


ALL = {"c": C(), "python": Python(), "node": Node()}
