"""uWSGI: the application is loaded in the master, which then forks its workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import stanchion

APPLICATION = '''
import json
import os
from pathlib import Path

import stanchion

client = stanchion.connect()
counter = Path(os.environ["COUNTER"])
lease = client.lock("master").acquire()


def application(environ, start_response):
    try:
        lease.extend(30)
        forked = False
    except stanchion.Forked:
        forked = True
    with client.lock("counter").hold(wait=30) as mine:
        counter.write_text(str(int(counter.read_text()) + 1))
        answer = {"pid": os.getpid(), "forked": forked, "fence": mine.fence}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]
'''


def ask(address):
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


def test_workers_of_uwsgi(shared_url, tmp_path):
    (tmp_path / "application.py").write_text(APPLICATION)
    counter = tmp_path / "counter"
    counter.write_text("0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    server = subprocess.Popen(
        [Path(sys.executable).with_name("pyuwsgi"), "--master", "--processes", "4", "--need-app", "--die-on-term",
         "--http-socket", address, "--home", sys.prefix, "--wsgi-file", "application.py"],
        cwd=tmp_path, env={**os.environ, "STANCHION_URL": shared_url, "COUNTER": str(counter)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # The kernel queues requests until the workers take them.
        deadline = time.monotonic() + 60
        while True:
            try:
                ask(f"http://{address}/")
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, server.communicate()[0]
                time.sleep(0.05)
        with ThreadPoolExecutor(8) as askers:
            answers = list(askers.map(ask, [f"http://{address}/"] * 80))
        # The workers have inherited the master's lease, and none of them has ended it.
        assert stanchion.connect(shared_url).lock("master").try_acquire() is None
    finally:
        server.send_signal(signal.SIGTERM)
        output, _ = server.communicate(timeout=60)
    assert counter.read_text() == "81" and len({answer["fence"] for answer in answers}) == 80, output
    assert len({answer["pid"] for answer in answers}) > 1 and all(answer["forked"] for answer in answers), output
    assert "Traceback" not in output
