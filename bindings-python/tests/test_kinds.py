"""Read-write locks, semaphores, several locks, owners: what differs from a lock. What they do is in the scenarios."""

import asyncio
import copy
import os
import pickle
import signal
import threading
import time

import pytest

import stanchion
from stanchion import aio, testing


def kinds(client):
    index = client.rw_lock("a")
    return [index.read(), index.write(), client.semaphore("a", 3), client.multi_lock(["a", "b"]),
            client.lock("a").reentrant("me")]


def test_each_kind_is_a_context_manager_and_a_decorator(client):
    for lock in kinds(client):
        with lock as lease:
            assert lease.name == lock.name == "a" and lease.valid and lock.owned() and lock.locked()
        assert not lock.locked() and not lock.owned()

        @lock.hold(wait=1)
        def body(x):
            assert lock.owned()
            return x + 1

        assert body(1) == 2 and not lock.locked()
        with pytest.raises(stanchion.LeaseLost) as raised:
            with lock:
                assert lock.break_lease()
        assert raised.value.name == "a"


def test_the_kinds_of_one_name_are_owned_apart(client):
    index = client.rw_lock("a")
    exclusive, semaphore, several = client.lock("a"), client.semaphore("a", 2), client.multi_lock(["b", "a"])
    lease = index.read().acquire()
    assert index.read().owned()
    assert not any(lock.owned() for lock in (index.write(), exclusive, semaphore, several))
    with pytest.raises(stanchion.LeaseLost):
        exclusive.release()
    permit = semaphore.acquire(weight=2)
    semaphore.release()
    assert lease.valid and not permit.valid
    index.read().release()
    assert not lease.valid
    several.acquire()
    assert client.multi_lock(["a", "b", "a"]).owned() and not exclusive.owned()
    several.extend(60)
    several.release(cooldown=5)
    assert exclusive.holder().held_as == "cooldown"


def test_a_writer_becomes_a_reader(client):
    index = client.rw_lock("a", ttl=20, label="w")
    assert (index.name, repr(index)) == ("a", "<stanchion.RwLock 'a'>")
    with index.write() as writer:
        assert index.read().try_acquire() is None
        (alone,) = index.write().holders()
        assert alone.weight > 1 and alone.fence == writer.fence and alone.label == "w"
        writer.downgrade()
        before = writer.fence
        assert writer.upgrade() and writer.fence > before and writer.fences == {"a": writer.fence}
        writer.downgrade()
        with index.read().hold(label="r") as reader:
            assert sorted((one.label, one.weight) for one in index.read().holders()) == [("r", 1), ("w", 1)]
            assert reader.fence > writer.fence and reader.remaining <= 20
    assert index.read().holders() == []
    with client.lock("a") as lease, pytest.raises(stanchion.InvalidArgument):
        lease.downgrade()


def test_weights(client):
    jobs = client.semaphore("a", 5)
    with jobs.hold(weight=3), jobs.hold():
        assert jobs.try_acquire(weight=2) is None
        jobs.try_acquire(weight=1).release()
        assert sorted(one.weight for one in jobs.holders()) == [1, 3]
        with pytest.raises(stanchion.LockTimeout):
            jobs.acquire(wait=0.02, weight=5)


def test_fences_of_several(client):
    with client.multi_lock(name for name in "cab") as lease:
        assert list(lease.fences) == ["a", "b", "c"] and lease.fences["a"] == lease.fence
        assert client.lock("c").try_acquire() is None
        lease.fences["a"] = 0
        assert lease.fences["a"] == lease.fence
        with pytest.raises(stanchion.InvalidArgument):
            lease.detach()
        assert lease.valid
    with client.lock("a") as lease:
        assert lease.fences == {"a": lease.fence}


def test_an_owner_comes_in_again(client):
    lock = client.lock("a").reentrant("request 7")
    with lock as outer:
        with lock as inner:
            assert inner.fence == outer.fence
            assert client.lock("a").try_acquire() is None
        assert outer.valid and lock.owned()
        assert lock.reentrant("request 8").try_acquire() is None
    assert not lock.locked()


