//! What was taken, and by whom it was used: computed from what the store answered, without what the store knows.

use stanchion::internals::Moment;
use stanchion::protocol::{LimitKind, Rule};

use super::Tally;
use crate::scene::Played;

/// Whose call it is: client, life, and number.
pub type Caller = (usize, u32, u64);

/// So many that begin at this time, in us of the store's wall clock.
#[derive(Clone, Copy, Debug)]
struct Slot {
    begins: u64,
    count: u32,
    caller: Caller,
    used: bool,
}

/// See the module's documentation.
pub struct Ledger {
    rule: Rule,
    /// In the order of the takes. What is given back is taken out.
    slots: Vec<Slot>,
    pub tally: Tally,
}

impl Ledger {
    pub fn new(rule: Rule) -> Self {
        Self { rule, slots: Vec::new(), tally: Tally::default() }
    }

    /// The store has given so many to a call, from this time on.
    pub fn taken(&mut self, caller: Caller, begins: u64, count: u32) -> Played {
        if let Some(last) = self.slots.last().filter(|last| last.begins > begins) {
            return Err(format!("T2: a take begins at {begins}, one before it at {}", last.begins));
        }
        self.slots.push(Slot { begins, count, caller, used: false });
        self.tally.taken += 1;
        self.check_limit()
    }

    /// The store has taken back what this call has reserved last.
    pub fn given_back(&mut self, caller: Caller) -> Played {
        let Some(place) = self.slots.iter().rposition(|slot| slot.caller == caller) else {
            return Err(format!("T3: {caller:?} gave back what it never had"));
        };
        if self.slots.remove(place).used {
            return Err(format!("T3: {caller:?} gave back what it has used"));
        }
        if place < self.slots.len() {
            return Err(format!("T3: {caller:?} gave back a place with somebody behind it"));
        }
        self.tally.given_back += 1;
        Ok(())
    }

    /// A call goes on: one of its takes has begun by the store's clock.
    pub fn used(&mut self, caller: Caller, now: u64) -> Played<u64> {
        let slot =
            self.slots.iter_mut().find(|slot| slot.caller == caller && !slot.used && slot.begins <= now);
        let Some(slot) = slot else {
            return Err(format!(
                "T1: {caller:?} goes on at {now}, and nothing of it has begun: {:?}",
                self.of(caller)
            ));
        };
        slot.used = true;
        self.tally.used += 1;
        Ok(slot.begins)
    }

    fn of(&self, caller: Caller) -> Vec<Slot> {
        self.slots.iter().copied().filter(|slot| slot.caller == caller).collect()
    }

    /// Never more than the limit: in any time that ends with the last take.
    fn check_limit(&self) -> Played {
        let Rule { kind, most, per, burst } = self.rule;
        let Some(last) = self.slots.last() else { return Ok(()) };
        let mut sum = 0;
        for slot in self.slots.iter().rev() {
            sum += u64::from(slot.count);
            let lasts = last.begins - slot.begins;
            let allowed = match kind {
                LimitKind::Gcra => u64::from(burst) + lasts * u64::from(most) / per,
                LimitKind::FixedWindow if slot.begins / per == last.begins / per => most.into(),
                LimitKind::SlidingWindow if lasts < per => most.into(),
                _ => break,
            };
            if sum > allowed {
                return Err(format!("T1: {sum} in {lasts} us, no more than {allowed} are allowed"));
            }
        }
        Ok(())
    }
}

/// A moment of the clock as the ledger has it.
pub fn micros(moment: Moment, origin: u64) -> u64 {
    origin + moment.as_micros()
}
