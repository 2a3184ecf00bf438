"""Scenarios: what they say, and how they are played. docs in scenarios/README.md."""

import json
import time
from pathlib import Path

from matching import Mismatch, fill, match

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
# The kinds of errors with their stable numbers.
ERRORS = json.loads((FOLDER.parent / "vectors" / "errors.json").read_text())
# `$default.lock.ttl_ms` is what vectors/defaults.json says.
DEFAULTS = {
    f"default.{noun}.{name}": value
    for noun, values in json.loads((FOLDER.parent / "vectors" / "defaults.json").read_text()).items()
    if isinstance(values, dict) for name, value in values.items()}
# What a lock can be called besides its name, and languages that do not know it yet.
KINDS = json.loads((FOLDER.parent / "vectors" / "words.json").read_text())["kinds of locks"]
# What is made of bytes: given as a text or in hex, and shown in hex.
BYTES = {"payload", "result", "progress"}
# How long something that is sure to happen may take.
SOON_S = 20
PAUSE_S = 0.005
# What a step says besides the arguments of its operation.
WORDS = {"do", "by", "as", "expect", "error", "start", "await", "pass", "eventually", "each", "typed", "kill", "passing",
         "redis", "hex", "keys", "file", "proxy", "direct", "server", "why"}


class Scenario:
    def __init__(self, topic, told):
        unknown = set(told) - {"title", "steps", "stores", "why", "given"}
        if unknown:
            raise SystemExit(f"{topic}: {told.get('title')}: what is {', '.join(unknown)}?")
        self.title = f"{topic}: {told['title']}"
        self.steps = [one for step in told["steps"] for one in expanded(step)]
        self.given = told.get("given", {})
        # It is behind a proxy, which stands before a server.
        self.proxied = any("proxy" in step for step in self.steps)
        self.stores = told.get("stores")
        self.why = told.get("why")
        # Two calls at once, in one process if the store is in memory.
        self.needs_threads = any("start" in step for step in self.steps)
        self.kills = any("kill" in step for step in self.steps)
        self.is_together = topic == "together"
        locks = [*(step.get("lock") for step in self.steps), *self.given.values()]
        self.has_kinds = any(isinstance(lock, dict) and set(KINDS["words"]) & set(lock) for lock in locks)

    def able(self, languages):
        """Those that know all that it is about."""
        return [one for one in languages if not self.has_kinds or one.name not in KINDS.get("unseen in", {})]

    def skipped(self, language, store, shared):
        """Why it is not played there, if it is not."""
        if self.stores is not None and store not in self.stores:
            return self.why
        if not self.able([language]):
            return KINDS["unseen in"][language.name]["*"]
        if self.kills and not shared:
            return "a store in memory ends with its process"
        if self.needs_threads and not shared and not language.threads:
            return f"{language.name} makes one call at a time, and a store in memory is seen by one process"
        return None


def load():
    return [Scenario(path.stem, one) for path in sorted(FOLDER.glob("*.json")) for told in json.loads(path.read_text())
            for one in versions(told)]


def versions(told):
    """A scenario with "each" is one for each of the values, which a name stands for."""
    if "each" not in told:
        return [told]
    (name, values), = told["each"].items()
    rest = {key: value for key, value in told.items() if key != "each"}
    return [{**rest, "title": f"{told['title']} ({value})", "given": {name: value}} for value in values]


def expanded(step):
    """A step with "each" is a step for each of the values."""
    if "each" not in step:
        return [step]
    (argument, values), = step["each"].items()
    rest = {key: value for key, value in step.items() if key != "each"}
    return [{**rest, argument: value} for value in values]


