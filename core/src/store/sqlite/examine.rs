//! What a file is like, and what follows for the promises.

use std::path::Path;

use nix::sys::statvfs::statvfs;
use rusqlite::Connection;

use crate::examine::{Finding, Health};

/// With less space than this a busy queue may fill the disk soon.
const LITTLE_SPACE: u64 = 100 << 20;

pub(super) fn examine(connection: &Connection, path: &str) -> rusqlite::Result<Vec<Finding>> {
    Ok(vec![place(connection, path)?, log(connection)?, content(connection)?, space(path)])
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
