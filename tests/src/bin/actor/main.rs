//! A process that uses the library as it is told: one order per line on stdin, one JSON object per line on
//! stdout. See `stanchion_tests::actor`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic here fails the test")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};
use serde_json::{Value, json};
use stanchion::{CachedOptions, ClaimOptions, Error, LockOptions, Task};

mod face;
mod queue;

use face::{Client, Face, Lease, Ticket, runtime};
use queue::Claim;

/// How long an actor waits for a lock it needs itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// A forked child that hangs is ended by the kernel.
const CHILD_SECONDS: u32 = 60;

fn main() {
    let mut actor = Actor {
        who: "parent",
        client: None,
        leases: Vec::new(),
        claims: Vec::new(),
        tickets: Vec::new(),
        busy: Arc::default(),
        started: 0,
    };
    for line in io::stdin().lines() {
        actor.obey(&line.unwrap());
    }
}

struct Actor {
    who: &'static str,
    client: Option<Client>,
    leases: Vec<Lease>,
    claims: Vec<Claim>,
    tickets: Vec<Ticket>,
    busy: Arc<Busy>,
    started: u64,
}

/// What the background workers share with `idle`.
#[derive(Default)]
struct Busy {
    stop: AtomicBool,
    ended: AtomicU64,
    rounds: AtomicU64,
    failures: AtomicU64,
}

