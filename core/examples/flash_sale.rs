//! A flash sale: 10 items, 2,000 buyers, 8 processes, and a ledger that nothing protects but a lock.
//!
//! `make demo` runs it on a fresh embedded store. With `STANCHION_URL=redis://... make demo` the lock lives
//! on that server instead. Afterwards the same sale runs without the lock, to show what the lock was for. Some of
//! the buyers are programs in other languages, if the arguments name any.

mod flash_sale {
    pub mod buyers;
    pub mod ledger;
    pub mod process;
    pub mod report;
    pub mod sale;
    pub mod store;
}

use std::env;
use std::error::Error;
use std::process::ExitCode;

use flash_sale::buyers::Buyers;
use flash_sale::sale::Sale;
use flash_sale::store::DemoStore;
use flash_sale::{process, report};

/// What is on sale.
const ITEMS: usize = 10;
/// Who wants it.
const BUYERS: usize = 2_000;
/// How many processes serve them.
const PROCESSES: usize = 8;
/// How many buyers each process serves at a time.
const AT_A_TIME: usize = 4;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(process::COMMAND) => process::run(&arguments[1..]).map(|()| true),
        _ => Buyers::find(&arguments).and_then(|buyers| demo(&buyers)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("flash_sale: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs both sales; whether the one with the lock was right.
fn demo(buyers: &Buyers) -> Outcome<bool> {
    let store = DemoStore::choose()?;
    report::opening(&store, buyers);

    println!("\n1. With the lock\n");
    let locked = Sale::hold(&store, buyers, true)?;
    let right = report::locked_sale(&locked, buyers)?;

    println!("\n2. The same without the lock\n");
    let unlocked = Sale::hold(&store, buyers, false)?;
    report::unlocked_sale(&unlocked);

    println!("\n3. Side by side\n");
    report::side_by_side(&locked, &unlocked);
    store.tidy();
    report::verdict(right);
    Ok(right)
}
