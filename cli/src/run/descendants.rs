//! Finding what the command has started.

use std::collections::HashMap;
use std::fs;

use nix::unistd::Pid;

/// Children of this process, their children, and so on, without the strangers and theirs. Empty where there
/// is no `/proc`.
pub fn descendants(strangers: &[Pid]) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, parent) in processes() {
        if strangers.contains(&Pid::from_raw(pid)) {
            continue;
        }
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&Pid::this().as_raw()).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found.into_iter().map(Pid::from_raw).collect()
}

/// Every process with its parent.
fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // Gone already, perhaps.
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parent(&String::from_utf8_lossy(&stat))?))
    };
    entries.flatten().filter_map(process).collect()
}

/// The parent in a line of `/proc/PID/stat`: "pid (name) state parent ...". The name may hold anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent("7 (a) b) R 1) S 42 7 7"), Some(42));
        assert_eq!(parent("nonsense"), None);
    }

    #[test]
    fn a_child_is_found_unless_it_is_a_stranger() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        let (found, without) = (descendants(&[]), descendants(&[pid]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&pid) && !without.contains(&pid));
    }
}
