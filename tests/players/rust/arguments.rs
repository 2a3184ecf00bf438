//! The arguments of a request, in the types of the library.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use stanchion::{
    Backoff, CachedOptions, ClaimOptions, Flow, KeyLimits, Limit, LockOptions, Missed, Node, OnDuplicate,
    Overlap, QueueConfig, Rate, Retry, Schedule, Task,
};

use crate::Refusal;

#[derive(Default)]
pub(crate) struct Arguments(pub(crate) Map<String, Value>);

impl Arguments {
    pub(crate) fn of(value: &Value) -> Self {
        Self(value.as_object().cloned().unwrap_or_default())
    }

    fn get<'a, T>(
        &'a self,
        name: &str,
        convert: impl FnOnce(&'a Value) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        self.0.get(name).map(convert).transpose()
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Refusal> {
        self.0.get(name).map_or(Err(Refusal::Cannot("an argument is missing")), text)
    }

    pub(crate) fn text_or<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str, Refusal> {
        Ok(self.get(name, text)?.unwrap_or(default))
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&str>, Refusal> {
        list(&self.0[name])?.iter().map(text).collect()
    }

    pub(crate) fn wholes(&self, name: &str) -> Result<Vec<u64>, Refusal> {
        list(&self.0[name])?.iter().map(whole).collect()
    }

    /// Bytes that must be there.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        self.maybe_bytes(name)?.ok_or(Refusal::Cannot("an argument is missing"))
    }

    pub(crate) fn maybe_bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        self.get(name, bytes)
    }

    /// Of a listing of tasks.
    pub(crate) fn page(&self) -> Result<Option<&str>, Refusal> {
        self.get("page", text)
    }

    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Self>, Refusal> {
        Ok(list(&self.0[name])?.iter().map(Self::of).collect())
    }

    pub(crate) fn yes(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.get(name, yes)
    }

    pub(crate) fn whole(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.get(name, whole)
    }

    /// A small number that must be there.
    pub(crate) fn number(&self, name: &str) -> Result<u32, Refusal> {
        let found = self.whole(name)?.ok_or(Refusal::Cannot("an argument is missing"))?;
        u32::try_from(found).map_err(|_| Refusal::Cannot("it is no u32"))
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        self.get(name, time)
    }

    pub(crate) fn moment(&self, name: &str) -> Result<Option<SystemTime>, Refusal> {
        let since = self.get(name, time)?;
        Ok(since.map(|since| SystemTime::UNIX_EPOCH + since))
    }

    pub(crate) fn size(&self, name: &str, default: usize) -> Result<usize, Refusal> {
        let found = self.whole(name)?.map(usize::try_from);
        found.unwrap_or(Ok(default)).map_err(|_| Refusal::Cannot("it is no usize"))
    }

    pub(crate) fn lock_options(&self) -> Result<LockOptions, Refusal> {
        let mut options = LockOptions::new();
        if let Some(ttl) = self.time("ttl_ms")? {
            options = options.ttl(ttl);
        }
        if let Some(renew) = self.yes("renew")? {
            options = options.renew(renew);
        }
        if let Some(max_hold) = self.time("max_hold_ms")? {
            options = options.max_hold(max_hold);
        }
        if let Some(wait) = self.time("wait_ms")? {
            options = options.wait(wait);
        }
        if let Some(fail_fast) = self.yes("fail_fast")? {
            options = options.fail_fast(fail_fast);
        }
        if let Some(grace) = self.time("adopt_unexpiring_ms")? {
            options = options.adopt_unexpiring(grace);
        }
        if let Some(label) = self.get("label", text)? {
            options = options.label(label);
        }
        if self.0.contains_key("weight") {
            options = options.weight(self.number("weight")?);
        }
        Ok(options)
    }

    pub(crate) fn limiter_limit(&self) -> Result<Limit, Refusal> {
        let (n, per) = (self.number("n")?, self.time("per_ms")?.unwrap_or_default());
        let limit = match self.text_or("kind", "gcra")? {
            "fixed-window" => Limit::fixed_window(n, per),
            "sliding-window" => Limit::sliding_window(n, per),
            "gcra" => Limit::rate(n, per),
            _ => return Err(Refusal::Cannot("the kinds are constructors")),
        };
        Ok(if self.0.contains_key("burst") { limit.burst(self.number("burst")?) } else { limit })
    }

