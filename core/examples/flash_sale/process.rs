//! One of the processes that serve buyers: this program, started again by the demo.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stanchion::LockOptions;
use stanchion::blocking::{Client, Lock};

use super::ledger::{Ledger, Visit};
use crate::Outcome;

/// The first argument of a process that serves.
pub const COMMAND: &str = "serve";
/// Stands for the lock's name in the sale without the lock.
pub const NO_LOCK: &str = "-";
/// What a process prints when it may be told to begin.
pub const READY: &str = "ready";

/// How long a buyer waits in line.
const PATIENCE: Duration = Duration::from_secs(60);

struct Shop {
    process: usize,
    processes: usize,
    buyers: usize,
    ledger: Ledger,
    lock: Option<Lock>,
}

/// Arguments and output are the same for the buyers' programs in all languages.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let [folder, lock, numbers @ ..] = arguments else { return Err("this is for the demo itself".into()) };
    let numbers: Result<Vec<usize>, _> = numbers.iter().map(|number| number.parse()).collect();
    let [process, processes, buyers, at_a_time] = numbers?[..] else { return Err("four numbers".into()) };
    let lock =
        (lock != NO_LOCK).then(|| Ok::<_, stanchion::Error>(Client::from_env().open_blocking()?.lock(lock)));
    let ledger = Ledger::open(Path::new(folder))?;
    let shop = Shop { process, processes, buyers, ledger, lock: lock.transpose()? };

    println!("{READY}");
    io::stdin().read_line(&mut String::new())?;

    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clerks: Vec<_> = (0..at_a_time).map(|_| scope.spawn(|| shop.serve_all(&next))).collect();
        let ends =
            clerks.into_iter().map(|clerk| clerk.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        ends.collect()
    })
}

impl Shop {
    /// Buyers are dealt to the processes like cards: the first to the first, the second to the second.
    fn serve_all(&self, next: &AtomicUsize) -> Outcome<()> {
        loop {
            let buyer = next.fetch_add(1, Ordering::Relaxed) * self.processes + self.process;
            if buyer > self.buyers {
                return Ok(());
            }
            let waited = self.serve(buyer)?;
            println!("{}", waited.as_micros());
        }
    }

    /// The same code with and without the lock.
    fn serve(&self, buyer: usize) -> Outcome<Duration> {
        let asked = Instant::now();
        let lease = match &self.lock {
            Some(lock) => Some(lock.acquire(LockOptions::new().wait(PATIENCE))?),
            None => None,
        };
        let waited = asked.elapsed();

        self.sell(buyer, lease.as_ref().map(|lease| lease.fence().get()))?;

        if let Some(lease) = lease {
            lease.release()?;
        }
        Ok(waited)
    }

    /// Read, check, pay, write: right only if nobody else does the same meanwhile.
    fn sell(&self, buyer: usize, fence: Option<u64>) -> Outcome<()> {
        let left = self.ledger.stock(fence)?;
        // Items are numbered; the last one is sold first.
        let item = (left > 0).then_some(left);
        if item.is_some() {
            self.ledger.take_payment(buyer)?;
            self.ledger.set_stock(left - 1, fence)?;
        }
        Ok(self.ledger.note(&Visit { process: self.process, buyer, fence, item })?)
    }
}
