//! The target of a `Lock`: a name, and which part of that lock its acquires take (all of it, one reader's place, some
//! permits). Both `Lock` types are made of these.

use std::sync::Arc;

use crate::base::error::{BY_ANOTHER, Error, ErrorKind};
use crate::base::name::{LockKind, LockName};
use crate::engine::acquire::LockPlan;
use crate::lease::held_lock::HeldLock;
use crate::protocol::Permits;
use crate::session::Session;
use crate::session::options::{LockOptions, Settings};

/// Permits of a semaphore at most.
pub const MAX_PERMITS: u32 = 1_000_000;
/// Readers of a read-write lock at most: a writer takes the place of all of them.
const READERS: u32 = 1_000_000;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct LockTarget {
    pub(crate) session: Arc<Session>,
    name: Arc<str>,
    part: Part,
    /// Checked once, not in every call; `None` if the name is bad.
    checked: Option<LockName>,
}

/// What a handle acquires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of an exclusive lock.
    Exclusive,
    /// A place among the readers of a read-write lock.
    Read,
    /// All of a read-write lock.
    Write,
    /// Some permits of a semaphore that has so many.
    Permits(u32),
    /// The computation of a cached value.
    Cached,
}

impl Part {
    fn kind(self) -> LockKind {
        match self {
            Self::Exclusive => LockKind::Exclusive,
            Self::Read | Self::Write => LockKind::ReadWrite,
            Self::Permits(_) => LockKind::Semaphore,
            Self::Cached => LockKind::Cached,
        }
    }

    /// The permits that an acquire with this weight takes.
    fn permits(self, weight: Option<u32>) -> Result<Option<Permits>, Error> {
        match (self, weight) {
            (Self::Permits(limit), weight) => {
                if !(1..=MAX_PERMITS).contains(&limit) {
                    return Err(Error::invalid(format!(
                        "a semaphore has 1 to {MAX_PERMITS} permits, not {limit}"
                    )));
                }
                let weight = weight.unwrap_or(1);
                if !(1..=limit).contains(&weight) {
                    return Err(Error::invalid(format!(
                        "a weight is 1 to {limit}, the semaphore's permits, not {weight}"
                    )));
                }
                Ok(Some(Permits { weight, limit }))
            }
            (Self::Cached, _) => Err(Error::invalid("a cached value is computed by `cached`, not acquired")),
            (_, Some(_)) => Err(Error::invalid("only a semaphore is acquired with a weight")),
            (Self::Exclusive, None) => Ok(None),
            (Self::Read, None) => Ok(Some(Permits { weight: 1, limit: READERS })),
            (Self::Write, None) => Ok(Some(Permits { weight: READERS, limit: READERS })),
        }
    }
}

impl LockTarget {
    pub(crate) fn new(session: Arc<Session>, name: &str, part: Part) -> Self {
        let checked = session.lock_name(part.kind(), name).ok();
        Self { session, name: name.into(), part, checked }
    }

    /// The name as the user gave it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The checked name, or why it is bad.
    pub(crate) fn checked(&self) -> Result<LockName, Error> {
        match &self.checked {
            Some(name) => Ok(name.clone()),
            // Says what is wrong with it.
            None => self.session.lock_name(self.part.kind(), &self.name),
        }
    }

    /// Adds to the error of an `acquire` that the holder is this very client, if so: a mistake that is hard to find
    /// otherwise.
    pub(crate) fn whose(&self, error: Error) -> Error {
        let (Ok(live), Ok(name)) = (self.session.live(), self.checked()) else { return error };
        let is_mine =
            || HeldLock::all(live).iter().any(|held| held.lock.name == name && held.kept.is_valid());
        if error.kind() != ErrorKind::LockTimeout || !is_mine() {
            return error;
        }
        let message = error.message().replace(BY_ANOTHER, "held by this very client");
        Error::new(error.kind(), message).during("acquire", self.name())
    }

    /// Checks an acquire, and fills in the defaults.
    pub(crate) fn plan(&self, options: &LockOptions, settings: &Settings) -> Result<LockPlan, Error> {
        let name = self.checked()?;
        let plan = self.part.permits(options.given_weight()).and_then(|permits| {
            let plan = options.plan(name, settings)?;
            if permits.is_some() && plan.adopt_after.is_some() {
                return Err(Error::invalid("adopt_unexpiring is for exclusive locks only"));
            }
            Ok(LockPlan { permits, ..plan })
        });
        plan.map_err(|error| error.during("acquire", &self.name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use std::time::Duration;

    use super::*;
    use crate::api::blocking::{Client, Lock};

    #[test]
    fn a_writer_leaves_room_for_no_reader() {
        let writer = Part::Write.permits(None).unwrap().unwrap();
        let reader = Part::Read.permits(None).unwrap().unwrap();
        assert!(writer.excludes_all() && !reader.excludes_all());
        assert_eq!(writer.limit, reader.limit);
    }

    #[test]
    fn permits_out_of_range_are_invalid() {
        let bad = [
            (Part::Permits(0), None),
            (Part::Permits(MAX_PERMITS + 1), None),
            (Part::Permits(3), Some(0)),
            (Part::Permits(3), Some(4)),
            (Part::Exclusive, Some(1)),
            (Part::Read, Some(1)),
            (Part::Write, Some(1)),
        ];
        for (part, weight) in bad {
            assert_eq!(part.permits(weight).unwrap_err().kind(), ErrorKind::InvalidArgument, "{part:?}");
        }
        let all = Part::Permits(3).permits(Some(3)).unwrap().unwrap();
        assert!(all.excludes_all());
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn whose_lock_it_is_is_told() {
        let [mine, other] = [(); 2].map(|()| Client::open("memory:whose").unwrap());
        let fixed = LockOptions::new().ttl(Duration::from_secs(60));
        let _renewed = mine.lock("a").acquire(LockOptions::new()).unwrap();
        let _fixed = mine.rw_lock("a").read().acquire(fixed).unwrap();
        for wait in [Duration::ZERO, Duration::from_micros(1_234)] {
            let told = |lock: Lock| lock.acquire(LockOptions::new().wait(wait)).unwrap_err().to_string();
            let end = if wait.is_zero() { "did not wait" } else { "waited 0.001 s" };
            let by = |whom: &str| format!("acquire \"a\": the lock is held by {whom}; {end}");
            assert_eq!(told(mine.lock("a")), by("this very client"));
            assert_eq!(told(mine.rw_lock("a").write().clone()), by("this very client"));
            assert_eq!(told(other.lock("a")), by("another"));
        }
    }
}