def test_a_release_that_is_refused_leaves_the_lease_to_its_block(client):
    for lock in (client.lock("a"), client.rw_lock("a").read(), client.multi_lock(["a", "b"])):
        with lock as lease:
            with pytest.raises(stanchion.InvalidArgument):
                lock.release(cooldown=0.001)
            assert lease.valid and lock.owned()
        assert not lock.locked() and not lock.owned()


def test_bad_arguments(client):
    for make in (lambda: client.multi_lock("ab"), lambda: client.multi_lock(None), lambda: client.multi_lock([b"a"]),
                 lambda: client.semaphore("a", 1.0), lambda: client.semaphore("a", True), lambda: client.rw_lock(1),
                 lambda: client.lock("a").reentrant(None), lambda: client.lock("a").reentrant("\udcff")):
        with pytest.raises(stanchion.InvalidArgument):
            make()
    for lock in (client.multi_lock([]), client.semaphore("a", 0), client.semaphore("a", 2**64 - 1),
                 client.lock("a").reentrant("")):
        with pytest.raises(stanchion.InvalidArgument):
            lock.acquire()
    with pytest.raises(TypeError):
        client.rw_lock("a", adopt_unexpiring=1)


def test_they_are_pickled_and_copied(shared_url):
    with stanchion.connect(shared_url) as client:
        for lock in kinds(client):
            other = pickle.loads(pickle.dumps(lock))
            with other as lease:
                assert lease.name == "a" and lock.locked()
        index = pickle.loads(pickle.dumps(client.rw_lock("a", ttl=5)))
        with index.write() as lease:
            assert lease.remaining <= 5 and client.rw_lock("a").read().try_acquire() is None
        assert copy.copy(client.semaphore("a", 3)).try_acquire(weight=3) is not None


def test_ctrl_c_ends_a_wait_and_leaves_nothing(client):
    index = client.rw_lock("a")
    with index.read() as lease:
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            index.write().acquire(wait=60)
        timer.join()
        assert time.monotonic() - began < 30
        assert lease.valid and index.read().holder().waiters == 0
    # What several locks had before the interrupt is given back.
    with client.lock("b"):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            client.multi_lock(["a", "b"]).acquire(wait=60)
        timer.join()
        client.lock("a").acquire(wait=5).release()


def test_time_stands_still_in_memory():
    clock = testing.Clock()
    with testing.memory_client(clock) as client:
        leases = [lock.acquire(ttl=30) for lock in kinds(client)[:1] + kinds(client)[2:4]]
        clock.advance(31)
        assert [lease.lost.is_set() for lease in leases] == [True] * 3
        assert client.rw_lock("a").write().try_acquire() is not None


def test_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            index = client.rw_lock("a")
            async with index.write() as writer:
                assert index.write().owned() and not index.read().owned()
                waiting = asyncio.ensure_future(index.read().acquire(wait=30))
                while (await index.write().holder()).waiters == 0:
                    await asyncio.sleep(0.01)
                await writer.downgrade()
                reader = await waiting
                assert {one.fence for one in await index.read().holders()} == {writer.fence, reader.fence}
                cancelled = asyncio.ensure_future(index.write().acquire(wait=60))
                while (await index.read().holder()).waiters == 0:
                    await asyncio.sleep(0.01)
                (waiter,) = await index.read().waiters()
                assert waiter.weight > 1 and waiter.pid > 0 and 0 <= waiter.waiting < 60
                cancelled.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await cancelled
                while (await index.read().holder()).waiters > 0:
                    await asyncio.sleep(0.01)
                await reader.release()

            @client.semaphore("a", 5).hold(weight=4)
            async def heavy():
                assert await client.semaphore("a", 5).try_acquire(weight=2) is None
                return [one.weight for one in await client.semaphore("a", 5).holders()]

            assert await heavy() == [4]
            async with client.multi_lock(["b", "a"]) as both:
                assert list(both.fences) == ["a", "b"]
            with pytest.raises(stanchion.LeaseLost):
                async with client.multi_lock(["a", "b"]).hold(ttl=20) as both:
                    await client.lock("b").break_lease()
                    await both.extend(30)
            assert not await client.lock("a").locked()
            lock = client.lock("a").reentrant("me")
            async with lock as outer, lock as inner:
                assert outer.fence == inner.fence
            assert not await lock.locked()
            assert repr(index) == "<stanchion.aio.RwLock 'a'>"

    asyncio.run(asyncio.wait_for(main(), 60))
