"""Vectors, played as scenarios: the same data that the core's own tests read (core/src/vectors.rs)."""

import json
import re

from languages import TESTS
from scenarios import Scenario

FOLDER = TESTS / "vectors"
ON_REDIS = {"stores": ["redis"], "why": "only there are keys"}
DAY_MS = 86_400_000


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def load():
    """Scenarios by topic."""
    keys = read("keys")
    yield from (Scenario("keys", told) for told in [*map(lock_keys, locks(keys)), *map(queue_keys, queues(keys))])
    yield Scenario("keys", {"title": "names that are none", "steps": [step for row in keys["refused"] for step in refused(row)]})
    encodings = read("encodings")
    yield from (Scenario("encodings", told) for told in (
        bodies(encodings), strange_bodies(encodings), handles(encodings), tokens(encodings)))
    yield Scenario("backoff", backoff(read("backoff")["pauses"]))


def wrong():
    """What the vectors themselves have wrong: two names that share a key, or one whose keys are in several slots."""
    owner = {}
    for row in read("keys")["names"]:
        if "lock_prefix" in row or "queue_prefix" in row:
            # Of other clients, which may well mean the same.
            continue
        for key in [*row["keys"], *(row[kind] for kind in ("ended", "call") if kind in row)]:
            other = owner.setdefault(key, row)
            if other is not row and other["keys"] != row["keys"]:
                yield f"vectors/keys.json: {key} is of two names"
        if len({tag(key) for key in row["keys"]}) != 1:
            yield f"vectors/keys.json: the keys of {row['keys'][0]} are in several slots"


def tag(key):
    """The part of a key that tells its slot in a cluster."""
    found = re.search(r"\{([^}]+)\}", key)
    return found[1] if found else key


def locks(keys):
    return [row for row in keys["names"] if "lock" in row]


def queues(keys):
    return [row for row in keys["names"] if "queue" in row]


def opened(row):
    """Two clients with the prefixes of a row."""
    prefixes = {name: row[name] for name in ("lock_prefix", "queue_prefix") if name in row}
    return [{"do": "client.open", "by": by, **prefixes} for by in ("one", "two")] if prefixes else []


def lock_keys(row):
    name, (lock, meta, _, _) = {"lock": row["lock"]}, row["keys"]
    return {"title": f"of the lock {row['keys'][0]}", **ON_REDIS, "steps": [
        *opened(row),
        {"do": "lock.acquire", **name},
        {"keys": [lock, meta]},
        {"do": "lock.acquire", **name, "by": "two", "wait_ms": 20000, "start": "waiting"},
        {"do": "lock.holder", **name, "eventually": True, "expect": {"waiters": 1}},
        {"keys": row["keys"]},
        {"do": "lease.release"},
        {"await": "waiting", "expect": name and {"name": row["lock"]}},
        {"do": "lock.acquire", **name, "wait_ms": 20, "error": "LockTimeout"},
        {"keys": [lock, meta, "?" + row["ended"] + "*"], "eventually": True, "why": "on a busy machine it was never in the line"},
        # Released in the background it could come after the next scenario has emptied the server.
        {"do": "lease.release", "by": "two"},
    ]}


def queue_keys(row):
    name, (intake, *kept) = {"queue": row["queue"]}, row["keys"]
    # Nothing expires here, no events are kept, and no task has a key.
    unused = {"expired", "events", "held", "keys", "key-waits", "key-limits"}
    kinds = [re.match(r"stanchion:(?:tag-)?([a-z-]+):", key)[1] for key in kept]
    assert unused < set(kinds), kinds
    kept = [key for key, kind in zip(kept, kinds) if kind not in unused]
    return {"title": f"of the queue {row['keys'][0]}", **ON_REDIS, "steps": [
        *opened(row),
        {"do": "queue.enqueue", **name, "id": "buried", "payload": "x"},
        {"do": "queue.claim", **name, "as": "first"},
        {"do": "claim.bury", "claim": "first.0"},
        {"do": "queue.enqueue", **name, "id": "throttled", "on_duplicate": {"throttle_ms": 60000}},
        {"do": "queue.claim", **name},
        {"do": "queue.claim", **name, "by": "two", "wait_ms": 20000, "start": "waiting"},
        {"keys": [key for key in kept if ":ready:" not in key and "-ready:" not in key
                  and ":scheduled:" not in key and "-scheduled:" not in key] + [row["call"] + "*"], "eventually": True},
        {"do": "queue.enqueue", **name, "id": "later", "delay_ms": 60000},
        {"do": "queue.pause", **name},
        {"do": "queue.enqueue", **name, "id": "ready"},
        {"keys": [*kept, row["call"] + "*"], "eventually": True,
         "why": "who is woken in vain is not idle for a moment"},
        {"do": "queue.remove", **name, "id": "ready"},
        {"do": "queue.resume", **name},
        {"do": "queue.enqueue", **name, "id": "last"},
        {"await": "waiting", "expect": [{"id": "last"}]},
    ]}


def refused(row):
    prefixes = {name: row[name] for name in ("lock_prefix", "queue_prefix") if name in row}
    kind = "lock" if "lock" in row else "queue"
    call = {"do": "lock.try_acquire"} if kind == "lock" else {"do": "queue.enqueue", "id": "a"}
    return [{"do": "client.open", "by": "two", **prefixes}, {**call, "by": "two", kind: row[kind], "error": "InvalidArgument"}]


