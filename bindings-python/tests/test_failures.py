"""What a program that configures nothing sees of handlers that fail."""

import logging
import os
import signal
import subprocess
import sys
import time

import pytest

import stanchion

PROGRAM = """
import asyncio, stanchion
from stanchion import aio

def handler(claim):
    raise KeyError("no such address")

async def later(claim):
    handler(claim)

def blocking():
    queue = stanchion.connect("memory:").queue("emails")
    queue.enqueue_many([stanchion.Task("first"), stanchion.Task("last", max_attempts=1)])
    queue.worker(handler{hook}).run(until_empty=True)

async def loop():
    async with aio.connect("memory:") as client:
        queue = client.queue("emails")
        await queue.enqueue_many([stanchion.Task("first"), stanchion.Task("last", max_attempts=1)])
        await queue.worker(later{hook}).run(until_empty=True)

{call}
"""
CALLS = {"blocking": "blocking()", "asyncio": "asyncio.run(loop())"}


def told(face, hook=""):
    program = PROGRAM.format(call=CALLS[face], hook=hook)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("face", list(CALLS))
def test_a_failure_is_on_stderr_by_default(face):
    said = told(face)
    assert "task 'first' of queue 'emails' failed at attempt 1 of 20: it is tried again" in said
    assert "task 'last' of queue 'emails' failed at attempt 1 of 1: that was the last one" in said
    # The traceback, with the handler's own line.
    assert "in handler" in said and "KeyError: 'no such address'" in said
    assert "is dead after attempt 1" in said


@pytest.mark.parametrize("face", list(CALLS))
def test_who_has_a_hook_for_failures_is_told_there(face):
    said = told(face, ", failed=lambda claim, error: print('the hook:', error)")
    assert "failed at attempt" not in said and "is dead after attempt 1" in said


def test_a_failure_says_what_comes_next(client, caplog):
    queue = client.queue("q")
    caplog.set_level(logging.INFO, "stanchion")

    def settles(claim):
        claim.bury("no use")
        raise ValueError

    def loses(claim):
        queue.remove(claim.id)
        assert claim.lost.wait(30)
        raise ValueError

    queue.enqueue("settled")
    queue.worker(settles).run(until_empty=True)
    assert "failed at attempt 1 of 20: the handler had settled it" in caplog.text
    queue.enqueue("lost")
    queue.worker(loses, lease=0.3).run(until_empty=True)
    assert "failed at attempt 1 of 20: the claim was lost, or the worker stops" in caplog.text
    queue.enqueue("hooked", max_attempts=1)
    queue.worker(settles, failed=lambda claim, error: None).run(until_empty=True)
    assert [record.levelname for record in caplog.records if "'hooked'" in record.getMessage()] == ["INFO", "ERROR"]


GONE = """
import asyncio, stanchion, sys
from stanchion import aio

def blocking():
    stanchion.connect(sys.argv[1], timeout=0.5).queue("emails").worker(lambda claim: None).run()

async def loop():
    async def handler(claim): pass
    async with aio.connect(sys.argv[1], timeout=0.5) as client:
        await client.queue("emails").worker(handler).run()

{call}
"""


@pytest.mark.parametrize("face", list(CALLS))
def test_a_store_that_is_gone_and_back_is_told_once_each(face, mortal):
    url, server = mortal
    worker = subprocess.Popen(
        [sys.executable, "-u", "-c", GONE.format(call=CALLS[face]), url], stderr=subprocess.PIPE, text=True)
    try:
        with stanchion.connect(url) as client:
            client.queue("emails").enqueue("a")
            deadline = time.monotonic() + 30
            while client.queue("emails").get("a") is not None:
                assert time.monotonic() < deadline
        server.kill()
        server.wait()
        lost = worker.stderr.readline()
        again = restarted(url)
        try:
            back = worker.stderr.readline()
            worker.send_signal(signal.SIGTERM)
            rest = worker.communicate(timeout=30)[1]
        finally:
            again.kill()
            again.wait()
    finally:
        worker.kill()
        worker.wait()
    assert lost.startswith("queue 'emails': ") and "127.0.0.1" in lost, lost
    assert "queue 'emails': the store answers again, after " in back, back
    assert "emails" not in rest, rest


def restarted(url):
    """A server at the same place, which answers."""
    port = url.rsplit(":", 1)[1]
    server = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--logfile", os.devnull])
    deadline = time.monotonic() + 30
    while True:
        try:
            stanchion.connect(url, timeout=1).close()
            return server
        except stanchion.StoreUnavailable:
            assert time.monotonic() < deadline
