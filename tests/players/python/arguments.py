"""What the steps of scenarios say, as the package takes it."""

import math

import stanchion

LOCK = ("ttl_ms", "renew", "max_hold_ms", "wait_ms", "fail_fast", "adopt_unexpiring_ms", "label", "weight")
CLAIM = ("max", "lease_ms", "renew", "max_run_ms", "timeout_ms", "wait_ms")
CACHED = ("ttl_ms", "stale_ms", "beta", "wait_ms", "lease_ms", "max_run_ms", "without_store", "label")
TASK = ("id", "payload", "headers", "delay_ms", "due_ms", "priority", "max_attempts", "expires_ms", "on_duplicate",
        "kind", "timeout_ms", "backoff", "keep_result_ms", "key")
NODE = (*TASK, "queue", "after", "after_end", "after_failure", "after_all")
SCHEDULE = ("id", "when", "payload", "tz", "missed", "overlap", "jitter_ms", "starts_ms", "ends_ms", "paused", "headers",
            "priority", "max_attempts", "expires_ms", "key")
CONFIG = ("max_len", "dead_max", "dead_age_ms", "dead_bytes", "intake", "events", "max_running", "rate", "key_concurrency", "key_rate")
LIMITS = ("key", "concurrency", "rate", "weight")
LIST = ("page", "max", "prefix", "payloads")
DEAD = ("ids", "receipts", "count", "reason", "prefix", "older_than_ms")
SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def special(value):
    """A value that JSON cannot say."""
    if isinstance(value, dict) and len(value) == 1:
        (kind, told), = value.items()
        if kind == "$number":
            return SPECIAL[told]
        if kind == "$text":
            # What Python makes of bytes that are no UTF-8.
            return bytes.fromhex(told).decode("utf-8", "surrogateescape")
        if kind == "$hex":
            return bytes.fromhex(told)
    return value


def seconds(value):
    value = special(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value / 1000 if is_number else value


class Arguments(dict):
    """A request's arguments, under the names and in the units of the package."""

    NAMES = {"ttl_ms": "ttl", "max_hold_ms": "max_hold", "wait_ms": "wait", "adopt_unexpiring_ms": "adopt_unexpiring",
             "cooldown_ms": "cooldown", "delay_ms": "delay", "due_ms": "due", "expires_ms": "expires",
             "lease_ms": "lease", "stale_ms": "stale", "max_run_ms": "max_run", "grace_ms": "grace",
             "older_than_ms": "older_than", "dead_age_ms": "dead_age", "timeout_ms": "timeout",
             "jitter_ms": "jitter", "starts_ms": "starts", "ends_ms": "ends", "keep_result_ms": "keep_result", "time_ms": "time",
             "per_ms": "per"}

    def __init__(self, request, *names):
        for name in names or request:
            if name not in request:
                continue
            value = request[name]
            if name == "on_duplicate":
                value = policy(value)
            elif name == "backoff":
                value = backoff(value)
            elif name in ("rate", "key_rate"):
                value = rate(value)
            self[self.NAMES.get(name, name)] = seconds(value) if name in self.NAMES else special(value)


def backoff(told):
    if isinstance(told, list):
        return [seconds(pause) for pause in told]
    if isinstance(told, dict) and "base" in told:
        units = {"base": seconds, "max": seconds}
        return stanchion.Exponential(**{name: units.get(name, special)(value) for name, value in told.items()})
    return told


def rate(told):
    if not isinstance(told, dict) or "count" not in told:
        return special(told)
    units = {"per_ms": ("per", seconds), "count": ("count", special), "burst": ("burst", special)}
    return stanchion.Rate(**{units[name][0]: units[name][1](value) for name, value in told.items()})


def policy(told):
    if told == "keep":
        return stanchion.Keep()
    if told == "skip":
        return stanchion.Skip()
    if told == "replace":
        return stanchion.Replace()
    if isinstance(told, dict) and "debounce_ms" in told:
        return stanchion.Debounce(seconds(told["debounce_ms"]))
    if isinstance(told, dict) and "throttle_ms" in told:
        return stanchion.Throttle(seconds(told["throttle_ms"]))
    return told
