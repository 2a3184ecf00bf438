"""The examples, as a user starts them: real processes, real requests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import stanchion

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name, *arguments):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_cache(shared_url):
    assert run("cache.py", shared_url) == "computing the price of apples\n20 calls in 4 processes\n"


def test_the_worker(shared_url):
    run("worker.py", shared_url, "enqueue", "alice", "bob", "nobody")
    out = run("worker.py", shared_url, "until-empty")
    assert "sent to alice, attempt 1\n" in out and out.endswith("2 sent\n")
    dead = stanchion.connect(shared_url).queue("emails").list("dead")
    assert [task.id for task in dead] == ["welcome:nobody"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_worker_ends_well(shared_url, number):
    run("worker.py", shared_url, "enqueue", "alice")
    worker = subprocess.Popen([sys.executable, EXAMPLES / "worker.py", shared_url], stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout.readline() == "sent to alice, attempt 1\n"
        worker.send_signal(number)
        assert worker.communicate(timeout=60)[0] == "1 sent\n" and worker.returncode == 0
    finally:
        worker.kill()


def buy(address):
    try:
        request = urllib.request.Request(address, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["fence"]
    except urllib.error.HTTPError as error:
        assert error.code == 409
        return None


def answers(address):
    try:
        socket.create_connection(address, 1).close()
    except OSError:
        return False
    return True


SERVERS = {
    "flask": ["gunicorn", "--preload", "--workers", "4", "--threads", "2", "--bind", "127.0.0.1:{port}", "flash_sale:app"],
    "fastapi": ["uvicorn", "--workers", "3", "--port", "{port}", "flash_sale_aio:app"],
}


@pytest.mark.parametrize("server", SERVERS)
def test_the_flash_sale(server, shared_url, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stock = tmp_path / "stock.txt"
    stock.write_text("10")
    command = [word.format(port=port) for word in SERVERS[server]]
    process = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=EXAMPLES, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "STANCHION_URL": shared_url, "STOCK": str(stock)})
    try:
        deadline = time.monotonic() + 60
        while not answers(("127.0.0.1", port)):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        with ThreadPoolExecutor(8) as buyers:
            fences = list(buyers.map(buy, [f"http://127.0.0.1:{port}/buy"] * 60))
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    sold = [fence for fence in fences if fence is not None]
    assert len(sold) == 10 == len(set(sold)) and stock.read_text() == "0", output
    assert process.returncode in (0, -signal.SIGTERM) and "Traceback" not in output, output
