//! The program `stanchion`. Everything is in the library of the same package.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(stanchion_cli::main(env::args_os()))
}
