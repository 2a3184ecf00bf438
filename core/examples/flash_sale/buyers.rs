//! The programs that serve buyers: this one, and one for every other language that `make demo` has set up.
//!
//! They all get the same arguments, FOLDER LOCK PROCESS PROCESSES BUYERS AT_A_TIME, and find the store in
//! `STANCHION_URL`. They print a line when they are ready, begin when they can read a line, and print how long
//! each buyer waited, in microseconds, a line for each.

use std::env;
use std::process::Command;

use super::process::COMMAND;
use super::store::DemoStore;
use crate::{AT_A_TIME, BUYERS, Outcome, PROCESSES};

/// Before the name of a language and the words of the command that serves its buyers.
const OPTION: &str = "--buyers";

pub struct Buyers {
    programs: Vec<Program>,
}

struct Program {
    language: String,
    command: Vec<String>,
}

impl Buyers {
    /// Those of this program, and those that the arguments name.
    pub fn find(arguments: &[String]) -> Outcome<Self> {
        let own = env::current_exe()?.into_os_string().into_string();
        let own = own.map_err(|path| format!("the path {} is not UTF-8", path.display()))?;
        let mut programs = vec![Program { language: "Rust".into(), command: vec![own, COMMAND.into()] }];
        for words in arguments.split(|argument| argument == OPTION).skip(1) {
            let [language, command @ ..] = words else { return Err(usage()) };
            if command.is_empty() {
                return Err(usage());
            }
            programs.push(Program { language: language.clone(), command: command.to_vec() });
        }
        if arguments.first().is_some_and(|first| first != OPTION) || programs.len() > PROCESSES {
            return Err(usage());
        }
        Ok(Self { programs })
    }

    /// The command of one process. The languages take turns.
    pub fn command(&self, store: &DemoStore, folder: &str, lock: &str, process: usize) -> Command {
        let words = &self.program(process).command;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args([folder, lock]);
        command.args([process, PROCESSES, BUYERS, AT_A_TIME].map(|number| number.to_string()));
        // In the environment, not in the arguments: those are for everybody to see.
        command.env(stanchion::URL_VARIABLE, store.url());
        command
    }

    /// What the buyers of a process are written in.
    pub fn language(&self, process: usize) -> &str {
        &self.program(process).language
    }

    /// How many of these processes there are for each language, in words.
    pub fn count(&self, processes: impl Iterator<Item = usize>) -> String {
        let processes: Vec<usize> = processes.collect();
        let count = |program: &Program| {
            let of_language = |process: &&usize| self.language(**process) == program.language;
            let number = processes.iter().filter(of_language).count();
            format!("{} in {}", super::report::grouped(number), program.language)
        };
        self.programs.iter().map(count).collect::<Vec<_>>().join(", ")
    }

    fn program(&self, process: usize) -> &Program {
        &self.programs[(process - 1) % self.programs.len()]
    }
}

fn usage() -> Box<dyn std::error::Error + Send + Sync> {
    format!("arguments: [{OPTION} LANGUAGE COMMAND...]...; STANCHION_URL chooses the store").into()
}
