//! A process of its own that uses the library as it is told, so that a test can kill, freeze or fork a real
//! holder or waiter. The other end is `bin/actor`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::wait::{SOON, eventually, eventually_some};

/// A running actor. Dropping it kills it.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    stdin: ChildStdin,
    replies: Receiver<Value>,
}

impl Actor {
    /// Starts the program; tests pass `env!("CARGO_BIN_EXE_actor")`.
    pub fn start(program: &str) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the actor was built");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let (send, replies) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if send.send(reply).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, replies }
    }

    /// Starts the program and connects it to a store. `face` is `blocking` or `async`.
    pub fn connected(program: &str, url: &str, face: &str) -> Self {
        let mut actor = Self::start(program);
        actor.ok(&format!("connect {url} {face}"));
        actor
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends an order.
    pub fn order(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("the actor runs");
    }

    /// The next line the actor says.
    #[track_caller]
    pub fn reply(&self) -> Value {
        self.reply_within(SOON)
    }

    /// The next line the actor says; panics if it says nothing for so long.
    #[track_caller]
    pub fn reply_within(&self, deadline: Duration) -> Value {
        match self.replies.recv_timeout(deadline) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Timeout) => panic!("the actor said nothing within {deadline:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the actor has ended"),
        }
    }

    /// Whether the actor has said nothing since the last reply was read.
    pub fn is_silent(&self) -> bool {
        self.replies.try_recv().is_err()
    }

    /// Sends an order and returns the reply.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        self.order(line);
        self.reply()
    }

    /// Sends an order that must succeed, and returns the reply.
    #[track_caller]
    pub fn ok(&mut self, line: &str) -> Value {
        let reply = self.ask(line);
        assert!(reply["error"].is_null(), "{line}: {reply}");
        reply
    }

    /// Sends an order that must fail, and returns the error's kind.
    #[track_caller]
    pub fn error(&mut self, line: &str) -> String {
        let reply = self.ask(line);
        reply["error"].as_str().unwrap_or_else(|| panic!("{line}: {reply}")).to_owned()
    }

    /// Freezes the process.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let status = format!("/proc/{}/stat", self.pid());
        eventually(SOON, || fs::read_to_string(&status).is_ok_and(|text| text.contains(") T ")));
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Ends the process by SIGKILL.
    pub fn kill9(&mut self) {
        self.child.kill().expect("the actor is our child");
        self.child.wait().expect("the actor is our child");
    }

    /// Waits for the process's end; its exit code, or minus the signal that ended it.
    #[track_caller]
    pub fn end(&mut self) -> i32 {
        let status = eventually_some(SOON, || self.child.try_wait().expect("the actor is our child"));
        status.code().or_else(|| status.signal().map(|signal| -signal)).expect("it has ended")
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("the actor runs");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
