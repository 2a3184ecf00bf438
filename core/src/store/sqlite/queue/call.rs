//! The last call of each slot and its reply, so that a repetition does nothing and gets the same reply.

use std::time::Duration;

use rusqlite::OptionalExtension;

use crate::protocol::{
    CALL_TTL, CallId, Claim, ClaimReply, EnqueueOutcome, Outcome, Receipt, Settled, Version,
};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::micros;

/// How many calls next to a new slot are looked at: while one in so many is old, as many go as come.
const NEAR: i64 = 8;

/// Whether a call was carried out before.
pub(super) enum Heard {
    New,
    /// With this reply.
    Repeated(Stored),
    /// It was given up.
    Abandoned,
    /// A later one of the slot was carried out.
    Superseded,
}

/// What is kept of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) outcomes: Vec<EnqueueOutcome>,
    pub(super) settled: Vec<Settled>,
    /// Ids and receipts.
    pub(super) claims: Vec<(Box<str>, Receipt)>,
}

/// The last call of a slot.
pub(super) struct LastCall {
    pub(super) number: u64,
    /// `None` if it was given up.
    pub(super) reply: Option<Stored>,
}

impl Work<'_> {
    /// Looks whether the call is new.
    pub(super) fn hear(&mut self, call: CallId) -> rusqlite::Result<Heard> {
        let last = self.last_call(call)?;
        self.is_new_slot = last.is_none();
        Ok(match last {
            Some(LastCall { number, reply: Some(reply) }) if number == call.number => Heard::Repeated(reply),
            Some(LastCall { number, .. }) if number == call.number => Heard::Abandoned,
            Some(LastCall { number, .. }) if number > call.number => Heard::Superseded,
            _ => Heard::New,
        })
    }

    /// The last call of this call's slot.
    pub(super) fn last_call(&self, call: CallId) -> rusqlite::Result<Option<LastCall>> {
        self.step
            .connection
            .prepare_cached(
                "SELECT number, reply FROM call
                 WHERE queue = ?1 AND client = ?2 AND slot = ?3 AND expires > ?4",
            )?
            .query_row((self.record.id, call.client.0.cast_signed(), call.slot, self.step.now), |row| {
                let reply = Stored::unpack(row.get_ref(1)?.as_blob()?);
                Ok(LastCall { number: number(row.get(0)?), reply })
            })
            .optional()
    }

    /// Notes that the call was carried out with this reply, or that it was given up. `more`: for how long a repetition
    /// may come, or has something to be given again.
    pub(super) fn remember(
        &mut self,
        call: CallId,
        reply: Option<&Stored>,
        more: Duration,
    ) -> rusqlite::Result<()> {
        if self.is_new_slot {
            self.clean_calls(call)?;
        }
        let packed = reply.map(Stored::pack).unwrap_or_default();
        let expires = self.step.now.saturating_add(micros(CALL_TTL.saturating_add(more)));
        self.step.change(
            "INSERT INTO call (queue, client, slot, number, expires, reply) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE
               SET number = excluded.number, expires = excluded.expires, reply = excluded.reply",
            &[
                &self.record.id,
                &call.client.0.cast_signed(),
                &call.slot,
                &stored(call.number),
                &expires,
                &packed,
            ],
        )?;
        Ok(())
    }

    /// Forgets old calls among those next to a new slot. Clients have random numbers, so that in the long run it meets
    /// all of them; an index by time would be one page more to write for each call.
    fn clean_calls(&self, call: CallId) -> rusqlite::Result<()> {
        let near: Vec<(i64, u32, i64)> = self.step.few(
            "SELECT client, slot, expires FROM call WHERE queue = ?1 AND (client, slot) > (?2, ?3)
             ORDER BY client, slot LIMIT ?4",
            &[&self.record.id, &call.client.0.cast_signed(), &call.slot, &NEAR],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        for (client, slot, _) in near.into_iter().filter(|(.., expires)| *expires <= self.step.now) {
            self.step.change(
                "DELETE FROM call WHERE queue = ?1 AND client = ?2 AND slot = ?3",
                &[&self.record.id, &client, &slot],
            )?;
        }
        Ok(())
    }
}

