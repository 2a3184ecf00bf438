//! A read-write lock and a semaphore at work, on the embedded store or on that of `STANCHION_URL`: readers together, writers alone; fifty workers
//! and ten permits.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use stanchion::blocking::Client;
use stanchion::{Error, LockOptions};

const READERS: usize = 12;
const WRITERS: usize = 3;
const ROUNDS: usize = 5;
const WORKERS: usize = 50;
const PERMITS: u32 = 10;
/// How long each is inside.
const INSIDE: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("stanchion-kinds-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let embedded = format!("sqlite:{}", directory.join("locks.db").display());
    let url = std::env::var(stanchion::URL_VARIABLE).ok().filter(|url| !url.is_empty()).unwrap_or(embedded);
    let kept =
        read_write(&Client::open(&url)?).and_then(|first| Ok(first & semaphore(&Client::open(&url)?)?));
    std::fs::remove_dir_all(&directory)?;
    match kept? {
        true => Ok(()),
        false => Err("a promise was not kept".into()),
    }
}

/// Whoever is inside counts itself: readers up, a writer down.
fn read_write(client: &Client) -> Result<bool, Error> {
    println!(
        "\nA read-write lock (readers together, a writer alone): {READERS} readers and {WRITERS} writers, {ROUNDS} times each"
    );
    let lock = client.rw_lock("index");
    let (inside, together, broken) = (AtomicI32::new(0), AtomicI32::new(0), AtomicU32::new(0));
    let visit = |side: &stanchion::blocking::Lock, step: i32| -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let lease = side.acquire(LockOptions::new().wait(Duration::from_secs(60)))?;
            let others = inside.fetch_add(step, Ordering::SeqCst);
            // A reader may find readers; a writer nobody.
            let allowed = if step > 0 { others >= 0 } else { others == 0 };
            broken.fetch_add(u32::from(!allowed), Ordering::SeqCst);
            together.fetch_max(others + step, Ordering::SeqCst);
            thread::sleep(INSIDE);
            inside.fetch_sub(step, Ordering::SeqCst);
            lease.release()?;
        }
        Ok(())
    };
    together_on_threads(READERS + WRITERS, |number| match number < READERS {
        true => visit(lock.read(), 1),
        false => visit(lock.write(), -1),
    })?;
    let (together, broken) = (together.into_inner(), broken.into_inner());
    println!("  readers inside at the same time    {together} at most");
    println!("  somebody inside beside a writer    {broken} times");
    Ok(together > 1 && broken == 0)
}

fn semaphore(client: &Client) -> Result<bool, Error> {
    println!("\nA semaphore (so many at a time as it has permits): {WORKERS} workers, {PERMITS} permits");
    let semaphore = client.semaphore("jobs", PERMITS);
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    together_on_threads(WORKERS, |_| {
        let lease = semaphore.acquire(LockOptions::new().wait(Duration::from_secs(60)))?;
        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(INSIDE);
        inside.fetch_sub(1, Ordering::SeqCst);
        lease.release()
    })?;
    let most = most.into_inner();
    println!("  workers served                     {WORKERS}");
    println!("  workers inside at the same time    {most} at most");
    Ok((2..=PERMITS).contains(&most))
}

/// Runs it on so many threads; the first error, if there was one.
fn together_on_threads(count: usize, work: impl Fn(usize) -> Result<(), Error> + Sync) -> Result<(), Error> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
