//! The files, and their digests by the plain command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;

/// The parts of this project that are walked if no folder is given.
const SOURCES: [&str; 4] = ["core", "cli", "tests", "docs"];
/// Longest id of a task.
const MAX_ID_BYTES: usize = 512;
/// How many files one plain command gets.
const AT_A_TIME: usize = 500;

pub struct Files {
    /// In order.
    pub paths: Vec<String>,
    /// Files whose paths no task may have as its id.
    pub skipped: usize,
    /// For people.
    pub place: String,
}

/// Every file below the folder; links are not followed.
pub fn list(folder: Option<&Path>) -> Outcome<Files> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize();
    let (roots, place) = match folder {
        Some(folder) => {
            let root = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
            let place = root.display().to_string();
            (vec![root], place)
        }
        None => {
            let project = project?;
            let place =
                format!("{} below {}", SOURCES.map(|part| format!("{part}/")).join(" "), project.display());
            (SOURCES.map(|part| project.join(part)).to_vec(), place)
        }
    };
    let mut found = Vec::new();
    for root in roots {
        walk(&root, &mut found)?;
    }
    let all = found.len();
    let mut paths: Vec<String> =
        found.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect();
    paths.retain(|path| path.len() <= MAX_ID_BYTES && !path.contains(char::is_control));
    paths.sort_unstable();
    Ok(Files { skipped: all - paths.len(), paths, place })
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome<()> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Path and digest of every file, by one plain `sha256sum` after the other.
pub fn digests(paths: &[String]) -> Outcome<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for part in paths.chunks(AT_A_TIME) {
        let output = Command::new("sha256sum").arg("--").args(part).output()?;
        digests.extend(String::from_utf8_lossy(&output.stdout).lines().filter_map(split));
    }
    Ok(digests)
}

/// Path and digest in a line of `sha256sum`.
pub fn split(line: &str) -> Option<(String, String)> {
    // A path with a backslash in it is marked by one before the digest, and has two.
    let (marked, line) = line.strip_prefix('\\').map_or((false, line), |line| (true, line));
    let (digest, path) = line.split_once("  ")?;
    let path = if marked { path.replace("\\\\", "\\") } else { path.to_owned() };
    Some((path, digest.to_owned()))
}
