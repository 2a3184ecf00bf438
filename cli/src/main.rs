//! `stanchion`: run a command under a distributed lock, work on queues of tasks, and look after both, from
//! the command line.
//!
//! This crate holds what a command line needs and the library does not: arguments, one line per error,
//! exit codes, and the care for child processes. Everything about locks and queues is the library's.

#![deny(unsafe_code)]

mod arguments;
mod enqueue;
mod exit;
mod failure;
mod lines;
mod locks;
mod output;
mod pages;
mod parse;
mod process;
mod queues;
mod report;
mod run;
mod seconds;
mod store;
mod text;
mod usage;
mod work;

use std::process::ExitCode;

use arguments::{Globals, Verb};
use failure::Failure;
use report::Report;

fn main() -> ExitCode {
    let arguments = match usage::parse() {
        Ok(arguments) => arguments,
        Err(code) => return ExitCode::from(code),
    };
    let report = Report::new(&arguments.globals);
    let code = perform(&arguments.verb, &arguments.globals, &report).unwrap_or_else(|failure| {
        report.failure(&failure);
        failure.exit
    });
    ExitCode::from(code)
}

fn perform(verb: &Verb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    match verb {
        Verb::Run(order) => run::run(order, globals, report),
        Verb::Locks(verb) => locks::perform(verb, globals, report),
        Verb::Enqueue(order) => enqueue::enqueue(order, globals, report),
        Verb::Work(order) => work::work(order, globals, report),
        Verb::Queues(verb) => queues::perform(verb, globals, report),
        Verb::Completions { shell } => pages::completions(*shell),
        Verb::Man => pages::man(),
    }
}
