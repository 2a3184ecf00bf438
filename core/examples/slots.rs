//! A schedule of every second, and two workers in two languages, one of which is killed in the middle of a slot's task.
//!
//! `make demo` runs it on a fresh embedded store; with `STANCHION_URL=redis://... make demo` on that server instead. The
//! arguments name the other worker's language and the words of its command; without any, both are this program.

mod slots {
    pub mod report;
    pub mod run;
    pub mod worker;
}

use std::env;
use std::error::Error;
use std::process::ExitCode;

use slots::run::Run;
use slots::{report, worker};
use stanchion::URL_VARIABLE;
use stanchion::blocking::Client;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(worker::COMMAND) => worker::run(&arguments[1..]).map(|()| true),
        _ => demo(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("slots: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every slot got its task, once.
fn demo(other: &[String]) -> Outcome<bool> {
    let folder = tempfile::Builder::new().prefix("slots-").tempdir()?;
    let given = env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let chosen = given.is_some();
    let url = given.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("queue.db").display()));
    // A name of its own: the store may be somebody's.
    let queue = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();

    let own = env::current_exe()?.into_os_string().into_string();
    let own = vec![
        own.map_err(|path| format!("the path {} is not UTF-8", path.display()))?,
        worker::COMMAND.into(),
    ];
    let victim = match other {
        [language, command @ ..] if !command.is_empty() => (language.clone(), command.to_vec()),
        _ => ("Rust".into(), own.clone()),
    };
    report::opening(&victim.0, chosen);
    let run = Run::go(&Client::open(&url)?, &url, &queue, &own, &victim)?;
    Ok(report::result(&run))
}
