//! Queues: a queue is its name, so it has no handle.

use std::ffi::c_char;

use stanchion::blocking;

use crate::answers::{Answers, stanchion_answers};
use crate::arguments::{items, stanchion_text, text};
use crate::boundary;
use crate::claim::{Claim, stanchion_claim, stanchion_verdict};
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle;
use crate::options::{canceller, stanchion_claim_options};
use crate::records::{self, needed, put};
use crate::task::{self, stanchion_enqueued, stanchion_task};

/// # Safety
/// The name is as its length says.
pub(crate) unsafe fn queue(
    client: stanchion_client,
    name: *const c_char,
    len: usize,
) -> Result<blocking::Queue, Failure> {
    let client = handle::get::<Client>(client)?;
    // SAFETY: as the caller promises.
    Ok(client.0.queue(unsafe { text("queue", name, len) }?))
}

/// Puts a task in. STANCHION_OK: it is new. STANCHION_DUPLICATE: the id was in the queue already; the outcome in `out` is
/// what was done. `out` may be NULL. Sent again if no answer comes, it is still put in once.
///
/// Errors: QUEUE_FULL; INVALID_ARGUMENT for a bad name, id or option; INDETERMINATE if no answer came in time;
/// STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_enqueue(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    task: *const stanchion_task,
    out: *mut stanchion_enqueued,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(task, "the task")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (queue, task) = unsafe {
            if !out.is_null() {
                records::check(out)?;
            }
            (queue(client, queue_name, queue_len)?, records::read(task)?.core()?)
        };
        let enqueued = queue.enqueue(task)?;
        if !out.is_null() {
            // SAFETY: as above.
            unsafe { records::write(out, &stanchion_enqueued::of(&enqueued)) }?;
        }
        Ok(task::status(&enqueued))
    })
}

/// Puts many tasks in, with as few requests as possible. `out` gets a list with an answer for each task, in order: a full
/// queue refuses some and takes others.
///
/// Errors: INVALID_ARGUMENT if a task is bad; nothing is sent then. Errors of the store are in the answers. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_enqueue_many(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    tasks: *const stanchion_task,
    task_count: usize,
    out: *mut stanchion_answers,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the answers")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (queue, tasks) = unsafe {
            let tasks = records::all("tasks", tasks, task_count)?;
            let tasks: Result<Vec<_>, Failure> = tasks.iter().map(|task| task.core()).collect();
            (queue(client, queue_name, queue_len)?, tasks?)
        };
        let answers = handle::insert(Answers::of_tasks(queue.enqueue_many(tasks)?))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, answers) };
        Ok(0)
    })
}

/// What a claim needs, checked.
struct Claiming {
    options: stanchion_claim_options,
    core: stanchion::ClaimOptions,
}

/// # Safety
/// The options are as the header says.
unsafe fn claiming(
    options: *const stanchion_claim_options,
    out: *mut stanchion_claim,
    max: usize,
    count: *mut usize,
) -> Result<Claiming, Failure> {
    needed(out, "the claims")?;
    needed(count, "the count")?;
    // SAFETY: as the caller promises.
    let options = unsafe { records::read(options) }?;
    Ok(Claiming { options, core: options.core(max)? })
}

/// Gives claims to the program.
///
/// # Safety
/// `out` has place for all, and `count` for a number.
unsafe fn give(
    claims: Vec<blocking::Claim>,
    out: *mut stanchion_claim,
    count: *mut usize,
) -> Result<i32, Failure> {
    let found = claims.len();
    for (index, claim) in claims.into_iter().enumerate() {
        let claim = handle::insert(Claim::new(claim, None))?;
        // SAFETY: as the caller promises; the core gives no more than were asked for.
        unsafe { put(out.add(index), claim) };
    }
    // SAFETY: as the caller promises.
    unsafe { put(count, found) };
    Ok(if found == 0 { stanchion_status::STANCHION_EMPTY as i32 } else { 0 })
}

