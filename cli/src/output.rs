//! What goes to stdout.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Prints a result. A reader that has seen enough (`| head`) is no error; a full disk is.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::system("writing the output failed", &error)),
    }
}