class Play:
    """One scenario on one store, in one language."""

    def __init__(self, scenario, crew, place):
        self.scenario, self.crew, self.place = scenario, crew, place
        self.url = place.behind_proxy() if scenario.proxied else place.fresh()
        self.names = {**DEFAULTS, **scenario.given}
        self.running = {}
        self.opened = set()
        # Steps that a language's types do not allow, with the reason.
        self.refused = []
        # Steps that were carried out as they should, with the language.
        self.done = []

    def perform(self):
        """Plays it, and leaves nothing; what was wrong, each in a line."""
        problems = []
        try:
            self.run()
        except (Mismatch, TimeoutError, RuntimeError) as problem:
            problems.append(str(problem))
        problems += self.close()
        return problems

    def run(self):
        for number, step in enumerate(self.scenario.steps, 1):
            try:
                self.step(step)
            except (Mismatch, TimeoutError) as problem:
                raise Mismatch(f"step {number}, {json.dumps(step)}: {problem}") from None
        if self.running:
            raise Mismatch(f"never awaited: {', '.join(self.running)}")

    def cast(self):
        """Who is of which language, if they are of several."""
        if len(self.crew.languages) == 1:
            return ""
        return ", ".join(f"{actor} in {self.crew.language(actor).name}" for actor in sorted(self.opened)) + ": "

    def close(self):
        """Whatever happened, nothing is left in the players; what went wrong with that."""
        for actor in sorted(self.opened):
            try:
                answer = self.crew.of(actor).ask(actor, "client.close")
                problem = None if "ok" in answer else f"found {answer}"
            except (TimeoutError, RuntimeError) as trouble:
                problem = str(trouble)
            if problem is not None:
                self.crew.dismiss()
                return [f"the close at the end: {problem}"]
        return []

    def step(self, step):
        if "pass" in step:
            self.pass_time(step["pass"])
        elif "kill" in step:
            self.kill(step["kill"])
        elif "redis" in step:
            self.redis(step)
        elif "keys" in step:
            self.keys(step)
        elif "file" in step:
            self.place.file.write_text(received(step["file"]))
        elif "server" in step:
            {"kill": self.place.kill, "start": self.place.start}[step["server"]]()
        elif "proxy" in step:
            match(step.get("expect"), self.order(step), self.names)
        elif "await" in step:
            begun, call = self.running.pop(step["await"])
            self.judge({**begun, **step}, self.awaited(call, step.get("passing")))
        elif "start" in step:
            self.running[step["start"]] = step, self.begin(step)
        elif step.get("eventually"):
            self.until(step)
        else:
            self.judge(step, self.begin(step).answer())

    def begin(self, step):
        actor = step.get("by", "one")
        player = self.crew.of(actor)
        arguments = {
            key: sent(key, fill(value, self.names)) for key, value in step.items() if key not in WORDS}
        if "as" in step:
            arguments["as"] = step["as"]
        if step["do"] == "client.open":
            self.opened.add(actor)
            if step.get("direct"):
                arguments["url"] = self.place.url
            where = self.where(*(arguments.pop(part, None) for part in ("scheme", "user", "query")))
            arguments.setdefault("url", where)
        elif actor not in self.opened:
            self.opened.add(actor)
            self.judge({}, player.ask(actor, "client.open", url=self.url))
        return player.begin(actor, step["do"], **arguments)

    def order(self, step):
        arguments = {key: fill(value, self.names) for key, value in step.items() if key not in WORDS}
        return self.place.proxy.order(step["proxy"], **arguments)

    def where(self, scheme, user, query):
        """The store's URL, with what a step adds to it."""
        url = self.url if user is None else self.url.replace("://", f"://{user}@")
        return (url if scheme is None else scheme + url[url.index(":"):]) + (query or "")

    def judge(self, step, answer):
        if "cannot" in answer:
            if not step.get("typed"):
                raise Mismatch(f"the player cannot: {answer['cannot']}")
            self.refused.append(answer["cannot"])
            return
        if "error" in step:
            check_code(answer.get("error"))
            if "error" not in answer:
                raise Mismatch(f"expected the error {step['error']}, found {answer['ok']!r}")
            expected = step["error"] if isinstance(step["error"], dict) else {"kind": step["error"]}
            match(expected, answer["error"], self.names, "the error")
        elif "error" in answer:
            raise Mismatch(f"found the error {answer['error']}")
        elif "expect" in step:
            match(received(step["expect"]), answer["ok"], self.names)
        if "do" in step:
            self.done.append((self.crew.language(step.get("by", "one")).name, step))

    def redis(self, step):
        """What is said to the server without the library, and what it answers."""
        told = step["redis"]
        words = told if isinstance(told, str) else [bytes.fromhex(word["$hex"]) if isinstance(word, dict) else word for word in told]
        if "hex" in step:
            match(step["hex"], self.place.value(words).hex(), self.names)
        else:
            match(step.get("expect", "+OK"), self.place.command(words), self.names)

    def keys(self, step):
        """Whether the server has these keys and no others; one with a star has something else at its end."""
        end = time.monotonic() + (SOON_S if step.get("eventually") else 0)
        while not fit(step["keys"], found := self.place.keys()):
            if time.monotonic() > end:
                raise Mismatch(f"expected the keys {sorted(step['keys'])}, found {found}")
            time.sleep(PAUSE_S)

    def awaited(self, call, passing):
        """The answer of a call; time that does not pass by itself passes in steps meanwhile, if the step says so."""
        if passing is not None and self.place.moves_clock:
            end = time.monotonic() + SOON_S
            while not call.done.wait(PAUSE_S) and time.monotonic() < end:
                self.pass_time(passing)
        return call.answer()

    def until(self, step):
        end = time.monotonic() + SOON_S
        while True:
            kept = dict(self.names)
            try:
                return self.judge(step, self.begin(step).answer())
            except Mismatch:
                if time.monotonic() > end:
                    raise
            self.names = kept
            time.sleep(PAUSE_S)

    def pass_time(self, milliseconds):
        if self.place.moves_clock:
            passing = {"do": "time.pass", "ms": milliseconds}
            self.judge(passing, self.crew.of("one").ask("one", "time.pass", ms=milliseconds))
        else:
            # Nothing is waited for here: what the steps after it say is about this time.
            time.sleep(milliseconds / 1000)

    def kill(self, actor):
        self.crew.kill(actor)
        self.opened.discard(actor)


