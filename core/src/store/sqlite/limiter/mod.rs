//! Limiters. Each verb does what the Lua scripts of its name do on Redis; a file per kind says when it begins.

mod fixed_window;
mod gcra;
mod sliding_window;

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use crate::base::name::{LimiterName, Prefixes};
use crate::base::token::Token;
use crate::protocol::{GiveBack, LimitKind, Reply, Rule, SLIDING_TRIM, TAKE_WAIT_MOST, Take, TakeReply};
use crate::store::LimiterNames;
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::step::{CLEAN_UP, LIMITERS, PAGE, Performed, Step, View, between, micros};

/// What is known of a limiter: its row.
#[derive(Clone, Debug)]
struct State {
    id: i64,
    at: i64,
    total: i64,
    token: Option<Box<str>>,
}

/// What a take comes to.
struct Turn {
    /// When it begins.
    begins: i64,
    /// What the row has to say then.
    at: i64,
    /// When that means nothing any more.
    ends: i64,
}

/// Like `gcra_take.lua`, `fixed_take.lua` and `sliding_take.lua`.
pub(super) fn take(step: &Step<'_>, request: &Take) -> rusqlite::Result<Performed> {
    forget_ended(step)?;
    let Take { name, rule, count, .. } = request;
    if let Some(token) = &request.token
        && step.is_ended(LIMITERS, token.as_str())?
    {
        // It was given up, and nobody waits for the answer.
        return Ok(refused(step, step.wall));
    }
    let known = find(step, name, rule.kind)?;
    if let Some(state) = &known
        && let Some(turn) = ahead(step.wall, rule, *count, state.at)
    {
        let full = i64::from(rule.most) * i64::from(rule.kind == LimitKind::SlidingWindow);
        write(step, request, known.as_ref(), &turn, full, None)?;
        return Ok(refused(step, turn.begins));
    }
    let turn = match (rule.kind, &known) {
        (LimitKind::Gcra, _) => gcra::turn(step.wall, rule, *count, known.as_ref().map(|state| state.at)),
        (LimitKind::FixedWindow, _) => {
            fixed_window::turn(step.wall, rule, *count, known.as_ref().map(|state| state.at))
        }
        (LimitKind::SlidingWindow, None) => sliding_window::first(step.wall, rule),
        (LimitKind::SlidingWindow, Some(state)) => sliding_window::turn(step, rule, *count, state)?,
    };
    let is_later = turn.begins > step.wall;
    let wait_most = request.token.as_ref().map_or(0, |_| micros(request.wait_most));
    if turn.begins - step.wall > wait_most {
        return Ok(refused(step, turn.begins));
    }
    let token = request.token.as_ref().filter(|_| is_later).map(Token::as_str);
    write(step, request, known.as_ref(), &turn, i64::from(*count), token)?;
    Ok(Reply::Take(TakeReply::Taken(until(step, turn.begins))).into())
}

/// Like `gcra_give_back.lua`, `fixed_give_back.lua` and `sliding_give_back.lua`.
pub(super) fn give_back(step: &Step<'_>, request: &GiveBack) -> rusqlite::Result<Performed> {
    let GiveBack { name, rule, count, token } = request;
    // A copy of the take may come yet.
    step.note_ended(LIMITERS, token.as_str())?;
    let known = find(step, name, rule.kind)?;
    let Some(state) = known.filter(|state| state.token.as_deref() == Some(token.as_str())) else {
        return Ok(Reply::GiveBack(false).into());
    };
    let (at, total) = match rule.kind {
        LimitKind::Gcra => (state.at.saturating_sub(stored(rule.cost(*count))), state.total),
        LimitKind::FixedWindow => (state.at.saturating_sub(i64::from(*count)), state.total),
        LimitKind::SlidingWindow => sliding_window::without_last(step, &state)?,
    };
    step.change(
        "UPDATE limiter SET at = ?2, total = ?3, token = NULL WHERE id = ?1",
        &[&state.id, &at, &total],
    )?;
    Ok(Reply::GiveBack(true).into())
}

