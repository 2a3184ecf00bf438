//! Digests of many files, computed by two workers of which one is killed.
//!
//! `make demo` runs it on a fresh embedded store; with `STANCHION_URL=redis://... make demo` the queue lives on
//! that server instead. The files are this project's sources, or those below the folder that the argument or
//! the variable `DEMO_FOLDER` names.

mod file_digests {
    pub mod files;
    pub mod report;
    pub mod run;
    pub mod stanchion;
}

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use file_digests::files;
use file_digests::report;
use file_digests::run::Run;
use file_digests::stanchion::Stanchion;

/// With fewer the workers are done before one can be killed in the middle.
const FEWEST: usize = 50;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match demo() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("file_digests: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every file was processed, and rightly.
fn demo() -> Outcome<bool> {
    let folder = env::args_os().nth(1).or_else(|| env::var_os("DEMO_FOLDER"));
    let folder = folder.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let files = files::list(folder.as_deref())?;
    if files.paths.len() < FEWEST {
        return Err(format!(
            "{} files are too few to show anything; name a larger folder",
            files.paths.len()
        )
        .into());
    }
    let stanchion = Stanchion::find()?;
    report::opening(&stanchion, &files);
    let run = Run::go(&stanchion, &files.paths)?;
    let expected = files::digests(&files.paths)?;
    let right = report::result(&run, &files.paths, &expected);
    stanchion.tidy();
    report::verdict(right);
    Ok(right)
}
