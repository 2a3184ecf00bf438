"""Faults of the connections, by the proxy."""

VERBS = ["acquire", "extend", "release", "leave", "enqueue", "claim", "settle", "extend_claim"]
REFUSALS = [
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script",
    "MISCONF Redis is configured to save RDB snapshots",
    "NOREPLICAS Not enough good replicas to write",
    "READONLY You can't write against a read only replica",
    "CLUSTERDOWN The cluster is down",
    "MASTERDOWN Link with MASTER is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
]


def requests(kind, least=1, most=5, delays=(0, 0)):
    """So many requests of some verb meet with this."""
    def fault(faults):
        more = {"says": faults.dice.choice(REFUSALS)} if kind == "refuse" else {}
        faults.proxy.order(
            "fault", verb=faults.dice.choice(VERBS), kind=kind, times=faults.dice.randint(least, most),
            ms=faults.dice.randint(*delays), **more)
        faults.pause(0, 1)

    return fault


def flow(most, **how):
    """All connections are so for a while."""
    def fault(faults):
        faults.proxy.order("flow", **how)
        faults.pause(0.2, most)
        faults.proxy.order("flow")

    return fault


def cut(faults):
    for _ in range(faults.dice.randint(1, 20)):
        faults.proxy.order("cut")
        faults.pause(0, 0.1)


def refused(faults):
    """As if the server were down."""
    faults.proxy.order("refuse", refuses=True)
    faults.proxy.order("cut")
    faults.pause(0.1, 2)
    faults.proxy.order("refuse", refuses=False)


FAULTS = [
    ("requests lost", requests("drop")),
    ("replies lost", requests("swallow_reply")),
    ("requests late", requests("delay_request", delays=(50, 3000))),
    ("replies late", requests("delay_reply", delays=(50, 3000))),
    ("requests doubled", requests("duplicate", 5, 100)),
    ("cut before a request", requests("cut_before")),
    ("cut after a request", requests("cut_after")),
    ("requests refused", requests("refuse", 1, 20)),
    ("replies garbled", requests("garble")),
    ("links sliced", flow(2, sliced_us=100)),
    ("requests held", flow(3, held="requests")),
    ("replies held", flow(3, held="replies")),
    ("links dead", flow(3, held="both")),
    ("wake-ups lost", flow(3, drop_messages=True)),
    ("links cut", cut),
    ("connections refused", refused),
]