    pub(crate) fn flow(&self) -> Result<Flow, Refusal> {
        self.objects("nodes")?.iter().try_fold(Flow::new(self.text("id")?), |flow, told| {
            let node = told.node()?;
            Ok(match told.get("after_all", text)? {
                None => flow.node(node),
                Some("then") => flow.then(node),
                Some("failed") => flow.failed(node),
                Some("finally") => flow.finally(node),
                Some(_) => return Err(Refusal::Cannot("the kinds of nodes are methods")),
            })
        })
    }

    pub(crate) fn node(&self) -> Result<Node, Refusal> {
        let names = |name| -> Result<Vec<&str>, Refusal> {
            self.get(name, list)?.map_or(Ok(Vec::new()), |names| names.iter().map(text).collect())
        };
        let mut node = Node::new(self.task()?);
        node = names("after")?.into_iter().fold(node, Node::after);
        node = names("after_end")?.into_iter().fold(node, Node::after_end);
        node = names("after_failure")?.into_iter().fold(node, Node::after_failure);
        Ok(match self.get("queue", text)? {
            Some(queue) => node.queue(queue),
            None => node,
        })
    }

    pub(crate) fn cached_options(&self) -> Result<CachedOptions, Refusal> {
        let mut options = CachedOptions::new(self.time("ttl_ms")?.unwrap_or_default());
        if let Some(stale) = self.time("stale_ms")? {
            options = options.stale(stale);
        }
        if let Some(beta) = self.get("beta", real)? {
            options = options.beta(beta);
        }
        if let Some(wait) = self.time("wait_ms")? {
            options = options.wait(wait);
        }
        if let Some(lease) = self.time("lease_ms")? {
            options = options.lease(lease);
        }
        if let Some(max_run) = self.time("max_run_ms")? {
            options = options.max_run(max_run);
        }
        if let Some(without_store) = self.yes("without_store")? {
            options = options.without_store(without_store);
        }
        if let Some(label) = self.get("label", text)? {
            options = options.label(label);
        }
        Ok(options)
    }

    pub(crate) fn claim_options(&self) -> Result<ClaimOptions, Refusal> {
        let mut options = ClaimOptions::new().max(self.size("max", 1)?);
        if let Some(lease) = self.time("lease_ms")? {
            options = options.lease(lease);
        }
        if let Some(renew) = self.yes("renew")? {
            options = options.renew(renew);
        }
        if let Some(max_run) = self.time("max_run_ms")? {
            options = options.max_run(max_run);
        }
        if let Some(timeout) = self.time("timeout_ms")? {
            options = options.timeout(timeout);
        }
        if let Some(wait) = self.time("wait_ms")? {
            options = options.wait(wait);
        }
        Ok(options)
    }

    pub(crate) fn task(&self) -> Result<Task, Refusal> {
        let mut task = self.get("id", text)?.map_or_else(Task::auto, Task::new);
        if let Some(payload) = self.get("payload", bytes)? {
            task = task.payload(payload);
        }
        for (name, value) in self.get("headers", object)?.into_iter().flatten() {
            task = task.header(name, text(value)?);
        }
        if let Some(delay) = self.time("delay_ms")? {
            task = task.delay(delay);
        }
        if let Some(due) = self.moment("due_ms")? {
            task = task.due(due);
        }
        if let Some(priority) = self.whole("priority")? {
            task = task.priority(u8::try_from(priority).map_err(|_| Refusal::Cannot("it is no u8"))?);
        }
        if let Some(attempts) = self.whole("max_attempts")? {
            task = task.max_attempts(u32::try_from(attempts).map_err(|_| Refusal::Cannot("it is no u32"))?);
        }
        if let Some(expires) = self.time("expires_ms")? {
            task = task.expires(expires);
        }
        if let Some(kind) = self.get("kind", text)? {
            task = task.kind(kind);
        }
        if let Some(timeout) = self.time("timeout_ms")? {
            task = task.timeout(timeout);
        }
        if let Some(backoff) = self.get("backoff", backoff)? {
            task = task.backoff(backoff);
        }
        if let Some(keep_result) = self.time("keep_result_ms")? {
            task = task.keep_result(keep_result);
        }
        if let Some(key) = self.get("key", text)? {
            task = task.key(key);
        }
        if let Some(policy) = self.get("on_duplicate", policy)? {
            task = task.on_duplicate(policy);
        }
        Ok(task)
    }

