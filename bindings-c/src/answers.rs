//! What became of several things that were asked for at once.

use stanchion::{Enqueued, Error};

use crate::boundary;
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records;
use crate::task::{stanchion_enqueued, status};

/// A list of answers, in the order of what was asked. 0 is none.
pub type stanchion_answers = i64;

/// One for each task or verdict; those of tasks have an outcome.
pub(crate) struct Answers(Vec<Result<Option<Enqueued>, Failure>>);

impl Kind for Answers {
    const NAME: &'static str = "list of answers";
}

impl Answers {
    pub(crate) fn of_tasks(results: Vec<Result<Enqueued, Error>>) -> Self {
        Self(results.into_iter().map(|result| Ok(Some(result?))).collect())
    }

    pub(crate) fn of_verdicts(results: Vec<Result<(), Error>>) -> Self {
        Self(results.into_iter().map(|result| Ok(result.map(|()| None)?)).collect())
    }
}

/// How many answers are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_answers_len(answers: stanchion_answers) -> usize {
    boundary::value(0, || handle::get::<Answers>(answers).map_or(0, |answers| answers.0.len()))
}

/// One of the answers: what the call for this task or this claim alone would have returned. `out` is filled in if the task
/// was accepted; it may be NULL. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_answers_at(
    answers: stanchion_answers,
    index: usize,
    out: *mut stanchion_enqueued,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let answers = handle::get::<Answers>(answers)?;
        let answer = answers.0.get(index).ok_or_else(|| beyond(index, answers.0.len()))?;
        let Some(enqueued) = answer.clone()? else { return Ok(0) };
        if !out.is_null() {
            // SAFETY: the caller passes a struct as the header says.
            unsafe { records::write(out, &stanchion_enqueued::of(&enqueued)) }?;
        }
        Ok(status(&enqueued))
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_answers_free(answers: stanchion_answers) {
    boundary::value((), || drop(handle::take::<Answers>(answers)));
}