# A body stands under a number of its own: that of the only one there is.
BODY = "stanchion:body:{Queue:q}"
READ_BODY = ["EVAL", "return redis.call('HVALS', KEYS[1])[1] or ''", "1", BODY]
WRITE_BODY = ["EVAL", "return redis.call('HSET', KEYS[1], redis.call('HKEYS', KEYS[1])[1], ARGV[1])", "1", BODY]


def bodies(encodings):
    steps = []
    for number, row in enumerate(encodings["bodies"]):
        name, payload = f"{number}", {"$hex": row["payload"]}
        steps += [
            {"do": "queue.enqueue", "queue": "q", "id": name, "payload": payload, "headers": row["headers"]},
            {"redis": READ_BODY, "hex": row["body"]},
            {"do": "queue.claim", "queue": "q", "expect": [{"id": name, "payload": payload, "headers": {"$only": row["headers"]}}]},
            {"do": "claim.ack"}]
    return {"title": "bodies as they are stored", **ON_REDIS, "steps": steps}


def strange_bodies(encodings):
    steps = []
    for number, row in enumerate(encodings["strange bodies"]):
        name = f"{number}"
        steps += [
            {"do": "queue.enqueue", "queue": "q", "id": name, "payload": "x"},
            {"redis": [*WRITE_BODY, {"$hex": row["body"]}], "expect": ":0"},
            {"do": "queue.get", "queue": "q", "id": name, "expect": {"payload": {"$hex": row["payload"]}, "headers": {"$only": {}}}},
            {"do": "queue.remove", "queue": "q", "id": name}]
    return {"title": "bodies that nobody wrote", **ON_REDIS, "steps": steps}


def tokens(encodings):
    shown = [{"do": "lock.acquire", "lock": f"{number}", "expect": {"token": {"$like": "9{16}[0-9]{39}"}}} for number in range(5)]
    stored = [{"redis": f"SET Lock:a {row['token']} PX 60000"} for row in encodings["tokens"]]
    foreign = [text for text in encodings["no tokens"][:-1] if text]
    held = {"do": "lock.holder", "lock": "a"}
    return {"title": "tokens", **ON_REDIS, "steps": [
        *shown,
        *(step for set_it in stored for step in (set_it, {**held, "expect": {"held_as": "lease"}})),
        *(step for text in foreign for step in ({"redis": f"SET Lock:a {text} PX 60000"}, {**held, "expect": {"held_as": "foreign"}})),
        {"redis": f"SET Lock:a {encodings['no tokens'][-1]} PX 60000"}, {**held, "expect": {"held_as": "cooldown"}}]}


def handles(encodings):
    steps = []
    for row in encodings["handles"]:
        key, name = row["key"], row["key"].removeprefix("Lock:")
        renewed = {"renew": True, "max_hold_ms": row["max_hold_ms"]} if row["max_hold_ms"] else {"ttl_ms": row["ttl_ms"]}
        written = row["text"].replace(row["token"], "TOKEN")
        steps += [
            {"redis": ["SET", key, row["token"], "PX", "60000"]},
            {"redis": ["HSET", f"stanchion:meta:{{{key}}}", "fence", "7", "born", "7"], "expect": ":2"},
            {"do": "client.resume_lease", "handle": row["text"], "expect": {"name": name, "fence": 7}},
            {"do": "lease.release"},
            {"do": "lock.acquire", "lock": name, **renewed},
            {"do": "lease.detach", "ttl_ms": row["ttl_ms"], "expect": {"$like": pattern(written)}},
            {"do": "lock.break_lease", "lock": name}]
    refused = [{"do": "client.resume_lease", "handle": text, "error": "InvalidArgument"} for text in encodings["no handles"]]
    return {"title": "handles", **ON_REDIS, "steps": steps + refused}


def pattern(handle):
    """What is left of an hour is a little less."""
    return re.escape(handle).replace("TOKEN", "9{16}[0-9]{39}").replace("3600000", "3[56][0-9]{5}")


def backoff(pauses):
    """Each attempt in its turn; a clock that a test moves stands still meanwhile."""
    last = max(attempt for attempt, *_ in pauses)
    bounds = {attempt: (least, most) for attempt, least, most in pauses}
    steps = [{"do": "queue.enqueue", "queue": "q", "id": "a", "max_attempts": last + 1}]
    for attempt in range(1, min(last, 21) + 1):
        now = f"$now {attempt}"
        steps += [
            {"do": "queue.claim", "queue": "q", "expect": [{"attempt": attempt}]},
            {"do": "claim.nack"},
            {"do": "queue.enqueue", "queue": "clock", "expect": {"due_ms": now}}]
        if attempt in bounds:
            due = {"$after": [now, *bounds[attempt]]}
            steps.append({"do": "queue.get", "queue": "q", "id": "a", "expect": {"state": "scheduled", "due_ms": due}})
        steps.append({"pass": DAY_MS})
    return {"title": "a growing pause", "stores": ["memory"], "why": "only there time stands still", "steps": steps}
