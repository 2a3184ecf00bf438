//! Listing what the store has, a page at a time.

use crate::base::error::Error;
use crate::base::name::LockKind;
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

/// As [`list`], of queues.
pub(crate) fn list_queues(live: &Live, page: Option<u64>) -> Result<QueuePage, Error> {
    let (next, names) = live
        .store
        .list_queues(page.unwrap_or(0), live.give_up())
        .map_err(|failure| Error::from(failure).during("queue_names", ""))?;
    let names = names.iter().map(|name| name.as_str().to_owned()).collect();
    Ok(QueuePage { names, next: (next != 0).then_some(next) })
}
