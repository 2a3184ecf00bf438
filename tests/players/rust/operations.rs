//! The operations of scenarios, each a call of the library.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};
use stanchion::{DeadTasks, LeaseHandle, ListOptions, LockOptions, Receipt, TaskState, Version};
use stanchion_tests::faces::{AnyBegun, AnyLease, AnyLock};

use crate::actor::Actor;
use crate::arguments::Arguments;
use crate::{Answer, Refusal, shown};

type Operation = fn(&mut Actor, &Arguments) -> Answer;

/// How long a handle works, unless the request says it: the packages' default.
const HANDLE_TTL: Duration = Duration::from_secs(30);

pub(crate) const OPERATIONS: &[(&str, Operation)] = &[
    ("time.pass", |actor, request| {
        actor.clock.advance(request.time("ms")?.unwrap_or_default());
        Ok(Value::Null)
    }),
    ("process.fork", |_, _| Err(Refusal::Cannot("Rust forks in unsafe code only"))),
    ("process.show", |actor, _| Ok(actor.show())),
    ("process.panic", |_, _| Err(Refusal::Cannot("a panic of the library goes on in Rust"))),
    ("client.open", Actor::open),
    ("client.close", |actor, _| actor.close()),
    ("client.resume_lease", |actor, request| {
        let handle: LeaseHandle = request.text("handle")?.parse()?;
        let lease = actor.client()?.resume_lease(&handle)?;
        actor.keep(request, lease)
    }),
    ("client.release_all", |actor, _| Ok(json!(actor.client()?.release_all()?))),
    ("client.metrics", |actor, _| {
        let client = actor.client()?;
        let samples: Map<String, Value> =
            client.metrics().iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        Ok(json!({ "samples": samples, "text": client.metrics_text() }))
    }),
    ("client.cached", cached),
    ("client.invalidate", |actor, request| done(actor.client()?.invalidate(request.text("name")?))),
    ("client.locks", |actor, request| {
        let page = actor.client()?.locks(request.whole("page")?)?;
        Ok(json!({ "items": page.names, "next": page.next }))
    }),
    ("client.queue_names", |actor, request| {
        let page = actor.client()?.queue_names(request.whole("page")?)?;
        Ok(json!({ "items": page.names, "next": page.next }))
    }),
    ("lock.acquire", |actor, request| {
        let (lock, options) = (actor.lock(request)?, request.lock_options()?);
        let lease = if request.yes("cancel")? == Some(true) {
            given_up(&lock, options)?
        } else {
            lock.acquire(options)?
        };
        actor.keep(request, lease)
    }),
    ("lock.try_acquire", |actor, request| {
        match actor.lock(request)?.try_acquire(request.lock_options()?)? {
            Some(lease) => actor.keep(request, lease),
            None => Ok(Value::Null),
        }
    }),
    ("lock.hold", hold),
    ("lock.holder", |actor, request| {
        Ok(actor.lock(request)?.holder()?.as_ref().map_or(Value::Null, shown::holder))
    }),
    ("lock.waiters", |actor, request| {
        Ok(actor.lock(request)?.who_waits()?.iter().map(shown::waiter).collect())
    }),
    ("lock.holders", |actor, request| {
        Ok(actor.lock(request)?.holders()?.iter().map(shown::holder).collect())
    }),
    ("lock.is_locked", |actor, request| Ok(json!(actor.lock(request)?.is_locked()?))),
    ("lock.break_lease", |actor, request| Ok(json!(actor.lock(request)?.break_lease()?))),
    ("limiter.try_take", |actor, request| {
        Ok(shown::taken(actor.limiter(request)?.try_take(count(request)?)?))
    }),
    ("limiter.take", take),
    ("lease.look", |actor, request| Ok(shown::look_at_lease(actor.lease(request)?))),
    ("lease.check", |actor, request| done(actor.lease(request)?.check())),
    ("lease.wait_lost", |actor, request| {
        Ok(json!(actor.lease(request)?.wait_lost(request.time("time_ms")?.unwrap_or_default())))
    }),
    ("lease.extend", |actor, request| done(actor.lease(request)?.extend(needed(request, "ttl_ms")?))),
    ("lease.extend_exact", |actor, request| {
        done(actor.lease(request)?.extend_exact(needed(request, "ttl_ms")?))
    }),
    ("lease.upgrade", |actor, request| Ok(json!(actor.lease(request)?.upgrade()?))),
    ("lease.downgrade", |actor, request| done(actor.lease(request)?.downgrade())),
    ("lease.release", |actor, request| {
        let lease = actor.lease(request)?;
        done(match request.time("cooldown_ms")? {
            Some(cooldown) => lease.release_with_cooldown(cooldown),
            None => lease.release(),
        })
    }),
    ("lease.detach", |actor, request| {
        let ttl = request.time("ttl_ms")?.unwrap_or(HANDLE_TTL);
        Ok(json!(actor.lease(request)?.detach(ttl)?.to_text()))
    }),
    ("queue.enqueue", |actor, request| {
        Ok(shown::enqueued(&Ok(actor.queue(request)?.enqueue(request.task()?)?)))
    }),
    ("queue.enqueue_many", |actor, request| {
        let tasks = request.objects("tasks")?.iter().map(Arguments::task).collect::<Result<Vec<_>, _>>()?;
        Ok(actor.queue(request)?.enqueue_many(tasks)?.iter().map(shown::enqueued).collect())
    }),
    ("queue.claim", |actor, request| {
        let claims = actor.queue(request)?.claim(request.claim_options()?)?;
        actor.keep_claims(request, claims)
    }),
    ("queues.claim", |actor, request| {
        let claims = actor.client()?.queues(&request.texts("queues")?).claim(request.claim_options()?)?;
        actor.keep_claims(request, claims)
    }),
    ("queue.settle", |actor, request| {
        Ok(shown::settled(&actor.queue(request)?.settle(actor.verdicts(request)?)?))
    }),
    ("queue.settle_and_claim", |actor, request| {
        let verdicts = actor.verdicts(request)?;
        let (settled, claims) = actor.queue(request)?.settle_and_claim(verdicts, request.claim_options()?)?;
        Ok(json!({ "settled": shown::settled(&settled), "claims": actor.keep_claims(request, claims)? }))
    }),
    ("queue.pop", |actor, request| Ok(shown::tasks(&actor.queue(request)?.pop(request.size("n", 1)?)?))),
    ("queue.peek", |actor, request| Ok(shown::tasks(&actor.queue(request)?.peek(request.size("n", 1)?)?))),
    ("queue.get", |actor, request| {
        let found = actor.queue(request)?.get(request.text("id")?)?;
        Ok(found.as_ref().map_or(Value::Null, shown::task))
    }),
    ("queue.list", |actor, request| {
        let mut options = ListOptions::new(state(request.text("state")?)?).max(request.size("max", 100)?);
        options =
            options.payloads(request.yes("payloads")?.unwrap_or(true)).prefix(request.text_or("prefix", "")?);
        if let Some(page) = request.page()? {
            options = options.page(page);
        }
        let page = actor.queue(request)?.list(options)?;
        Ok(json!({ "items": shown::tasks(&page.tasks), "next": page.next }))
    }),
    ("queue.remove", |actor, request| {
        let version = request.whole("version")?.map(Version::new);
        Ok(shown::removed(actor.queue(request)?.remove(request.text("id")?, version)?))
    }),
    ("queue.reschedule", |actor, request| {
        let due = request.moment("due_ms")?.ok_or(Refusal::Cannot("an argument is missing"))?;
        Ok(shown::rescheduled(&actor.queue(request)?.reschedule(request.text("id")?, due)?))
    }),
    ("queue.cancel", |actor, request| {
        Ok(shown::cancelled(actor.queue(request)?.cancel(request.text("id")?)?))
    }),
    ("queue.result", |actor, request| {
        let version = request.whole("version")?.map(Version::new);
        let wait = request.time("wait_ms")?.unwrap_or_default();
        Ok(shown::result(&actor.queue(request)?.result(request.text("id")?, version, wait)?))
    }),
    ("queue.events", |actor, request| {
        let wait = request.time("wait_ms")?.unwrap_or_default();
        let (mut after, mut events) = (request.whole("after")?, Vec::new());
        // As the generators of other languages: until nothing comes for so long.
        loop {
            let page = actor.queue(request)?.events(after, wait)?;
            if page.events.is_empty() {
                return Ok(events.into());
            }
            events.extend(shown::events(&page));
            after = Some(page.cursor);
        }
    }),
    ("queue.consumers", |actor, request| {
        Ok(actor.queue(request)?.consumers()?.iter().map(shown::consumer).collect())
    }),
    ("queue.stats", |actor, request| Ok(shown::stats(&actor.queue(request)?.stats()?))),
    ("queue.pause", |actor, request| done(actor.queue(request)?.pause())),
    ("queue.resume", |actor, request| done(actor.queue(request)?.resume())),
    ("queue.kick", |actor, request| Ok(json!(actor.queue(request)?.kick(dead_tasks(request)?)?))),
    ("queue.remove_dead", |actor, request| {
        Ok(json!(actor.queue(request)?.remove_dead(dead_tasks(request)?)?))
    }),
    ("queue.purge", |actor, request| Ok(json!(actor.queue(request)?.purge()?))),
    ("queue.configure", |actor, request| done(actor.queue(request)?.configure(request.settings()?))),
    ("queue.schedule", |actor, request| {
        let outcome = actor.queue(request)?.schedule(request.schedule()?)?;
        Ok(json!({ "outcome": outcome.name() }))
    }),
    ("queue.sync_schedules", |actor, request| {
        let list = request.objects("schedules")?;
        let list = list.iter().map(Arguments::schedule).collect::<Result<Vec<_>, _>>()?;
        let generation = request.whole("generation")?.ok_or(Refusal::Cannot("an argument is missing"))?;
        let synced = actor.queue(request)?.sync_schedules(request.text("owner")?, generation, list)?;
        Ok(shown::synced(synced))
    }),
    ("queue.get_schedule", |actor, request| {
        let found = actor.queue(request)?.get_schedule(request.text("id")?)?;
        Ok(found.as_ref().map_or(Value::Null, shown::schedule))
    }),
    ("queue.list_schedules", |actor, request| {
        let page = actor.queue(request)?.list_schedules(request.page()?, request.size("max", 100)?)?;
        Ok(
            json!({ "items": page.schedules.iter().map(shown::schedule).collect::<Value>(), "next": page.next }),
        )
    }),
    ("queue.pause_schedule", |actor, request| {
        Ok(json!(actor.queue(request)?.pause_schedule(request.text("id")?)?))
    }),
    ("queue.resume_schedule", |actor, request| {
        Ok(json!(actor.queue(request)?.resume_schedule(request.text("id")?)?))
    }),
    ("queue.run_schedule", |actor, request| {
        Ok(json!(actor.queue(request)?.run_schedule(request.text("id")?)?))
    }),
    ("queue.remove_schedule", |actor, request| {
        Ok(json!(actor.queue(request)?.remove_schedule(request.text("id")?)?))
    }),
    ("queue.limit_key", |actor, request| {
        done(actor.queue(request)?.limit_key(request.text("key")?, request.key_limits()?))
    }),
    ("queue.get_key", |actor, request| Ok(shown::key(&actor.queue(request)?.get_key(request.text("key")?)?))),
    ("queue.list_keys", |actor, request| {
        let page = actor.queue(request)?.list_keys(request.page()?, request.size("max", 100)?)?;
        Ok(json!({ "items": page.keys.iter().map(shown::key).collect::<Value>(), "next": page.next }))
    }),
    ("queue.enqueue_flow", |actor, request| Ok(json!(actor.queue(request)?.enqueue_flow(request.flow()?)?))),
    ("queue.add_to_flow", |actor, request| {
        let nodes = request.objects("nodes")?.iter().map(Arguments::node).collect::<Result<_, _>>()?;
        Ok(json!(actor.queue(request)?.add_to_flow(request.text("id")?, nodes)?))
    }),
    ("queue.get_flow", |actor, request| {
        let flow = actor.queue(request)?.get_flow(request.text("id")?)?;
        Ok(flow.as_ref().map_or(Value::Null, shown::flow))
    }),
    ("queue.list_flows", |actor, request| {
        let page = actor.queue(request)?.list_flows(request.page()?, request.size("max", 100)?)?;
        Ok(json!({ "items": page.flows.iter().map(shown::flow).collect::<Value>(), "next": page.next }))
    }),
    ("queue.cancel_flow", |actor, request| {
        Ok(json!(actor.queue(request)?.cancel_flow(request.text("id")?)?))
    }),
    ("queue.retry_flow", |actor, request| Ok(json!(actor.queue(request)?.retry_flow(request.text("id")?)?))),
    ("schedule.preview", |_, request| {
        let after = request.moment("after_ms")?.ok_or(Refusal::Cannot("an argument is missing"))?;
        let times = request.schedule()?.preview(after, request.size("count", 1)?)?;
        Ok(times.into_iter().map(shown::moment).collect())
    }),
    ("claim.inputs", |actor, request| Ok(actor.claim(request)?.inputs()?.iter().map(shown::input).collect())),
    ("claim.look", |actor, request| Ok(shown::look_at_claim(actor.claim(request)?))),
    ("claim.ack", |actor, request| {
        let claim = actor.claim(request)?;
        done(match request.maybe_bytes("result")? {
            Some(result) => claim.ack_with(&result),
            None => claim.ack(),
        })
    }),
    ("claim.progress", |actor, request| done(actor.claim(request)?.progress(&request.bytes("progress")?))),
    ("claim.nack", |actor, request| {
        done(actor.claim(request)?.nack(request.retry()?, request.text_or("reason", "")?))
    }),
    ("claim.bury", |actor, request| done(actor.claim(request)?.bury(request.text_or("reason", "")?))),
    ("claim.put_back", |actor, request| done(actor.claim(request)?.put_back_after(request.delay()?))),
    ("claim.throttle", |actor, request| done(actor.claim(request)?.throttle(needed(request, "time_ms")?))),
    ("claim.extend", |actor, request| done(actor.claim(request)?.extend(needed(request, "lease_ms")?))),
    ("claim.wait_lost", |actor, request| {
        Ok(json!(actor.claim(request)?.wait_lost(request.time("time_ms")?.unwrap_or_default())))
    }),
    ("worker.run", |actor, request| actor.work(request)),
];

