//! How often the waiters of one client ask for the same lock: all together as often as one of them alone would. Nobody is
//! in line on a quorum, so it makes no difference who of them asks.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::wake::locked;
use crate::protocol::{AcquireReply, Failure, LINE_NEAR, PLACE_PAUSE, Reply, Request};

/// Who has not asked for so long does not wait any more: longer than the longest pause.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// A pause up to this long is returned as the time after which the lock is free; a longer one as a place in a line.
const TOLD_EXACTLY: Duration = Duration::from_millis(500);

/// Of each lock, which calls of this client wait for it, and when they asked last.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<HashMap<String, HashMap<String, Moment>>>);

impl Crowd {
    /// The reply to a request, as it is passed on. A call that waits gets a poll interval that grows with the number of
    /// this client's calls that wait for the same lock.
    pub(super) fn spread(
        &self,
        now: Moment,
        request: &Request,
        mut reply: Result<Reply, Failure>,
    ) -> Result<Reply, Failure> {
        let (name, token) = match request {
            Request::Acquire(acquire) if acquire.waiter.is_some() => (&acquire.name, &acquire.token),
            Request::Leave(leave) => (&leave.name, &leave.token),
            _ => return reply,
        };
        let mut crowd = locked(&self.0);
        match &mut reply {
            Ok(Reply::Acquire(AcquireReply::Waiting(obstacle))) => {
                let waiting = crowd.entry(name.key().to_owned()).or_default();
                waiting.insert(token.as_str().to_owned(), now);
                waiting.retain(|_, asked| now.since(*asked) < FORGET_AFTER);
                let many = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
                let pause = obstacle.remaining.unwrap_or_default().saturating_mul(many);
                obstacle.remaining = Some(pause);
                if pause > TOLD_EXACTLY {
                    let places = (pause - TOLD_EXACTLY).as_nanos() / PLACE_PAUSE.as_nanos();
                    obstacle.rank = u32::try_from(LINE_NEAR as u128 + places).unwrap_or(u32::MAX);
                }
            }
            // A request that failed is sent again, or followed by a leave.
            Err(failure) if failure.is_retryable() => {}
            _ => {
                if let Some(waiting) = crowd.get_mut(name.key()) {
                    waiting.remove(token.as_str());
                    if waiting.is_empty() {
                        crowd.remove(name.key());
                    }
                }
            }
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::base::token::Token;
    use crate::protocol::{Acquire, ClientId, Fence, Leave, Obstacle, Waiter, further_pause};

    fn acquire(number: u128) -> Request {
        Request::Acquire(Acquire {
            name: Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap(),
            permits: None,
            token: Token::from_bits(number),
            ttl: Duration::from_secs(30),
            min_fence: Fence::NONE,
            waiter: Some(Waiter { client: ClientId(1), seq: 1 }),
            patience: None,
            owner: "".into(),
            adopt: None,
            early: 0.0,
            looks: false,
        })
    }

    fn told(crowd: &Crowd, now: Moment, number: u128) -> Obstacle {
        let remaining = Some(Duration::from_millis(40));
        let obstacle = Obstacle { remaining, unexpiring: None, rank: 0 };
        let reply = Ok(Reply::Acquire(AcquireReply::Waiting(obstacle)));
        match crowd.spread(now, &acquire(number), reply) {
            Ok(Reply::Acquire(AcquireReply::Waiting(obstacle))) => obstacle,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn waiters_of_one_client_ask_together_as_often_as_one() {
        let (crowd, now) = (Crowd::default(), Moment::from_nanos(0));
        for number in 1..=500 {
            let obstacle = told(&crowd, now, number);
            let alone = Duration::from_millis(40) * u32::try_from(number).unwrap();
            assert_eq!(obstacle.remaining, Some(alone));
            let far_back = Duration::from_millis(750) + further_pause(obstacle.rank);
            assert!(obstacle.rank == 0 || far_back + PLACE_PAUSE >= alone.min(Duration::from_secs(20)));
            assert_eq!(obstacle.rank == 0, alone <= TOLD_EXACTLY);
        }
        for number in 2..=500 {
            let Request::Acquire(Acquire { name, token, .. }) = acquire(number) else { unreachable!() };
            let leave = Request::Leave(Leave { name, token, foreign_share: false });
            crowd.spread(now, &leave, Ok(Reply::Leave)).unwrap();
        }
        assert_eq!(told(&crowd, now, 1).remaining, Some(Duration::from_millis(40)));
        let granted = AcquireReply::Granted { fence: Fence::new(1), ttl: Duration::from_secs(30) };
        crowd.spread(now, &acquire(1), Ok(Reply::Acquire(granted))).unwrap();
        assert!(locked(&crowd.0).is_empty(), "nothing is kept of a lock that nobody waits for");
    }

    #[test]
    fn who_has_not_asked_for_long_does_not_count() {
        let crowd = Crowd::default();
        let now = Moment::from_nanos(0);
        told(&crowd, now, 1);
        assert_eq!(told(&crowd, now + FORGET_AFTER, 2).remaining, Some(Duration::from_millis(40)));
    }
}
