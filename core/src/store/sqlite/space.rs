//! Room on the disk: what is kept for those who make room, and what a file gives back.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use rusqlite::{Connection, ErrorCode, ffi};

use crate::protocol::{QueueVerb, Request};

/// Kept free on the disk for what needs little and makes room: acks, purges, the ends of leases.
const RESERVE: u64 = 4 << 20;
/// What a process stores before it looks at the disk again, at most: others may fill it meanwhile.
const UNSEEN: u64 = 512 << 10;
/// What a task takes besides its payload, roughly.
const ROW_BYTES: u64 = 512;
/// Pages of a file that stay free for what comes next.
const SPARE_PAGES: i64 = 1_024;
/// Pages that one step gives back: some milliseconds.
const STEP_PAGES: i64 = 512;

/// Bytes that a request stores; `None` if it stores no more than a lease or the end of a task.
pub(super) fn stored_bytes(request: &Request) -> Option<u64> {
    let bytes = match request {
        Request::StoreValue(request) => request.value.len(),
        Request::Queue(request) => match &request.verb {
            QueueVerb::Enqueue(enqueue) => enqueue.tasks.iter().map(|task| task.body.len()).sum(),
            QueueVerb::PutSchedules(put) => put.schedules.iter().map(|schedule| schedule.body.len()).sum(),
            QueueVerb::PutFlow(put) => {
                let plan = put
                    .plan
                    .as_ref()
                    .map_or(0, |plan| plan.graph.len() + plan.names.len() + plan.states.len());
                put.nodes.iter().map(|node| node.body.len()).sum::<usize>() + plan
            }
            QueueVerb::PostMessages(post) => post
                .messages
                .iter()
                .filter_map(|message| message.result.as_ref())
                .map(|result| result.len())
                .sum(),
            _ => return None,
        },
        _ => return None,
    };
    Some(bytes as u64)
}

/// Refuses what fills the disk when no more is left than the reserve. `room` is what may be stored before the disk is
/// looked at again, which takes longer than all else that an enqueue does in memory.
pub(super) fn check(path: &Path, request: &Request, room: &mut u64) -> rusqlite::Result<()> {
    let Some(bytes) = stored_bytes(request) else { return Ok(()) };
    let bytes = bytes + ROW_BYTES;
    if let Some(left) = room.checked_sub(bytes) {
        *room = left;
        return Ok(());
    }
    let Ok(disk) = statvfs(path) else { return Ok(()) };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    // What the log holds comes to the file as well, so that much is spoken for. And what is stored is in both.
    let log = fs::metadata(super::connection::side_file(path, "-wal")).map_or(0, |log| log.len());
    let needed = RESERVE + log + 2 * bytes;
    if free < needed {
        let message =
            format!("{} KiB are free, and {} KiB are kept for acks and purges", free >> 10, RESERVE >> 10);
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), Some(message)));
    }
    *room = ((free - needed) / 2).min(UNSEEN);
    Ok(())
}

pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Brings the log into the file, as far as nobody reads it, and cuts it off.
pub(super) fn cut_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("PRAGMA wal_checkpoint(TRUNCATE)")?.query_row([], |_| Ok(()))
}

/// Gives free pages back, some at a time: a file that was large once would stay so. Whether there are more.
pub(super) fn give_back(connection: &Connection) -> rusqlite::Result<bool> {
    let free = count(connection, "PRAGMA freelist_count")?;
    let pages = (free - SPARE_PAGES).min(STEP_PAGES);
    if pages <= 0 || free < count(connection, "PRAGMA page_count")? / 4 {
        return Ok(false);
    }
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut steps = vacuum.query([])?;
    // A page for each.
    while steps.next()?.is_some() {}
    Ok(pages == STEP_PAGES)
}

fn count(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(pragma)?.query_row([], |row| row.get(0))
}
