//! The directories of servers: one for each, swept away when nobody is there to do it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Directories of servers: this, the test process, a number.
const DIR_PREFIX: &str = "stanchion-redis-";

pub(crate) fn fresh() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Short: a socket's path has at most 107 bytes.
    let dir = std::env::temp_dir().join(format!("{DIR_PREFIX}{}-{number}", std::process::id()));
    fs::create_dir(&dir).expect("the temporary directory is writable");
    dir
}

/// Removes directories of test processes that are gone: a shared server's, or a killed test's.
pub(super) fn sweep() {
    static SWEPT: OnceLock<()> = OnceLock::new();
    SWEPT.get_or_init(|| {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(DIR_PREFIX)?.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    });
}