def fit(expected, found):
    """Whether each key is one that is expected, and each of these is there, but for those after a question mark."""
    def is_like(key, one):
        return key.startswith(one[:-1]) if one.endswith(":*") else key == one

    allowed = [one.removeprefix("?") for one in expected]
    needed = [one for one in expected if not one.startswith("?")]
    return all(any(is_like(key, one) for one in allowed) for key in found) and all(
        any(is_like(key, one) for key in found) for one in needed)


def check_code(error):
    """Whether an error's number, in languages that have one, is that of its kind."""
    if error is not None and error.get("code") is not None and ERRORS.get(error["kind"]) != error["code"]:
        raise Mismatch(f"the number of {error['kind']} is not {error['code']}")


def sent(key, value):
    """As a player gets it: payloads and other bytes in hex, long texts written out."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return sent(key, text * times)
        return {name: sent(name, one) for name, one in value.items()}
    if isinstance(value, list):
        return [sent(key, one) for one in value]
    if key in BYTES and isinstance(value, str):
        return {"$hex": value.encode().hex()}
    return value


def received(expected, key=None):
    """What a player says of payloads and other bytes is in hex."""
    if isinstance(expected, dict):
        if key in BYTES and set(expected) == {"$hex"}:
            return expected["$hex"]
        if set(expected) == {"$repeat"}:
            text, times = expected["$repeat"]
            return received(text * times, key)
        return {name: received(one, name) for name, one in expected.items()}
    if isinstance(expected, list):
        return [received(one, key) for one in expected]
    if key in BYTES and isinstance(expected, str) and not expected.startswith("$"):
        return expected.encode().hex()
    return expected
