"""One process that fills a queue and drains it: `drainers.py KIND PORT COUNT` prints tasks per second.

For the others the time ends when the last task has run, for ours when the worker has settled it and ended.
"""

import asyncio
import itertools
import logging
import os
import sys
import threading
import time


class Countdown:
    """Tells when this many tasks have run."""

    def __init__(self, count):
        self._count = count
        self._ran = itertools.count(1)
        self.over = threading.Event()

    def __call__(self, *_):
        if next(self._ran) == self._count:
            self.over.set()


def stanchion(port, count):
    import stanchion

    queue = stanchion.connect(f"redis://127.0.0.1:{port}").queue("bench")
    queue.enqueue_many(f"task{number}" for number in range(count))
    run = Countdown(count)
    begin = time.perf_counter()
    queue.worker(run, concurrency=8).run(until_empty=True)
    finish(begin, count, run)


def stanchion_aio(port, count):
    from stanchion import aio

    run = Countdown(count)

    async def handler(claim):
        run()

    async def work():
        async with aio.connect(f"redis://127.0.0.1:{port}") as client:
            queue = client.queue("bench")
            await queue.enqueue_many(f"task{number}" for number in range(count))
            begin = time.perf_counter()
            await queue.worker(handler, concurrency=8).run(until_empty=True)
            finish(begin, count, run)

    asyncio.run(work())


def dramatiq(port, count):
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    logging.disable(logging.WARNING)
    broker = RedisBroker(url=f"redis://127.0.0.1:{port}")
    dramatiq.set_broker(broker)
    run = Countdown(count)
    actor = dramatiq.actor(fn=lambda: run(), actor_name="bench")
    for _ in range(count):
        actor.send()
    worker = dramatiq.Worker(broker, worker_threads=8)
    begin = time.perf_counter()
    worker.start()
    finish(begin, count, run)


def huey(port, count):
    from huey import RedisHuey

    queue = RedisHuey("bench", port=port, results=False)
    run = Countdown(count)
    task = queue.task(name="bench")(lambda: run())
    for _ in range(count):
        task()
    consumer = queue.create_consumer(workers=4, periodic=False)
    begin = time.perf_counter()
    consumer.start()
    finish(begin, count, run)


def nothing():
    """RQ finds its tasks by name."""


def rq(port, count):
    from redis import Redis
    from rq import Queue, SimpleWorker

    client = Redis(port=port)
    queue = Queue("bench", connection=client)
    for _ in range(count):
        queue.enqueue("drainers.nothing")
    worker = SimpleWorker([queue], connection=client)
    begin = time.perf_counter()
    worker.work(burst=True, logging_level="WARNING")
    left = len(queue) + queue.failed_job_registry.count
    if left:
        sys.exit(f"{left} tasks were not done")
    print(count / (time.perf_counter() - begin))


def bare(port, count):
    """The least for at-least-once: what was taken is noted as taken, and forgotten with the next call."""
    from redis import Redis

    client = Redis(port=port)
    client.rpush("bench:ready", *range(count))
    step = client.register_script(
        "for _, id in ipairs(ARGV) do redis.call('ZREM', KEYS[2], id) end "
        "local ids = redis.call('LPOP', KEYS[1], 8) "
        "for _, id in ipairs(ids or {}) do redis.call('ZADD', KEYS[2], 1, id) end return ids")
    run = Countdown(count)
    begin = time.perf_counter()
    ids = []
    while (ids := step(keys=["bench:ready", "bench:taken"], args=ids)) is not None:
        for id in ids:
            run(id)
    finish(begin, count, run)


def finish(begin, count, run):
    if not run.over.wait(60):
        sys.exit("not all tasks ran")
    print(count / (time.perf_counter() - begin), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](int(sys.argv[2]), int(sys.argv[3]))
    # Threads of some workers would run on.
    os._exit(0)
