//! What actions say afterwards, on the page to which they lead; and what is done in steps, or not yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For how long a note is shown after the last change of it.
const SHOWN: Duration = Duration::from_secs(60);
/// For how long a note is kept.
const KEPT: Duration = Duration::from_secs(600);
/// Notes at most: what is older goes.
const MOST: usize = 1_000;

/// One note.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// What happened.
    pub text: String,
    /// Whether it went wrong.
    pub is_bad: bool,
    /// Whether more is to come.
    pub goes_on: bool,
    /// Until when it can be undone.
    pub undo_until: Option<Instant>,
    /// The queue and the id of a dead task that is removed then.
    pub removes: Option<[String; 2]>,
}

/// All notes of this process.
#[derive(Default)]
pub struct Notes {
    next: AtomicU64,
    notes: Mutex<HashMap<u64, (Instant, Note)>>,
}

impl Notes {
    /// Keeps one; its number.
    pub fn add(&self, note: Note) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.set(number, note);
        number
    }

    /// Keeps another one under this number.
    pub fn set(&self, number: u64, note: Note) {
        let mut notes = self.lock();
        notes.retain(|_, (at, _)| at.elapsed() < KEPT);
        if notes.len() >= MOST {
            let is_over = |note: &Note| !note.goes_on && note.undo_until.is_none();
            let over = notes.iter().filter(|(_, (_, note))| is_over(note)).map(|(number, _)| *number).min();
            over.map(|over| notes.remove(&over));
        }
        notes.insert(number, (Instant::now(), note));
    }

    /// The note with this number, unless it says what is over.
    pub fn get(&self, number: u64) -> Option<Note> {
        let notes = self.lock();
        let (at, note) = notes.get(&number)?;
        let is_new = at.elapsed() < SHOWN || note.goes_on || note.undo_until.is_some();
        is_new.then(|| note.clone())
    }

    /// The note that says that this dead task will be removed.
    pub fn removal_of(&self, queue: &str, id: &str) -> Option<u64> {
        let notes = self.lock();
        let is_it = |note: &Note| {
            let of = note.removes.as_ref().filter(|_| note.undo_until.is_some());
            of.is_some_and(|[of, removed]| of == queue && removed == id)
        };
        notes.iter().find(|(_, (_, note))| is_it(note)).map(|(number, _)| *number)
    }

    /// What is not done then, if it still could be undone.
    pub fn undo(&self, number: u64) -> Option<[String; 2]> {
        let mut notes = self.lock();
        let (_, note) = notes.get_mut(&number)?;
        note.undo_until.take_if(|until| *until > Instant::now())?;
        note.removes.take()
    }

    /// Whether what was to be done at the end of its time is to be done; it cannot be undone any more.
    pub fn is_due(&self, number: u64) -> bool {
        let mut notes = self.lock();
        notes.get_mut(&number).is_some_and(|(_, note)| note.undo_until.take().is_some())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Note)>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_either_undone_or_done() {
        let notes = Notes::default();
        let removes = Some(["queue", "id"].map(str::to_owned));
        let until = Some(Instant::now() + Duration::from_secs(60));
        let note = || Note { undo_until: until, removes: removes.clone(), ..Note::default() };
        let (one, other) = (notes.add(note()), notes.add(note()));
        assert_eq!(notes.removal_of("queue", "other"), None);
        assert!(notes.undo(one) == removes && notes.undo(one).is_none() && !notes.is_due(one));
        assert_eq!(notes.removal_of("queue", "id"), Some(other));
        // What is to be done yet is not forgotten for what was done since.
        for _ in 0..=MOST {
            notes.add(Note::default());
        }
        assert!(notes.is_due(other) && !notes.is_due(other) && notes.undo(other).is_none());
    }

    #[test]
    fn so_many_are_kept() {
        let notes = Notes::default();
        for _ in 0..=MOST {
            notes.add(Note::default());
        }
        assert!(notes.get(1).is_none() && notes.get(2).is_some());
    }
}
