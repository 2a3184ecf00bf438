//! The verbs of queues: one file each, and what they are made of.

mod abandon;
mod call;
mod cancel;
mod claim;
mod configure;
mod consumers;
mod dead;
mod due;
mod enqueue;
mod events;
mod extend_claim;
mod fire;
mod flow;
mod forget;
mod gate;
mod get;
mod get_flow;
mod history;
mod key_book;
mod keys;
mod kick;
mod limit_key;
mod limits;
mod list;
mod list_flows;
mod list_keys;
mod list_schedules;
mod lost_nodes;
mod node;
mod outbox;
mod pause;
mod pause_schedule;
mod peek;
mod pop;
mod post_messages;
mod promote;
mod purge;
mod put_flow;
mod put_schedules;
mod read_nodes;
mod read_outbox;
mod record;
mod remove;
mod remove_dead;
mod remove_schedule;
mod reschedule;
mod result;
mod schedule;
mod settle;
mod settle_and_claim;
mod stats;
mod step_flows;
mod sweep;
mod take;
mod task;
mod throttle;
mod view;
mod wake;
mod walk;
mod work;

use rusqlite::Connection;

use crate::base::name::{Prefixes, QueueName};
use crate::protocol::{QueueReply, QueueRequest, QueueVerb, Reply};
use crate::store::sqlite::queue::record::Record;
use crate::store::sqlite::queue::view::{Reading, is_of_boot};
pub(super) use crate::store::sqlite::queue::work::Shared;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::{PAGE, Performed, Step, View};

/// Performs a verb within its transaction.
pub(super) fn perform(
    step: &Step<'_>,
    request: &QueueRequest,
    view: &View<'_>,
    shared: &mut Shared,
) -> rusqlite::Result<Performed> {
    if request.verb.reads() || matches!(request.verb, QueueVerb::Purge) {
        shared.save(step)?;
    }
    let mut work = Work::begin(*step, request.queue.key(), shared)?;
    let work_on = &mut work;
    let reply = match &request.verb {
        QueueVerb::Enqueue(verb) => enqueue::enqueue(work_on, verb)?,
        QueueVerb::Claim(verb) => claim::claim(work_on, verb)?,
        QueueVerb::Settle(verb) => QueueReply::Settle(settle::settle(work_on, verb)?),
        QueueVerb::SettleAndClaim(settle, claim) => {
            settle_and_claim::settle_and_claim(work_on, settle, claim)?
        }
        QueueVerb::ExtendClaim(verb) => extend_claim::extend_claim(work_on, verb)?,
        QueueVerb::Abandon(verb) => abandon::abandon(work_on, verb)?,
        QueueVerb::Pop(verb) => pop::pop(work_on, *verb)?,
        QueueVerb::Remove(verb) => remove::remove(work_on, verb)?,
        QueueVerb::Cancel(verb) => cancel::cancel(work_on, verb)?,
        QueueVerb::Reschedule(verb) => reschedule::reschedule(work_on, verb)?,
        QueueVerb::Kick(verb) => kick::kick(work_on, verb)?,
        QueueVerb::RemoveDead(verb) => remove_dead::remove_dead(work_on, verb)?,
        QueueVerb::Result(verb) => result::result(work_on, verb)?,
        QueueVerb::Pause(verb) => pause::pause(work_on, *verb),
        QueueVerb::Purge => purge::purge(work_on)?,
        QueueVerb::Configure(verb) => configure::configure(work_on, verb)?,
        QueueVerb::Events(verb) => events::events(work_on, verb)?,
        QueueVerb::LimitKey(verb) => limit_key::limit_key(work_on, verb)?,
        QueueVerb::PutSchedules(verb) => put_schedules::put_schedules(work_on, verb)?,
        QueueVerb::Fire(verb) => fire::fire(work_on, verb)?,
        QueueVerb::PauseSchedule(verb) => pause_schedule::pause_schedule(work_on, verb)?,
        QueueVerb::RemoveSchedule(id) => remove_schedule::remove_schedule(work_on, id)?,
        QueueVerb::PutFlow(verb) => put_flow::put_flow(work_on, verb)?,
        QueueVerb::ReadOutbox(verb) => read_outbox::read_outbox(work_on, *verb)?,
        QueueVerb::StepFlows(verb) => step_flows::step_flows(work_on, verb)?,
        QueueVerb::PostMessages(verb) => post_messages::post_messages(work_on, verb)?,
        QueueVerb::Peek(_)
        | QueueVerb::Get(_)
        | QueueVerb::List(_)
        | QueueVerb::Stats
        | QueueVerb::Consumers
        | QueueVerb::ListKeys(_)
        | QueueVerb::ListSchedules(_)
        | QueueVerb::GetFlow(_)
        | QueueVerb::ListFlows(_)
        | QueueVerb::ReadNodes(_)
        | QueueVerb::LostNodes(_) => {
            return Ok(Reply::Queue(answer(step.connection, request, view)?).into());
        }
    };
    let wake = work.finish(shared)?;
    Ok(Performed { reply: Reply::Queue(reply), wake })
}

/// Drops more of what a purge left; whether there is still something left.
pub(super) fn sweep(step: &Step<'_>, queue: &QueueName) -> rusqlite::Result<bool> {
    let mut shared = Shared::default();
    let mut work = Work::begin(*step, queue.key(), &mut shared)?;
    let is_left = work.record.sweep(&work.step)?;
    work.finish(&mut shared)?;
    shared.save(step)?;
    Ok(is_left)
}

