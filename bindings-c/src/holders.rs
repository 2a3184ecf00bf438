//! The holders of a lock.

use stanchion::{Holder, blocking};

use crate::boundary::{self, Answer};
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::lock::stanchion_holder;
use crate::records::{self, needed, put};

/// A list of holders. 0 is none.
pub type stanchion_holders = i64;

struct Holders(Vec<Holder>);

impl Kind for Holders {
    const NAME: &'static str = "list of holders";
}

/// # Safety
/// The place is as the header says.
pub(crate) unsafe fn give(
    out: *mut stanchion_holders,
    lock: impl FnOnce() -> Result<blocking::Lock, Failure>,
) -> Answer {
    needed(out, "the holders")?;
    let holders = handle::insert(Holders(lock()?.holders()?))?;
    // SAFETY: as the caller promises.
    unsafe { put(out, holders) };
    Ok(0)
}

/// How many holders are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_holders_len(holders: stanchion_holders) -> usize {
    boundary::value(0, || handle::get::<Holders>(holders).map_or(0, |holders| holders.0.len()))
}

/// One of the holders. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_holders_at(
    holders: stanchion_holders,
    index: usize,
    out: *mut stanchion_holder,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let holders = handle::get::<Holders>(holders)?;
        let holder = holders.0.get(index).ok_or_else(|| beyond(index, holders.0.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_holder::of(holder)) }?;
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_holders_free(holders: stanchion_holders) {
    boundary::value((), || drop(handle::take::<Holders>(holders)));
}