fn done(result: Result<(), stanchion::Error>) -> Answer {
    result.map(|()| Value::Null).map_err(Refusal::Error)
}

pub(crate) fn needed(request: &Arguments, name: &str) -> Result<Duration, Refusal> {
    request.time(name)?.ok_or(Refusal::Cannot("an argument is missing"))
}

/// An acquire whose caller wants no more of it at the first turn that it gets.
fn given_up(lock: &AnyLock, options: LockOptions) -> Result<AnyLease, Refusal> {
    match lock {
        AnyLock::Blocking(lock) => {
            Ok(AnyLease::Blocking(lock.acquire_while(options, &mut || ControlFlow::Break(()))?))
        }
        AnyLock::Async(_) => Err(Refusal::Cannot("a wait ends when its future is dropped")),
    }
}

fn count(request: &Arguments) -> Result<u32, Refusal> {
    if request.0.contains_key("count") { request.number("count") } else { Ok(1) }
}

/// With `cancel` it is given up as soon as it waits.
fn take(actor: &mut Actor, request: &Arguments) -> Answer {
    let (limiter, count) = (actor.limiter(request)?, count(request)?);
    let wait = request.time("wait_ms")?.unwrap_or(Duration::from_secs(10));
    if request.yes("cancel")? != Some(true) {
        return Ok(shown::taken(limiter.take(count, wait)?));
    }
    match limiter.take_while(count, wait, || ControlFlow::Break(())) {
        Some(taken) => Ok(shown::taken(taken?)),
        None => Err(Refusal::Cannot("a wait ends when its future is dropped")),
    }
}