impl Actor {
    /// Carries out one order and says what came of it.
    fn obey(&mut self, line: &str) {
        if let Some(orders) = line.strip_prefix("fork ") {
            return self.fork(orders);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let reply = self.perform(&words);
        self.say(
            reply.unwrap_or_else(
                |error| json!({ "error": error.kind().name(), "message": error.to_string() }),
            ),
        );
    }

    fn say(&self, mut reply: Value) {
        reply["who"] = self.who.into();
        write_line(&reply);
    }

    fn perform(&mut self, words: &[&str]) -> Result<Value, Error> {
        let mut reply = json!({});
        match *words {
            ["connect", url, "blocking"] => self.client = Some(Face::Blocking.open(url)?),
            ["connect", url, "async"] => self.client = Some(Face::Async.open(url)?),
            // acquire NAME TTL_MS WAIT_MS renew|fixed
            ["acquire", name, ttl, wait, renew] => {
                let options = LockOptions::new().ttl(millis(ttl)).wait(millis(wait)).renew(renew == "renew");
                let held = self.client().acquire(name, options)?;
                reply["fence"] = held.fence().get().into();
                self.leases.push(held);
            }
            ["release"] => self.leases.pop().unwrap().release()?,
            // begin_cached NAME LEASE_MS: the right to compute it, which must be free
            ["begin_cached", name, lease] => {
                let options = CachedOptions::new(PATIENCE).lease(millis(lease));
                self.tickets.push(self.client().begin_cached(name, options)?);
            }
            // cached NAME TTL_MS: the value, which it computes itself if need be
            ["cached", name, ttl] => {
                let options = CachedOptions::new(millis(ttl)).wait(PATIENCE);
                let value = self.client().cached(name, options, "own")?;
                reply["value"] = String::from_utf8_lossy(&value).into();
            }
            // The same in a wait whose host forks in its first turn; parent and child go on.
            ["cached_forking", name] => {
                let (parent, found) = (process::id(), self.cached_forking(name));
                if process::id() != parent {
                    self.say(
                        found.map_or_else(|error| json!({ "error": error.kind().name() }), |()| json!({})),
                    );
                    process::exit(0);
                }
                found?;
            }
            ["release_all"] => reply["released"] = self.client().release_all()?.into(),
            ["extend", ttl] => self.leases.last().unwrap().extend(millis(ttl))?,
            ["detach", ttl] => {
                reply["handle"] = self.leases.pop().unwrap().detach(millis(ttl))?.to_text().into();
            }
            ["status"] => reply = status(self.leases.last().unwrap()),
            ["drop"] => drop(self.leases.pop().unwrap()),
            ["drop_client"] => self.client = None,
            // Answers when the newest lease is lost.
            ["wait_lost"] => assert!(self.leases.last().unwrap().wait_lost(PATIENCE)),
            ["holder", name] => reply["held"] = self.client().holder(name)?.is_some().into(),
            // Increments the number in a file so often, each time under the lock.
            ["count", file, name, times] => {
                for _ in 0..times.parse::<u32>().unwrap() {
                    let held = self.client().acquire(name, LockOptions::new().wait(PATIENCE))?;
                    increment(file);
                    held.release()?;
                }
            }
            // Workers that acquire and release the lock all the time, until `idle`.
            ["busy", name, workers] => {
                for _ in 0..workers.parse::<u64>().unwrap() {
                    work(self.client(), name, &self.busy);
                    self.started += 1;
                }
            }
            // Callers that ask for the value all the time, until `idle`, and compute it if need be.
            ["busy_cached", name, ttl, callers] => {
                for _ in 0..callers.parse::<u64>().unwrap() {
                    call(self.client(), name, millis(ttl), &self.busy);
                    self.started += 1;
                }
            }
            ["rounds"] => reply["rounds"] = self.busy.rounds.load(Ordering::SeqCst).into(),
            ["idle"] => {
                self.busy.stop.store(true, Ordering::SeqCst);
                let give_up = Instant::now() + PATIENCE;
                while self.busy.ended.load(Ordering::SeqCst) < self.started {
                    assert!(Instant::now() < give_up, "a worker hangs");
                    thread::sleep(Duration::from_millis(1));
                }
                reply["rounds"] = self.busy.rounds.load(Ordering::SeqCst).into();
                reply["failures"] = self.busy.failures.load(Ordering::SeqCst).into();
            }
            ["enqueue", queue, id] => {
                let enqueued = self.client().enqueue(queue, Task::new(id).payload(id))?;
                reply["outcome"] = format!("{:?}", enqueued.outcome).into();
            }
            // claim QUEUE MAX LEASE_MS WAIT_MS renew|fixed
            ["claim", queue, max, lease, wait, renew] => {
                let options = ClaimOptions::new().max(max.parse().unwrap()).lease(millis(lease));
                let claims =
                    self.client().claim(queue, options.wait(millis(wait)).renew(renew == "renew"))?;
                reply["claims"] = claims.iter().map(Claim::describe).collect();
                self.claims.extend(claims);
            }
            ["ack"] => self.claims.last().unwrap().ack()?,
            ["nack", delay] => self.claims.last().unwrap().nack(millis(delay))?,
            ["extend_claim", lease] => self.claims.last().unwrap().extend(millis(lease))?,
            ["claim_status"] => reply = self.claims.last().unwrap().status(),
            // Answers when the newest claim is lost.
            ["claim_lost"] => assert!(self.claims.last().unwrap().wait_lost(PATIENCE)),
            ["drop_claim"] => drop(self.claims.pop().unwrap()),
            ["stats", queue] => {
                let stats = self.client().stats(queue)?;
                reply["counts"] = json!([stats.scheduled, stats.ready, stats.claimed, stats.dead]);
            }
            // A worker in the background that says what it begins; it ends nothing whose id begins with "endless".
            ["work", queue, lease] => self.client().work(queue, millis(lease), |id, attempt| {
                write_line(&json!({ "who": "worker", "id": id, "attempt": attempt }));
                if id == "deadly" {
                    process::abort();
                }
                !id.starts_with("endless")
            }),
            ["join", pid] => {
                let pid = Pid::from_raw(pid.parse().unwrap());
                reply["code"] = match waitpid(pid, None).unwrap() {
                    WaitStatus::Exited(_, code) => code.into(),
                    other => format!("{other:?}").into(),
                };
            }
            ["exit", code] => process::exit(code.parse().unwrap()),
            _ => panic!("unknown order {words:?}"),
        }
        Ok(reply)
    }

    /// Forks; the child carries out the orders, which are separated by semicolons, and exits. The parent
    /// says the child's process id.
    fn fork(&mut self, orders: &str) {
        // SAFETY: this program exists to show what the library does in a child of a process with threads. It
        // runs on glibc, whose allocator is usable there; the library takes no lock a lost thread may hold.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => self.say(json!({ "child": child.as_raw() })),
            ForkResult::Child => {
                alarm::set(CHILD_SECONDS);
                self.who = "child";
                self.busy = Arc::default();
                self.started = 0;
                for order in orders.split(';') {
                    self.obey(order.trim());
                }
                process::exit(0);
            }
        }
    }

