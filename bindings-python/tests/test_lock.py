"""Locks, blocking."""

import gc
import logging
import pickle
import threading
import time
from datetime import timedelta

import pytest

import stanchion


def test_a_lock_is_held_by_one(client):
    lock = client.lock("a")
    with lock as lease:
        assert lease.fence > 0 and lease.valid and 0 < lease.remaining <= 30
        assert lock.locked() and lock.owned()
        assert lock.try_acquire() is None
        with pytest.raises(stanchion.LockTimeout) as raised:
            lock.acquire(wait=0.05)
        assert isinstance(raised.value, TimeoutError) and raised.value.retryable
        assert (raised.value.code, raised.value.operation, raised.value.name) == (-1, "acquire", "a")
    assert not lock.locked() and not lock.owned()
    with lock.hold(wait=1, ttl=timedelta(seconds=5)) as second:
        assert second.fence > lease.fence and second.remaining <= 5


def test_hold_is_a_decorator(client):
    lock = client.lock("a")

    @lock.hold(wait=1)
    def body(x):
        assert lock.owned()
        return x + 1

    assert body(1) == 2 and body.__name__ == "body" and not lock.locked()


def test_lock_methods_act_on_the_innermost_lease_of_the_thread(client):
    lock = client.lock("a")
    lease = lock.acquire(ttl=5)
    lock.extend(60)
    assert lease.remaining > 50
    seen = []

    def other():
        seen.append(lock.owned())
        with pytest.raises(stanchion.LeaseLost):
            lock.release()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [False]
    lock.release()
    assert not lock.locked()
    with pytest.raises(stanchion.LeaseLost):
        lock.release()


def test_a_block_may_release_its_lease(client):
    lock = client.lock("a")
    with lock as lease:
        lease.release()
    with lock:
        lock.release()
    with lock:
        assert lock.owned()


def test_release_twice_is_an_error(client):
    lease = client.lock("a").acquire()
    lease.release()
    with pytest.raises(stanchion.StanchionError):
        lease.release()


def test_a_lease_nobody_keeps_lasts_until_it_is_released_or_its_thread_ends(client):
    lock = client.lock("a")
    lock.acquire()
    gc.collect()
    assert lock.owned() and lock.try_acquire() is None
    lock.release()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    lock.acquire(wait=5).release()


def test_a_lease_may_be_released_by_another_thread(client):
    lock = client.lock("a")
    lease = lock.acquire()
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    assert not lock.locked() and not lock.owned()


def test_cooldown_holder_and_break(client):
    lock = client.lock("a", label="me")
    lease = lock.acquire()
    holder = lock.holder()
    assert (holder.held_as, holder.label, holder.fence) == ("lease", "me", lease.fence)
    assert lock.break_lease()
    assert lock.holder() is None and not lock.break_lease()
    lock.acquire().release(cooldown=60)
    assert lock.try_acquire() is None and lock.holder().held_as == "cooldown"


def test_a_lost_lease_is_told(client, caplog):
    lock = client.lock("a")
    with pytest.raises(stanchion.LeaseExpired), caplog.at_level(logging.WARNING, "stanchion"):
        with lock.hold(ttl=0.06) as lease:
            assert not lease.lost
            assert lease.lost.wait(5) and lease.lost.is_set() and lease.lost and not lease.valid
    assert "lost" in caplog.text


def test_a_store_that_has_died_does_not_hide_the_loss(mortal):
    url, process = mortal
    client = stanchion.connect(url, timeout=0.5)
    with pytest.raises(stanchion.LeaseLost, match="cannot tell"):
        with client.lock("a").hold(ttl=1) as lease:
            process.kill()
            assert lease.lost.wait(60)


def test_a_loss_does_not_mask_the_bodys_exception(client):
    with pytest.raises(KeyError) as raised:
        with client.lock("a").hold(ttl=0.06) as lease:
            lease.lost.wait(5)
            raise KeyError("mine")
    assert isinstance(raised.value.__context__, stanchion.LeaseLost)


def test_a_handle_works_once(client):
    lock = client.lock("a")
    handle = lock.acquire().detach(30)
    assert lock.try_acquire() is None
    lease = client.resume_lease(handle)
    with pytest.raises(stanchion.LeaseLost):
        client.resume_lease(handle)
    lease.release()
    with pytest.raises(stanchion.InvalidArgument):
        client.resume_lease("nonsense")


def test_release_all_and_listing(client):
    leases = [client.lock(name).acquire() for name in "abc"]
    assert set(client.locks()) == set("abc")
    assert client.release_all() == 3 and not leases[0].valid
    assert len(client.locks()) == 0


def test_waiters_are_woken(client):
    lock, order = client.lock("a"), []
    lease = lock.acquire()
    thread = threading.Thread(target=lambda: [order.append(1), lock.acquire(wait=10).release(), order.append(2)])
    thread.start()
    time.sleep(0.1)
    lease.release()
    thread.join(10)
    assert order == [1, 2]


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 2.0**64, 1e300, 10**400, "10", True, b"1", []])
def test_bad_times(bad):
    client = stanchion.connect("memory:")
    lock = client.lock("a")
    with pytest.raises(stanchion.InvalidArgument) as raised:
        lock.acquire(ttl=bad)
    assert isinstance(raised.value, ValueError)
    if bad != 0:
        with pytest.raises(stanchion.InvalidArgument):
            lock.acquire(wait=bad)
    assert not lock.locked()


@pytest.mark.parametrize("bad", ["", "a\0b", "a\nb", "\ud800", 7, None, b"a", "x" * 70_000])
def test_bad_names(bad):
    client = stanchion.connect("memory:")
    with pytest.raises(stanchion.InvalidArgument):
        client.lock(bad).acquire()
    with pytest.raises(stanchion.InvalidArgument):
        client.queue(bad).stats()


def test_bad_urls(monkeypatch):
    monkeypatch.delenv("STANCHION_URL", raising=False)
    for bad in (None, "", "http://x", 7):
        with pytest.raises(stanchion.InvalidArgument):
            stanchion.connect(bad)
    with pytest.raises(stanchion.StoreUnavailable) as raised:
        stanchion.connect("redis://127.0.0.1:1", timeout=0.2)
    assert isinstance(raised.value, ConnectionError)


def test_handles_are_picklable(shared_url):
    client = stanchion.connect(shared_url)
    lock, queue = pickle.loads(pickle.dumps((client.lock("a", ttl=7), client.queue("q"))))
    with lock as lease:
        assert lease.remaining <= 7 and client.lock("a").locked()
    queue.enqueue("x")
    assert len(client.queue("q")) == 1


def test_a_panic_is_an_ordinary_exception():
    from stanchion import _stanchion

    with pytest.raises(stanchion.Internal, match="on purpose"):
        _stanchion._panic()
