//! Listing what the store has, a page at a time.

use std::time::Duration;

use crate::base::error::Error;
use crate::base::name::{LimiterName, LockKind};
use crate::protocol::LimitKind;
use crate::session::Live;

/// Some of the locks that are held now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockPage {
    /// Their names, in no order. A name may be in two pages.
    pub names: Vec<String>,
    /// Pass this to get the next page; `None` if this was the last.
    pub next: Option<u64>,
}

/// Some of the limiters that something was taken of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterPage {
    /// Those that something still counts of, in no order. One may be in two pages.
    pub limiters: Vec<LimiterInfo>,
    /// Pass this to get the next page; `None` if this was the last.
    pub next: Option<u64>,
}

/// A limiter that something was taken of. What it allows is not stored: each call brings that along.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterInfo {
    /// Its name.
    pub name: String,
    /// How it counts.
    pub kind: LimitKind,
    /// After how long nothing that was taken counts any more, if nobody takes more: of a rate, for how long it is used up
    /// ahead, those who wait in line included; of a window, until its end.
    pub idle_in: Duration,
}

/// Some of the queues that the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePage {
    /// Their names, in no order. A name may be in two pages.
    pub names: Vec<String>,
    /// Pass this to get the next page; `None` if this was the last.
    pub next: Option<u64>,
}

/// One page of a listing.
pub(crate) fn list(live: &Live, kind: LockKind, page: Option<u64>) -> Result<LockPage, Error> {
    let (next, names) = live
        .store
        .list(kind, page.unwrap_or(0), live.give_up())
        .map_err(|failure| Error::from(failure).during("locks", ""))?;
    let names = names.iter().map(|name| name.as_str().to_owned()).collect();
    Ok(LockPage { names, next: (next != 0).then_some(next) })
}

/// As [`list`], of limiters.
pub(crate) fn list_limiters(live: &Live, kind: LimitKind, page: Option<u64>) -> Result<LimiterPage, Error> {
    let (next, limiters) = live
        .store
        .list_limiters(kind, page.unwrap_or(0), live.give_up())
        .map_err(|failure| Error::from(failure).during("limiters", ""))?;
    let info =
        |(name, idle_in): (LimiterName, _)| LimiterInfo { name: name.as_str().to_owned(), kind, idle_in };
    Ok(LimiterPage { limiters: limiters.into_iter().map(info).collect(), next: (next != 0).then_some(next) })
}

/// As [`list`], of queues.
pub(crate) fn list_queues(live: &Live, page: Option<u64>) -> Result<QueuePage, Error> {
    let (next, names) = live
        .store
        .list_queues(page.unwrap_or(0), live.give_up())
        .map_err(|failure| Error::from(failure).during("queue_names", ""))?;
    let names = names.iter().map(|name| name.as_str().to_owned()).collect();
    Ok(QueuePage { names, next: (next != 0).then_some(next) })
}
