"""Processes that gevent or eventlet has patched: a call waits in its greenlet, and the others go on."""

import subprocess
import sys

import pytest

# What the programs use of either.
GREEN = {
    "gevent": """
from gevent import monkey; monkey.patch_all()
import gevent
from gevent import Timeout, sleep, spawn
def joined(greenlets): gevent.joinall(greenlets, raise_error=True)
def ended(greenlet): greenlet.kill()
""",
    "eventlet": """
import eventlet; eventlet.monkey_patch()
from eventlet import Timeout, sleep, spawn
def joined(greenlets): [greenlet.wait() for greenlet in greenlets]
def ended(greenlet): greenlet.kill()
""",
}

PROGRAM = """
import os, sys, time, stanchion
client = stanchion.connect(sys.argv[1])
turns = [0]
def ticks():
    while True:
        turns[0] += 1
        sleep(0)
ticking = spawn(ticks)
sleep(0)
"""

COOPERATES = """
with client.lock("a"):
    before = turns[0]
    # The hub goes on while this waits, and so does who is to end the wait.
    try:
        client.lock("a").acquire(wait=0.2)
    except stanchion.LockTimeout:
        assert turns[0] - before > 10, turns
    else:
        raise AssertionError
lock, inside = client.lock("b"), []
def works(number):
    with lock.hold(wait=60) as lease:
        assert lock.owned() and lease.valid and not inside
        inside.append(number)
        lease.extend(30)
        sleep(0)
        inside.remove(number)
joined([spawn(works, number) for number in range(200)])
queue = client.queue("q")
waiting = spawn(lambda: done.extend(queue.claim(wait=60)))
done = []
sleep(0)
assert queue.enqueue("task", {"to": "x"}).outcome == "added"
joined([waiting])
assert done[0].json == {"to": "x"} and not done[0].lost.wait(0.01)
done[0].ack()
queue.configure(events=10)
told = []
watching = spawn(lambda: told.extend(event.what for _, event in zip(range(2), queue.events(after=0))))
sleep(0)
queue.enqueue("other")
queue.remove("other")
joined([watching])
assert told == ["added", "removed"], told
computed = []
def value():
    computed.append(1)
    sleep(0.01)
    return "value"
joined([spawn(lambda: client.cached("c", 60, value)) for _ in range(20)])
assert computed == [1] and client.release_all() == 0
try:
    client.lock(7)
except stanchion.InvalidArgument as error:
    assert str(error).startswith("lock(): name must be"), error
"""

INTERRUPTED = """
holder = client.lock("a").acquire()
got = []
waiting = spawn(lambda: got.append(client.lock("a").acquire(wait=600)))
while not client.lock("a").waiters():
    sleep(0.01)
ended(waiting)
try:
    with Timeout(0.1):
        client.lock("a").acquire(wait=600)
except Timeout:
    pass
end = time.monotonic() + 20
while client.lock("a").waiters():
    assert time.monotonic() < end
    sleep(0.01)
holder.release()
assert not got and not client.lock("a").locked()
"""

FORKED = """
with client.lock("a"):
    child = os.fork()
    if child == 0:
        taken = client.lock("a").try_acquire()
        mine = client.lock("child").acquire().fence
        os._exit(0 if taken is None and mine else 1)
    assert os.waitpid(child, 0)[1] == 0
    client.lock("b").acquire().release()
"""

WORKER = """
for refused in (lambda: client.queue("q").worker(print),):
    try:
        refused()
    except stanchion.Unsupported as error:
        assert NAME in str(error) and "a process of its own" in str(error) and "stanchion.aio" in str(error), error
    else:
        raise AssertionError
"""

PATCHED_LATER = """
import sys, stanchion
worker = stanchion.connect(sys.argv[1]).queue("q").worker(print)
{patch}
try:
    worker.run(until_empty=True)
except stanchion.Unsupported as error:
    print("all is well")
"""


def runs(program, *args):
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=40)
    assert done.returncode == 0 and done.stdout == "all is well\n", done.stderr
    return done.stderr


@pytest.mark.parametrize("name", list(GREEN))
@pytest.mark.parametrize("body", [COOPERATES, INTERRUPTED, FORKED, WORKER], ids=["cooperates", "interrupted", "forked", "worker"])
def test_greenlets(name, body, shared_url):
    program = GREEN[name] + f"NAME = {name!r}\n" + PROGRAM + body + "ended(ticking)\nprint('all is well')\n"
    runs(program, shared_url)


@pytest.mark.parametrize("name", list(GREEN))
def test_a_worker_that_was_made_before_the_patch_is_refused(name, shared_url):
    runs(PATCHED_LATER.format(patch=GREEN[name].strip().split("\n")[0]), shared_url)
