"""Programs and libraries that it works with: celery, OpenTelemetry."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import stanchion
import stanchion.aio

def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=60, **options)


CELERY = '''
import os, stanchion
from celery import Celery

url = os.environ["BROKER"]
app = Celery("tasks", broker=url, backend=url)
app.conf.update(broker_connection_retry_on_startup=True)
client = stanchion.connect(url)
lease = client.lock("parents").acquire()  # In the parent too, before it forks its pool.


@app.task
def work(number):
    try:
        lease.release()
        return "released the parent's lease"
    except stanchion.Forked:
        pass
    with client.lock("celery").hold(wait=30) as mine:
        return mine.fence
'''


def test_celery_prefork(redis_url, tmp_path):
    (tmp_path / "tasks.py").write_text(CELERY)
    env = {**os.environ, "BROKER": redis_url, "PYTHONPATH": str(tmp_path)}
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "3",
         "--loglevel", "warning"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        client = stanchion.connect(redis_url)
        for _ in range(600):
            if client.lock("parents").locked():
                break
            time.sleep(0.05)
        program = (
            "import json\n"
            "from celery import Celery\n"
            "import os\n"
            "app = Celery('tasks', broker=os.environ['BROKER'], backend=os.environ['BROKER'])\n"
            "sent = [app.send_task('tasks.work', [number]) for number in range(12)]\n"
            "print(json.dumps([one.get(timeout=60) for one in sent]))\n")
        fences = json.loads(run("-c", program, env=env).stdout)
        assert all(isinstance(fence, int) for fence in fences) and len(set(fences)) == 12
        # Children have come and gone; the lease is the parent's still.
        assert client.lock("parents").try_acquire() is None
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            out, _ = worker.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            worker.kill()
            raise
    assert "Traceback" not in out, out


def test_trace_context_travels_with_a_task(client):
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.trace import get_current_span

    queue, seen = client.queue("q"), []
    with trace.TracerProvider().get_tracer("test").start_as_current_span("parent") as span:
        queue.enqueue("a")
    assert "traceparent" in queue.get("a").headers
    queue.worker(lambda claim: seen.append(get_current_span().get_span_context().trace_id)).run(until_empty=True)
    assert seen == [span.get_span_context().trace_id]
    queue.enqueue("b", headers={"x": "y"})
    assert queue.get("b").headers == {"x": "y"}


@pytest.mark.parametrize("face", ["threads", "asyncio"])
def test_what_stands_around_a_handler_is_in_the_trace_context_of_its_task(client, url, face):
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.trace import get_current_span

    seen, tracer = [], trace.TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("parent") as parent:
        client.queue("q").enqueue("a")

    def note():
        seen.append(get_current_span().get_span_context())

    if face == "threads":
        def outer(claim, next):
            note()
            # What it begins is seen further inside, and by the handler.
            with tracer.start_as_current_span("child"):
                return next()

        def inner(claim, next):
            note()
            return next()

        client.queue("q").worker(lambda claim: note(), around=[outer, inner]).run(until_empty=True)
    else:
        async def outer(claim, next):
            note()
            with tracer.start_as_current_span("child"):
                return await next()

        async def inner(claim, next):
            note()
            return await next()

        async def main():
            async with stanchion.aio.connect(url) as other:
                await other.queue("q").worker(lambda claim: note(), around=[outer, inner]).run(until_empty=True)

        asyncio.run(main())
    context = parent.get_span_context()
    assert (seen[0].trace_id, seen[0].span_id) == (context.trace_id, context.span_id)
    assert seen[1] == seen[2] and seen[1].trace_id == context.trace_id and seen[1].span_id != context.span_id