    fn cached_forking(&mut self, name: &str) -> Result<(), Error> {
        let Client::Blocking(client) = self.client().clone() else {
            panic!("only a blocking wait has a host")
        };
        let options = CachedOptions::new(PATIENCE).wait(PATIENCE);
        let mut forked = false;
        client
            .begin_cached_while(name, &options, &mut || {
                if !std::mem::replace(&mut forked, true) {
                    // SAFETY: as below.
                    match unsafe { fork() }.unwrap() {
                        ForkResult::Parent { child } => self.say(json!({ "child": child.as_raw() })),
                        ForkResult::Child => {
                            alarm::set(CHILD_SECONDS);
                            self.who = "child";
                        }
                    }
                }
                ControlFlow::Continue(())
            })
            .map(drop)
    }

    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }
}

/// One write per line: parent and child share the pipe.
fn write_line(line: &Value) {
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned().unwrap());
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Starts a worker that acquires and releases the lock all the time.
fn work(client: &Client, name: &str, busy: &Arc<Busy>) {
    let (client, name, busy) = (client.clone(), name.to_owned(), Arc::clone(busy));
    let options = || LockOptions::new().wait(PATIENCE);
    match client {
        Client::Blocking(client) => drop(thread::spawn(move || {
            while !busy.stop.load(Ordering::SeqCst) {
                busy.count(client.lock(&name).acquire(options()).and_then(|lease| lease.release()));
            }
            busy.ended.fetch_add(1, Ordering::SeqCst);
        })),
        Client::Async(client) => drop(runtime().spawn(async move {
            while !busy.stop.load(Ordering::SeqCst) {
                busy.count(match client.lock(&name).acquire(options()).await {
                    Ok(lease) => lease.release().await,
                    Err(error) => Err(error),
                });
            }
            busy.ended.fetch_add(1, Ordering::SeqCst);
        })),
    }
}

/// Starts a caller that asks for a cached value all the time.
fn call(client: &Client, name: &str, ttl: Duration, busy: &Arc<Busy>) {
    let (client, name, busy) = (client.clone(), name.to_owned(), Arc::clone(busy));
    thread::spawn(move || {
        while !busy.stop.load(Ordering::SeqCst) {
            let options = CachedOptions::new(ttl).wait(PATIENCE);
            busy.count(client.cached(&name, options, "own").map(drop));
        }
        busy.ended.fetch_add(1, Ordering::SeqCst);
    });
}

impl Busy {
    fn count(&self, result: Result<(), Error>) {
        let counter = if result.is_ok() { &self.rounds } else { &self.failures };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

fn status(lease: &Lease) -> Value {
    let loss = lease.loss().map(|reason| format!("{reason:?}"));
    json!({ "valid": lease.is_valid(), "remaining_ms": lease.remaining().as_secs_f64() * 1e3, "loss": loss })
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap())
}

/// Not atomic at all: two at a time lose an update.
fn increment(file: &str) {
    let number: u64 = fs::read_to_string(file).unwrap().trim().parse().unwrap();
    thread::yield_now();
    fs::write(file, (number + 1).to_string()).unwrap();
}
