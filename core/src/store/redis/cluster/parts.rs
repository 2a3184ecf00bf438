//! Requests of several nodes, sent to all of them at the same time.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use redis::Value;

use crate::store::redis::failure::Miss;
use crate::store::redis::node::Node;
use crate::store::redis::patience::rest;
use crate::store::redis::sending::Sending;

/// A node, and the numbers of the requests that it is to perform.
pub(super) type Part = (Arc<Node>, Vec<usize>);

/// Asks each node for its part; without a thread to spare, one after the other.
pub(super) fn at_once(
    parts: Vec<Part>,
    sendings: &[Sending<'_>],
    give_up: Instant,
    hear: &mut dyn FnMut(usize, Result<Value, Miss>),
) {
    let perform = |(node, numbers): &Part, results: &Sender<(usize, Result<Value, Miss>)>| {
        let part: Vec<_> = numbers.iter().map(|number| &sendings[*number]).collect();
        let until = Instant::now() + node.patience(rest(give_up));
        for result in numbers.iter().copied().zip(node.run_all(&part, until)) {
            // Who listens does so to the end.
            let _ = results.send(result);
        }
    };
    let perform = &perform;
    let (send, results) = mpsc::channel();
    if let [part] = &*parts {
        // As mostly: no thread is needed.
        perform(part, &send);
        drop(send);
        results.iter().for_each(|(number, result)| hear(number, result));
        return;
    }
    thread::scope(|scope| {
        for part in &parts {
            let own = send.clone();
            let started = thread::Builder::new().spawn_scoped(scope, move || perform(part, &own));
            if started.is_err() {
                perform(part, &send);
            }
        }
        // The last thread to end closes the channel.
        drop(send);
        results.iter().for_each(|(number, result)| hear(number, result));
    });
}
