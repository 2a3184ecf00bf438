"""What strangers do to the keys of locks. The documented consequence: two may hold one, and the fence tells them apart."""


def deleted(faults):
    name, key = faults.lock()
    with faults.noted("key deleted", lock=name):
        faults.command("DEL", key)


def overwritten(faults):
    name, key = faults.lock()
    with faults.noted("key overwritten", lock=name):
        faults.command("SET", key, "theirs", "PX", faults.dice.randint(50, 1500))


def another_type(faults):
    name, key = faults.lock()
    with faults.noted("key of another type", lock=name):
        faults.command("DEL", key)
        faults.command("RPUSH", key, "theirs")
        faults.pause(0.05, 0.5)
        faults.command("DEL", key)


def without_time(faults):
    _, key = faults.lock()
    faults.command("PERSIST", key)
    faults.pause(0.05, 2)
    faults.give_time(key)


def clock_forward(faults):
    """As the key sees it."""
    name, key = faults.lock()
    with faults.noted("clock forward", lock=name):
        faults.command("PEXPIRE", key, 1)
        faults.pause(0.005, 0.01)


def clock_back(faults):
    name, key = faults.lock()
    # Another may have got it since it was looked at, for longer.
    with faults.noted("clock back", lock=name):
        life = faults.command("PTTL", key)
        if life > 0:
            faults.command("PEXPIRE", key, life + faults.dice.randint(100, 2000))


FAULTS = [
    ("key deleted", deleted),
    ("key overwritten", overwritten),
    ("key of another type", another_type),
    ("key without a time", without_time),
    ("clock forward", clock_forward),
    ("clock back", clock_back),
]
