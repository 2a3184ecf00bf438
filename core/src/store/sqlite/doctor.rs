//! What a file is like, and what follows for the promises.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use rusqlite::Connection;

use crate::store::sqlite::connection::side_file;
use crate::store::{Finding, Health};

/// MiB of a log that show that it cannot be brought into the file. It has 4 after a burst.
const MUCH_LOG: u64 = 64;
/// MiB that are worth giving back.
const MUCH_SPARE: i64 = 64;
/// With less space than this a busy queue may fill the disk soon.
const LITTLE_SPACE: u64 = 100 << 20;

pub(super) fn doctor(connection: &Connection, path: &str) -> rusqlite::Result<Vec<Finding>> {
    let size = size(connection, Path::new(path))?;
    Ok(vec![place(connection, path)?, log(connection)?, content(connection)?, size, space(path)])
}

/// A log that cannot be brought into the file, because somebody reads all the time, grows for ever; a file that was
/// made without it gives nothing back.
fn size(connection: &Connection, path: &Path) -> rusqlite::Result<Finding> {
    let pragma = |name: &str| -> rusqlite::Result<i64> {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
    };
    let (page, pages, free) = (pragma("page_size")?, pragma("page_count")?, pragma("freelist_count")?);
    let (file, spare) = ((page * pages) >> 20, (page * free) >> 20);
    let log = fs::metadata(side_file(path, "-wal")).map_or(0, |log| log.len()) >> 20;
    let found = format!("{file} MiB, of which {spare} are free; log {log} MiB");
    let finding = Finding::good("size", "the file and its log shrink when space is free", found);
    Ok(if log > MUCH_LOG {
        finding
            .but(Health::Warning, "a long read, such as a backup, keeps the log from being emptied; end it")
    } else if pragma("auto_vacuum")? == 0 && spare > MUCH_SPARE {
        finding.but(Health::Warning, "this file never shrinks by itself; run VACUUM while nobody uses it")
    } else {
        finding
    })
}

fn place(connection: &Connection, path: &str) -> rusqlite::Result<Finding> {
    let version: i32 =
        connection.query_row("SELECT user_version FROM pragma_user_version", [], |row| row.get(0))?;
    let found = format!("{path}, version {version}, SQLite {}", rusqlite::version());
    Ok(Finding::good("place", "all processes of this machine share it; other machines do not", found))
}

fn log(connection: &Connection) -> rusqlite::Result<Finding> {
    let mode: String =
        connection.query_row("SELECT journal_mode FROM pragma_journal_mode", [], |row| row.get(0))?;
    let finding =
        Finding::good("persistence", "an acknowledged task outlives a crash", format!("journal mode {mode}"));
    Ok(match &*mode {
        "wal" => finding,
        _ => finding.but(Health::Bad, "another program has changed the file's journal mode; set it to WAL"),
    })
}

fn content(connection: &Connection) -> rusqlite::Result<Finding> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    let finding = Finding::good("content", "what was stored can be read", found.clone());
    Ok(match &*found {
        "ok" => finding,
        _ => finding.but(
            Health::Bad,
            "the file is damaged; stop all programs, keep a copy, and recover what you can",
        ),
    })
}

fn space(path: &str) -> Finding {
    let promise = "there is room for more tasks";
    match statvfs(Path::new(path)) {
        Ok(disk) => {
            let free = disk.blocks_available().saturating_mul(disk.fragment_size());
            let finding = Finding::good("space", promise, format!("{} MiB free", free >> 20));
            match free < LITTLE_SPACE {
                true => finding.but(Health::Warning, "a full disk refuses new tasks"),
                false => finding,
            }
        }
        Err(error) => {
            Finding::good("space", promise, error.to_string()).but(Health::Unknown, "look at the disk")
        }
    }
}
