//! What is wrong now, in sentences.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use stanchion::{Error, Finding, Holder, LockKind, TaskInfo, TaskState};

use crate::queues::counts;
use crate::text::{plain, shortened};
use crate::web::html::{age, clock, number, part, who};
use crate::web::look::{LockLook, QueueLook};

/// From this weight on a problem is bad.
const BAD: u8 = 70;
/// A task is late if it has waited for longer while somebody works, or while nobody does.
const LATE: Duration = Duration::from_secs(30);
const LATE_UNATTENDED: Duration = Duration::from_secs(5);
/// A lock is held for long if others have waited for so long.
const HELD_LONG: Duration = Duration::from_secs(30);
/// A schedule is late after so long.
const SCHEDULE_LATE: Duration = Duration::from_secs(5);
/// A task has failed often after so many deliveries.
const TRIED_OFTEN: u32 = 3;
/// Characters of a reason.
const REASON: usize = 80;
/// Of what deaths are told: those of so long.
const HOUR: Duration = Duration::from_secs(3_600);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Worse ones first.
    pub weight: u8,
    /// What it is about.
    pub of: String,
    pub link: String,
    pub text: String,
    /// What shows more of it, as words of a command.
    pub command: Vec<String>,
}

impl Problem {
    /// How it looks: from a weight on it is bad, and not only to be watched.
    pub const fn class(&self) -> &'static str {
        if self.weight >= BAD { "bad" } else { "" }
    }
}

/// All that is wrong, the worst first.
pub fn problems(
    queues: &[QueueLook],
    locks: &[LockLook],
    findings: &[Finding],
    now: SystemTime,
) -> Vec<Problem> {
    let mut problems: Vec<Problem> = findings.iter().map(of_finding).collect();
    problems.extend(queues.iter().flat_map(|queue| of_queue(queue, now)));
    problems.extend(locks.iter().filter_map(|lock| of_lock(lock, now)));
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.weight));
    problems
}

fn of_finding(finding: &Finding) -> Problem {
    let advice = finding.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
    Problem {
        weight: 90,
        of: finding.what.into(),
        link: "/server".into(),
        text: format!("{} does not hold here: {}{advice}", finding.promise, finding.found),
        command: words(&["stanchion", "doctor"]),
    }
}

/// A queue that cannot be read, as others can.
pub fn unreadable(name: &str, error: &Error) -> Problem {
    Problem {
        weight: 85,
        of: name.into(),
        link: format!("/queues/{}", part(name)),
        text: plain(&error.to_string()),
        command: words(&["stanchion", "queues", "stats", name]),
    }
}

fn of_queue(queue: &QueueLook, now: SystemTime) -> Vec<Problem> {
    let (name, stats) = (&queue.name, &queue.stats);
    let link = format!("/queues/{}", part(name));
    let problem = |weight, text: String, link: String, command: &[&str]| Problem {
        weight,
        of: name.clone(),
        link,
        text,
        command: words(&[&["stanchion"], command].concat()),
    };
    let mut problems = Vec::new();
    let late = queue.due_since.and_then(|due| now.duration_since(due).ok()).unwrap_or_default();
    let attended = stats.waiters + stats.claimed > 0;
    if stats.ready > 0 && late > if attended { LATE } else { LATE_UNATTENDED } {
        let is = if stats.ready == 1 { "task is" } else { "tasks are" };
        let text = format!("{} {is} due, the first for {}: {}", number(stats.ready), age(late), cause(queue));
        problems.push(problem(80, text, link.clone(), &["queues", "stats", name]));
    }
    let stands = stats.ready + stats.claimed == 0;
    let keys: Vec<String> = counts::keys(stats).collect();
    if stats.held > 0 && (stats.keys_waiting > 0 || stands) {
        problems.push(problem(50, keys.join("; "), format!("{link}/keys"), &["queues", "keys", name]));
    } else if stats.held > 0 && stats.ready == 0 && stats.waiters > 0 {
        let free = if stats.waiters == 1 { "a consumer is free" } else { "consumers are free" };
        let text = format!("{}, while {free}", keys.join("; "));
        problems.push(problem(30, text, format!("{link}/keys"), &["queues", "keys", name]));
    }
    if let Some(tried) = queue.tried.as_ref().filter(|tried| tried.attempts > TRIED_OFTEN) {
        let reason = if tried.reason.is_empty() { "it has not been settled" } else { &tried.reason };
        let is = if tried.state == TaskState::Scheduled { "has had" } else { "is on" };
        let text = format!(
            "{} {is} attempt {} of {}; the last one ended so: {}",
            plain(&tried.id),
            tried.attempts,
            tried.max_attempts,
            shortened(&plain(reason), REASON)
        );
        let of_task = format!("{link}/tasks/{}", part(&tried.id));
        problems.push(problem(60, text, of_task, &["queues", "get", name, &tried.id]));
    }
    if let Some(text) = died(queue, now) {
        problems.push(problem(
            70,
            text,
            format!("{link}/dead"),
            &["queues", "list", name, "--state", "dead"],
        ));
    }
    if stats.schedules_late > SCHEDULE_LATE {
        let text =
            format!("its schedules have been due for {}: nobody works on it", age(stats.schedules_late));
        problems.push(problem(65, text, format!("{link}/schedules"), &["schedules", "ls", name]));
    }
    if stats.flows > 0 && stands && stats.held + stats.scheduled == 0 {
        let wait = if stats.flows == 1 { "flow waits" } else { "flows wait" };
        let text = format!("{} {wait} for tasks of other queues", number(stats.flows));
        problems.push(problem(40, text, format!("{link}/flows"), &["flows", "ls", name]));
    }
    problems
}

