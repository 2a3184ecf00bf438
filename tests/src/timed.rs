//! Scripts on a real server at a time that a test chooses: their texts have it in the place of TIME.

use std::time::Duration;

use redis::{Arg, Cmd, Connection, Value};
use stanchion::protocol::{Failure, Reply, Request};
use stanchion::store::redis::{command_with_text, decoded};

/// What scripts ask for the time.
const TIME: &str = "redis.call('TIME')";

/// A connection to an empty database.
pub struct TimedServer {
    /// For what the test itself asks.
    pub raw: Connection,
}

impl TimedServer {
    /// On the database with this URL.
    pub fn at(url: &str) -> Self {
        let raw = redis::Client::open(url).unwrap().get_connection().unwrap();
        raw.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { raw }
    }

    /// Performs a request at this time, in microseconds since 1970. The lives of keys go by the server's own time.
    pub fn perform(&mut self, request: &Request, now: u64) -> Result<Reply, Failure> {
        let value: Value = at(&command_with_text(request), now).query(&mut self.raw).unwrap();
        decoded(request, &value)
    }
}

/// The same command, whose script takes this for the time.
fn at(command: &Cmd, now: u64) -> Cmd {
    let mut timed = Cmd::new();
    for (place, argument) in command.args_iter().enumerate() {
        let Arg::Simple(bytes) = argument else { panic!("an argument is a cursor") };
        if place == 1 {
            let text = std::str::from_utf8(bytes).unwrap();
            // As TIME answers: two texts.
            let time = format!("{{ '{}', '{}' }}", now / 1_000_000, now % 1_000_000);
            timed.arg(text.replace(TIME, &time));
        } else {
            timed.arg(bytes);
        }
    }
    timed
}