/// In bytes: here the player is what makes them JSON.
fn cached(actor: &mut Actor, request: &Arguments) -> Answer {
    let (client, name, options) = (actor.client()?, request.text("name")?, request.cached_options()?);
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let ticket = match client.begin_cached(name, options.clone())? {
        AnyBegun::Value(value) => return Ok(json!({ "computed": false, "value": json(&value) })),
        AnyBegun::Compute(ticket) => ticket,
    };
    let mut shown = json!({ "computed": true });
    match request.text_or("body", "")? {
        "fail" => {
            shown["failed"] = true.into();
            return Ok(shown);
        }
        "invalidate" => client.invalidate(name)?,
        "again" => {
            shown["meanwhile"] = match client.begin_cached(name, options.wait(Duration::ZERO)) {
                Ok(AnyBegun::Value(value)) => json(&value),
                Ok(AnyBegun::Compute(_)) => "twice".into(),
                Err(error) => error.kind().name().into(),
            };
        }
        _ => {}
    }
    shown["value"] = request.0.get("value").cloned().unwrap_or_default();
    ticket.store(shown["value"].to_string())?;
    Ok(shown)
}

fn hold(actor: &mut Actor, request: &Arguments) -> Answer {
    let lock = actor.lock(request)?;
    let body = request.text_or("body", "")?;
    if body == "release" {
        return Err(Refusal::Cannot("the body of hold cannot consume the lease"));
    }
    let fence = lock.hold(request.lock_options()?, |fence| {
        if body == "break" {
            // By somebody else, who has a thread of his own.
            let broken = thread::scope(|scope| scope.spawn(|| lock.break_lease()).join());
            assert!(matches!(broken, Ok(Ok(true))), "it is there to be broken");
        }
        fence
    })?;
    Ok(json!({ "name": lock.name(), "fence": fence.get() }))
}

