"""Carries out the steps of scenarios with the Python package. What it speaks: contract/players.py."""

import json
import os
import pprint
import queue
import sys
import threading
import traceback

import stanchion
from stanchion import testing

from arguments import CACHED, CLAIM, CONFIG, DEAD, LIMITS, LIST, LOCK, NODE, SCHEDULE, TASK, Arguments, seconds, special
from shown import (
    failure, milliseconds, shown_claim, shown_enqueued, shown_error, shown_event, shown_flow, shown_holder, shown_input, shown_key,
    shown_lease, shown_limits, shown_page, shown_result, shown_schedule, shown_taken, shown_task, shown_waiter)

CLOCK = testing.Clock()


class Cannot(Exception):
    """What Python's own types do not allow."""


class Failed(Exception):
    """Of a computation that is to fail."""


class ChildSays(Exception):
    """The answer of a forked child."""

    def __init__(self, answer):
        self.answer = answer


class Actor:
    """One client, with what it has in its hands; its calls are made one after the other."""

    def __init__(self):
        self.client = None
        self.leases, self.claims = {}, {}
        # What an error that nobody catches would print.
        self.told = []
        self.requests = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            request = self.requests.get()
            say({"call": request["call"], **self.answer(request)})

    def answer(self, request):
        try:
            return {"ok": OPERATIONS[request["op"]](self, request)}
        except ChildSays as child:
            return child.answer
        except Cannot as refusal:
            return {"cannot": str(refusal)}
        except stanchion.StanchionError as error:
            self.told += [repr(error), *traceback.format_exception(type(error), error, error.__traceback__)]
            return {"error": failure(error)}
        except BaseException as error:
            if "unexpected keyword argument" in str(error):
                return {"cannot": "there is no such parameter"}
            return {"error": {"kind": f"{type(error).__name__} of Python", "message": str(error)}}

    def show(self, request):
        """Everything, as a developer would print it."""
        things = [*self.leases.values(), *self.claims.values()]
        if self.client is not None:
            things += [self.client, self.client.lock("a"), self.client.queue("q"), self.client.queues(["q"]),
                       self.client.queue("q").worker(print)]
        return [*self.told, *(form(thing) for thing in things for form in (repr, str, pprint.pformat)),
                *(repr(getattr(lease, "lost", None)) for lease in things)]

    def fork(self, request):
        """A child makes the call of the request, and says what came of it."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, json.dumps(self.answer(request["then"])).encode())
            os._exit(0)
        os.close(writer)
        with open(reader) as told:
            answer = json.load(told)
        os.waitpid(child, 0)
        raise ChildSays(answer)

    # Clients.

    def open(self, request):
        options = Arguments(request, "lock_prefix", "queue_prefix", "timeout_ms", "foreign_share", "label", "tls_ca", "tls_cert",
                            "tls_key")
        url = special(request["url"])
        self.leases.clear()
        self.claims.clear()
        if isinstance(url, str) and url.startswith("memory:"):
            settings = dict.fromkeys((
                "lock_prefix", "queue_prefix", "timeout", "foreign_share", "label", "tls_ca", "tls_cert", "tls_key"))
            settings |= {"url": url, "clock": CLOCK._native, **options}
            self.client = stanchion.Client(settings)
        else:
            self.client = stanchion.connect(url, **options)

    def close(self, request):
        if self.client is not None:
            self.client.close()

    def resume_lease(self, request):
        return self.keep(request, self.client.resume_lease(special(request["handle"])))

    def names(self, request):
        kind = {"client.locks": self.client.locks, "client.queue_names": self.client.queue_names}[request["op"]]
        page = kind(request.get("page"))
        return shown_page(page, list(page))

    def cached(self, request):
        name, shown = special(request["name"]), {"computed": False}

        def compute():
            shown["computed"] = True
            if request.get("body") == "fail":
                raise Failed
            if request.get("body") == "invalidate":
                self.client.invalidate(name)
            if request.get("body") == "again":
                try:
                    again = Arguments({**request, "wait_ms": 0}, *CACHED)
                    shown["meanwhile"] = self.client.cached(name, compute=lambda: "twice", **again)
                except stanchion.StanchionError as error:
                    shown["meanwhile"] = type(error).__name__
            return special(request.get("value"))

        try:
            shown["value"] = self.client.cached(name, compute=compute, **Arguments(request, *CACHED))
        except Failed:
            shown["failed"] = True
        return shown

    # Locks and leases.

    def lock(self, request):
        told = request["lock"] if isinstance(request["lock"], dict) else {}
        if "read" in told:
            lock = self.client.rw_lock(special(told["read"])).read()
        elif "write" in told:
            lock = self.client.rw_lock(special(told["write"])).write()
        elif "semaphore" in told:
            lock = self.client.semaphore(special(told["semaphore"]), told["permits"])
        elif "several" in told:
            lock = self.client.multi_lock(told["several"])
        else:
            lock = self.client.lock(special(told.get("exclusive", request["lock"])))
        return lock.reentrant(special(told["owner"])) if "owner" in told else lock

    def limiter(self, request):
        return self.client.limiter(
            special(request["limiter"]), special(request["n"]), **Arguments(request, "per_ms", "burst", "kind"))

    def take(self, request):
        if "cancel" in request:
            raise Cannot("a wait ends by a signal")
        return shown_taken(self.limiter(request).take(special(request.get("count", 1)), **Arguments(request, "wait_ms")))

    def keep(self, request, lease):
        if lease is None:
            return None
        self.leases[request.get("as", "lease")] = lease
        return shown_lease(lease)

    def acquire(self, request):
        if "cancel" in request:
            raise Cannot("a wait ends by a signal")
        return self.keep(request, self.lock(request).acquire(**Arguments(request, *LOCK)))

    def try_acquire(self, request):
        return self.keep(request, self.lock(request).try_acquire(**Arguments(request, *LOCK)))

    def hold(self, request):
        with self.lock(request).hold(**Arguments(request, *LOCK)) as lease:
            if request.get("body") == "release":
                lease.release()
            elif request.get("body") == "break":
                self.lock(request).break_lease()
            return shown_lease(lease)

    def holder(self, request):
        found = self.lock(request).holder()
        return found and shown_holder(found)

    def lease(self, request):
        return self.leases[request.get("lease", "lease")]

    def look_at_lease(self, request):
        lease = self.lease(request)
        return {**shown_lease(lease), "remaining_ms": lease.remaining * 1000, "valid": lease.valid,
                "loss": lease.lost.reason, "fences": lease.fences}

    def detach(self, request):
        return self.lease(request).detach(*Arguments(request, "ttl_ms").values())

    # Queues and claims.

    def queue(self, request):
        return self.client.queue(special(request["queue"]))

    def enqueue_many(self, request):
        tasks = [stanchion.Task(**Arguments(task, *TASK)) for task in request["tasks"]]
        return [shown_enqueued(done) for done in self.queue(request).enqueue_many(tasks)]

    def keep_claims(self, request, claims):
        for number, claim in enumerate(claims):
            self.claims[f"{request.get('as', 'claim')}.{number}"] = claim
        return [shown_claim(claim) for claim in claims]

    def claim_any(self, request):
        queues = self.client.queues([special(name) for name in request["queues"]])
        return self.keep_claims(request, queues.claim(**Arguments(request, *CLAIM)))

    def claim(self, request):
        return self.claims[request.get("claim", "claim.0")]

    def look_at_claim(self, request):
        claim = self.claim(request)
        return {**shown_claim(claim), "remaining_ms": claim.remaining * 1000, "valid": claim.valid,
                "loss": claim.lost.reason}

    def verdicts(self, request):
        for told in request["verdicts"]:
            claim = self.claims[told.get("claim", "claim.0")]
            verb = {"ack": claim.acked, "nack": claim.nacked, "bury": claim.buried, "put_back": claim.returned,
                    "throttle": getattr(claim, "throttled", None)}
            yield verb[told["verdict"]](**Arguments(told, "delay_ms", "reason", "result", "time_ms"))

    def settle_and_claim(self, request):
        errors, claims = self.queue(request).settle_and_claim(
            list(self.verdicts(request)), **Arguments(request, *CLAIM))
        return {"settled": [shown_error(error) for error in errors], "claims": self.keep_claims(request, claims)}

    def remove(self, request):
        done = self.queue(request).remove(**Arguments(request, "id", "version"))
        return {"removed": done.removed, "other_version": done.other_version}

    def reschedule(self, request):
        done = self.queue(request).reschedule(special(request["id"]), seconds(request["due_ms"]))
        return {"outcome": done.outcome}

    def list(self, request):
        page = self.queue(request).list(special(request["state"]), **Arguments(request, *LIST))
        return shown_page(page, [shown_task(task) for task in page])

    def stats(self, request):
        found = self.queue(request).stats()
        return {
            "scheduled": found.scheduled, "ready": found.ready, "claimed": found.claimed, "dead": found.dead,
            "successors": found.successors, "paused": found.paused, "waiters": found.waiters, "next_due_ms": milliseconds(found.next_due),
            "enqueued": found.enqueued, "acked": found.acked, "retried": found.retried, "died": found.died,
            "max_len": found.max_len, "dead_max": found.dead_max, "dead_age_ms": milliseconds(found.dead_age),
            "dead_bytes": found.dead_bytes, "intake": found.intake,
            # The release before has none of these.
            **({"schedules": found.schedules, "schedules_late_ms": milliseconds(found.schedules_late)}
               if hasattr(found, "schedules") else {}),
            **({"flows": found.flows} if hasattr(found, "flows") else {}),
            **({"events": found.events} if hasattr(found, "events") else {}),
            **(shown_limits(found) if hasattr(found, "held") else {})}

    def sync_schedules(self, request):
        schedules = [stanchion.Schedule(**Arguments(told, *SCHEDULE)) for told in request["schedules"]]
        done = self.queue(request).sync_schedules(special(request["owner"]), special(request["generation"]), schedules)
        return vars(done)

    def list_schedules(self, request):
        page = self.queue(request).list_schedules(**Arguments(request, "page", "max"))
        return shown_page(page, [shown_schedule(one) for one in page])

    def list_keys(self, request):
        page = self.queue(request).list_keys(**Arguments(request, "page", "max"))
        return shown_page(page, [shown_key(one) for one in page])

    def put_nodes(self, request):
        verb = {"queue.enqueue_flow": "enqueue_flow", "queue.add_to_flow": "add_to_flow"}[request["op"]]
        nodes = [Arguments(node, *NODE) for node in request["nodes"]]
        return getattr(self.queue(request), verb)(special(request["id"]), nodes)

    def list_flows(self, request):
        page = self.queue(request).list_flows(**Arguments(request, "page", "max"))
        return shown_page(page, [shown_flow(one) for one in page])

    def preview(self, request):
        # The id matters for its jitter only.
        schedule = stanchion.Schedule(**{"id": "", **Arguments(request, *SCHEDULE)})
        times = schedule.preview(seconds(request["after_ms"]), special(request.get("count", 1)))
        return [milliseconds(time) for time in times]

    def work_until_empty(self, request):
        """A worker whose handler does what the request says for each delivery of a task, and then the last again."""
        seen = []

        def handle(claim):
            plan = request.get("handler", {}).get(claim.id, ["ok"])
            seen.append({"id": claim.id, "attempt": claim.attempt})
            act = plan[min(claim.attempt, len(plan)) - 1]
            if act == "throttle" and [one["id"] for one in seen].count(claim.id) > 1:
                return  # It does not count as an attempt.
            if act == "fail":
                raise ValueError("as planned")
            if act != "ok":
                {"ack": claim.ack, "bury": claim.bury, "throttle": lambda: claim.throttle(0), "outlive": lambda: claim.lost.wait(10)}[act]()

        events = []
        worker = self.queue(request).worker(
            handle, on_event=events.append, **Arguments(request, "concurrency", "lease_ms", "max_run_ms", "timeout_ms", "grace_ms"))
        report = worker.run(until_empty=True, signals=False)
        return {
            "completed": report.completed, "failed": report.failed, "dead": report.dead, "lost": report.lost,
            "seen": seen, "events": [{"what": event.what, "id": event.id} for event in events]}


def of_queue(verb, names=(), show=lambda found: found):
    return lambda actor, request: show(getattr(actor.queue(request), verb)(**Arguments(request, *names or ("",))))


def of_lease(verb, *names):
    return lambda actor, request: getattr(actor.lease(request), verb)(**Arguments(request, *names or ("",)))


def of_claim(verb, *names):
    return lambda actor, request: getattr(actor.claim(request), verb)(**Arguments(request, *names or ("",)))


def tasks(found):
    return [shown_task(task) for task in found]


def advance(actor, request):
    CLOCK.advance(request["ms"] / 1000)


OPERATIONS = {
    "time.pass": advance,
    "process.fork": Actor.fork,
    "process.show": Actor.show,
    "process.panic": lambda actor, request: stanchion._stanchion._panic(),
    "client.open": Actor.open,
    "client.close": Actor.close,
    "client.resume_lease": Actor.resume_lease,
    "client.release_all": lambda actor, request: actor.client.release_all(),
    "client.metrics": lambda actor, request: {"samples": actor.client.metrics(), "text": actor.client.metrics_text()},
    "client.cached": Actor.cached,
    "client.invalidate": lambda actor, request: actor.client.invalidate(special(request["name"])),
    "client.locks": Actor.names,
    "client.queue_names": Actor.names,
    "lock.acquire": Actor.acquire,
    "lock.try_acquire": Actor.try_acquire,
    "lock.hold": Actor.hold,
    "lock.holder": Actor.holder,
    "lock.waiters": lambda actor, request: [shown_waiter(one) for one in actor.lock(request).waiters()],
    "lock.holders": lambda actor, request: [shown_holder(one) for one in actor.lock(request).holders()],
    "lock.is_locked": lambda actor, request: actor.lock(request).locked(),
    "lock.break_lease": lambda actor, request: actor.lock(request).break_lease(),
    "limiter.take": Actor.take,
    "limiter.try_take": lambda actor, request: shown_taken(actor.limiter(request).try_take(special(request.get("count", 1)))),
    "lease.look": Actor.look_at_lease,
    "lease.check": of_lease("check"),
    "lease.wait_lost": lambda actor, request: actor.lease(request).lost.wait(seconds(request["time_ms"])),
    "lease.extend": of_lease("extend", "ttl_ms"),
    "lease.extend_exact": of_lease("extend_exact", "ttl_ms"),
    "lease.upgrade": of_lease("upgrade"),
    "lease.downgrade": of_lease("downgrade"),
    "lease.release": of_lease("release", "cooldown_ms"),
    "lease.detach": Actor.detach,
    "queue.enqueue": of_queue("enqueue", TASK, shown_enqueued),
    "queue.enqueue_many": Actor.enqueue_many,
    "queue.claim": lambda actor, request: actor.keep_claims(
        request, actor.queue(request).claim(**Arguments(request, *CLAIM))),
    "queues.claim": Actor.claim_any,
    "queue.settle": lambda actor, request: [
        shown_error(error) for error in actor.queue(request).settle(list(actor.verdicts(request)))],
    "queue.settle_and_claim": Actor.settle_and_claim,
    "queue.pop": of_queue("pop", ("n",), tasks),
    "queue.peek": of_queue("peek", ("n",), tasks),
    "queue.get": of_queue("get", ("id",), lambda found: found and shown_task(found)),
    "queue.list": Actor.list,
    "queue.remove": Actor.remove,
    "queue.cancel": of_queue("cancel", ("id",), lambda done: {"outcome": done.outcome}),
    "queue.result": of_queue("result", ("id", "version", "wait_ms"), shown_result),
    "queue.events": lambda actor, request: [
        shown_event(event) for event in actor.queue(request).events(**{"wait": 0, **Arguments(request, "after", "wait_ms")})],
    "queue.reschedule": Actor.reschedule,
    "queue.consumers": lambda actor, request: [vars(one) for one in actor.queue(request).consumers()],
    "queue.stats": Actor.stats,
    "queue.pause": of_queue("pause"),
    "queue.resume": of_queue("resume"),
    "queue.kick": of_queue("kick", DEAD),
    "queue.remove_dead": of_queue("remove_dead", DEAD),
    "queue.purge": of_queue("purge"),
    "queue.configure": of_queue("configure", CONFIG),
    "queue.schedule": of_queue("schedule", SCHEDULE, lambda outcome: {"outcome": str(outcome)}),
    "queue.sync_schedules": Actor.sync_schedules,
    "queue.get_schedule": of_queue("get_schedule", ("id",), lambda found: found and shown_schedule(found)),
    "queue.list_schedules": Actor.list_schedules,
    "queue.pause_schedule": of_queue("pause_schedule", ("id",)),
    "queue.resume_schedule": of_queue("resume_schedule", ("id",)),
    "queue.run_schedule": of_queue("run_schedule", ("id",)),
    "queue.remove_schedule": of_queue("remove_schedule", ("id",)),
    "queue.limit_key": of_queue("limit_key", LIMITS),
    "queue.get_key": of_queue("get_key", ("key",), shown_key),
    "queue.list_keys": Actor.list_keys,
    "queue.enqueue_flow": Actor.put_nodes,
    "queue.add_to_flow": Actor.put_nodes,
    "queue.get_flow": of_queue("get_flow", ("id",), lambda found: found and shown_flow(found)),
    "queue.list_flows": Actor.list_flows,
    "queue.cancel_flow": of_queue("cancel_flow", ("id",)),
    "queue.retry_flow": of_queue("retry_flow", ("id",)),
    "schedule.preview": Actor.preview,
    "claim.look": Actor.look_at_claim,
    "claim.inputs": lambda actor, request: [shown_input(one) for one in actor.claim(request).inputs()],
    "claim.ack": of_claim("ack", "result"),
    "claim.progress": of_claim("progress", "progress"),
    "claim.nack": of_claim("nack", "delay_ms", "reason"),
    "claim.bury": of_claim("bury", "reason"),
    "claim.put_back": of_claim("put_back", "delay_ms"),
    "claim.throttle": of_claim("throttle", "time_ms"),
    "claim.extend": of_claim("extend", "lease_ms"),
    "claim.wait_lost": lambda actor, request: actor.claim(request).lost.wait(seconds(request["time_ms"])),
    "worker.run": Actor.work_until_empty,
}

said = threading.Lock()


def say(answer):
    with said:
        print(json.dumps(answer), flush=True)


def main():
    actors = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "operations":
            say({"call": request["call"], "ok": sorted(OPERATIONS)})
            continue
        if request["actor"] not in actors:
            actors[request["actor"]] = Actor()
        actors[request["actor"]].requests.put(request)


if __name__ == "__main__":
    main()
