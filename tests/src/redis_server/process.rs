//! The process of a server: started so that it never outlives the tests, and told what to do by signals.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind as IoErrorKind;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What to do if a program is missing.
pub(super) const INSTALL: &str =
    "run `make deps`, or apt-get install redis-server (with redis-tools, openssl, util-linux)";

/// The server to start: another one than the system's, if the environment says so.
pub(crate) fn program() -> OsString {
    env::var_os("STANCHION_TEST_SERVER").unwrap_or_else(|| "redis-server".into())
}

/// Starts a process from a thread that lives as long as this process: the kernel kills the child when the
/// *thread* that started it ends, and a test's thread ends with its test.
pub(crate) fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (send, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(send)
    });
    check_installed();
    let (reply, child) = mpsc::channel();
    let send = spawner.lock().unwrap_or_else(PoisonError::into_inner).clone();
    send.send((command, reply)).expect("the spawner never ends");
    child.recv().expect("the spawner answers").unwrap_or_else(|error| panic!("setpriv: {error}; {INSTALL}"))
}

/// Without this, a missing server would show only as a setpriv that ends at once.
fn check_installed() {
    static CHECKED: OnceLock<()> = OnceLock::new();
    CHECKED.get_or_init(|| match Command::new(program()).arg("--version").output() {
        Ok(_) => {}
        Err(error) if error.kind() == IoErrorKind::NotFound => {
            panic!("redis-server is not installed; {INSTALL}")
        }
        Err(error) => panic!("redis-server: {error}; {INSTALL}"),
    });
}

pub(super) fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).expect("a process id");
    // It may have ended by itself.
    let _ = kill(Pid::from_raw(pid), signal);
}
