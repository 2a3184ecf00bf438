"""docs/OPTIONS.md: its tables have every option of every language, by its name there, and nothing else."""

import inspect
import re
from pathlib import Path

import pytest

import stanchion

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "OPTIONS.md").read_text()
# Of each table: the function in Python, the types in Rust, Node and C, the function in PHP.
TABLES = {
    "Clients": (stanchion.connect, "ClientBuilder", "client.ts:ConnectOptions", "connect_options", "Client.php:connect"),
    "Locks": (stanchion.Lock.acquire, "LockOptions", "lock.ts:LockOptions", "lock_options", "Lock.php:acquire"),
    "Cached values": (
        stanchion.Client.cached, "CachedOptions", "cached.ts:CachedOptions", "cached_options", "Client.php:cached"),
    "Tasks": (stanchion.Queue.enqueue, "Task", "task.ts:Task", "task", "Queue.php:enqueue"),
    "Schedules": (
        stanchion.Queue.schedule, "Schedule", "schedule.ts:Schedule", "schedule", "Internal/Schedules.php:schedule"),
    "Claims": (stanchion.Queue.claim, "ClaimOptions", "queue.ts:ClaimOptions", "claim_options", "Queue.php:claim"),
    "Workers": (stanchion.Queue.worker, "Worker", "working.ts:WorkerOptions", "worker_options", "Queue.php:work"),
    "Queues": (
        stanchion.Queue.configure, "QueueConfig", "limits.ts:QueueConfig", "queue_config", "Internal/Managing.php:configure"),
}
# Arguments that are no options, and what only one language has or calls otherwise.
APART = {
    "self", "url", "name", "id", "when", "others", "compute", "ignore", "handler", "kinds", "before", "after", "failed", "on_event",
    "struct_size", "cancel", "owner", "clock", "signal", "payload_len", "header_count", "window_ms", "tls_client", "undropped",
    "onEvent", "until_empty",
}


def names(table, column):
    section = re.search(rf"^## {table}\n(.*?)(?=^## )", PAGE, re.M | re.S)[1]
    rows = [row.split("|")[1:-1] for row in section.splitlines() if re.match(r"\| (`|- )", row) and row.count("|") == 7]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[column])} - APART


def between(path, begin, end="^}"):
    return re.search(rf"{begin}(.*?){end}", (ROOT / path).read_text(), re.M | re.S)[1]


def setters(kind):
    """Those of a builder in Rust, in whatever file it stands."""
    for path in sorted((ROOT / "core" / "src").glob("**/*.rs")):
        if "blocking" not in path.parts:
            for block in re.findall(rf"^impl(?:<[^>]*>)? {kind}\b.*?^}}", path.read_text(), re.M | re.S):
                yield from re.findall(r"^    pub fn (\w+)\(mut self", block, re.M)


def differing(found, told):
    return sorted((set(found) - APART) ^ told)


@pytest.mark.parametrize("table", TABLES)
def test_the_table_has_the_options_of_python(table):
    assert differing(inspect.signature(TABLES[table][0]).parameters, names(table, 0) - {"header"}) == []


@pytest.mark.parametrize("table", TABLES)
def test_the_table_has_the_options_of_rust(table):
    # Some are arguments: of `tls_client`, and of `CachedOptions::new`. `around` is no setter: it makes a worker of another type.
    others = {"Tasks": {"headers"}, "Schedules": {"headers"}, "Clients": {"tls_cert", "tls_key"}, "Cached values": {"ttl"},
        "Workers": {"around"}}
    assert differing(setters(TABLES[table][1]), names(table, 0) - others.get(table, set())) == []


@pytest.mark.parametrize("table", TABLES)
def test_the_table_has_the_options_of_node(table):
    path, kind = TABLES[table][2].split(":")
    fields = between(f"bindings-node/src-ts/{path}", rf"^export interface {kind}\b")
    assert differing(re.findall(r"^  (\w+)\?:", fields, re.M), names(table, 1)) == []


@pytest.mark.parametrize("table", TABLES)
def test_the_table_has_the_options_of_php(table):
    path, method = TABLES[table][4].split(":")
    arguments = between(f"bindings-c/php/src/{path}", rf"public (?:static )?function {method}\(", r"^    \)")
    assert differing(re.findall(r"\$(\w+)(?: =.*)?,$", arguments, re.M), names(table, 2)) == []


@pytest.mark.parametrize("table", TABLES)
def test_the_table_has_the_options_of_c(table):
    fields = between("bindings-c/include/stanchion.h", rf"^typedef struct stanchion_{TABLES[table][3]} {{")
    assert differing(re.findall(r"^  [^/\n]*?(\w+);$", fields, re.M), names(table, 3)) == []
