"""The command that the package brings along: `stanchion`, or `python -m stanchion`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stanchion

MODULE = [sys.executable, "-m", "stanchion"]
SCRIPT = [str(Path(sys.executable).with_name("stanchion"))]


@pytest.fixture
def start(shared_url):
    """Starts the command line on the store, in a process group of its own."""
    started = []

    def start(*arguments, program=MODULE):
        process = subprocess.Popen(
            [*program, *arguments], env={**os.environ, "STANCHION_URL": shared_url}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(start):
    """Exit code, stdout and stderr of the command line."""

    def run(*arguments, **options):
        process = start(*arguments, **options)
        out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors

    return run


@pytest.mark.parametrize("program", [MODULE, SCRIPT], ids=["module", "script"])
def test_version_and_help(run, program):
    assert run("--version", program=program) == (0, f"stanchion {stanchion.__version__}\n", "")
    code, out, _ = run("--help", program=program)
    assert code == 0 and "Usage: stanchion " in out
    code, out, errors = run("dance", program=program)
    assert (code, out) == (2, "") and errors.startswith("stanchion: ") and errors.count("\n") == 1


def test_run_holds_the_lock_and_passes_the_exit_code_on(run, shared_url):
    lock = stanchion.connect(shared_url).lock("a")
    code, out, errors = run("run", "a", "--", "sh", "-c", "echo $STANCHION_FENCE; exit 5")
    assert (code, errors) == (5, "")
    with lock as lease:
        assert lease.fence > int(out)
        assert run("run", "--no-wait", "a", "--", "true")[0] == 1
    assert run("run", "a", "--", "no-such-command")[0] == 127


def test_tasks_go_both_ways(run, shared_url):
    queue = stanchion.connect(shared_url).queue("q")
    assert run("enqueue", "q", "one", "--payload", "from the shell")[0] == 0
    assert queue.get("one").payload == b"from the shell"
    queue.enqueue("two", b"from Python")
    code, out, _ = run("work", "q", "--until-empty", "--", "sh", "-c", "echo {}: $(cat)")
    assert code == 0 and sorted(out.splitlines()) == ["one: from the shell", "two: from Python"]
    assert len(queue) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command(start, shared_url, number):
    process = start("run", "a", "--", "sh", "-c", "echo started; exec sleep 60")
    assert process.stdout.readline() == "started\n"
    # As Ctrl-C does: to the whole process group.
    os.killpg(process.pid, number)
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 128 + number
    assert not stanchion.connect(shared_url).lock("a").locked()


def test_ctrl_c_ends_the_wait_for_a_lock(start, shared_url):
    lock = stanchion.connect(shared_url).lock("a")
    with lock:
        process = start("run", "--wait", "60", "a", "--", "true")
        while not lock.holder().waiters:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130 and "Traceback" not in errors
        assert lock.holder().waiters == 0


def test_sigterm_lets_the_tasks_at_hand_finish(start, shared_url, tmp_path):
    queue = stanchion.connect(shared_url).queue("q")
    os.mkfifo(tmp_path / "go")
    queue.enqueue("one")
    process = start("work", "q", "--", "sh", "-c", f"echo started; cat '{tmp_path}/go'")
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    queue.enqueue("two")
    (tmp_path / "go").write_text("done\n")
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "done\n") and "Traceback" not in errors
    assert [task.id for task in queue.peek(10)] == ["two"]


def test_commands_do_not_inherit_what_python_ignores(run):
    code, out, _ = run("run", "a", "--", "grep", "SigIgn", "/proc/self/status")
    plain = subprocess.run(
        ["grep", "SigIgn", "/proc/self/status"], stdout=subprocess.PIPE, text=True, check=True, restore_signals=True)
    assert (code, out) == (0, plain.stdout)


def test_the_embedded_store_is_announced(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "STANCHION_URL"}
    done = subprocess.run(
        [*MODULE, "locks", "ls"], env={**env, "XDG_STATE_HOME": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and str(tmp_path) in done.stderr
