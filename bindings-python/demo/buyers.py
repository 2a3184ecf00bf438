"""Buyers of the demo's flash sale. Whoever started this says who they are, and where the shop's ledger is.

Arguments and output are the same in every language: core/examples/flash_sale/buyers.rs describes them.
"""

import os
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import stanchion

# Stands for the lock's name in the sale without the lock.
NO_LOCK = "-"
# How long a buyer waits in line, in seconds.
PATIENCE = 60
# How long the bank takes to say yes, in seconds.
BANK = 0.0005


class Ledger:
    """Three plain files. It refuses a fence smaller than one that it has seen."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.stock_file = open(self.folder / "stock", "r+b", buffering=0)
        self.fence_file = open(self.folder / "fence", "r+b", buffering=0)
        self.journal = open(self.folder / "journal", "ab", buffering=0)

    def stock(self, fence):
        self.admit(fence)
        return read_number(self.stock_file)

    def set_stock(self, left, fence):
        self.admit(fence)
        write_number(self.stock_file, left)

    def take_payment(self, buyer):
        time.sleep(BANK)
        with open(self.folder / f"receipt-{buyer}", "w") as receipt:
            receipt.write(f"buyer {buyer} has paid\n")
            receipt.flush()
            os.fsync(receipt.fileno())

    def note(self, process, buyer, fence, item):
        self.admit(fence)
        # One write of a short line at the end of the file: lines never mix.
        self.journal.write(f"{process} {buyer} {fence} {item}\n".encode())

    def admit(self, fence):
        if not fence:
            return
        seen = read_number(self.fence_file)
        if fence < seen:
            raise SystemExit(f"the ledger refused fence {fence}: it has seen {seen}")
        if fence > seen:
            write_number(self.fence_file, fence)


def read_number(file):
    return int(os.pread(file.fileno(), 20, 0))


def write_number(file, number):
    os.pwrite(file.fileno(), f"{number:020}".encode(), 0)


class Shop:
    def __init__(self, folder, lock, process, processes, buyers):
        self.ledger = Ledger(folder)
        self.lock = None if lock == NO_LOCK else stanchion.connect().lock(lock, wait=PATIENCE)
        self.process = process
        # Buyers are dealt to the processes like cards.
        self.buyers = iter(range(process, buyers + 1, processes))

    def serve_all(self):
        for buyer in self.buyers:
            asked = time.monotonic()
            with self.lock.hold() if self.lock else nullcontext() as lease:
                waited = time.monotonic() - asked
                self.sell(buyer, lease.fence if lease else 0)
            # One write: lines never mix.
            sys.stdout.write(f"{waited * 1e6:.0f}\n")
            sys.stdout.flush()

    def sell(self, buyer, fence):
        """Read, check, pay, write: right only if nobody else does the same meanwhile."""
        left = self.ledger.stock(fence)
        if left:
            self.ledger.take_payment(buyer)
            self.ledger.set_stock(left - 1, fence)
        self.ledger.note(self.process, buyer, fence, left)


def main(folder, lock, process, processes, buyers, at_a_time):
    shop = Shop(folder, lock, int(process), int(processes), int(buyers))
    print("ready", flush=True)
    sys.stdin.readline()
    clerks = [threading.Thread(target=shop.serve_all) for _ in range(int(at_a_time))]
    for clerk in clerks:
        clerk.start()
    for clerk in clerks:
        clerk.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
