"""The player of Python, which also forks with a lease in its hand, and cancels calls at some moment."""

import asyncio
import json
import os
import select
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "players" / "python"))
import player  # noqa: E402
import stanchion  # noqa: E402
import stanchion.aio  # noqa: E402

# How long a child may take, which waits for a lock on a server under torture.
CHILD_S = 30


def now():
    return time.monotonic() * 1000


def attempt(call):
    """The name of the error, if there is one."""
    try:
        call()
    except stanchion.StanchionError as error:
        return type(error).__name__
    return None


def grant(lock, meanwhile=lambda lease: None, **options):
    """Acquires and releases; what is to be known about the lease, and what was done meanwhile."""
    invoked = now()
    lease = lock.acquire(**options)
    completed = now()
    valid, remaining = lease.valid, lease.remaining * 1000
    known = {"fence": lease.fence, "invoked": invoked, "completed": completed, "valid": valid, "looked": now(),
             "deadline": completed + remaining, "error": None, "renewed": options.get("renew", False)}
    done = meanwhile(lease)
    asked, valid = now(), lease.valid
    remaining = lease.remaining * 1000
    if valid and remaining > 0:
        known["deadline"] = max(known["deadline"], asked + remaining)
    left = now()
    released = attempt(lease.release)
    return {**known, "latest": left + remaining, "left": left, "loss": lease.lost.reason, "released": released,
            "over": now()}, done


def fork(actor, request):
    """A child with a fresh use of the inherited client, and an inherited lease that is not its own."""
    lock = actor.client.lock(request["lock"])
    own, done = grant(lock, lambda lease: child_of(actor, request, lease), ttl=3, renew=True, wait=2)
    return {"own": own, **done}


def own_grant(lock):
    """Of a child, which also tells why it got none."""
    invoked = now()
    try:
        known, _ = grant(lock, ttl=3, wait=2)
        return known
    except stanchion.StanchionError as error:
        return {"error": type(error).__name__, "invoked": invoked, "completed": now()}


def child_of(actor, request, lease):
    """What it says, and how it ends."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = {"extended": attempt(lambda: lease.extend(1)), "released": attempt(lease.release),
                    "own": own_grant(actor.client.lock(request["other"]))}
            del lease
            os.write(into, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(into)
    ready, _, _ = select.select([out], [], [], CHILD_S)
    told = os.read(out, 10_000) if ready else b""
    os.close(out)
    _, status = os.waitpid(child, 0) if told else (child, "the child hangs")
    return {"child": json.loads(told) if told else None, "status": status}


def cancel(actor, request):
    """A call in an event loop, cancelled after some time; what it was given if it was faster."""
    return asyncio.run(cancelled(request))


async def cancelled(request):
    settings = {key: request[key] for key in ("lock_prefix", "queue_prefix")}
    async with stanchion.aio.connect(request["url"], **settings) as client:
        if "lock" in request:
            call = client.lock(request["lock"]).acquire(ttl=0.8, wait=2)
        else:
            call = client.queue(request["queue"]).claim(lease=1, wait=1)
        task = asyncio.ensure_future(call)
        await asyncio.sleep(request["after_ms"] / 1000)
        task.cancel()
        try:
            found = await task
        except asyncio.CancelledError:
            return {"cancelled": True}
        # It was faster; what it has got is dropped with the client.
        return {"cancelled": False, "found": bool(found)}


player.OPERATIONS |= {"odd.fork": fork, "odd.cancel": cancel}

if __name__ == "__main__":
    player.main()
