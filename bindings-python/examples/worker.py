"""Sends e-mails, several at once. SIGTERM and Ctrl-C drain it; killed, it loses no task.

    python worker.py redis://localhost enqueue alice bob
    python worker.py redis://localhost          # until SIGTERM or Ctrl-C
    python worker.py redis://localhost until-empty    # until the queue is empty

Without a server: sqlite:emails.db instead of redis://localhost.
"""

import logging
import sys

import stanchion


def send(claim):
    if claim.json["to"] == "nobody":
        claim.bury("there is no such address")
        return
    # Several threads print: a line and its end in one piece.
    print(f"sent to {claim.json['to']}, attempt {claim.attempt}\n", end="", flush=True)


def main(url, *arguments):
    queue = stanchion.connect(url).queue("emails")
    if arguments[:1] == ("enqueue",):
        queue.enqueue_many((f"welcome:{name}", {"to": name}) for name in arguments[1:])
        return
    report = queue.worker(send, concurrency=8).run(until_empty=arguments[:1] == ("until-empty",))
    print(f"{report.completed} sent")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    logging.basicConfig(level=logging.INFO)
    main(*sys.argv[1:])
