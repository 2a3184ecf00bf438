//! A small flow, on the embedded store or on that of `STANCHION_URL`: pages to fetch, one of which fails twice, and a join that
//! comes when all are there.

use std::error::Error;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use stanchion::blocking::{Claim, Client, Queue, Worker};
use stanchion::{Backoff, Flow, FlowState, Node, NodeState, Task};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PAGES: usize = 20;
/// The page that cannot be fetched at first, and how often.
const BROKEN: &str = "page-7";
const FAILURES: u32 = 2;
/// How many tasks the worker has at a time, and what fetching takes.
const HANDS: usize = 4;
const FETCH: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(100);
const FLOW: &str = "pages";
const JOIN: &str = "join";

/// What has happened.
#[derive(Default)]
struct Log {
    runs: AtomicUsize,
    failures: AtomicUsize,
    /// What the join was given: nodes that succeeded, and the sum of their results.
    joins: Mutex<Vec<(usize, usize)>>,
}

fn main() -> ExitCode {
    match demo() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pages: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether each page was fetched, and joined once.
fn demo() -> Result<bool> {
    let folder = tempfile::Builder::new().prefix("pages-").tempdir()?;
    let embedded = format!("sqlite:{}", folder.path().join("queue.db").display());
    let given = env::var(stanchion::URL_VARIABLE).ok().filter(|url| !url.is_empty());
    // A name of its own: the store may be somebody's.
    let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let queue = Client::open(&given.unwrap_or(embedded))?.queue(&name);
    println!(
        "\nA flow: {PAGES} pages to fetch, and a join when all are there. {BROKEN} cannot be fetched {FAILURES} times."
    );

    queue.enqueue_flow(pages())?;
    let log = work(&queue)?;
    let state = queue.get_flow(FLOW)?.map(|flow| (flow.state, flow.count(NodeState::Done)));

    let (runs, failures) = (log.runs.into_inner(), log.failures.into_inner());
    let joins = log.joins.into_inner().unwrap_or_default();
    let (given, words) = joins.first().copied().unwrap_or_default();
    println!(
        "  pages fetched                      {} in {runs} runs, of which {failures} failed",
        runs - failures
    );
    println!(
        "  the join ran                       {} time, with the results of {given} pages: {words} words",
        joins.len()
    );
    println!("  the flow is                        {}", state.map_or("gone", |(state, _)| state.name()));
    let is_right = state == Some((FlowState::Done, PAGES as u32 + 1))
        && (runs - failures, failures) == (PAGES, FAILURES as usize)
        && joins == [(PAGES, (1..=PAGES).sum())];
    match is_right {
        true => println!("\nEach page was fetched, and the join came once, after the last one."),
        false => println!("\nThis was WRONG. Please report it, with what is printed above."),
    }
    Ok(is_right)
}

fn pages() -> Flow {
    let page = |number| Task::new(format!("page-{number}")).kind("fetch").backoff(Backoff::list([PAUSE]));
    let join = Node::new(Task::new(JOIN).kind(JOIN));
    Flow::batch(FLOW, (1..=PAGES).map(page)).then(join)
}

/// Works until the flow has ended.
fn work(queue: &Queue) -> Result<Log> {
    let (log, begun) = (Log::default(), Instant::now());
    let log = std::sync::Arc::new(log);
    let of_worker = std::sync::Arc::clone(&log);
    let handler = move |claim: &Claim| handle(claim, &of_worker, begun);
    let worker = Worker::new(queue.clone(), handler).concurrency(HANDS);
    // Not until the queue is empty, which it is while a page that failed waits.
    worker.run_while(&mut || match queue.get_flow(FLOW) {
        Ok(Some(flow)) if flow.state == FlowState::Running => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })?;
    std::sync::Arc::into_inner(log).ok_or_else(|| "the worker has ended".into())
}

fn handle(claim: &Claim, log: &Log, begun: Instant) -> Result<()> {
    let name = claim.id().rsplit('/').next().unwrap_or_default();
    if name == JOIN {
        let inputs = claim.inputs()?;
        let words = inputs
            .iter()
            .filter_map(|input| std::str::from_utf8(input.result.as_deref()?).ok()?.parse::<usize>().ok());
        let fetched = inputs.iter().filter(|input| input.state == NodeState::Done).count();
        log.joins.lock().map_err(|_| "a thread panicked")?.push((fetched, words.sum()));
        return Ok(());
    }
    log.runs.fetch_add(1, Ordering::SeqCst);
    thread::sleep(FETCH);
    if name == BROKEN && claim.attempt() <= FAILURES {
        log.failures.fetch_add(1, Ordering::SeqCst);
        println!("  {:5} ms  {name}, attempt {}: no answer", begun.elapsed().as_millis(), claim.attempt());
        return Err("no answer".into());
    }
    let words = name.rsplit('-').next().unwrap_or_default();
    claim.ack_with(words.as_bytes())?;
    Ok(())
}
