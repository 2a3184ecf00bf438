"""Archives that are the same whenever and wherever they are made, and the hashes of what was made."""

import gzip
import hashlib
import os
import tarfile
import time
import zipfile


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def mode(path):
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def zipped(folder, target):
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for path in files(folder):
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode(path) << 16
            made.writestr(entry, path.read_bytes())


def tarred(folder, target, name):
    """With everything inside a folder of that name."""
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
        if not entry.issym():
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
        return entry

    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
            for path in files(folder):
                made.add(path, f"{name}/{path.relative_to(folder)}", recursive=False, filter=plain)


def sums(folder):
    """Writes SHA256SUMS, as sha256sum reads it; names and sizes."""
    made = [path for path in files(folder) if path.name != "SHA256SUMS"]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in made]
    (folder / "SHA256SUMS").write_text("".join(lines))
    return [(path.relative_to(folder), path.stat().st_size) for path in made]
