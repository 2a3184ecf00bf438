//! Replies about queues.

use std::slice::Iter;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::name::TaskId;
use crate::store::redis::code::{Code, TASK_FIELDS};
use crate::store::redis::codec::packed::{Packed, unpack};
use crate::verbs::{
    ClaimReply, ClaimedTask, EnqueueOutcome, ExtendClaimReply, Outcome, QueueReply, QueueVerb, Settled,
};

/// The reply, if it makes sense.
pub(crate) fn decode(verb: &QueueVerb, value: &Value) -> Option<QueueReply> {
    let Value::Array(items) = value else { return None };
    let mut items = Items(items.iter());
    let code = items.code()?;
    let reply = match (verb, code) {
        (QueueVerb::Enqueue(_) | QueueVerb::Claim(_) | QueueVerb::SettleAndClaim(..), Code::Superseded) => {
            QueueReply::Superseded
        }
        (QueueVerb::Enqueue(enqueue), Code::Outcomes) => {
            let outcomes = enqueue.tasks.iter().map(|_| items.enqueued());
            QueueReply::Enqueue(outcomes.collect::<Option<_>>()?)
        }
        (QueueVerb::Claim(_), code) => QueueReply::Claim(items.claim(code)?),
        (QueueVerb::Settle(settle), Code::Outcomes) => QueueReply::Settle(items.settled(settle.items.len())?),
        (QueueVerb::SettleAndClaim(settle, _), Code::Outcomes) => {
            let count = items.size().filter(|count| *count == settle.items.len())?;
            let settled = items.settled(count)?;
            let code = items.code()?;
            QueueReply::SettleAndClaim(settled, items.claim(code)?)
        }
        (QueueVerb::ExtendClaim(_), code) => QueueReply::ExtendClaim(match code {
            Code::Extended => ExtendClaimReply::Extended(items.time()?),
            Code::Expired => ExtendClaimReply::Expired,
            Code::Stale => ExtendClaimReply::Stale,
            Code::Gone => ExtendClaimReply::Gone,
            _ => return None,
        }),
        (QueueVerb::Abandon(_), Code::Left) => QueueReply::Abandon,
        _ => return None,
    };
    // Something is left over: it is not what it seems to be.
    items.0.next().is_none().then_some(reply)
}

/// What is left of a reply.
struct Items<'a>(Iter<'a, Value>);

impl<'a> Items<'a> {
    fn int(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.int()?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.int()?.try_into().ok()
    }

    fn rank(&mut self) -> Option<u32> {
        self.int()?.try_into().ok()
    }

    fn code(&mut self) -> Option<Code> {
        Code::from_number(self.int()?)
    }

    fn time(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_millis)
    }

    /// `None` within if it is negative.
    fn maybe_time(&mut self) -> Option<Option<Duration>> {
        self.int().map(|number| u64::try_from(number).ok().map(Duration::from_millis))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.0.next()? {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn enqueued(&mut self) -> Option<EnqueueOutcome> {
        let (code, version, due) = (self.code()?, self.number()?, self.number()?);
        let outcome = match code {
            Code::Added => Outcome::Added,
            Code::Kept => Outcome::Kept,
            Code::Replaced => Outcome::Replaced,
            Code::Successor => Outcome::Successor,
            Code::Throttled => Outcome::Throttled,
            Code::Full => return Some(EnqueueOutcome::Full),
            _ => return None,
        };
        Some(EnqueueOutcome::Accepted { outcome, version, due })
    }

    fn settled(&mut self, count: usize) -> Option<Vec<Settled>> {
        let one = |code| {
            Some(match code {
                Code::Done => Settled::Done { late: false, dead: false },
                Code::DoneLate => Settled::Done { late: true, dead: false },
                Code::DoneDead => Settled::Done { late: false, dead: true },
                Code::DoneLateDead => Settled::Done { late: true, dead: true },
                Code::Stale => Settled::Stale,
                Code::Gone => Settled::Gone,
                _ => return None,
            })
        };
        (0..count).map(|_| self.code().and_then(one)).collect()
    }

    fn claim(&mut self, code: Code) -> Option<ClaimReply> {
        Some(match code {
            Code::Given => {
                let mut tasks = vec![self.claimed()?];
                while !self.0.as_slice().is_empty() {
                    tasks.push(self.claimed()?);
                }
                ClaimReply::Claimed(tasks)
            }
            Code::Empty => ClaimReply::Empty { next_due: self.maybe_time()?, rank: self.rank()? },
            Code::Paused => ClaimReply::Paused { rank: self.rank()? },
            _ => return None,
        })
    }

    fn claimed(&mut self) -> Option<ClaimedTask> {
        let id = TaskId::stored(self.bytes()?);
        let task = Fields::read(self.bytes()?)?;
        Some(ClaimedTask {
            id,
            body: Arc::from(self.bytes()?),
            receipt: task.number("RECEIPT")?,
            attempt: task.number("ATTEMPTS")?.try_into().ok()?,
            max_attempts: task.number("MAX_ATTEMPTS")?.try_into().ok()?,
            version: task.number("VERSION")?,
            due: task.number("DUE")?,
            priority: task.number("PRIORITY")?.try_into().ok()?,
            remaining: self.time()?,
        })
    }
}

/// A packed task.
struct Fields<'a>(Vec<Packed<'a>>);

impl<'a> Fields<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        match unpack(bytes)?.pop()? {
            Packed::Array(fields) => Some(Self(fields)),
            _ => None,
        }
    }

    fn field(&self, name: &str) -> Option<&Packed<'a>> {
        let (_, place) = TASK_FIELDS.iter().find(|(field, _)| *field == name)?;
        self.0.get(place - 1)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.number()
    }
}
