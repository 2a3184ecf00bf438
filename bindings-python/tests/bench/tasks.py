"""64 tasks of one event loop, each with a lock of its own, against `redis.asyncio`."""

import asyncio
import statistics
import time

import redis.asyncio
from stanchion import aio

# Rounds of each side, which alternate; pairs of each task in one round.
TASKS, ROUNDS, EACH = 64, 7, 40


def run(server, wheel, report):
    report.section(f"asyncio, {TASKS} tasks at once")
    ours, theirs = asyncio.run(rounds(server))
    report.compare("pairs per second, against redis.asyncio's Lock", ours, theirs, "pairs/s", at_least=3)


async def rounds(server):
    other = redis.asyncio.Redis(port=server.port)
    async with aio.connect(server.url) as client:
        locks = [client.lock(f"bench:task{number}") for number in range(TASKS)]
        others = [other.lock(f"bench:aio{number}", timeout=30) for number in range(TASKS)]

        async def our_pair(number):
            lease = await locks[number].acquire()
            await lease.release()

        async def other_pair(number):
            await others[number].acquire()
            await others[number].release()

        # The first round connects.
        rates = [(await rate(our_pair), await rate(other_pair)) for _ in range(1 + ROUNDS)][1:]
    await other.aclose()
    return [statistics.median(column) for column in zip(*rates)]


async def rate(pair):
    async def repeat(number):
        for _ in range(EACH):
            await pair(number)

    begin = time.perf_counter()
    await asyncio.gather(*map(repeat, range(TASKS)))
    return TASKS * EACH / (time.perf_counter() - begin)
