//! Which database.

use std::path::PathBuf;

/// Which database a store uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqliteTarget {
    /// A file on a local disk, shared by all processes that may open it. The file is made if need be, its
    /// directory is not.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its mode if it is made; an existing file keeps its own.
        mode: u32,
        /// Whether what goes is overwritten.
        secure_delete: bool,
    },
    /// Memory of this process.
    Memory {
        /// Stores with the same name share their locks; one without a name shares them with nobody.
        name: Option<String>,
    },
}
