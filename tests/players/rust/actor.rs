//! One client, with what it has in its hands.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use stanchion::{Client, ManualClock, Verdict, WorkerEvent};
use stanchion_tests::faces::{AnyClaim, AnyClient, AnyLease, AnyLimiter, AnyLock, AnyQueue, Face, Stop};

use crate::arguments::Arguments;
use crate::operations::needed;
use crate::{Answer, Refusal, shown};

/// How long a handler waits that is to work longer than its claim lasts.
const OUTLIVES: Duration = Duration::from_secs(10);

/// What a lock is called that is more than a name.
const KINDS: &[&str] = &["exclusive", "read", "write", "semaphore", "several"];

pub(crate) struct Actor {
    face: Face,
    pub(crate) clock: ManualClock,
    client: Option<AnyClient>,
    leases: HashMap<String, AnyLease>,
    claims: HashMap<String, AnyClaim>,
    /// What errors that nobody handles would print.
    told: Vec<String>,
}

impl Actor {
    pub(crate) fn new(face: Face, clock: ManualClock) -> Self {
        Self { face, clock, client: None, leases: HashMap::new(), claims: HashMap::new(), told: Vec::new() }
    }

    pub(crate) fn open(&mut self, request: &Arguments) -> Answer {
        let url = request.text("url")?;
        let mut builder = Client::builder(url);
        if url.starts_with("memory:") {
            builder = builder.clock(&self.clock);
        }
        if request.0.contains_key("lock_prefix") {
            builder = builder.lock_prefix(request.text("lock_prefix")?);
        }
        if request.0.contains_key("queue_prefix") {
            builder = builder.queue_prefix(request.text("queue_prefix")?);
        }
        if let Some(timeout) = request.time("timeout_ms")? {
            builder = builder.timeout(timeout);
        }
        if let Some(share) = request.yes("foreign_share")? {
            builder = builder.foreign_share(share);
        }
        if request.0.contains_key("label") {
            builder = builder.label(request.text("label")?);
        }
        if request.0.contains_key("tls_ca") {
            builder = builder.tls_ca(request.text("tls_ca")?);
        }
        match (request.0.contains_key("tls_cert"), request.0.contains_key("tls_key")) {
            (true, true) => builder = builder.tls_client(request.text("tls_cert")?, request.text("tls_key")?),
            (false, false) => {}
            _ => return Err(Refusal::Cannot("tls_client takes both")),
        }
        self.leases.clear();
        self.claims.clear();
        self.client = Some(AnyClient::open(self.face, builder)?);
        Ok(Value::Null)
    }

    /// It is closed, and still there, as what it holds.
    pub(crate) fn close(&mut self) -> Answer {
        if let Some(client) = &self.client {
            client.close()?;
        }
        Ok(Value::Null)
    }

    /// Remembers an error as it is printed.
    pub(crate) fn note(&mut self, error: &stanchion::Error) {
        self.told.push(format!("{error} {error:?} {error:#?}"));
        let mut cause = error.source();
        while let Some(one) = cause {
            self.told.push(format!("{one} {one:?}"));
            cause = one.source();
        }
    }

    /// Everything, as a developer would print it.
    pub(crate) fn show(&self) -> Value {
        let mut told = self.told.clone();
        told.push(format!("{:#?} {:#?}", self.leases, self.claims));
        if let Some(client) = &self.client {
            told.push(format!("{client:?} {:?} {:?}", client.lock("a"), client.queue("q")));
        }
        json!(told)
    }

    pub(crate) fn client(&self) -> Result<&AnyClient, Refusal> {
        self.client.as_ref().ok_or(Refusal::Cannot("there is no client"))
    }

    pub(crate) fn lock(&self, request: &Arguments) -> Result<AnyLock, Refusal> {
        let client = self.client()?;
        let told = request.0.get("lock").map(Arguments::of).unwrap_or_default();
        let lock = match told.0.keys().find(|key| KINDS.contains(&key.as_str())).map(String::as_str) {
            Some("read") => client.reader(told.text("read")?),
            Some("write") => client.writer(told.text("write")?),
            Some("semaphore") => client.semaphore(told.text("semaphore")?, told.number("permits")?),
            Some("several") => client.multi_lock(&told.texts("several")?),
            Some(_) => client.lock(told.text("exclusive")?),
            None => client.lock(request.text("lock")?),
        };
        Ok(if told.0.contains_key("owner") { lock.reentrant(told.text("owner")?) } else { lock })
    }

    pub(crate) fn limiter(&self, request: &Arguments) -> Result<AnyLimiter, Refusal> {
        Ok(self.client()?.limiter(request.text("limiter")?, request.limiter_limit()?)?)
    }

    pub(crate) fn queue(&self, request: &Arguments) -> Result<AnyQueue, Refusal> {
        Ok(self.client()?.queue(request.text("queue")?))
    }