    pub(crate) fn schedule(&self) -> Result<Schedule, Refusal> {
        let mut schedule = Schedule::new(self.text_or("id", "")?, self.text_or("when", "")?);
        if let Some(tz) = self.get("tz", text)? {
            schedule = schedule.tz(tz);
        }
        if let Some(missed) = self.get("missed", missed)? {
            schedule = schedule.missed(missed);
        }
        if let Some(overlap) = self.get("overlap", text)? {
            schedule = schedule.overlap(overlap_of(overlap)?);
        }
        if let Some(jitter) = self.time("jitter_ms")? {
            schedule = schedule.jitter(jitter);
        }
        if let Some(starts) = self.moment("starts_ms")? {
            schedule = schedule.starts(starts);
        }
        if let Some(ends) = self.moment("ends_ms")? {
            schedule = schedule.ends(ends);
        }
        if let Some(paused) = self.yes("paused")? {
            schedule = schedule.paused(paused);
        }
        if let Some(payload) = self.get("payload", bytes)? {
            schedule = schedule.payload(payload);
        }
        for (name, value) in self.get("headers", object)?.into_iter().flatten() {
            schedule = schedule.header(name, text(value)?);
        }
        if let Some(priority) = self.whole("priority")? {
            schedule = schedule.priority(u8::try_from(priority).map_err(|_| Refusal::Cannot("it is no u8"))?);
        }
        if self.0.contains_key("max_attempts") {
            schedule = schedule.max_attempts(self.number("max_attempts")?);
        }
        if let Some(expires) = self.time("expires_ms")? {
            schedule = schedule.expires(expires);
        }
        if let Some(key) = self.get("key", text)? {
            schedule = schedule.key(key);
        }
        Ok(schedule)
    }

    pub(crate) fn settings(&self) -> Result<QueueConfig, Refusal> {
        let mut settings = QueueConfig::new();
        if let Some(max_len) = self.0.get("max_len") {
            settings = settings.max_len(if max_len.is_null() { None } else { Some(whole(max_len)?) });
        }
        if let Some(count) = self.whole("dead_max")? {
            settings = settings.dead_max(count);
        }
        if let Some(age) = self.time("dead_age_ms")? {
            settings = settings.dead_age(age);
        }
        if let Some(bytes) = self.whole("dead_bytes")? {
            settings = settings.dead_bytes(bytes);
        }
        if let Some(intake) = self.yes("intake")? {
            settings = settings.intake(intake);
        }
        if let Some(events) = self.whole("events")? {
            settings = settings.events(events);
        }
        if let Some(most) = self.limit("max_running", whole)? {
            settings = settings.max_running(most);
        }
        if let Some(told) = self.limit("rate", rate)? {
            settings = settings.rate(told);
        }
        if let Some(most) = self.limit("key_concurrency", small)? {
            settings = settings.key_concurrency(most);
        }
        if let Some(told) = self.limit("key_rate", rate)? {
            settings = settings.key_rate(told);
        }
        Ok(settings)
    }

    /// Null takes it away.
    fn limit<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&Value) -> Result<T, Refusal>,
    ) -> Result<Option<Option<T>>, Refusal> {
        self.get(name, |value| if value.is_null() { Ok(None) } else { convert(value).map(Some) })
    }

    pub(crate) fn key_limits(&self) -> Result<Option<KeyLimits>, Refusal> {
        let (concurrency, told) = (self.get("concurrency", small)?, self.get("rate", rate)?);
        let weight = self.get("weight", small)?;
        if concurrency.is_none() && told.is_none() && weight.is_none() {
            return Ok(None);
        }
        let mut limits = KeyLimits::new();
        limits.concurrency = concurrency;
        limits.rate = told;
        Ok(Some(weight.map_or(limits, |weight| limits.weight(weight))))
    }

    /// The delay of what is put back.
    pub(crate) fn delay(&self) -> Result<Duration, Refusal> {
        Ok(self.time("delay_ms")?.unwrap_or_default())
    }

    pub(crate) fn retry(&self) -> Result<Retry, Refusal> {
        Ok(self.time("delay_ms")?.map_or(Retry::Backoff, Retry::After))
    }
}

