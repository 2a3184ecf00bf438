//! Whoever calls the API. In every language it has three arguments: the API's URL, the name of the limiter or `-`, and how often
//! it calls. It finds the store in `STANCHION_URL`, and prints the status of each answer in a line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use stanchion::Limit;
use stanchion::blocking::Client;

use super::api::Api;
use crate::Outcome;

/// The first argument of a process that calls.
pub const COMMAND: &str = "call";
/// Stands for the limiter's name where there is none.
pub const NO_LIMITER: &str = "-";
/// How long a call waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(arguments: &[String]) -> Outcome<()> {
    let [api, limiter, calls] = arguments else { return Err("this is for the demo itself".into()) };
    let limit = Limit::rate(Api::PER_SECOND, Duration::from_secs(1));
    let limiter = match limiter.as_str() {
        NO_LIMITER => None,
        name => Some(Client::from_env().open_blocking()?.limiter(name, limit)?),
    };
    for _ in 0..calls.parse()? {
        if let Some(limiter) = &limiter
            && !limiter.take(1, PATIENCE)?.is_allowed()
        {
            return Err("its turn did not come".into());
        }
        println!("{}", call(api)?);
    }
    Ok(())
}

/// The status of the answer.
fn call(api: &str) -> Outcome<String> {
    let place = api.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(place)?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.split(' ').nth(1).ok_or("no answer")?.to_owned())
}
