//! A key of another type: the typed error comes before any write, or the key is not touched at all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use stanchion::ErrorKind;
use stanchion::protocol::{FailureKind, Fence, Release, Request};

use crate::acquire_all::all;
use crate::case::{Bench, acquire, break_lease, extend, holder, leave, release, resume, wait, waiters};
use crate::state::{Content, State, WEEK, nothing};

const META: &str = "fence 100, born 50, owner x, since 1, calm_until 0, wait_until {then+2400}";

/// Every verb in every form.
fn requests() -> Vec<(&'static str, Request)> {
    let cooldown = Release { cooldown: Some(Duration::from_millis(700)), ..release(1) };
    let resent = Release { acquire_resent: true, ..release(1) };
    let both = Release { acquire_resent: true, ..cooldown.clone() };
    let share = Release { foreign_share: true, ..release(1) };
    let late = Release { own_fence: Some(Fence::new(99)), ..both.clone() };
    vec![
        ("try", Request::Acquire(acquire(1))),
        ("acquire", Request::Acquire(wait(1, 5))),
        ("acquire_all", Request::AcquireAll(all(&["b", "a"]))),
        ("extend", Request::Extend(extend(1, 9_000))),
        ("release", Request::Release(release(1))),
        ("release with cooldown", Request::Release(cooldown)),
        ("release after a resent acquire", Request::Release(resent)),
        ("release with both", Request::Release(both)),
        ("release with foreign share", Request::Release(share)),
        ("late release", Request::Release(late)),
        ("leave", Request::Leave(leave(1))),
        ("resume", Request::Resume(resume(1, 9))),
        ("holder", Request::Holder(holder())),
        ("waiters", Request::Waiters(waiters())),
        ("break_lease", Request::BreakLease(break_lease())),
    ]
}

/// Every situation that scripts tell apart.
fn situations() -> Vec<(&'static str, State)> {
    let meta = || nothing().meta(META, WEEK);
    let other_waits = |state: State| state.line(&[(2, "900")]).waiters(&[(2, "{then-100} 0 {C} 6")]);
    let i_wait = |state: State| state.line(&[(1, "900")]).waiters(&[(1, "{then-100} 1 {C} 6")]);
    vec![
        ("free", meta()),
        ("free, another waits", other_waits(meta())),
        ("free, this token waits", i_wait(meta())),
        ("held by this token", meta().lock("{T1}", 3_000)),
        ("held by this token, another waits", other_waits(meta().lock("{T1}", 3_000))),
        ("offered to this token", i_wait(meta().lock("{T1}", 800))),
        ("held by another", meta().lock("{T2}", 3_000)),
        ("held by another, this token waits", i_wait(meta().lock("{T2}", 3_000))),
        ("held by a stranger", meta().lock_for_ever("stranger")),
    ]
}

/// One cell of the table; `Err` tells what is wrong.
fn check(state: &State, kind: &str, request: Request) -> Result<(), String> {
    let wrong = state.clone().with(kind, Content::List, Some(500_000));
    let mut bench = Bench::new();
    bench.set_up(&wrong);
    let result = bench.call(request);
    let real = bench.state();
    bench.context.after = bench.time();
    match result {
        Err(failure) if failure.kind == FailureKind::Final(ErrorKind::WrongType) => {
            let differences = wrong.differences(&real, &bench.context);
            match differences.is_empty() {
                true => Ok(()),
                false => Err(format!("WrongType after a write:\n{differences}")),
            }
        }
        Err(failure) => Err(format!("{:?}: {}", failure.kind, failure.message)),
        // It did not need the key, so the key is as it was.
        Ok(_) => match real.0.get(&crate::state::key(kind)) {
            Some((Content::List, Some(_))) => Ok(()),
            other => Err(format!("succeeded, and the key became {other:?}")),
        },
    }
}

fn table(kind: &str) {
    let mut wrong = Vec::new();
    for (situation, state) in situations() {
        for (verb, request) in requests() {
            let cell = catch_unwind(AssertUnwindSafe(|| check(&state, kind, request)));
            if let Err(problem) = cell.unwrap_or_else(|_| Err("panicked".into())) {
                wrong.push(format!("{kind} is a list; {situation}; {verb}: {problem}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_lock_itself() {
    table("lock");
    // Nothing can be granted there, so every verb has to say so but the one that looks at the line alone.
    for (verb, request) in requests().into_iter().filter(|(verb, _)| *verb != "waiters") {
        let mut bench = Bench::new();
        bench.set_up(&nothing().with("lock", Content::List, None));
        let failure = bench.call(request).expect_err(verb);
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::WrongType), "{verb}");
        assert!(failure.message.contains("another kind"), "it says what to do: {}", failure.message);
    }
}

#[test]
fn the_record() {
    table("meta");
}

#[test]
fn the_line() {
    table("line");
}

#[test]
fn the_waiters() {
    table("waiters");
}
