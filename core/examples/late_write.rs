//! A task that is cancelled while it runs. Its handler is told, but goes on, and writes when the task has long been run
//! anew: what it writes to checks fences, and refuses it.
//!
//! `make demo` runs it on a fresh embedded store; with `STANCHION_URL=redis://... make demo` on that server instead. The
//! arguments name the first worker's language and the words of its command; without any, both are this program.

mod late_write {
    pub mod prices;
    pub mod report;
    pub mod run;
    pub mod worker;
}

use std::env;
use std::error::Error;
use std::process::ExitCode;

use late_write::prices::Prices;
use late_write::run::{Place, run};
use late_write::{report, worker};
use stanchion::{LossReason, URL_VARIABLE};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A machine that stands still for longer than a lease ends a run before anybody can tell it of the cancel. So often the
/// demo is begun anew then.
const TRIES: usize = 3;
/// The language of this program.
const OWN: &str = "Rust";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(word @ (worker::PROMPT | worker::LATE)) => {
            worker::run(word == worker::LATE, &arguments[1..]).map(|()| true)
        }
        _ => demo(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("late_write: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the cancelled run was told, and its late write refused.
fn demo(other: &[String]) -> Outcome<bool> {
    let folder = tempfile::Builder::new().prefix("late-write-").tempdir()?;
    let given = env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let chosen = given.is_some();
    let url = given.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("queue.db").display()));
    // A name of its own: the store may be somebody's.
    let queue = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();

    let own = env::current_exe()?.into_os_string().into_string();
    let own = own.map_err(|path| format!("the path {} is not UTF-8", path.display()))?;
    let late = match other {
        [language, command @ ..] if !command.is_empty() => (language.clone(), command.to_vec()),
        _ => (OWN.into(), vec![own.clone(), worker::LATE.into()]),
    };
    let prompt = (OWN.into(), vec![own, worker::PROMPT.into()]);
    report::opening(&late.0, OWN, chosen);
    for number in 1..=TRIES {
        let file = folder.path().join(format!("prices-{number}.db"));
        let prices = Prices::create(&file)?;
        let place = Place { url: url.clone(), queue: format!("{queue}-{number}"), file };
        let story = run(&place, &prices, &late, &prompt)?;
        if story.told != LossReason::Expired.name() || number == TRIES {
            return Ok(report::result(&story));
        }
        report::stood_still();
    }
    Ok(false)
}
