//! The command line `stanchion`: run a command under a distributed lock, work on queues of tasks, and look after
//! both. A library, so that other packages can bring the same command along.
//!
//! This crate holds what a command line needs and the library does not: arguments, one line per error,
//! exit codes, and the care for child processes. Everything about locks and queues is the library's.

#![deny(unsafe_code)]

mod arguments;
mod doctor;
mod enqueue;
mod exit;
mod failure;
mod flows;
mod limit;
mod limiters;
mod lines;
mod locks;
mod metrics;
mod output;
mod pages;
mod parse;
mod process;
mod queues;
mod report;
mod run;
mod schedules;
mod seconds;
mod store;
mod text;
mod usage;
mod web;
mod work;

use std::ffi::OsString;

use arguments::{Globals, Verb};
use failure::Failure;
use report::Report;

/// Does what the arguments say, the first of which is the program's name; the exit code for it.
///
/// It has the process to itself: it catches signals, reaps every child, and leaves threads behind that end with
/// the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match usage::parse(arguments) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let report = Report::new(&arguments.globals);
    perform(&arguments.verb, &arguments.globals, &report).unwrap_or_else(|failure| {
        report.failure(&failure);
        failure.exit
    })
}

fn perform(verb: &Verb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    match verb {
        Verb::Run(order) => run::run(order, globals, report),
        Verb::Limit(order) => limit::limit(order, globals, report),
        Verb::Limiters => limiters::list(globals, report),
        Verb::Locks(verb) => locks::perform(verb, globals, report),
        Verb::Enqueue(order) => enqueue::enqueue(order, globals, report),
        Verb::Work(order) => work::work(order, globals, report),
        Verb::Queues(verb) => queues::perform(verb, globals, report),
        Verb::Flows(verb) => flows::perform(verb, globals, report),
        Verb::Schedules(verb) => schedules::perform(verb, globals, report),
        Verb::Metrics { queues } => metrics::metrics(queues, globals, report),
        Verb::Web(order) => web::web(order, globals, report),
        Verb::Doctor => doctor::doctor(globals, report),
        Verb::Completions { shell } => pages::completions(*shell),
        Verb::Man => pages::man(),
    }
}