/// One page of the limiters of a kind that something counts of, and where the next begins; zero after the last.
pub(super) fn list(
    connection: &Connection,
    prefixes: &Prefixes,
    kind: LimitKind,
    cursor: u64,
    view: &View<'_>,
) -> rusqlite::Result<LimiterNames> {
    let mut statement =
        connection.prepare_cached("SELECT id, key, ends FROM limiter WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let page = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut rows = statement.query((cursor.cast_signed(), page))?;
    let (mut seen, mut last, mut limiters) = (0, 0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        last = row.get::<_, i64>(0)?.cast_unsigned();
        let left = between(view.wall, row.get(2)?);
        let key = row.get_ref(1)?.as_str()?.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix(':'));
        let name = key.and_then(|key| prefixes.limiter_of_key(key));
        limiters.extend(name.filter(|_| !left.is_zero()).map(|name| (name, left)));
    }
    Ok((if seen < PAGE { 0 } else { last }, limiters))
}

/// What becomes of a row that says what nobody can have reserved: the clock was set back. All counts as taken as late as
/// can be.
fn ahead(now: i64, rule: &Rule, count: u32, at: i64) -> Option<Turn> {
    let (wait, per) = (micros(TAKE_WAIT_MOST), stored(rule.per));
    let beyond = match rule.kind {
        LimitKind::Gcra => stored(rule.cost(count).saturating_add(rule.slack(count))),
        LimitKind::FixedWindow => per,
        LimitKind::SlidingWindow => 0,
    };
    let most = now.saturating_add(wait).saturating_add(beyond);
    (at > most).then(|| match rule.kind {
        LimitKind::Gcra => Turn { begins: most - stored(rule.slack(count)), at: most, ends: most },
        LimitKind::FixedWindow => Turn { begins: most - most % per, at: most - most % per, ends: most + per },
        LimitKind::SlidingWindow => Turn { begins: most + per, at: most, ends: most + per },
    })
}

fn find(step: &Step<'_>, name: &LimiterName, kind: LimitKind) -> rusqlite::Result<Option<State>> {
    step.connection
        .prepare_cached("SELECT id, at, total, token FROM limiter WHERE key = ?1")?
        .query_row([row_key(name, kind)], |row| {
            Ok(State { id: row.get(0)?, at: row.get(1)?, total: row.get(2)?, token: row.get(3)? })
        })
        .optional()
}

fn row_key(name: &LimiterName, kind: LimitKind) -> String {
    [kind.name(), ":", name.key()].concat()
}

/// Writes that so many were taken; of a sliding window also when.
fn write(
    step: &Step<'_>,
    request: &Take,
    known: Option<&State>,
    turn: &Turn,
    count: i64,
    token: Option<&str>,
) -> rusqlite::Result<()> {
    let before = known.map_or(0, |state| state.total);
    let total = before.saturating_add(count);
    let id = match known {
        Some(state) => {
            step.change(
                "UPDATE limiter SET at = ?2, total = ?3, token = ?4, ends = ?5 WHERE id = ?1",
                &[&state.id, &turn.at, &total, &token, &turn.ends],
            )?;
            state.id
        }
        None => {
            let key = row_key(&request.name, request.rule.kind);
            step.change(
                "INSERT INTO limiter (key, at, total, token, ends) VALUES (?1, ?2, ?3, ?4, ?5)",
                &[&key, &turn.at, &total, &token, &turn.ends],
            )?;
            step.connection.last_insert_rowid()
        }
    };
    match request.rule.kind {
        LimitKind::SlidingWindow => {
            sliding_window::note(step, id, total, turn.at, before - i64::from(request.rule.most))
        }
        LimitKind::Gcra | LimitKind::FixedWindow => Ok(()),
    }
}

fn refused(step: &Step<'_>, begins: i64) -> Performed {
    Reply::Take(TakeReply::Refused(until(step, begins))).into()
}

fn until(step: &Step<'_>, begins: i64) -> Duration {
    Duration::from_micros(number(begins.saturating_sub(step.wall)))
}

/// Drops a few limiters that mean nothing any more, of any name, and some of what was taken of each.
fn forget_ended(step: &Step<'_>) -> rusqlite::Result<()> {
    let ended: Vec<i64> = step.few(
        "SELECT id FROM limiter WHERE ends <= ?1 ORDER BY ends LIMIT ?2",
        &[&step.wall, &CLEAN_UP],
        |row| row.get(0),
    )?;
    for id in ended {
        if sliding_window::forget(step, id, i64::MAX)? < SLIDING_TRIM as usize {
            step.change("DELETE FROM limiter WHERE id = ?1", &[&id])?;
        }
    }
    Ok(())
}
