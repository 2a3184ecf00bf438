//! What goes to stdout.

use std::io::{self, ErrorKind, Write};

use crate::exit;
use crate::failure::Failure;

/// Prints a result. A reader that has seen enough (`| head`) is no error; a full disk is.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    write(bytes).map_err(|error| Failure::system("writing the output failed", &error))
}

/// Prints a part of what goes on; whether its reader wants more.
pub fn print_on(bytes: &[u8]) -> Result<bool, Failure> {
    match write_all(bytes) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).map_err(|error| Failure::system("writing the output failed", &error)),
    }
}

/// Prints the result of what was done, and cannot be undone by a full disk.
pub fn print_done(bytes: &[u8], done: &str) -> Result<(), Failure> {
    write(bytes).map_err(|error| {
        let what = format!("{done}, but printing the result failed: {error}");
        Failure::new("System", exit::SYSTEM, what, "there is no need to run it again")
    })
}

fn write(bytes: &[u8]) -> io::Result<()> {
    match write_all(bytes) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}