fn state(name: &str) -> Result<TaskState, Refusal> {
    Ok(match name {
        "scheduled" => TaskState::Scheduled,
        "ready" => TaskState::Ready,
        "claimed" => TaskState::Claimed,
        "held" => TaskState::Held,
        "dead" => TaskState::Dead,
        _ => return Err(Refusal::Cannot("it is no TaskState")),
    })
}

fn dead_tasks(request: &Arguments) -> Result<DeadTasks, Refusal> {
    let mut named = Vec::new();
    if request.0.contains_key("ids") {
        named.push(DeadTasks::ids(request.texts("ids")?));
    }
    if request.0.contains_key("receipts") {
        named.push(DeadTasks::receipts(request.wholes("receipts")?.into_iter().map(Receipt::new)));
    }
    named.extend(request.whole("count")?.map(DeadTasks::oldest));
    let (reason, prefix) = (request.text_or("reason", "")?, request.text_or("prefix", "")?);
    let age = request.time("older_than_ms")?;
    let is_narrowed = !reason.is_empty() || !prefix.is_empty() || age.is_some();
    let dead = match (named.pop(), named.is_empty()) {
        (Some(dead), true) => dead,
        (Some(_), false) => return Err(Refusal::Cannot("it is either ids, or receipts, or a count")),
        (None, _) if is_narrowed => DeadTasks::all(),
        (None, _) => return Err(Refusal::Cannot("who means all dead tasks says so")),
    };
    Ok(dead.reason(reason).prefix(prefix).older_than(age.unwrap_or_default()))
}
