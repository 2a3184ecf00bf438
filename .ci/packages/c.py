"""The C library and the command line: a tarball to unpack into a prefix, and packages for Debian."""

import json
import os
import shutil
import time

import archive
import native
from tools import DIST, LICENSES, ROOT, VERSION, WORK, run, tool

EXAMPLES = ROOT / "cli" / "systemd"
ABI = 0


def build(platform, built):
    place = WORK / "c"
    shutil.rmtree(place, ignore_errors=True)
    tree = place / "tree"
    # The libraries are there. strip knows this machine's processor only; what was compiled for another has no more than it needs.
    strip = "strip" if platform.triple.startswith(os.uname().machine) else "true"
    made = ("make", "--quiet", "-C", ROOT / "bindings-c", "install", "CARGO=true", f"STRIP={strip}", f"BUILT={built}")
    if platform.debian:
        run(*made, f"DESTDIR={tree}", "PREFIX=/usr", f"LIBDIR=/usr/lib/{multiarch(platform)}")
        command_line(tree / "usr", built / "stanchion")
        debian(platform, place, tree)
    name = f"stanchion-{VERSION}-{platform.triple}"
    prefix = place / "prefix"
    run(*made, f"DESTDIR={prefix}", "PREFIX=/", "LIBDIR=/lib", "INCLUDEDIR=/include", "RELOCATABLE=1")
    command_line(prefix, built / "stanchion")
    for licence in LICENSES:
        shutil.copy(licence, prefix)
    archive.tarred(prefix, DIST / f"{name}.tar.gz", name)


def command_line(prefix, program):
    """The program with its manual page, completions and examples of units."""
    def put(path, content):
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_bytes(content)

    def said(*arguments):
        return run(native.folder(native.OWN) / "stanchion", *arguments, capture_output=True).stdout

    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(program, prefix / "bin" / "stanchion")
    put("share/man/man1/stanchion.1", said("man"))
    put("share/bash-completion/completions/stanchion", said("completions", "bash"))
    put("share/zsh/vendor-completions/_stanchion", said("completions", "zsh"))
    put("share/fish/vendor_completions.d/stanchion.fish", said("completions", "fish"))
    shutil.copytree(EXAMPLES, prefix / "share/doc/stanchion/examples", dirs_exist_ok=True)


def multiarch(platform):
    return platform.triple.replace("-unknown", "")


def debian(platform, place, tree):
    library = f"usr/lib/{multiarch(platform)}"
    runtime, dev = f"libstanchion{ABI}", "libstanchion-dev"
    libc = f"libc6 (>= {platform.glibc})"
    packages = {
        runtime: ("libs", "Distributed locks and a queue of tasks: the shared library", [libc],
                  [f"{library}/libstanchion.so.*"]),
        dev: ("libdevel", "Distributed locks and a queue of tasks: header, static library, pkg-config and CMake",
              [f"{runtime} (= {VERSION})"],
              ["usr/include", f"{library}/libstanchion.so", f"{library}/libstanchion.a", f"{library}/pkgconfig",
               f"{library}/cmake"]),
        "stanchion": ("utils", "Distributed locks and a queue of tasks on the command line", [libc],
                      ["usr/bin", "usr/share"]),
    }
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    for name, (section, description, depends, patterns) in packages.items():
        described = {
            "name": name, "arch": platform.debian, "version": VERSION, "section": section, "priority": "optional",
            "description": description, "maintainer": "The Stanchion authors", "license": "MIT OR Apache-2.0",
            "mtime": date, "depends": depends, "contents": contents(tree, patterns, date, name),
            "deb": {"compression": "xz"},
        }
        # JSON is YAML.
        (place / f"{name}.yaml").write_text(json.dumps(described))
        run(tool("nfpm"), "package", "--config", place / f"{name}.yaml", "--packager", "deb", "--target", DIST)


def contents(tree, patterns, date, name):
    found = sorted(path for pattern in patterns for path in tree.glob(pattern))
    inside = [path for start in found for path in (archive.files(start) if start.is_dir() else [start])]
    made = []
    for path in inside:
        to = f"/{path.relative_to(tree)}"
        if path.is_symlink():
            made.append({"src": os.readlink(path), "dst": to, "type": "symlink", "file_info": {"mtime": date}})
        else:
            info = {"mode": archive.mode(path), "mtime": date, "owner": "root", "group": "root"}
            made.append({"src": str(path), "dst": to, "file_info": info})
    for licence in LICENSES:
        made.append({"src": str(licence), "dst": f"/usr/share/doc/{name}/{licence.name}",
                     "file_info": {"mode": 0o644, "mtime": date}})
    return made
