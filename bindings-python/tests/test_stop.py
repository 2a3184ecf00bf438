"""What `stop` of a worker means, before, during and after a run."""

import asyncio
import threading

import pytest

import stanchion
from stanchion import aio


@pytest.fixture(params=["blocking", "asyncio"])
def run(request):
    """Makes a worker with this handler, and gives what runs it; all in one thread."""
    with stanchion.connect("memory:") as client:
        if request.param == "blocking":
            yield client.queue("q").enqueue, client.queue("q").worker, lambda worker, **how: worker.run(**how)
            return
    with asyncio.Runner() if hasattr(asyncio, "Runner") else _Runner() as runner:
        client = runner.run(aio.connect("memory:")._open())
        queue = client.queue("q")
        yield (lambda id: runner.run(queue.enqueue(id))), queue.worker, lambda worker, **how: runner.run(worker.run(**how))
        runner.run(client.close())


class _Runner:
    """As asyncio's, which Python has from 3.11 on."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        return self

    def run(self, work):
        return self._loop.run_until_complete(work)

    def __exit__(self, *error):
        self._loop.close()


def test_a_stop_is_for_one_run(run):
    enqueue, make, go = run
    worker = make(lambda claim: worker.stop())
    for number in range(3):
        enqueue(f"task {number}")
        assert go(worker).completed == 1


@pytest.mark.parametrize("verb", ["stop", "hurry"])
def test_a_stop_before_a_run_is_for_the_next_one(run, verb):
    enqueue, make, go = run
    done = []
    worker = make(lambda claim: done.append(claim.id))
    enqueue("task")
    getattr(worker, verb)()
    assert go(worker).completed == 0 and done == []
    assert go(worker, until_empty=True).completed == 1 and done == ["task"]


def test_a_stop_of_another_thread_that_comes_before_the_run_is_not_lost():
    with stanchion.connect("memory:") as client:
        worker, stopped = client.queue("q").worker(print), threading.Event()

        def runs():
            assert stopped.wait(20)
            worker.run()

        thread = threading.Thread(target=runs, daemon=True)
        thread.start()
        worker.stop()
        stopped.set()
        thread.join(20)
        assert not thread.is_alive()