/// Performs a verb that only looks. It sees one moment, though it asks more than once.
pub(super) fn read(
    connection: &Connection,
    request: &QueueRequest,
    view: &View<'_>,
) -> rusqlite::Result<QueueReply> {
    // Dropped, it ends; nothing was written.
    let _moment = connection.unchecked_transaction()?;
    answer(connection, request, view)
}

/// Whether a claim would find something, for all that is known before its transaction.
pub(super) fn has_due(
    connection: &Connection,
    request: &QueueRequest,
    view: &View<'_>,
) -> rusqlite::Result<bool> {
    let Some(record) = Record::find(connection, request.queue.key())? else { return Ok(false) };
    Reading::begin(connection, view, record, request.queue.key())?.has_due()
}

/// Whether the reply gives tasks away.
pub(super) fn has_taken(reply: &Reply) -> bool {
    match reply {
        Reply::Queue(QueueReply::Claim(reply)) => reply.tasks().is_some(),
        _ => false,
    }
}

fn answer(connection: &Connection, request: &QueueRequest, view: &View<'_>) -> rusqlite::Result<QueueReply> {
    let record = Record::find(connection, request.queue.key())?.unwrap_or_default();
    let reading = Reading::begin(connection, view, record, request.queue.key())?;
    match &request.verb {
        QueueVerb::Peek(verb) => peek::peek(&reading, *verb),
        QueueVerb::Get(verb) => get::get(&reading, verb),
        QueueVerb::List(verb) => list::list(&reading, verb),
        QueueVerb::Stats => stats::stats(&reading, request.queue.key()),
        QueueVerb::Consumers => consumers::consumers(&reading),
        QueueVerb::ListKeys(verb) => list_keys::list_keys(&reading, request.queue.key(), verb),
        QueueVerb::ListSchedules(verb) => {
            list_schedules::list_schedules(connection, request.queue.key(), reading.now_ms, verb)
        }
        QueueVerb::GetFlow(id) => get_flow::get_flow(&reading, id),
        QueueVerb::ListFlows(verb) => list_flows::list_flows(&reading, verb),
        QueueVerb::ReadNodes(verb) => read_nodes::read_nodes(&reading, verb),
        QueueVerb::LostNodes(verb) => lost_nodes::lost_nodes(&reading, verb),
        // Those write: see `perform`.
        QueueVerb::PutFlow(_)
        | QueueVerb::ReadOutbox(_)
        | QueueVerb::StepFlows(_)
        | QueueVerb::PostMessages(_)
        | QueueVerb::Enqueue(_)
        | QueueVerb::Claim(_)
        | QueueVerb::Settle(_)
        | QueueVerb::SettleAndClaim(..)
        | QueueVerb::ExtendClaim(_)
        | QueueVerb::Abandon(_)
        | QueueVerb::Pop(_)
        | QueueVerb::Remove(_)
        | QueueVerb::Result(_)
        | QueueVerb::Cancel(_)
        | QueueVerb::Reschedule(_)
        | QueueVerb::Kick(_)
        | QueueVerb::RemoveDead(_)
        | QueueVerb::Pause(_)
        | QueueVerb::Purge
        | QueueVerb::Configure(_)
        | QueueVerb::Events(_)
        | QueueVerb::LimitKey(_)
        | QueueVerb::PutSchedules(_)
        | QueueVerb::Fire(_)
        | QueueVerb::PauseSchedule(_)
        | QueueVerb::RemoveSchedule(_) => Err(rusqlite::Error::InvalidQuery),
    }
}

/// A page of queues: those that ever had a task, hold settings, or are paused.
pub(super) fn list_queues(
    connection: &Connection,
    prefixes: &Prefixes,
    cursor: u64,
) -> rusqlite::Result<(u64, Vec<QueueName>)> {
    let mut statement = connection.prepare_cached(
        "SELECT id, key, counter > 0 OR paused <> 0
           OR coalesce(max_len, dead_max, dead_age, dead_bytes, intake) IS NOT NULL OR events > 0 OR limited = 2 OR messages > 0
           OR EXISTS (SELECT 1 FROM schedule WHERE schedule.queue = queue.key)
         FROM queue WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let page = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut rows = statement.query((cursor.cast_signed(), page))?;
    let (mut seen, mut last, mut names) = (0, 0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        last = row.get::<_, i64>(0)?.cast_unsigned();
        if row.get(2)? {
            names.extend(prefixes.queue_of_key(row.get_ref(1)?.as_str()?));
        }
    }
    Ok((if seen < PAGE { 0 } else { last }, names))
}

/// Ends what an earlier boot left: leases end now, and who waited or called is gone.
pub(super) fn begin_boot(connection: &Connection, boot: &str) -> rusqlite::Result<()> {
    if is_of_boot(connection, boot)? {
        return Ok(());
    }
    connection.execute("UPDATE queue_boot SET boot = ?1", [boot])?;
    connection.execute_batch(
        "UPDATE task SET ends = 0 WHERE state = 2;
         DELETE FROM idle;
         DELETE FROM asker;
         UPDATE queue SET asked_until = 0;
         DELETE FROM call;",
    )
}
