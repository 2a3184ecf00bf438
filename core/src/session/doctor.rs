//! The doctor: examines a store, and reports which promises hold on it, for people who set one up.

use std::time::{Duration, Instant};

use crate::base::error::{Error, ErrorKind};
use crate::base::token::Token;
use crate::protocol::{Acquire, Failure, FailureKind, Fence, QueueRequest, QueueVerb, Release, Request};
use crate::session::Live;
use crate::store::{Finding, Health};

/// The lock and the queue that the doctor uses.
const NAME: &str = "stanchion-doctor";
/// Locks taken and given back, to see how long that takes.
const PAIRS: usize = 10;
/// The life of a lease that the doctor could not give back.
const TTL: Duration = Duration::from_secs(1);
/// A pair that takes longer leaves little of a short lease.
const SLOW: Duration = Duration::from_millis(50);

/// Examines the client's store: what the server reports of itself, then whether all that this library needs works.
pub(crate) fn doctor(live: &Live) -> Result<Vec<Finding>, Error> {
    let failed = |failure: Failure| Error::from(failure).during("doctor", "");
    let mut findings = live.store.doctor(live.give_up()).map_err(failed)?;
    findings.push(locks(live)?);
    findings.push(queues(live)?);
    findings.push(hints(live));
    Ok(findings)
}

/// Acquires and releases a lock, some times.
fn locks(live: &Live) -> Result<Finding, Error> {
    let promise = "locks work, and quickly";
    let name = live.prefixes.lock_name(NAME)?;
    let mut times = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let token = Token::random()?;
        let acquire = Acquire {
            name: name.clone(),
            permits: None,
            token: token.clone(),
            ttl: TTL,
            min_fence: Fence::NONE,
            waiter: None,
            patience: None,
            owner: live.settings.owner.clone(),
            adopt: None,
            early: 0.0,
            looks: false,
        };
        let release = Release {
            name: name.clone(),
            token,
            cooldown: None,
            acquire_resent: false,
            own_fence: None,
            foreign_share: false,
        };
        let began = Instant::now();
        for request in [Request::Acquire(acquire), Request::Release(release)] {
            if let Err(failure) = live.store.perform(&request, live.give_up()) {
                return Ok(refused("locks", promise, failure));
            }
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let (median, most) = (times[PAIRS / 2], times[PAIRS - 1]);
    let found = format!("a lock acquired and released in {median:.1?}, at most {most:.1?}");
    let finding = Finding::good("locks", promise, found);
    Ok(match median > SLOW {
        true => finding.but(
            Health::Warning,
            "each request takes this long off its lease; use longer ttls or a nearer store",
        ),
        false => finding,
    })
}

fn queues(live: &Live) -> Result<Finding, Error> {
    let promise = "queues work";
    let queue = live.prefixes.queue_name(NAME)?;
    let request = Request::Queue(QueueRequest { queue, verb: QueueVerb::Stats });
    Ok(match live.store.perform(&request, live.give_up()) {
        Ok(_) => Finding::good("queues", promise, "a queue could be read"),
        Err(Failure { kind: FailureKind::Final(ErrorKind::Unsupported), message }) => {
            Finding::good("queues", promise, "this store has none").but(Health::Warning, message)
        }
        Err(failure) => refused("queues", promise, failure),
    })
}

fn hints(live: &Live) -> Finding {
    let promise = "waiters are woken at once";
    match live.store.listen(live.give_up()) {
        Ok(_) => Finding::good("hints", promise, "the client can subscribe to them"),
        Err(Failure { kind: FailureKind::Final(ErrorKind::Denied), message }) => {
            let advice = "waiters poll instead, and notice up to 0.75 s late; allow the user the channels";
            Finding::good("hints", promise, message).but(Health::Warning, advice)
        }
        Err(failure) => refused("hints", promise, failure),
    }
}

fn refused(what: &'static str, promise: &'static str, failure: Failure) -> Finding {
    Finding::good(what, promise, "it does not work").but(Health::Bad, failure.message)
}