/// Takes at most `max` tasks (1 to 1000) under a lease, and waits for one if `wait_ms` is set. The options may be NULL. `out`
/// has place for `max` handles; `count` gets how many there are. STANCHION_EMPTY: none.
///
/// Errors: INVALID_ARGUMENT for a bad name or option; CANCELLED; STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any
/// thread; others go on meanwhile, with the same client, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_claim(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    options: *const stanchion_claim_options,
    out: *mut stanchion_claim,
    max: usize,
    count: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let claiming = claiming(options, out, max, count)?;
            let claims = match canceller(claiming.options.cancel) {
                Some(mut turn) => queue.claim_while(claiming.core, &mut turn)?,
                None => queue.claim(claiming.core)?,
            };
            give(claims, out, count)
        }
    })
}

/// As stanchion_queue_claim, of the first of several queues that has tasks. One round trip per queue. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queues_claim(
    client: stanchion_client,
    queue_names: *const stanchion_text,
    queue_count: usize,
    options: *const stanchion_claim_options,
    out: *mut stanchion_claim,
    max: usize,
    count: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let client = handle::get::<Client>(client)?;
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let names = texts("queue_names", queue_names, queue_count)?;
            let queues = client.0.queues(&names);
            let claiming = claiming(options, out, max, count)?;
            let claims = match canceller(claiming.options.cancel) {
                Some(mut turn) => queues.claim_while(claiming.core, &mut turn)?,
                None => queues.claim(claiming.core)?,
            };
            give(claims, out, count)
        }
    })
}

/// An array of texts.
///
/// # Safety
/// All are as their lengths say.
pub(crate) unsafe fn texts<'a>(
    what: &str,
    array: *const stanchion_text,
    count: usize,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: as the caller promises.
    let all = unsafe { items(what, array, count) }?;
    // SAFETY: as the caller promises.
    all.iter().map(|one| unsafe { text(what, one.data, one.len) }).collect()
}

/// # Safety
/// Verdicts and their reasons are as the header says.
unsafe fn verdicts(
    verdicts: *const stanchion_verdict,
    count: usize,
) -> Result<Vec<stanchion::Verdict>, Failure> {
    // SAFETY: as the caller promises.
    let all = unsafe { records::all("verdicts", verdicts, count) }?;
    // SAFETY: as the caller promises.
    all.iter().map(|verdict| unsafe { verdict.core() }).collect()
}

/// Settles claims of this queue together. `out` gets a list with an answer for each verdict, in order, as from
/// stanchion_claim_ack. The handles of the claims are to be freed nevertheless.
///
/// Errors: INVALID_ARGUMENT if a verdict is bad or its claim of another queue, INVALID_HANDLE if it is on no claim; nothing
/// is sent then. Errors of the store are in the answers. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_settle(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    verdict_array: *const stanchion_verdict,
    verdict_count: usize,
    out: *mut stanchion_answers,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the answers")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (queue, verdicts) =
            unsafe { (queue(client, queue_name, queue_len)?, verdicts(verdict_array, verdict_count)?) };
        let answers = handle::insert(Answers::of_verdicts(queue.settle(verdicts)?))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, answers) };
        Ok(0)
    })
}

/// Settles claims (1000 at most) and takes new tasks, in one round trip if there are any: stanchion_queue_settle and
/// stanchion_queue_claim together. `answers` is written, too, if there are no tasks (STANCHION_EMPTY).
///
/// Errors: as both; INDETERMINATE if the settlements may or may not have been carried out. `cancel` is not looked at. Any
/// thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "two calls in one")]
pub unsafe extern "C" fn stanchion_queue_settle_and_claim(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    verdict_array: *const stanchion_verdict,
    verdict_count: usize,
    answers: *mut stanchion_answers,
    options: *const stanchion_claim_options,
    out: *mut stanchion_claim,
    max: usize,
    count: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(answers, "the answers")?;
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let claiming = claiming(options, out, max, count)?;
            let verdicts = verdicts(verdict_array, verdict_count)?;
            let (results, claims) = queue.settle_and_claim(verdicts, claiming.core)?;
            put(answers, handle::insert(Answers::of_verdicts(results))?);
            give(claims, out, count)
        }
    })
}
