//! Spans and events for `tracing`: without a subscriber they cost a look at an atomic each. No payload, token or
//! receipt is in them.

use tracing::field::Empty;
use tracing::{Span, debug, info_span, warn};

use crate::base::contained::contained;
use crate::base::error::Error;
use crate::engine::Subject;
use crate::engine::leased::Leased;
use crate::engine::schedule::FiredSchedule;
use crate::engine::worker::HandlerEnd;
use crate::session::metrics::Ended;

/// One call to the store, with all its requests and pauses.
pub(crate) fn operation(subject: &Subject<'_>) -> Span {
    let Subject { verb, name, kind } = *subject;
    info_span!(target: "stanchion", "stanchion", otel.name = verb, operation = verb, name, kind, outcome = Empty)
}

/// How an operation ended.
pub(crate) fn ended(span: &Span, outcome: Result<&'static str, &Error>) {
    let outcome = outcome.unwrap_or_else(|error| error.kind().name());
    span.record("outcome", outcome);
}

/// The work on a task by a worker's handler.
pub(crate) fn work(queue: &str, id: &str, attempt: u32) -> Span {
    let span = || {
        info_span!(
            target: "stanchion", "stanchion.work", otel.name = "work", name = queue, kind = "task", id, attempt,
            outcome = Empty
        )
    };
    contained("trace", span).unwrap_or_else(Span::none)
}

/// How that work ended.
pub(crate) fn worked(span: &Span, ending: &HandlerEnd) {
    contained("trace", || {
        span.record("outcome", ending.name());
    });
}

pub(crate) fn sent_again() {
    debug!(target: "stanchion", "the request is sent again");
}

/// Slots of a schedule got no task, or it is one of a newer version's.
pub(crate) fn fired(queue: &str, fired: &FiredSchedule) {
    let FiredSchedule { id, tasks, skipped, missed, is_unknown, .. } = fired;
    contained("trace", || {
        if *is_unknown {
            warn!(target: "stanchion", name = queue, kind = "schedule", id, "a newer version wrote this schedule: it is left alone");
        } else if *missed > 0 {
            warn!(target: "stanchion", name = queue, kind = "schedule", id, missed, fired = tasks, "nobody worked on the queue when these slots were due");
        } else if *skipped > 0 {
            debug!(target: "stanchion", name = queue, kind = "schedule", id, skipped, "the task of the slot before is not done, or the queue is full");
        }
    });
}

pub(crate) fn lost(leased: &Leased, ended: Ended) {
    let reason = ended.name();
    match leased {
        Leased::Lock(lock) => {
            warn!(target: "stanchion", name = lock.name.as_str(), kind = lock.name.kind().name(), reason, "the lease was lost");
        }
        Leased::Task(task) => {
            warn!(target: "stanchion", name = task.queue.as_str(), kind = "task", id = task.id.as_str(), reason, "the claim was lost");
        }
    }
}
