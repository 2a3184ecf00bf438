//! Carries out the steps of scenarios with the Rust library. What it speaks: contract/players.py.
//!
//! `player blocking` and `player async` go through one face each.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a broken request ends the player, and with it the scenario"
)]

use std::collections::HashMap;
use std::io::{BufRead, stdin};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use serde_json::{Map, Value, json};
use stanchion::ManualClock;
use stanchion_tests::faces::Face;

mod actor;
mod arguments;
mod operations;
mod shown;

use actor::Actor;
use arguments::Arguments;

/// Why a request has no answer.
pub(crate) enum Refusal {
    Error(stanchion::Error),
    /// A program that does this does not compile.
    Cannot(&'static str),
}

impl From<stanchion::Error> for Refusal {
    fn from(error: stanchion::Error) -> Self {
        Self::Error(error)
    }
}

pub(crate) type Answer = Result<Value, Refusal>;

fn main() {
    let face = match std::env::args().nth(1).as_deref() {
        Some("async") => Face::Async,
        _ => Face::Blocking,
    };
    let clock = ManualClock::new();
    let mut actors: HashMap<String, Sender<Map<String, Value>>> = HashMap::new();
    for line in stdin().lock().lines().map_while(Result::ok) {
        let request: Map<String, Value> = serde_json::from_str(&line).expect("a request");
        if request["op"] == "operations" {
            let names: Vec<_> = operations::OPERATIONS.iter().map(|(name, _)| *name).collect();
            say(&json!({ "call": request["call"], "ok": names }));
            continue;
        }
        let name = request["actor"].as_str().expect("an actor").to_owned();
        let actor = actors.entry(name).or_insert_with(|| start(face, &clock));
        actor.send(request).expect("actors live as long as this loop");
    }
}

/// Starts an actor: a thread, which makes one call after the other.
fn start(face: Face, clock: &ManualClock) -> Sender<Map<String, Value>> {
    let (send, requests) = channel();
    let mut actor = Actor::new(face, clock.clone());
    thread::spawn(move || {
        for request in requests {
            say(&answer(&mut actor, request));
        }
    });
    send
}

fn answer(actor: &mut Actor, request: Map<String, Value>) -> Value {
    let request = Arguments(request);
    let call = request.0["call"].clone();
    let op = request.0["op"].as_str().unwrap_or_default();
    let found = operations::OPERATIONS.iter().find(|(name, _)| *name == op);
    let (_, operation) = found.unwrap_or_else(|| panic!("there is no operation {op}"));
    match operation(actor, &request) {
        Ok(found) => json!({ "call": call, "ok": found }),
        Err(Refusal::Error(error)) => {
            actor.note(&error);
            json!({ "call": call, "error": shown::error(&error) })
        }
        Err(Refusal::Cannot(reason)) => json!({ "call": call, "cannot": reason }),
    }
}

/// One line each, also if several threads speak.
fn say(answer: &Value) {
    println!("{answer}");
}
