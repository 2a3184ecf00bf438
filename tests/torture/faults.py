"""What goes wrong, by a seed."""

import random
import signal
import time
from collections import Counter


class Faults:
    """Each is done for a while and undone; a process that was killed is followed by another."""

    def __init__(self, storm, seed):
        self.storm = storm
        self.dice = random.Random(f"{seed} faults")
        self.done = Counter()

    def strike(self):
        name, fault = self.dice.choice(FAULTS)
        self.done[name] += 1
        self.storm.history.note(op="fault", name=name)
        fault(self)

    def pause(self, least, most):
        time.sleep(self.dice.uniform(least, most))

    def victim(self):
        return self.dice.choice([worker for worker in self.storm.workers if worker.driver is not None])

    def kill_worker(self):
        driver = self.victim().driver
        if driver is not None:
            driver.process.kill()

    def stop_worker(self):
        """For longer than most leases."""
        driver = self.victim().driver
        if driver is None:
            return
        driver.process.send_signal(signal.SIGSTOP)
        self.pause(0.1, 3)
        driver.process.send_signal(signal.SIGCONT)

    def stop_server(self):
        self.storm.server.process.send_signal(signal.SIGSTOP)
        self.pause(0.1, 2)
        self.storm.server.process.send_signal(signal.SIGCONT)

    def kill_server(self):
        """What it has acknowledged is in its log."""
        self.storm.server.kill()
        self.pause(0, 0.5)
        if not self.storm.server.start():
            raise SystemExit("somebody else has taken the server's port")

    def flush_scripts(self):
        for _ in range(20):
            self.storm.server.command("SCRIPT FLUSH")
            time.sleep(0.01)

    def cut_connections(self):
        for kind in ("normal", "pubsub"):
            self.storm.server.command(f"CLIENT KILL TYPE {kind}")

    def pause_clients(self):
        self.storm.server.command(f"CLIENT PAUSE {self.dice.randrange(50, 800)}")


FAULTS = [
    ("worker killed", Faults.kill_worker),
    ("worker stopped", Faults.stop_worker),
    ("server stopped", Faults.stop_server),
    ("server killed", Faults.kill_server),
    ("scripts flushed", Faults.flush_scripts),
    ("connections cut", Faults.cut_connections),
    ("clients paused", Faults.pause_clients),
]