/// How many have died lately, and of what.
fn died(queue: &QueueLook, now: SystemTime) -> Option<String> {
    let lately = |died: SystemTime| now.duration_since(died).is_ok_and(|ago| ago < HOUR);
    let dead: Vec<&TaskInfo> = queue.dead.iter().filter(|task| task.died.is_some_and(lately)).collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for task in &dead {
        *reasons.entry(&task.reason).or_default() += 1;
    }
    let (reason, most) = reasons.into_iter().max_by_key(|(_, count)| *count)?;
    // More may have than were looked at.
    let known = queue.history.died_within(HOUR).unwrap_or(0).min(queue.stats.dead);
    let count = known.max(dead.len() as u64);
    let are = if count == 1 { "task has" } else { "tasks have" };
    let reason = if reason.is_empty() { "without a reason" } else { reason };
    let reason = shortened(&plain(reason), REASON);
    let of_what = match (most, dead.len()) {
        (most, all) if most == all && count == all as u64 => reason,
        (most, all) if count == all as u64 => format!("{most} of them: {reason}"),
        (most, all) => format!("{most} of the last {all}: {reason}"),
    };
    Some(format!("{} {are} died in the last hour; {of_what}", number(count)))
}

/// Why what is due is not given out.
pub fn cause(queue: &QueueLook) -> String {
    let stats = &queue.stats;
    if let Some(gate) = counts::gate(stats) {
        return gate;
    }
    match (counts::nobody(stats), queue.history.attended_until()) {
        (Some(nobody), Some(until)) if stats.claimed == 0 => format!("{nobody} since {}", clock(until)),
        (Some(nobody), _) => nobody,
        (None, _) => "consumers wait, and will be told".into(),
    }
}

fn of_lock(lock: &LockLook, now: SystemTime) -> Option<Problem> {
    let waiters = lock.waiters();
    let holder = lock.holders.iter().min_by_key(|holder| holder.since)?;
    let held = holder.since.and_then(|since| now.duration_since(since).ok())?;
    if waiters == 0 || held < HELD_LONG {
        return None;
    }
    let wait = if waiters == 1 { "waits" } else { "wait" };
    let until = match holder.remaining {
        Some(remaining) => format!("its lease ends in {} unless it is renewed", age(remaining)),
        None => "it has no end".into(),
    };
    Some(Problem {
        weight: 75,
        of: lock.name.clone(),
        link: lock_link(lock.kind, &lock.name),
        text: format!(
            "held by {} for {}, {} {wait}; {until}",
            holder_name(holder),
            age(held),
            number(waiters)
        ),
        command: words(&["stanchion", "locks", "show", &lock.name]),
    })
}

/// Who holds a lock.
pub fn holder_name(holder: &Holder) -> String {
    who(&holder.label, &holder.host, holder.pid)
}

/// The page of a lock.
pub fn lock_link(kind: LockKind, name: &str) -> String {
    format!("/locks/{}/{}", kind.name(), part(name))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
