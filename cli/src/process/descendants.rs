//! Finding what the command has started.

use std::collections::HashMap;
use std::fs;

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// Which of the processes that this one has adopted belong to a command.
pub enum Kin {
    /// All but these, which were here before the command, and what they have started.
    AllBut(Vec<Pid>),
    /// Those in the command's process group, and those with all of these variables in their environment: other
    /// commands run as well.
    With(Vec<(String, String)>),
}

struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

impl Kin {
    /// Everything that is there before the command.
    pub fn all_but_present() -> Self {
        // The kernel is asked first: looking through all processes takes longer, and there is hardly ever one.
        Self::AllBut(match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => Vec::new(),
            _ => family(|_| true, &[]),
        })
    }

    fn includes(&self, command: Pid, process: &Process) -> bool {
        let of_group = process.pid == command.as_raw() || process.group == command.as_raw();
        match self {
            Self::AllBut(_) => true,
            Self::With(variables) => of_group || has_variables(process.pid, variables),
        }
    }
}

/// The command, its children, their children, and so on, and those of them that this process has adopted.
/// Empty where there is no `/proc`.
pub fn descendants(command: Pid, kin: &Kin) -> Vec<Pid> {
    let strangers: &[Pid] = match kin {
        Kin::AllBut(strangers) => strangers,
        Kin::With(_) => &[],
    };
    family(|process| kin.includes(command, process), strangers)
}

/// Those children of this process that are wanted, with all that is below them; no strangers.
fn family(wanted: impl Fn(&Process) -> bool, strangers: &[Pid]) -> Vec<Pid> {
    let this = Pid::this().as_raw();
    let mut found = Vec::new();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes() {
        if strangers.contains(&Pid::from_raw(process.pid)) {
            continue;
        }
        if process.parent != this {
            children.entry(process.parent).or_default().push(process.pid);
        } else if wanted(&process) {
            found.push(process.pid);
        }
    }
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found.into_iter().map(Pid::from_raw).collect()
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // Gone already, perhaps.
        let stat = fs::read(entry.path().join("stat")).ok()?;
        let (parent, group) = parent_and_group(&String::from_utf8_lossy(&stat))?;
        Some(Process { pid, parent, group })
    };
    entries.flatten().filter_map(process).collect()
}

/// Two numbers of a line of `/proc/PID/stat`: "pid (name) state parent group ...". The name may hold anything.
fn parent_and_group(stat: &str) -> Option<(i32, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn has_variables(pid: i32, variables: &[(String, String)]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let has = |name: &str, value: &str| {
        environment.split(|byte| *byte == 0).any(|entry| entry == format!("{name}={value}").as_bytes())
    };
    variables.iter().all(|(name, value)| has(name, value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use std::process::{Child, Command};

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent_and_group("7 (a) b) R 1) S 42 7 8"), Some((42, 7)));
        assert_eq!(parent_and_group("nonsense"), None);
    }

    #[test]
    fn a_child_is_found_unless_it_is_a_stranger_or_anothers() {
        let sleep = |value: &str| Command::new("sleep").arg("60").env("WHOSE", value).spawn().unwrap();
        let with = |value: &str| Kin::With(vec![("WHOSE".into(), value.into())]);
        let pid = |child: &Child| Pid::from_raw(child.id().cast_signed());
        let mut children = [sleep("a"), sleep("b")];
        let [a, b] = [pid(&children[0]), pid(&children[1])];
        let found = |kin: Kin| {
            let found = descendants(a, &kin);
            (found.contains(&a), found.contains(&b))
        };
        let seen = [Kin::AllBut(vec![]), Kin::AllBut(vec![a]), with("a"), with("b"), with("c")].map(found);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(seen, [(true, true), (false, true), (true, false), (true, true), (true, false)]);
    }
}
