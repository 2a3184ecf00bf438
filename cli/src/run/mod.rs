//! `stanchion run`: a command under a lock.

mod busy;

use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant};

use stanchion::blocking::{Client, Lease, Lock};
use stanchion::{DEFAULT_TTL, DEFAULT_WAIT, ErrorKind, LockOptions, MAX_TTL};

use crate::arguments::{Globals, RunOrder};
use crate::exit;
use crate::failure::Failure;
use crate::process::{Child, Ending, Kin, Nursery, Order, PASSED_ON, Signals, Terms, supervise};
use crate::report::Report;
use crate::store;

/// The command's end is noticed, so nothing is gained by giving up the lock under one that works for long.
const MAX_HOLD: Duration = MAX_TTL;

/// Acquires, runs the command, releases; the exit code.
pub fn run(order: &RunOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    check(order)?;
    let client = store::open(globals, report)?;
    // From here on a signal is ours to handle; until here it simply ended this process.
    let signals = Signals::catch(&PASSED_ON)?;
    let lease = match acquire(&client, order, &signals)? {
        Acquired::Lease(lease) => lease,
        Acquired::Interrupted(code) => return Ok(code),
    };
    let nursery = Nursery::default();
    let child = match start(&nursery, order, &lease) {
        Ok(child) => child,
        Err(failure) => {
            // Nothing has run, so there is nothing to cool down from, and its error is the one that counts.
            let _ = lease.release();
            return Err(failure);
        }
    };
    let ending = watch(&child, &lease, order, &signals, report);
    let was_valid = lease.is_valid();
    let released = match order.cooldown {
        Some(cooldown) => lease.release_with_cooldown(cooldown),
        None => lease.release(),
    };
    if ending.stopped.is_some() {
        // Said when it happened.
        return Ok(exit::LOST);
    }
    let code = ending.end.code();
    Ok(released.map_or_else(|error| after_failed_release(error, was_valid, code, report), |()| code))
}

fn check(order: &RunOrder) -> Result<(), Failure> {
    let is_shared = order.read || order.write || order.permits.is_some();
    if is_shared && order.names.len() > 1 {
        let what = "--read, --write and --permits go with one NAME";
        return Err(Failure::usage(
            what,
            "give several NAMEs without them, or run `stanchion run` inside another",
        ));
    }
    Ok(())
}

fn lock(client: &Client, order: &RunOrder) -> Lock {
    match (&order.names[..], order.permits) {
        ([name], Some(permits)) => client.semaphore(name, permits),
        ([name], None) if order.read => client.rw_lock(name).read().clone(),
        ([name], None) if order.write => client.rw_lock(name).write().clone(),
        (names, _) => client.multi_lock(&names.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

fn start<'a>(nursery: &'a Nursery, order: &RunOrder, lease: &Lease) -> Result<Child<'a>, Failure> {
    let [program, arguments @ ..] = &order.command[..] else {
        return Err(Failure::usage("no command was given", "put it after --"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let (names, fences): (Vec<_>, Vec<_>) =
        lease.fences().into_iter().map(|(name, fence)| (name, fence.to_string())).unzip();
    // A name has no line ends in it.
    command.env("STANCHION_LOCK", names.join("\n"));
    command.env("STANCHION_FENCE", fences.join("\n"));
    Child::spawn(nursery, command, Kin::all_but_present(), "the lock was released")
}

fn watch(child: &Child<'_>, lease: &Lease, order: &RunOrder, signals: &Signals, report: &Report) -> Ending {
    let ttl = order.ttl.unwrap_or(DEFAULT_TTL);
    let terms = Terms { kill_after: order.kill_after, ttl, stop_at: None };
    let mut next = |nap| {
        let caught = signals.next(nap).filter(|caught| caught.is_for_command());
        caught.map(|caught| Order::PassOn(caught.signal))
    };
    supervise(child, lease, &terms, &mut next, &mut |trouble| {
        let what = format!("run {:?}: {}; the command is being stopped", lease.name(), trouble.why());
        let hint = "check what it left half done before running it again";
        report.failure(&Failure::new("LeaseLost", exit::LOST, what, hint));
    })
}

enum Acquired {
    Lease(Box<Lease>),
    /// A signal came while waiting.
    Interrupted(u8),
}

fn acquire(client: &Client, order: &RunOrder, signals: &Signals) -> Result<Acquired, Failure> {
    let wait = if order.no_wait { Duration::ZERO } else { order.wait.unwrap_or(DEFAULT_WAIT) };
    let mut options = LockOptions::new().wait(wait).renew(true).max_hold(MAX_HOLD);
    if let Some(ttl) = order.ttl {
        options = options.ttl(ttl);
    }
    if let Some(label) = &order.label {
        options = options.label(label);
    }
    if let Some(weight) = order.weight {
        options = options.weight(weight);
    }
    let (began, mut interrupted) = (Instant::now(), None);
    let acquired = lock(client, order).acquire_while(options, &mut || {
        interrupted = signals.ending();
        if interrupted.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (acquired, interrupted.or_else(|| signals.ending())) {
        (Ok(lease), None) => Ok(Acquired::Lease(Box::new(lease))),
        (Ok(lease), Some(code)) => {
            let _ = lease.release();
            Ok(Acquired::Interrupted(code))
        }
        (Err(error), Some(code)) if error.kind() == ErrorKind::Cancelled => Ok(Acquired::Interrupted(code)),
        (Err(error), _) => {
            let is_busy = error.kind() == ErrorKind::LockTimeout;
            let failure = Failure::from(error);
            if !is_busy {
                return Err(failure);
            }
            let waited = (!wait.is_zero()).then(|| began.elapsed());
            let failure = Failure { exit: order.conflict_exit_code, ..failure };
            Err(busy::explained(failure, client, order, waited))
        }
    }
}

/// The command has ended by itself, but the release did not go well.
fn after_failed_release(error: stanchion::Error, was_valid: bool, code: u8, report: &Report) -> u8 {
    let lost = error.is_lost() || !was_valid;
    let mut failure = Failure::from(error);
    let verdict = if lost {
        failure.kind = ErrorKind::LeaseLost.name();
        failure.what.push_str(" (noticed when the command had ended)");
        exit::LOST
    } else {
        // What counts is that the lease was ours to the end of the command. The store being away now, or
        // its answer being lost, changes nothing about that.
        failure.what.push_str(" (the command ended in time; the lock comes free when its ttl is over)");
        exit::DONE
    };
    failure.exit = if code == exit::DONE { verdict } else { code };
    report.failure(&failure);
    failure.exit
}
