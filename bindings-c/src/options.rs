//! Options of locks and claims.

use std::mem::{offset_of, size_of};
use std::ops::ControlFlow;
use std::ptr;
use std::time::Duration;

use stanchion::blocking;

use crate::arguments::{NONE, option, optional_count, optional_flag, optional_span, stanchion_text, text};
use crate::boundary;
use crate::error::Failure;
use crate::records::{self, Record};
use crate::tasks::state;

/// How to acquire a lock. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_lock_options {
    /// sizeof, set by stanchion_lock_options_init.
    pub struct_size: usize,
    /// How long the store keeps the lease without renewal (50 ms to 365 days). A lease with a ttl given is not renewed,
    /// unless `renew` is 1. -1: 30000, renewed.
    pub ttl_ms: i64,
    /// For how long a lease is renewed at most; then it is lost. -1: 3600000.
    pub max_hold_ms: i64,
    /// How long to wait for the lock at most. 0: only try; STANCHION_BUSY is the answer if somebody else has it.
    /// -1: 10000.
    pub wait_ms: i64,
    /// Take over the value of another program that never expires, when it was seen unchanged for this long. Unsound if
    /// that program still runs. -1: never.
    pub adopt_unexpiring_ms: i64,
    /// Shown by stanchion_lock_holder (at most 256 bytes). NULL: the client's label.
    pub label: stanchion_text,
    /// Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It may be set by another thread
    /// or a signal handler, and must live until the call returns. NULL: nothing does.
    pub cancel: *const i32,
    /// Whether the lease is renewed until it is released. -1: 1 if no ttl is given, otherwise 0.
    pub renew: i32,
    /// 1: give up at once when the holder's remaining time is longer than the wait. -1: 0.
    pub fail_fast: i32,
    /// How many permits of a semaphore to acquire, at most as many as it has; invalid for other locks. -1: 1.
    pub weight: i64,
    /// An owner that may come in again (text as a name is): while it has the lock, acquires with the same owner and client
    /// succeed at once, with the same fence, and the lock is given back when it was released as often. What the first one
    /// asked for stays. An owner that wants more than it has gets INVALID_ARGUMENT: a reader does not become a writer. Not
    /// for several locks at once. NULL: nobody comes in again.
    pub owner: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_lock_options {
    const NAME: &'static str = "stanchion_lock_options";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        ttl_ms: NONE,
        max_hold_ms: NONE,
        wait_ms: NONE,
        adopt_unexpiring_ms: NONE,
        label: stanchion_text::NONE,
        cancel: ptr::null(),
        renew: -1,
        fail_fast: -1,
        weight: NONE,
        owner: stanchion_text::NONE,
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_options_init(
    options: *mut stanchion_lock_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

impl stanchion_lock_options {
    /// # Safety
    /// The label is as its length says.
    pub(crate) unsafe fn core(&self) -> Result<stanchion::LockOptions, Failure> {
        let mut options = stanchion::LockOptions::new();
        if let Some(ttl) = optional_span("ttl_ms", self.ttl_ms)? {
            options = options.ttl(ttl);
        }
        if let Some(max_hold) = optional_span("max_hold_ms", self.max_hold_ms)? {
            options = options.max_hold(max_hold);
        }
        if let Some(wait) = optional_span("wait_ms", self.wait_ms)? {
            options = options.wait(wait);
        }
        if let Some(grace) = optional_span("adopt_unexpiring_ms", self.adopt_unexpiring_ms)? {
            options = options.adopt_unexpiring(grace);
        }
        // SAFETY: as the caller promises.
        if let Some(label) = unsafe { option("label", self.label.data, self.label.len) }? {
            options = options.label(label);
        }
        if let Some(renew) = optional_flag("renew", self.renew)? {
            options = options.renew(renew);
        }
        if let Some(weight) = optional_count("weight", self.weight, u32::MAX)? {
            options = options.weight(weight);
        }
        Ok(options.fail_fast(optional_flag("fail_fast", self.fail_fast)?.unwrap_or(false)))
    }

    /// The lock as these options want it.
    ///
    /// # Safety
    /// The owner is as its length says.
    pub(crate) unsafe fn owned(&self, lock: blocking::Lock) -> Result<blocking::Lock, Failure> {
        // SAFETY: as the caller promises.
        let owner = unsafe { option("owner", self.owner.data, self.owner.len) }?;
        Ok(owner.map(|owner| lock.reentrant(owner)).unwrap_or(lock))
    }

    pub(crate) fn only_tries(&self) -> bool {
        self.wait_ms == 0
    }
}

/// How to claim tasks. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_claim_options {
    /// sizeof, set by stanchion_claim_options_init.
    pub struct_size: usize,
    /// How long the store keeps a claim without renewal (50 ms to 365 days). A claim with a lease given is not renewed, unless
    /// `renew` is 1. -1: 30000, renewed.
    pub lease_ms: i64,
    /// For how long a claim is renewed at most; then it is lost. -1: 3600000.
    pub max_run_ms: i64,
    /// How long to wait for a task. -1: 0.
    pub wait_ms: i64,
    /// Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED, and no task is lost. It must live
    /// until the call returns. NULL: nothing does.
    pub cancel: *const i32,
    /// Whether claims are renewed until they are settled. -1: 1 if no lease is given, otherwise 0.
    pub renew: i32,
    /// How long a run may take of a task that does not say so itself (1 ms to 365 days); then its claim is lost, and the attempt
    /// has failed. -1: as long as its claim is renewed.
    pub timeout_ms: i64,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_claim_options {
    const NAME: &'static str = "stanchion_claim_options";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, timeout_ms);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        lease_ms: NONE,
        max_run_ms: NONE,
        wait_ms: NONE,
        cancel: ptr::null(),
        renew: -1,
        timeout_ms: NONE,
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_options_init(
    options: *mut stanchion_claim_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

impl stanchion_claim_options {
    pub(crate) fn core(&self, max: usize) -> Result<stanchion::ClaimOptions, Failure> {
        let wait = optional_span("wait_ms", self.wait_ms)?.unwrap_or(Duration::ZERO);
        let mut options = stanchion::ClaimOptions::new().max(max).wait(wait);
        if let Some(lease) = optional_span("lease_ms", self.lease_ms)? {
            options = options.lease(lease);
        }
        if let Some(max_run) = optional_span("max_run_ms", self.max_run_ms)? {
            options = options.max_run(max_run);
        }
        if let Some(renew) = optional_flag("renew", self.renew)? {
            options = options.renew(renew);
        }
        if let Some(timeout) = optional_span("timeout_ms", self.timeout_ms)? {
            options = options.timeout(timeout);
        }
        Ok(options)
    }
}

/// Options of a worker. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_worker_options {
    /// sizeof, set by stanchion_worker_options_init.
    pub struct_size: usize,
    /// How many tasks are worked on at once: 1 to 1000. -1: 1.
    pub concurrency: i64,
    /// How long the store keeps a claim without renewal: so long after the worker died its tasks are given to another.
    /// -1: 30000.
    pub lease_ms: i64,
    /// How long a task may be worked on at most; then its claim is lost, and the attempt has failed. -1: 3600000.
    pub max_run_ms: i64,
    /// 1: end when no task is ready or claimed any more, by this worker or another; tasks due later stay. -1: 0.
    pub until_empty: i32,
    /// How long tasks that are out go on after stanchion_worker_stop. -1: 25000.
    pub grace_ms: i64,
    /// How long a task may be worked on that does not say so itself: as in stanchion_claim_options. -1: max_run_ms.
    pub timeout_ms: i64,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_worker_options {
    const NAME: &'static str = "stanchion_worker_options";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, timeout_ms);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        concurrency: NONE,
        lease_ms: NONE,
        max_run_ms: NONE,
        until_empty: -1,
        grace_ms: NONE,
        timeout_ms: NONE,
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_options_init(
    options: *mut stanchion_worker_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

/// What to list, and how much of it. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_list_options {
    /// sizeof, set by stanchion_list_options_init.
    pub struct_size: usize,
    /// Only tasks whose id begins so. A page looks at 1000 tasks at most: it may have few or none, and a next page all the
    /// same.
    pub prefix: stanchion_text,
    /// Which page: what stanchion_tasks_next gave for the last one. NULL: the first.
    pub page: stanchion_text,
    /// At most so many tasks: 1 to 1000. -1: 100.
    pub max: i64,
    /// Of which state: a stanchion_task_state. It must be given.
    pub state: i32,
    /// 1: leave payloads and headers out; the size is set all the same. -1: 0.
    pub without_payloads: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_list_options {
    const NAME: &'static str = "stanchion_list_options";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        prefix: stanchion_text::NONE,
        page: stanchion_text::NONE,
        max: NONE,
        state: 0,
        without_payloads: -1,
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_list_options_init(
    options: *mut stanchion_list_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

impl stanchion_list_options {
    /// # Safety
    /// The texts are as their lengths say.
    pub(crate) unsafe fn core(&self) -> Result<stanchion::ListOptions, Failure> {
        let without = optional_flag("without_payloads", self.without_payloads)?.unwrap_or(false);
        let mut options = stanchion::ListOptions::new(state(self.state)?).payloads(!without);
        // SAFETY: as the caller promises.
        let (prefix, page) = unsafe {
            let prefix = text("prefix", self.prefix.data, self.prefix.len)?;
            (prefix, option("page", self.page.data, self.page.len)?)
        };
        if let Some(page) = page {
            options = options.page(page);
        }
        if let Some(max) = optional_count("max", self.max, usize::MAX)? {
            options = options.max(max);
        }
        Ok(options.prefix(prefix))
    }
}

/// What looks at a program's number while a call waits; `None` if there is none.
///
/// # Safety
/// `cancel` is NULL or points to a number that lives as long as what is returned.
pub(crate) unsafe fn canceller(cancel: *const i32) -> Option<impl FnMut() -> ControlFlow<()>> {
    (!cancel.is_null()).then_some(move || {
        // SAFETY: as the caller promises. Volatile: a signal handler or another thread writes it.
        if unsafe { cancel.read_volatile() } == 0 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })
}
