"""What a program that configures nothing sees of handlers that fail."""

import logging
import subprocess
import sys

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
    queue.worker(handler{hook}).run(burst=True)

async def loop():
    async with aio.connect("memory:") as client:
        queue = client.queue("emails")
        await queue.enqueue_many([stanchion.Task("first"), stanchion.Task("last", max_attempts=1)])
        await queue.worker(later{hook}).run(burst=True)

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
    queue.worker(settles).run(burst=True)
    assert "failed at attempt 1 of 20: the handler had settled it" in caplog.text
    queue.enqueue("lost")
    queue.worker(loses, lease=0.3).run(burst=True)
    assert "failed at attempt 1 of 20: the claim was lost, or the worker stops" in caplog.text
    queue.enqueue("hooked", max_attempts=1)
    queue.worker(settles, failed=lambda claim, error: None).run(burst=True)
    assert [record.levelname for record in caplog.records if "'hooked'" in record.getMessage()] == ["INFO", "ERROR"]
