//! A worker is killed with SIGKILL: when does its task run again?

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stanchion::blocking::Client;
use stanchion::{ClaimOptions, Task};

use super::queue;
use crate::report::Report;

/// The argument that makes this program a worker that never ends.
pub const CHILD: &str = "claim-and-hang";
const LEASE: Duration = Duration::from_secs(2);

/// Claims one task, says so, and hangs.
pub fn child(arguments: &[String]) {
    let queue = Client::open(&arguments[0]).unwrap().queue("bench:crash");
    let options = ClaimOptions::new().lease(LEASE).renew(true).wait(Duration::from_secs(10));
    let _claims = queue.claim(options).unwrap();
    println!("claimed");
    loop {
        std::thread::park();
    }
}

pub fn crash(url: &str, store: &str, report: &mut Report) {
    report.section(&format!("{store}: a worker with a lease of {LEASE:?} is killed with SIGKILL"));
    let queue = queue(url, "bench:crash");
    queue.enqueue(Task::new("fragile")).unwrap();
    let mut worker =
        Command::new(env::current_exe().unwrap()).args([CHILD, url]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 7];
    worker.stdout.take().unwrap().read_exact(&mut said).unwrap();
    worker.kill().unwrap();
    let killed = Instant::now();
    worker.wait().unwrap();
    let claims = queue.claim(ClaimOptions::new().wait(Duration::from_secs(30))).unwrap();
    let after = killed.elapsed();
    assert_eq!(claims[0].attempt(), 2);
    claims[0].ack().unwrap();
    report.note(&format!("{store} runs again after the kill"), after.as_secs_f64() * 1e3, "ms");
}
