"""Faults of the processes that use the library."""

import signal
import subprocess

from history import now

# A call that is under way may take its wait and its timeout.
END_S = 20


def victim(faults):
    """Some worker, and the process that it has at the moment."""
    worker = faults.dice.choice([worker for worker in faults.storm.workers if worker.driver is not None])
    return worker, worker.driver


def wake(driver):
    if driver is not None and driver.process.poll() is None:
        driver.process.send_signal(signal.SIGCONT)


def killed(faults):
    _, driver = victim(faults)
    if driver is not None:
        driver.process.kill()


def stopped(faults):
    """For longer than most leases."""
    worker, driver = victim(faults)
    if driver is None:
        return
    with faults.noted("stopped", actor=worker.name):
        driver.process.send_signal(signal.SIGSTOP)
        faults.pause(0.1, 4)
        wake(driver)


def ended_while_busy(faults):
    """Its orders end while it carries one out: it comes to its own end, with its usual exit code."""
    worker, driver = victim(faults)
    if driver is None:
        return
    worker.told_to_end, worker.told_at = driver, now()
    driver.process.stdin.close()
    try:
        code = driver.process.wait(END_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        code = f"none within {END_S} s"
    worker.note("exit", code=code)


FAULTS = [
    ("process killed", killed),
    ("process stopped", stopped),
    ("process ended while busy", ended_while_busy),
]
