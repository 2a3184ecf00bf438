"""The Python part of `make demo`: buyers in Python beside those in Rust, in one sale, and a worker that writes too late; and two
tenants of one queue."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wheelhouse import TARGET

ROOT = Path(__file__).resolve().parents[2]
BUYERS = ROOT / "bindings-python" / "demo" / "buyers.py"
LATE = ROOT / "bindings-python" / "demo" / "late_write.py"


@pytest.fixture(scope="module")
def examples():
    # Of the whole workspace, as the other tests: with other features everything would be built again.
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--workspace", "--example", "flash_sale", "--example", "late_write",
         "--example", "tenants", "--target-dir", TARGET],
        cwd=ROOT, check=True, timeout=600)
    return TARGET / "debug" / "examples"


@pytest.fixture(scope="module")
def flash_sale(examples):
    return examples / "flash_sale"


@pytest.fixture(scope="module")
def late_write(examples):
    return examples / "late_write"


def hold(program, url, *words):
    return run(program, url, "--buyers", "Python", *words)


def run(program, url, *words):
    environment = {name: value for name, value in os.environ.items() if name != "STANCHION_URL"}
    environment.update({"STANCHION_URL": url} if url else {})
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("store", ["embedded", "redis"])
def test_buyers_in_python_and_rust_share_ten_items(flash_sale, store, request):
    url = request.getfixturevalue("redis_url") if store == "redis" else None
    done = hold(flash_sale, url, sys.executable, BUYERS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "buyers served: 1,000 in Rust, 1,000 in Python\n" in done.stdout
    assert "sold 10 of 10, to 10 different buyers" in done.stdout
    assert "fences: 2,000, every one larger than the one before" in done.stdout


def test_buyers_that_do_not_lock_break_the_promise(flash_sale, tmp_path):
    program = BUYERS.read_text().replace("if lock == NO_LOCK", "if True")
    (tmp_path / "buyers.py").write_text(program)
    done = hold(flash_sale, None, sys.executable, tmp_path / "buyers.py")
    assert done.returncode == 1 and "WRONG" in done.stdout


def test_buyers_that_cannot_start_fail_the_demo(flash_sale):
    done = hold(flash_sale, None, sys.executable, "-c", "raise SystemExit('no')")
    assert done.returncode == 1 and "a process could not start" in done.stderr


@pytest.mark.parametrize("store", ["embedded", "redis"])
def test_a_flood_holds_up_the_other_tenant_only_without_keys(examples, store, request):
    url = request.getfixturevalue("redis_url") if store == "redis" else None
    done = run(examples / "tenants", url)
    assert done.returncode == 0, done.stdout + done.stderr
    before = dict(re.findall(r"^  (with\w*) keys .* (\d+)$", done.stdout, re.M))
    assert before["without"] == "2000" and int(before["with"]) <= 20
    assert done.stderr == ""


@pytest.mark.parametrize("language", ["Python", "Rust"])
@pytest.mark.parametrize("store", ["embedded", "redis"])
def test_a_cancelled_run_is_told_and_its_late_write_refused(late_write, store, language, request):
    url = request.getfixturevalue("redis_url") if store == "redis" else None
    done = run(late_write, url, *(["Python", sys.executable, LATE] if language == "Python" else []))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"run 1 ({language})" in done.stdout and "reason: cancelled." in done.stdout
    assert "REFUSED by the table, no row was changed" in done.stdout
    assert done.stderr == ""


# What the worker does otherwise, and what the demo says of it.
@pytest.mark.parametrize("right, other, wrong", [
    (" AND fence <= ?", " AND 0 <= ?", "the late write was accepted"),
    ("claim.lost.reason or", "False or", "the cancelled run was not told that it was cancelled"),
    ("claim.lost.reason or", "'expired' or", "the cancelled run was not told that it was cancelled"),
    ("claim.ack(claim.payload)", "pass", "the queue did not refuse the cancelled run"),
])
def test_a_late_writer_that_is_not_refused_fails_the_demo(late_write, tmp_path, right, other, wrong):
    program = LATE.read_text()
    assert program.count(right) == 1
    (tmp_path / "late_write.py").write_text(program.replace(right, other))
    done = run(late_write, None, "Python", sys.executable, tmp_path / "late_write.py")
    assert done.returncode == 1 and f"WRONG: {wrong}\n" in done.stdout