impl Stored {
    /// For how long a claim may be given again.
    pub(super) fn lease(&self, claim: &Claim) -> Duration {
        if self.claims.is_empty() { Duration::ZERO } else { claim.lease }
    }

    /// What to keep of a claim.
    pub(super) fn of_claim(reply: &ClaimReply) -> Self {
        let tasks = reply.tasks().unwrap_or_default();
        let claims = tasks.iter().map(|task| (task.id.as_str().into(), task.receipt)).collect();
        Self { claims, ..Self::default() }
    }

    /// Three lists, each with its length before it; never empty. All numbers are little-endian.
    fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack_length(&mut bytes, self.outcomes.len());
        for outcome in &self.outcomes {
            let (code, version, due) = match *outcome {
                EnqueueOutcome::Accepted { outcome, version, due } => (outcome_code(outcome), version, due),
                EnqueueOutcome::Full => (FULL, Version::NONE, 0),
            };
            bytes.push(code);
            bytes.extend(version.get().to_le_bytes());
            bytes.extend(due.to_le_bytes());
        }
        pack_length(&mut bytes, self.settled.len());
        bytes.extend(self.settled.iter().map(|settled| match *settled {
            Settled::Done { late, dead } => u8::from(late) | u8::from(dead) << 1,
            Settled::Stale => STALE,
            Settled::Gone => GONE,
        }));
        pack_length(&mut bytes, self.claims.len());
        for (id, receipt) in &self.claims {
            bytes.extend(receipt.get().to_le_bytes());
            pack_length(&mut bytes, id.len());
            bytes.extend(id.as_bytes());
        }
        bytes
    }

    fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut unpacked = Self::default();
        for _ in 0..unpack_length(&mut rest)? {
            let [code] = unpack_bytes(&mut rest)?;
            let version = Version::new(u64::from_le_bytes(unpack_bytes(&mut rest)?));
            let due = u64::from_le_bytes(unpack_bytes(&mut rest)?);
            unpacked.outcomes.push(match code {
                FULL => EnqueueOutcome::Full,
                code => EnqueueOutcome::Accepted { outcome: outcome_of(code)?, version, due },
            });
        }
        for _ in 0..unpack_length(&mut rest)? {
            let [code] = unpack_bytes(&mut rest)?;
            unpacked.settled.push(match code {
                STALE => Settled::Stale,
                GONE => Settled::Gone,
                flags => Settled::Done { late: flags & 1 != 0, dead: flags & 2 != 0 },
            });
        }
        for _ in 0..unpack_length(&mut rest)? {
            let receipt = Receipt::new(u64::from_le_bytes(unpack_bytes(&mut rest)?));
            let length = unpack_length(&mut rest)?;
            let (id, after) = rest.split_at_checked(length)?;
            rest = after;
            unpacked.claims.push((std::str::from_utf8(id).ok()?.into(), receipt));
        }
        Some(unpacked)
    }
}

const FULL: u8 = 255;
const STALE: u8 = 4;
const GONE: u8 = 5;

fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Added => 1,
        Outcome::Kept => 2,
        Outcome::Replaced => 3,
        Outcome::Successor => 4,
        Outcome::Throttled => 5,
        Outcome::Skipped => 6,
    }
}

fn outcome_of(code: u8) -> Option<Outcome> {
    Some(match code {
        1 => Outcome::Added,
        2 => Outcome::Kept,
        3 => Outcome::Replaced,
        4 => Outcome::Successor,
        5 => Outcome::Throttled,
        6 => Outcome::Skipped,
        _ => return None,
    })
}

/// A list or text in a reply is always far shorter than four gigabytes.
fn pack_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn unpack_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(unpack_bytes(rest)?)).ok()
}

fn unpack_bytes<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}
