"""What a client counts, as the parser of the Prometheus project reads it."""

import asyncio
import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

import stanchion

GRANTED = 'stanchion_lock_acquires_total{outcome="granted"}'


def parsed(text):
    """Samples by name and labels; each family has a type and a help."""
    families = list(text_string_to_metric_families(text))
    assert families and all(family.type != "unknown" and family.documentation for family in families)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples}
    assert len(samples) == sum(not line.startswith("#") for line in text.splitlines())
    return samples


def test_the_text_is_that_of_prometheus(client):
    with client.lock("a"):
        pass
    queue = client.queue('q "1" \\')
    queue.enqueue("t")
    queue.claim()[0].ack()
    samples = parsed(client.metrics_text())
    assert samples["stanchion_lock_acquires_total", ("outcome", "granted")] == 1
    assert samples["stanchion_lock_hold_seconds_bucket", ("le", "+Inf")] == 1
    assert samples["stanchion_queue_settled_total", ("queue", 'q "1" \\'), ("verdict", "ack")] == 1
    metrics = client.metrics()
    assert metrics[GRANTED] == 1.0 and len(metrics) == len(samples)
    assert sorted(metrics.values()) == pytest.approx(sorted(samples.values()))


def test_asyncio(url):
    async def main():
        async with stanchion.aio.connect(url) as client:
            assert client.metrics()[GRANTED] == 0.0
            async with client.lock("a"):
                assert client.metrics()[GRANTED] == 1.0
            # A wait that is cancelled is counted, too.
            lease = await client.lock("b").acquire()
            waiting = asyncio.ensure_future(client.lock("b").acquire(wait=60))
            while not await client.lock("b").waiters():
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            while client.metrics()['stanchion_lock_acquires_total{outcome="cancelled"}'] < 1:
                await asyncio.sleep(0.01)
            await lease.release()
            assert parsed(client.metrics_text())["stanchion_lock_acquires_total", ("outcome", "granted")] == 2

    asyncio.run(main())


def test_the_command_lines_text_is_that_of_prometheus(shared_url, tmp_path):
    def run(*arguments):
        env = {**os.environ, "STANCHION_URL": shared_url}
        return subprocess.run(
            [sys.executable, "-m", "stanchion", *arguments], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout

    with stanchion.connect(shared_url) as client:
        client.queue('q "1" \\').enqueue("t")
        with client.lock("a"):
            samples = parsed(run("metrics"))
    assert samples["stanchion_queue_tasks", ("queue", 'q "1" \\'), ("state", "ready")] == 1
    assert samples["stanchion_locks_held", ("kind", "lock")] == 1
    run("work", "--until-empty", "--metrics-file", str(tmp_path / "w.prom"), 'q "1" \\', "--", "true")
    samples = parsed((tmp_path / "w.prom").read_text())
    assert samples["stanchion_queue_settled_total", ("queue", 'q "1" \\'), ("verdict", "ack")] == 1


def test_a_forked_child_counts_anew(shared_url):
    client = stanchion.connect(shared_url)
    with client.lock("a"):
        child = os.fork()
        if child == 0:
            os._exit(int(client.metrics()[GRANTED]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.metrics()[GRANTED] == 1.0
