"""The reference of each language, from its sources: nothing of ours is compiled, but for what rustdoc checks."""

import os
import re
import shutil
import subprocess

from pages import REPOSITORY, ROOT

TARGET = ROOT / "target" / "site-work"
HEADER = ROOT / "bindings-c" / "include" / "stanchion.h"
PYTHON = ROOT / "bindings-python" / "python" / "stanchion"
# Of a declaration in the header, the first that fits.
NAMES = (r"^#define (\w+)", r"^typedef (?:enum|struct) (\w+)", r"^typedef .*?(\w+);", r"\b(stanchion_\w+)\(")
PYTHON_MODULES = ("stanchion", "stanchion.aio", "stanchion.testing")


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def rust(site):
    run("cargo", "doc", "--locked", "--no-deps", "--package", "stanchion", "--quiet", cwd=ROOT)
    made = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "doc"
    shutil.copytree(made, site / "reference" / "rust", dirs_exist_ok=True)


def node_tools():
    """What npm has installed, as the lock file says."""
    tools, lock = TARGET / "node", ROOT / "docs" / "site" / "package-lock.json"
    if not (tools / "package-lock.json").exists() or (tools / "package-lock.json").read_text() != lock.read_text():
        shutil.rmtree(tools, ignore_errors=True)
        tools.mkdir(parents=True)
        shutil.copy(lock.with_name("package.json"), tools)
        shutil.copy(lock, tools)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=tools)
    return tools


def node(site):
    tools = node_tools()
    # A copy, so that the compiler finds the types of Node beside it.
    package = tools / "package"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir()
    for name in ("src-ts", "native.d.ts", "package.json", "tsconfig.json", "README.md"):
        source = ROOT / "bindings-node" / name
        shutil.copytree(source, package / name) if source.is_dir() else shutil.copy(source, package / name)
    run(tools / "node_modules" / ".bin" / "typedoc", "--name", "stanchion", "--readme", "none", "--disableSources",
        "--excludeInternal", "--hideGenerator", "--treatWarningsAsErrors", "false", "--logLevel", "Error",
        "--out", site / "reference" / "node", "src-ts/index.ts", "src-ts/testing.ts", cwd=package)


def php(pages):
    """By PHP's own reflection."""
    made = run("php", ROOT / "docs" / "site" / "reference.php", ROOT / "bindings-c" / "php" / "src",
               stdout=subprocess.PIPE, text=True).stdout
    (pages / "reference" / "php.md").write_text(made)


def python(pages):
    """From the sources and stubs, by mkdocstrings, which imports nothing."""
    parts = ["# Python\n\nThe package `stanchion`, its asyncio face `stanchion.aio`, and what tests use, `stanchion.testing`.\n"]
    for module in PYTHON_MODULES:
        parts.append(f"\n## {module}\n\n::: {module}\n    options:\n      show_root_toc_entry: false\n")
    (pages / "reference" / "python.md").write_text("".join(parts))


def c(pages):
    """Each declaration of the header with the comment above it."""
    text = HEADER.read_text()
    head = re.search(r"^/\*\n(.*?)\*/", text, re.S)[1]
    parts = ["# C\n", re.sub(r"^ \* ?", "", head, flags=re.M)]
    body = text[text.index("#include <stdint.h>"):]
    for block in re.split(r"\n\n+", body):
        comment = re.match(r"((?:// ?.*\n)+)(.*)", block, re.S)
        if comment is None:
            continue
        name = next(filter(None, (re.search(one, comment[2], re.M) for one in NAMES)), None)
        if name is None:
            continue
        said = re.sub(r"^// ?", "", comment[1], flags=re.M)
        parts.append(f"## {name[1]}\n\n{said}\n```c\n{comment[2].strip()}\n```\n")
    (pages / "reference" / "c.md").write_text("\n".join(parts))


def overview(pages):
    (pages / "reference" / "index.md").write_text(
        "# Reference\n\n"
        "- [Rust](rust/stanchion/index.html): rustdoc\n- [Python](python.md)\n- [Node](node/index.html): TypeDoc\n"
        "- [PHP](php.md)\n- [C](c.md)\n- Shell: `stanchion help`, `man stanchion`, and [the page about it](../languages/shell.md)\n\n"
        f"Options, side by side in all languages: [OPTIONS](../manual/options.md). The sources: [{REPOSITORY}]({REPOSITORY}).\n")
