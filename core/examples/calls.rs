//! An API that allows so many calls a second, and workers in several languages that call it: without a limiter and with one.
//!
//! `make demo` runs it on a fresh embedded store; with `STANCHION_URL=redis://... make demo` on that server instead. The
//! arguments are `--worker`, a language and the words of its command, for each language besides this one.

mod calls {
    pub mod api;
    pub mod worker;
}

use std::env;
use std::error::Error;
use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use calls::api::Api;
use calls::worker;
use stanchion::URL_VARIABLE;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How often each worker calls.
const CALLS: usize = 30;

/// What the calls came to.
struct Tally {
    answered: usize,
    refused: usize,
    seconds: f64,
}

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
            eprintln!("calls: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the API refused nothing of those who asked the limiter, and something of the others.
fn demo(arguments: &[String]) -> Outcome<bool> {
    let folder = tempfile::Builder::new().prefix("calls-").tempdir()?;
    let given = env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let store = given.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("limits.db").display()));
    // A name of its own: the store may be somebody's.
    let limiter = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let workers = workers(arguments)?;
    let languages: Vec<&str> = workers.iter().map(|worker| worker.0.as_str()).collect();
    println!(
        "\nAn API that allows {} calls a second, and answers 429 to what is more. {CALLS} calls each by workers in {}.",
        Api::PER_SECOND,
        languages.join(", ")
    );
    println!("                       calls    answered    429    calls a second");
    let without = call(&workers, &store, worker::NO_LIMITER)?;
    show("without a limiter", &without);
    let with = call(&workers, &store, &limiter)?;
    show("with one limiter", &with);
    let is_right = with.refused == 0 && with.answered == workers.len() * CALLS && without.refused > 0;
    match is_right {
        true => println!(
            "\nWith one limiter for all of them, the API refused nobody. They waited in line, without polling."
        ),
        false => println!("\nThis was WRONG. Please report it, with what is printed above."),
    }
    Ok(is_right)
}

fn show(title: &str, tally: &Tally) {
    let calls = tally.answered + tally.refused;
    let rate = calls as f64 / tally.seconds;
    println!("  {title:18}   {calls:>5}    {:>8}    {:>3}    {rate:>14.1}", tally.answered, tally.refused);
}

/// Each worker's language and command.
fn workers(arguments: &[String]) -> Outcome<Vec<(String, Vec<String>)>> {
    let own = env::current_exe()?.into_os_string().into_string();
    let own = own.map_err(|path| format!("the path {} is not UTF-8", path.display()))?;
    let mut workers = vec![("Rust".to_owned(), vec![own, worker::COMMAND.to_owned()])];
    for words in arguments.split(|word| word == "--worker").filter(|words| !words.is_empty()) {
        let [language, command @ ..] = words else { continue };
        workers.push((language.clone(), command.to_vec()));
    }
    Ok(workers)
}

/// All of them call at the same time.
fn call(workers: &[(String, Vec<String>)], store: &str, limiter: &str) -> Outcome<Tally> {
    let api = Api::start()?;
    let begun = Instant::now();
    let start = |(_, command): &(String, Vec<String>)| -> Outcome<Child> {
        let mut started = Command::new(command.first().ok_or("a command without words")?);
        started.args(&command[1..]).args([&api.url(), limiter, &CALLS.to_string()]).env(URL_VARIABLE, store);
        Ok(started.stdout(Stdio::piped()).spawn()?)
    };
    let children = workers.iter().map(start).collect::<Outcome<Vec<_>>>()?;
    let (mut answered, mut refused) = (0, 0);
    for ((language, _), mut child) in workers.iter().zip(children) {
        let mut said = String::new();
        child.stdout.take().ok_or("a worker without output")?.read_to_string(&mut said)?;
        if !child.wait()?.success() {
            return Err(format!("the worker in {language} failed").into());
        }
        answered += said.lines().filter(|line| *line == "200").count();
        refused += said.lines().filter(|line| *line == "429").count();
    }
    // From the first call to the last: languages begin in their own time.
    let seconds = api.busy().unwrap_or_else(|| begun.elapsed()).as_secs_f64();
    Ok(Tally { answered, refused, seconds })
}
