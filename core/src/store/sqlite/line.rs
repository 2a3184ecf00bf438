//! The line of waiters, of every kind of lock: who is next, who is dead, and who is to be roused. What line.lua is on
//! Redis.

use crate::protocol::{Acquire, ClientId, LINE_NEAR, LINE_SCAN, OFFERS_MAX, Waiter, further_pause};
use crate::store::sqlite::step::{Step, dead_before, micros};

/// What stands in `offered` besides 0: the lock was offered to this waiter; or it is to ask at once, since its turn is
/// near and it polls seldom. Its process finds either there.
const OFFERED: i64 = 1;
const ROUSED: i64 = 2;

/// A waiter that is next.
pub(super) struct Next {
    arrival: i64,
    pub(super) token: Box<str>,
    pub(super) weight: i64,
    pub(super) waiter: Waiter,
}

/// The caller, with what it wants.
pub(super) struct Caller<'a> {
    pub(super) token: &'a str,
    pub(super) weight: i64,
}

/// What a look along the line found.
#[derive(Default)]
pub(super) struct Look {
    /// Those who are next, the caller left out.
    pub(super) chosen: Vec<Next>,
    /// Whether it is the caller's turn.
    pub(super) mine: bool,
    /// Places of the dead ones passed on the way.
    dead: Vec<i64>,
    /// Places of those near the head who poll seldom. They have to ask now: only they would notice that the next ones
    /// are dead.
    drowsy: Vec<(i64, Waiter)>,
}

impl Look {
    /// Nobody is in line: whether it is the caller's turn.
    pub(super) fn at_nobody(mine: bool) -> Self {
        Self { mine, ..Self::default() }
    }
}

/// Looks along the line from its head, at a bounded number. Who fits into `room` is next, and the first who does not
/// holds up those behind it. The caller is in the line, or else behind all of it.
pub(super) fn look_along(
    step: &Step<'_>,
    lock: i64,
    mut room: i64,
    caller: Option<&Caller<'_>>,
) -> rusqlite::Result<Look> {
    let dead_before = dead_before(step.now);
    let (mut look, mut open, mut is_long) = (Look::default(), true, false);
    let mut statement = step.connection.prepare_cached(
        "SELECT arrival, token, polled, offered, client, seq, weight FROM waiter
         WHERE lock = ?1 ORDER BY arrival LIMIT ?2",
    )?;
    let mut rows = statement.query((lock, count(LINE_SCAN + LINE_NEAR)))?;
    for seen in 0.. {
        let Some(row) = rows.next()? else { break };
        let (arrival, token, polled, offered): (i64, Box<str>, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let client = ClientId(row.get::<_, i64>(4)?.cast_unsigned());
        let waiter = Waiter { client, seq: row.get::<_, i64>(5)?.cast_unsigned() };
        if !open && seen == LINE_NEAR || (look.mine || !open) && seen == LINE_SCAN {
            return Ok(look);
        }
        if seen >= LINE_SCAN {
            // Nobody knows whether those behind live. Whoever of them does goes on from here.
            is_long = true;
            look.drowsy.push((arrival, waiter));
            continue;
        }
        let me = caller.filter(|caller| *caller.token == *token);
        if me.is_none() && polled <= dead_before {
            look.dead.push(arrival);
            continue;
        }
        let mut is_next = false;
        // An exclusive lock's waiter has no weight.
        let weight = me.map_or(row.get::<_, i64>(6)?.max(1), |caller| caller.weight);
        if open && (me.is_some() || offered != OFFERED) {
            open = weight <= room && look.chosen.len() < OFFERS_MAX;
            is_next = open && me.is_none();
            look.mine |= open && me.is_some();
            room -= if open { weight } else { 0 };
        }
        if is_next {
            look.chosen.push(Next { arrival, token, weight, waiter });
        } else if me.is_none() && polled > step.now {
            look.drowsy.push((arrival, waiter));
        } else if !open {
            return Ok(look);
        }
    }
    look.mine |= open && !is_long && caller.is_some_and(|caller| caller.weight <= room);
    Ok(look)
}

/// Removes the dead waiters that were found, and has those ask who polled too seldom; answers whom to hint after the
/// commit.
pub(super) fn tidy(step: &Step<'_>, lock: i64, look: &Look) -> rusqlite::Result<Vec<Waiter>> {
    for arrival in &look.dead {
        step.change("DELETE FROM waiter WHERE lock = ?1 AND arrival = ?2", &[&lock, arrival])?;
    }
    for (arrival, _) in &look.drowsy {
        step.change(
            "UPDATE waiter SET offered = ?3 WHERE lock = ?1 AND arrival = ?2 AND offered = 0",
            &[&lock, arrival, &ROUSED],
        )?;
    }
    Ok(look.drowsy.iter().map(|(_, waiter)| *waiter).collect())
}

/// Notes the offer. Who does not answer it is dead as soon as the first of the line would be.
pub(super) fn mark_offered(step: &Step<'_>, lock: i64, next: &Next) -> rusqlite::Result<()> {
    step.change(
        "UPDATE waiter SET offered = ?3, polled = min(polled, ?4) WHERE lock = ?1 AND arrival = ?2",
        &[&lock, &next.arrival, &OFFERED, &step.now],
    )?;
    Ok(())
}

/// Puts the token at the end of the line, or notes that it polled again and may be offered the lock again; answers how
/// many are before it, as far as that matters. The weight of an exclusive lock's waiter is zero. Whoever is far back
/// polls seldom: its last poll is written so far ahead as it may be silent for longer than the first.
pub(super) fn line_up(
    step: &Step<'_>,
    lock: i64,
    request: &Acquire,
    weight: i64,
    waiter: Waiter,
) -> rusqlite::Result<u32> {
    let token = request.token.as_str();
    let rank: u32 = step
        .connection
        .prepare_cached(
            "SELECT count(*) FROM (
               SELECT 1 FROM waiter WHERE lock = ?1 AND arrival <
                 coalesce((SELECT arrival FROM waiter WHERE lock = ?1 AND token = ?2), 9223372036854775807)
               LIMIT ?3)",
        )?
        .query_row((lock, token, count(LINE_SCAN)), |row| row.get(0))?;
    let polled = step.now.saturating_add(micros(further_pause(rank)));
    step.change(
        "INSERT INTO waiter (lock, arrival, token, polled, offered, client, seq, weight, came, owner)
           SELECT ?1, coalesce(max(arrival), 0) + 1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8 FROM waiter WHERE lock = ?1
         ON CONFLICT (lock, token) DO UPDATE
           SET polled = excluded.polled, offered = 0, client = excluded.client, seq = excluded.seq,
             weight = excluded.weight, owner = excluded.owner",
        &[
            &lock,
            &token,
            &polled,
            &waiter.client.0.cast_signed(),
            &waiter.seq.cast_signed(),
            &weight,
            &step.now,
            &&*request.owner,
        ],
    )?;
    Ok(rank)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