fn real(value: &Value) -> Result<f64, Refusal> {
    value.as_f64().ok_or(Refusal::Cannot("it is no f64"))
}

fn text(value: &Value) -> Result<&str, Refusal> {
    value.as_str().ok_or(Refusal::Cannot("it is no str"))
}

fn yes(value: &Value) -> Result<bool, Refusal> {
    value.as_bool().ok_or(Refusal::Cannot("it is no bool"))
}

fn whole(value: &Value) -> Result<u64, Refusal> {
    value.as_u64().ok_or(Refusal::Cannot("it is no unsigned number"))
}

fn small(value: &Value) -> Result<u32, Refusal> {
    u32::try_from(whole(value)?).map_err(|_| Refusal::Cannot("it is no u32"))
}

/// What has other fields than these does not compile.
fn rate(value: &Value) -> Result<Rate, Refusal> {
    let told = object(value)?;
    let (Some(count), Some(per)) = (told.get("count"), told.get("per_ms")) else {
        return Err(Refusal::Cannot("it is no Rate"));
    };
    let rate = Rate::new(small(count)?, time(per)?);
    Ok(match told.get("burst") {
        Some(burst) => rate.burst(small(burst)?),
        None => rate,
    })
}

fn time(value: &Value) -> Result<Duration, Refusal> {
    value.as_u64().map(Duration::from_millis).ok_or(Refusal::Cannot("it is no Duration"))
}

fn object(value: &Value) -> Result<&Map<String, Value>, Refusal> {
    value.as_object().ok_or(Refusal::Cannot("it is no map"))
}

fn list(value: &Value) -> Result<&Vec<Value>, Refusal> {
    value.as_array().ok_or(Refusal::Cannot("it is no list"))
}

fn bytes(value: &Value) -> Result<Vec<u8>, Refusal> {
    let hex = value["$hex"].as_str().ok_or(Refusal::Cannot("it is not made of bytes"))?;
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| Refusal::Cannot("it is no hex"));
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn missed(value: &Value) -> Result<Missed, Refusal> {
    match (value.as_str(), value.as_u64().map(u32::try_from)) {
        (Some("last"), _) => Ok(Missed::Last),
        (Some("skip"), _) => Ok(Missed::Skip),
        (_, Some(Ok(max))) => Ok(Missed::All(max)),
        _ => Err(Refusal::Cannot("it is no Missed")),
    }
}

fn overlap_of(word: &str) -> Result<Overlap, Refusal> {
    match word {
        "queue" => Ok(Overlap::Queue),
        "skip" => Ok(Overlap::Skip),
        _ => Err(Refusal::Cannot("it is no Overlap")),
    }
}

/// A list of times, or an object; what has other fields than these does not compile.
fn backoff(value: &Value) -> Result<Backoff, Refusal> {
    if let Some(pauses) = value.as_array() {
        return Ok(Backoff::list(pauses.iter().map(time).collect::<Result<Vec<_>, _>>()?));
    }
    let told = object(value)?;
    let mut backoff =
        Backoff::exponential(time(told.get("base").ok_or(Refusal::Cannot("it is no Backoff"))?)?);
    for (name, value) in told {
        backoff = match name.as_str() {
            "base" => backoff,
            "factor" => backoff.factor(real(value)?),
            "max" => backoff.max(time(value)?),
            "jitter" => backoff.jitter(real(value)?),
            _ => return Err(Refusal::Cannot("it is no part of a Backoff")),
        };
    }
    Ok(backoff)
}

fn policy(value: &Value) -> Result<OnDuplicate, Refusal> {
    match (value.as_str(), value.get("debounce_ms"), value.get("throttle_ms")) {
        (Some("keep"), ..) => Ok(OnDuplicate::Keep),
        (Some("skip"), ..) => Ok(OnDuplicate::Skip),
        (Some("replace"), ..) => Ok(OnDuplicate::Replace),
        (_, Some(max_wait), _) => Ok(OnDuplicate::Debounce { max_wait: time(max_wait)? }),
        (_, _, Some(window)) => Ok(OnDuplicate::Throttle { window: time(window)? }),
        _ => Err(Refusal::Cannot("it is no OnDuplicate")),
    }
}
