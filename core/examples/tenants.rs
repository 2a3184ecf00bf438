//! Two tenants of one queue, on the embedded store or on that of `STANCHION_URL`: one puts in a flood, the other a few tasks
//! after it. Who waits how long, without keys and with them.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, thread};

use stanchion::blocking::{Client, Queue};
use stanchion::{ClaimOptions, Task};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FLOOD: usize = 2_000;
const FEW: usize = 10;
/// What each task takes.
const WORK: Duration = Duration::from_millis(1);
/// How many the worker claims at a time.
const BATCH: usize = 10;

/// How long the last task of each tenant has waited, and how many of the flood were given out before the last of the few.
struct Waits {
    flood: Duration,
    few: Duration,
    before: usize,
}

fn main() -> ExitCode {
    match demo() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tenants: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the flood did not hold up the other tenant that has a key.
fn demo() -> Result<bool> {
    let folder = tempfile::Builder::new().prefix("tenants-").tempdir()?;
    let embedded = format!("sqlite:{}", folder.path().join("queue.db").display());
    let given = env::var(stanchion::URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let client = Client::open(&given.unwrap_or(embedded))?;
    // A name of its own: the store may be somebody's.
    let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!(
        "\nTwo tenants of one queue: one puts in {FLOOD} tasks, the other {FEW} after that; one worker."
    );
    println!(
        "                  the flood waited    the other one waited    tasks of the flood before its last"
    );
    let without = serve(&client.queue(&format!("{name}-plain")), false)?;
    show("without keys", &without);
    let with = serve(&client.queue(&format!("{name}-keys")), true)?;
    show("with keys", &with);
    // They take turns: one of the flood for each of the few, and what was claimed together with the last.
    let is_fair = with.before <= FEW + BATCH;
    match is_fair {
        true => println!("\nWith a key on each task, tenants take turns. Nothing had to be configured."),
        false => println!("\nThis was WRONG. Please report it, with what is printed above."),
    }
    Ok(is_fair)
}

fn show(title: &str, waits: &Waits) {
    let Waits { flood, few, before } = waits;
    println!(
        "  {title:12}    {:>12.2} s    {:>16.2} s    {before:>20}",
        flood.as_secs_f64(),
        few.as_secs_f64()
    );
}

/// Puts the tasks of both in, and works until none is left.
fn serve(queue: &Queue, with_keys: bool) -> Result<Waits> {
    for (tenant, count) in [("flood", FLOOD), ("few", FEW)] {
        let task = |number| {
            let task = Task::new(format!("{tenant}-{number}"));
            if with_keys { task.key(tenant) } else { task }
        };
        queue.enqueue_many((0..count).map(task).collect::<Vec<_>>())?;
    }
    let begun = Instant::now();
    let (mut done, mut waits) = (0, Waits { flood: Duration::ZERO, few: Duration::ZERO, before: 0 });
    let mut of_flood = 0;
    while done < FLOOD + FEW {
        for claim in queue.claim(ClaimOptions::new().max(BATCH))? {
            if claim.id().starts_with("few") {
                (waits.few, waits.before) = (begun.elapsed(), of_flood);
            } else {
                of_flood += 1;
                waits.flood = begun.elapsed();
            }
            thread::sleep(WORK);
            claim.ack()?;
            done += 1;
        }
    }
    Ok(waits)
}