    pub(crate) fn keep(&mut self, request: &Arguments, lease: AnyLease) -> Answer {
        let shown = shown::lease(&lease);
        self.leases.insert(request.text_or("as", "lease")?.to_owned(), lease);
        Ok(shown)
    }

    pub(crate) fn lease(&self, request: &Arguments) -> Result<&AnyLease, Refusal> {
        self.leases.get(request.text_or("lease", "lease")?).ok_or(Refusal::Cannot("there is no such lease"))
    }

    pub(crate) fn keep_claims(&mut self, request: &Arguments, claims: Vec<AnyClaim>) -> Answer {
        let label = request.text_or("as", "claim")?;
        let shown = claims.iter().map(shown::claim).collect();
        for (number, claim) in claims.into_iter().enumerate() {
            self.claims.insert(format!("{label}.{number}"), claim);
        }
        Ok(shown)
    }

    pub(crate) fn claim(&self, request: &Arguments) -> Result<&AnyClaim, Refusal> {
        self.claims.get(request.text_or("claim", "claim.0")?).ok_or(Refusal::Cannot("there is no such claim"))
    }

    pub(crate) fn verdicts(&self, request: &Arguments) -> Result<Vec<Verdict>, Refusal> {
        let verdict = |told: &Arguments| {
            let claim = self.claim(told)?;
            Ok(match told.text("verdict")? {
                "ack" => match told.maybe_bytes("result")? {
                    Some(result) => claim.acked_with(&result)?,
                    None => claim.acked(),
                },
                "nack" => claim.nacked(told.retry()?, told.text_or("reason", "")?)?,
                "bury" => claim.buried(told.text_or("reason", "")?),
                "throttle" => claim.throttled(needed(told, "time_ms")?)?,
                _ => claim.returned_after(told.delay()?)?,
            })
        };
        request.objects("verdicts")?.iter().map(verdict).collect()
    }

    /// A worker whose handler does what the request says for each delivery of a task, and then the last again.
    pub(crate) fn work(&self, request: &Arguments) -> Answer {
        let plans = request.0.get("handler").cloned().unwrap_or_default();
        let (seen, events) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (noted, told) = (Arc::clone(&seen), Arc::clone(&events));
        let mut worker = self
            .queue(request)?
            .worker(&Stop::default(), move |claim| {
                let one = json!({ "id": claim.id(), "attempt": claim.attempt() });
                let is_first = note(&noted, one);
                carry_out(&plans[claim.id()], &claim, is_first)
            })
            .until_empty()
            .on_event(move |event| match event {
                WorkerEvent::Dead { id, .. } => {
                    note(&told, json!({ "what": "dead", "id": id }));
                }
                WorkerEvent::Lost { id, .. } => {
                    note(&told, json!({ "what": "lost", "id": id }));
                }
                WorkerEvent::SlotsMissed { schedule, .. } => {
                    note(&told, json!({ "what": "slots_missed", "id": schedule }));
                }
                _ => {}
            });
        if request.0.contains_key("concurrency") {
            worker = worker.concurrency(request.size("concurrency", 1)?);
        }
        if let Some(lease) = request.time("lease_ms")? {
            worker = worker.lease(lease);
        }
        if let Some(max_run) = request.time("max_run_ms")? {
            worker = worker.max_run(max_run);
        }
        if let Some(timeout) = request.time("timeout_ms")? {
            worker = worker.timeout(timeout);
        }
        if let Some(grace) = request.time("grace_ms")? {
            worker = worker.grace(grace);
        }
        let mut shown = shown::report(&worker.run()?);
        shown["seen"] = Value::Array(seen.lock().unwrap_or_else(PoisonError::into_inner).clone());
        shown["events"] = Value::Array(events.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Ok(shown)
    }
}

/// Whether it is the first of its id.
fn note(list: &Mutex<Vec<Value>>, one: Value) -> bool {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = list.iter().all(|other| other["id"] != one["id"]);
    list.push(one);
    is_first
}

fn carry_out(plan: &Value, claim: &AnyClaim, is_first: bool) -> Result<(), String> {
    let acts = plan.as_array().map_or(&[][..], Vec::as_slice);
    let at = (claim.attempt() as usize).min(acts.len()).saturating_sub(1);
    match acts.get(at).and_then(Value::as_str).unwrap_or("ok") {
        "fail" => Err("as planned".to_owned()),
        "ack" => claim.ack().map_err(|error| error.to_string()),
        "bury" => claim.bury("").map_err(|error| error.to_string()),
        // It does not count as an attempt.
        "throttle" if is_first => claim.throttle(Duration::ZERO).map_err(|error| error.to_string()),
        "outlive" => {
            claim.wait_lost(OUTLIVES);
            Ok(())
        }
        _ => Ok(()),
    }
}
