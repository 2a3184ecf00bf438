"""Checks of the installed files, without running anything of theirs: passed, failed, ignored."""

import re
import subprocess

from install import PACKAGE, VERSION, output

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


def declared():
    return set(re.findall(r"^[a-z].*?\b(stanchion_\w+)\(", (PACKAGE / "include" / "stanchion.h").read_text(), re.M))


def exports_are_declared(library, but=frozenset()):
    """The library exports what the header declares, and nothing else."""
    symbols = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    strange, missing = symbols - declared() - but, declared() - symbols
    return total([
        check("what the header declares is exported", symbols and not missing, " ".join(sorted(missing))),
        check("what is exported is declared", not strange, " ".join(sorted(strange))),
    ])


def only_our_symbols(installed):
    """This build is one for tests; those of other profiles export nothing more than the header has, as sources say."""
    for_tests = {"stanchion_private_panic"}
    functions = re.compile(r'((?:^#\[.*\]\n)+)pub (?:unsafe )?extern "C" fn (stanchion_\w+)', re.M)
    shipped = {name for source in (PACKAGE / "src").glob("*.rs") for attributes, name in functions.findall(source.read_text())
               if "no_mangle" in attributes and "cfg(debug_assertions)" not in attributes}
    profiles = (PACKAGE.parent / "Cargo.toml").read_text()
    return total([
        exports_are_declared(installed.prefix / "lib" / "libstanchion.so", for_tests),
        check("what is shipped is declared", shipped == declared(), " ".join(sorted(shipped ^ declared()))),
        check("no profile has debug assertions of its own", "debug-assertions" not in profiles),
    ])


def no_symbols_but_those(installed):
    """The shared library has no table of its inner symbols, several times its size; the static one no debug information."""
    shared, static = (installed.prefix / "lib" / name for name in ("libstanchion.so", "libstanchion.a"))
    sections = output("readelf", "--sections", "--wide", shared)
    inner = {section for section in (".symtab", ".debug_info", ".debug_line") if section in sections}
    debug = ".debug_info" in output("readelf", "--sections", "--wide", static)
    print(f"libstanchion.so has {shared.stat().st_size / 1e6:.1f} MB, libstanchion.a {static.stat().st_size / 1e6:.1f} MB")
    return total([
        check("the shared library is stripped", not inner, " ".join(sorted(inner))),
        check("the static library has no debug information", not debug),
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


def found_by_cmake(installed):
    """A project that links each of the two targets, asks for this version, and for one that there is not."""
    folder = installed.programs / "cmake"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(example C)\nfind_package(stanchion ${WANTED} REQUIRED)\n"
        f"foreach(target stanchion static)\n    add_executable(with-${{target}} {PACKAGE}/examples/lock.c)\n"
        "    target_link_libraries(with-${target} stanchion::${target})\nendforeach()\n")
    prefix = f"-DCMAKE_PREFIX_PATH={installed.prefix}"

    def cmake(*arguments):
        return subprocess.run(["cmake", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    configured = cmake("-B", "built", prefix, f"-DWANTED={VERSION}")
    built = cmake("--build", "built") if configured.returncode == 0 else configured
    results = [check("CMake finds and links it", built.returncode == 0, built.stdout if built.returncode else "")]
    for target in ("stanchion", "static"):
        program = folder / "built" / f"with-{target}"
        command = [program, f"sqlite:{folder}/{target}.db"] if program.exists() else ["false"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=installed.environment())
        results.append(check(f"stanchion::{target} runs", done.returncode == 0, done.stdout if done.returncode else ""))
    newer = cmake("-B", "newer", prefix, "-DWANTED=99.0")
    results.append(check("CMake refuses a newer version", newer.returncode != 0 and VERSION in newer.stdout, newer.stdout))
    return total(results)


ALL = [headers_are_up_to_date, headers_compile, only_our_symbols, no_symbols_but_those,
       names_of_the_library, no_panic_in_sources, found_by_cmake]
