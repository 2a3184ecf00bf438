"""Checks of the installed files, without running anything of theirs: passed, failed, ignored."""

import re
import subprocess

from install import PACKAGE, output

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
COMPILERS = [("gcc", "c99"), ("gcc", "c17"), ("clang", "c99"), ("g++", "c++17"), ("clang++", "c++17")]
# What PHP's FFI knows without them.
BASICS = "#include <stddef.h>\n#include <stdint.h>\n"


def check(title, ok, details=""):
    print(f"{title}: {'ok' if ok else 'FAILED ' + title.replace(' ', '_')}{details and chr(10) + details}", flush=True)
    return int(ok), int(not ok), 0


def total(results):
    return tuple(sum(column) for column in zip(*results))


def headers_are_up_to_date(installed):
    done = subprocess.run([installed.headers, "--check"], stderr=subprocess.PIPE, text=True)
    return check("headers as their sources say", done.returncode == 0, done.stderr)


def headers_compile(installed):
    """By themselves, twice, by every compiler; the one for PHP also after the basic types alone."""
    installed_header = f"{BASICS.splitlines()[0]}\n#include <stanchion.h>\n#include <stanchion.h>\n"
    flat = (PACKAGE / "php" / "stanchion.ffi.h").read_text()
    results = [check("the header for PHP is flat", not re.search(r"^\s*#|extern|//|static|inline", flat, re.M))]
    for compiler, standard in COMPILERS:
        language = "c++" if "+" in standard else "c"
        for name, source in (("stanchion.h", installed_header), ("stanchion.ffi.h", BASICS + flat)):
            if language == "c++" and name == "stanchion.ffi.h":
                continue
            done = subprocess.run(
                [compiler, f"-std={standard}", *WARNINGS, f"-I{installed.prefix}/include", "-x", language, "-"],
                input=source, text=True, stderr=subprocess.PIPE)
            results.append(check(f"{name} for {compiler} {standard}", done.returncode == 0, done.stderr))
    return total(results)


def only_our_symbols(installed):
    library = installed.prefix / "lib" / "libstanchion.so"
    symbols = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    declared = set(re.findall(r"^[a-z].*?\b(stanchion_\w+)\(", (PACKAGE / "include" / "stanchion.h").read_text(), re.M))
    strange = {symbol for symbol in symbols if not symbol.startswith("stanchion_")}
    hidden = symbols - strange - declared
    return total([
        check("only symbols of ours are exported", not strange, " ".join(sorted(strange))),
        check("what the header declares is exported", declared and declared <= symbols, " ".join(declared - symbols)),
        check("what is exported is declared", hidden == {"stanchion_private_panic"}, " ".join(hidden)),
    ])


def names_of_the_library(installed):
    dynamic = output("readelf", "-d", installed.prefix / "lib" / "libstanchion.so")
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
    version = output("pkg-config", "--modversion", installed.prefix / "lib" / "pkgconfig" / "stanchion.pc").strip()
    links = [installed.prefix / "lib" / name for name in ("libstanchion.so", "libstanchion.so.0")]
    real = f"libstanchion.so.{version}"
    return total([
        check("the SONAME has the number of the interface", bool(soname) and soname[1] == "libstanchion.so.0"),
        check("it stays when it is closed", "NODELETE" in dynamic),
        check("links lead to the library", all(link.resolve().name == real for link in links)),
    ])


def no_panic_in_sources(_):
    """Every exported function goes through the one place where panics end."""
    bare = []
    sources = [source for source in (PACKAGE / "src").glob("*.rs") if source.stem != "boundary"]
    for source in sources:
        for name, body in re.findall(r'extern "C" fn (stanchion_\w+)(.*?\n\})', source.read_text(), re.S):
            if "boundary::" not in body and not re.search(r"\b(on|look|text)\(", body):
                bare.append(name)
    return check("every function has the boundary around it", not bare, " ".join(bare))


ALL = [headers_are_up_to_date, headers_compile, only_our_symbols, names_of_the_library, no_panic_in_sources]
