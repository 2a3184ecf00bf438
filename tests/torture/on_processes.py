"""Faults of the processes that use the library."""

import signal
import subprocess

from history import now

# A call that is under way may take its wait and its timeout.
END_S = 20


def victim(faults):
    """Some worker, and the process that it has at the moment."""
    worker = faults.dice.choice([worker for worker in faults.storm.workers if worker.player is not None])
    return worker, worker.player


def wake(player):
    if player is not None and player.process.poll() is None:
        player.process.send_signal(signal.SIGCONT)


def killed(faults):
    _, player = victim(faults)
    if player is not None:
        player.process.kill()


def stopped(faults):
    """For longer than most leases."""
    worker, player = victim(faults)
    if player is None:
        return
    with faults.noted("stopped", actor=worker.name):
        player.process.send_signal(signal.SIGSTOP)
        faults.pause(0.1, 4)
        wake(player)


def ended_while_busy(faults):
    """Its orders end while it carries one out: it comes to its own end, with its usual exit code."""
    worker, player = victim(faults)
    if player is None:
        return
    worker.told_to_end, worker.told_at = player, now()
    player.process.stdin.close()
    try:
        code = player.process.wait(END_S)
    except subprocess.TimeoutExpired:
        player.kill()
        code = f"none within {END_S} s"
    worker.note("exit", code=code)


FAULTS = [
    ("process killed", killed),
    ("process stopped", stopped),
    ("process ended while busy", ended_while_busy),
]
