//! Opening a database: the file and its rights, the connection and its settings, transactions.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, FileControl, OpenFlags};

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::sqlite::failure::{self, Trouble, sqlite};
use crate::store::sqlite::schema::{self, Known};

/// More than there are statements, so that none is ever prepared twice.
const STATEMENTS: usize = 192;
/// The smallest database. SQLite takes some shorter files for empty ones and would overwrite them.
const LEAST_SIZE: u64 = 512;
/// A verb changes a few small rows in five or six places, and writes a page for each. Smaller pages still make large
/// payloads slower.
const PAGE_BYTES: i64 = 2_048;
/// How much of a write-ahead log is kept for reuse after a burst.
const LOG_LIMIT: i64 = 4 << 20;

/// An in-memory database with its tables.
pub(super) fn open_memory() -> Result<Connection, Trouble> {
    let wrong = |error| sqlite(&error, "memory:");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_in_memory_with_flags(flags).map_err(wrong)?;
    settle(&connection).map_err(wrong)?;
    schema::prepare(&connection, "memory:")?;
    Ok(connection)
}

/// The database in this file, which is made if it does not exist.
pub(super) fn open_file(path: &Path, mode: u32) -> Result<Connection, Trouble> {
    create_file(path, mode)?;
    check_file(path)?;
    let place = path.display().to_string();
    let wrong = |error| sqlite(&error, &place);
    // Without CREATE: a file that vanished meanwhile must come back with its mode, by the next attempt.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    settle(&connection).map_err(wrong)?;
    let known = schema::inspect(&connection).map_err(wrong)?;
    if matches!(known, Known::Fresh) {
        // These have to come first, and write: on a file that others use they would wait for them.
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(wrong)?;
        // So that it can give space back.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(wrong)?;
    }
    if !matches!(known, Known::Foreign) {
        use_log(&connection, &place)?;
    }
    schema::prepare(&connection, &place)?;
    Ok(connection)
}

/// The one path by which every process knows this file: symbolic links would lead SQLite to other
/// side files, and two databases in one file.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    let invalid = |message: String| Failure::new(FailureKind::Final(ErrorKind::InvalidArgument), message);
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(invalid(format!("{} is a symbolic link to nothing", path.display())));
            }
            let name = path
                .file_name()
                .ok_or_else(|| invalid(format!("{} does not name a file", path.display())))?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")));
            Ok(parent.map_err(|error| failure::file(&error, path))?.join(name))
        }
        Err(error) => Err(failure::file(&error, path)),
    }
}

/// Whether the file behind the connection is no longer the one at its path.
pub(super) fn has_moved(connection: &Connection) -> bool {
    let mut moved = 0;
    let asked = connection.file_control(None::<&str>, FileControl::HasMoved(&mut moved));
    asked.is_err() || moved != 0
}

/// Closes without touching any file: the write-ahead log stays for whoever comes next. For a fork, which
/// waits meanwhile, and for a file that is no longer at its path, where another's log may lie now.
pub(super) fn close_quietly(connection: Connection) {
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    drop(connection);
}

/// Settings of every connection. SQLite must not wait by itself: it would hold our mutex meanwhile.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise SQLite looks at bound values when it plans, and prepares a statement again when they change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Write-ahead logging: readers and the writer do not block each other, and a commit needs no fsync.
/// After a power cut the last commits may be missing; by then their leases have ended with the boot.
fn use_log(connection: &Connection, place: &str) -> Result<(), Trouble> {
    let wrong = |error| sqlite(&error, place);
    let journal: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(wrong)?;
    if journal != "wal" {
        return Err(unsupported(format!(
            "the file system of {place} cannot share memory between processes, which SQLite's write-ahead log \
             needs; use a path on a local disk"
        )));
    }
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(wrong)?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LOG_LIMIT}"), [], |_| Ok(())).map_err(wrong)
}

/// Makes an empty file with the wanted mode, whatever the umask. An existing file is not opened: closing
/// it again would drop all locks that this process has on it.
fn create_file(path: &Path, mode: u32) -> Result<(), Trouble> {
    if path.exists() {
        return Ok(());
    }
    let about = |error: io::Error| failure::file(&error, path);
    let parent = fs::File::open(path.parent().unwrap_or(Path::new("/"))).map_err(about)?;
    // Makers of files take turns, so that none removes the side files of another's new database.
    let Ok(_turn) = Flock::lock(parent, FlockArg::LockExclusiveNonblock) else {
        return Err(Trouble::Busy);
    };
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => {
            file.set_permissions(fs::Permissions::from_mode(mode)).map_err(about)?;
            drop(file);
            remove_side_files(path).map_err(|error| about(error).into())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(about(error).into()),
    }
}

/// Removes what an unlinked database left behind. A program that still has it open shares memory through
/// its -shm file; with the new database too, that would be damage to both.
fn remove_side_files(path: &Path) -> io::Result<()> {
    for suffix in ["-wal", "-shm", "-journal"] {
        match fs::remove_file(side_file(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The file that SQLite keeps beside a database.
pub(super) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut side = path.as_os_str().to_owned();
    side.push(suffix);
    side.into()
}

/// Refuses what could become two databases, or cannot be written.
fn check_file(path: &Path) -> Result<(), Trouble> {
    let about = |error: io::Error| failure::file(&error, path);
    let place = path.display();
    let file = fs::metadata(path).map_err(about)?;
    if file.is_dir() {
        return Err(about(io::ErrorKind::IsADirectory.into()).into());
    }
    if !file.is_file() {
        let kind = FailureKind::Final(ErrorKind::InvalidArgument);
        return Err(Failure::new(kind, format!("{place} is no regular file")).into());
    }
    if (1..LEAST_SIZE).contains(&file.len()) {
        return Err(failure::corrupt(&place.to_string(), "it is too short").into());
    }
    if file.nlink() > 1 {
        return Err(unsupported(format!(
            "{place} has several names (hard links); SQLite would keep a log for each of them"
        )));
    }
    let rights = nix::unistd::AccessFlags::R_OK | nix::unistd::AccessFlags::W_OK;
    nix::unistd::access(path, rights).map_err(|errno| about(errno.into()))?;
    if let Some(kind) = network_file_system(path) {
        return Err(unsupported(format!(
            "{place} is on a network file system ({kind}), where SQLite's locks do not hold; use a path on a \
             local disk, or a Redis server for several machines"
        )));
    }
    Ok(())
}

fn unsupported(message: String) -> Trouble {
    Trouble::Failed(Failure::new(FailureKind::Final(ErrorKind::Unsupported), message))
}

/// The network file system that a file is on, if it is one that can be recognised by its number (a remote
/// one behind FUSE cannot).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_file_system(path: &Path) -> Option<&'static str> {
    let found = nix::sys::statfs::statfs(path).ok()?.filesystem_type().0;
    network_name(u32::try_from(i128::from(found) & 0xffff_ffff).ok()?)
}

/// Network file systems by the number in statfs(2). 9p may reach beyond this machine: a guest's host.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x0102_1997 => "9p",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        _ => return None,
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn network_file_system(_path: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_apart_from_local_ones() {
        let ext4 = 0xef53;
        assert_eq!(network_name(ext4), None);
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0xff53_4d42), Some("SMB"));
        assert_eq!(network_file_system(Path::new("/proc")), None);
    }
}
