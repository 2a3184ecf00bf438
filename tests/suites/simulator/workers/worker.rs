//! A simulated worker: the machine, and what a driver does for it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use stanchion::LossReason;
use stanchion::engine::lease::{LeaseState, Status};
use stanchion::engine::settle::Settling;
use stanchion::engine::worker::{
    Event as News, Finished, HandlerEnd, Job, Order, WorkerMachine, WorkerTerms,
};
use stanchion::name::TaskId;
use stanchion::protocol::{ClaimedTask, Receipt, Verdict};

use super::calls::Op;
use super::*;

/// How long a failed task rests.
pub const RETRY: Duration = Duration::from_millis(200);

/// A delivery. Clones are the same one.
#[derive(Clone)]
pub struct SimJob(pub Rc<Delivered>);

pub struct Delivered {
    /// Another than the task's, for a mutant.
    id: TaskId,
    pub task: ClaimedTask,
    pub state: RefCell<LeaseState>,
    pub settling: RefCell<Settling>,
    /// When it was concluded, its timeout was not over.
    pub in_time: Cell<bool>,
    /// Its keeper has told that it took longer than its timeout.
    pub timed_out: Cell<bool>,
    now: Rc<Cell<Moment>>,
    /// The worker's stop has told its handler to end.
    pub signalled: Cell<bool>,
    /// The worker has left its handler behind, and promised it to nobody before this.
    pub left_until: Cell<Moment>,
    mutant: Option<Mutant>,
}

impl SimJob {
    pub fn new(task: ClaimedTask, state: LeaseState, world: &World<'_>) -> Self {
        let id = match world.mutant {
            Some(Mutant::RunsAnIdTwice) => task_id(&task.receipt.to_string()).unwrap(),
            _ => task.id.clone(),
        };
        let (now, mutant) = (Rc::clone(&world.now), world.mutant);
        Self(Rc::new(Delivered {
            id,
            task,
            state: RefCell::new(state),
            settling: RefCell::default(),
            in_time: Cell::new(false),
            timed_out: Cell::new(false),
            now,
            signalled: Cell::new(false),
            left_until: Cell::new(Moment::from_nanos(0)),
            mutant,
        }))
    }

    pub fn status(&self) -> Status {
        self.0.state.borrow().status(self.0.now.get())
    }

    /// What becomes of a task whose handler does not end.
    fn leave(&self) -> Verdict {
        let mut state = self.0.state.borrow_mut();
        state.end();
        self.0.left_until.set(state.deadline());
        match self.0.mutant {
            Some(Mutant::LeftBehindAtOnce) => Verdict::PUT_BACK,
            _ => Verdict::PutBack { delay: state.deadline().since(self.0.now.get()) },
        }
    }
}

impl std::fmt::Debug for SimJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} under {}", self.0.task.id, self.0.task.receipt)
    }
}

impl Job for SimJob {
    type Verdict = (Self, Verdict);

    fn id(&self) -> &TaskId {
        &self.0.id
    }

    fn receipt(&self) -> Receipt {
        self.0.task.receipt
    }

    fn size((_, verdict): &(Self, Verdict)) -> usize {
        verdict.size()
    }

    fn is_lost(&self) -> bool {
        self.0.mutant != Some(Mutant::LossUnseen) && matches!(self.status(), Status::Lost(_))
    }

    fn conclude(&self, ending: &HandlerEnd) -> Finished<Self::Verdict> {
        let now = self.0.now.get();
        self.0.in_time.set(self.status() != Status::Lost(LossReason::TimedOut));
        if self.0.mutant != Some(Mutant::TimesOutAfterItsEnd) {
            self.0.state.borrow_mut().owner_ended(now);
        }
        let failed = Verdict::Nack { delay: RETRY, reason: "failed".into() };
        let verdict = match ending {
            HandlerEnd::Returned => Verdict::Ack,
            HandlerEnd::Failed(_) => failed,
            HandlerEnd::Interrupted if self.0.mutant == Some(Mutant::StopCounts) => failed,
            HandlerEnd::Interrupted => Verdict::PUT_BACK,
            HandlerEnd::LeftBehind => self.leave(),
            HandlerEnd::Lost => {
                self.0.state.borrow_mut().end();
                return Finished::Lost;
            }
        };
        Finished::Verdict((self.clone(), verdict))
    }
}

/// A handler at work.
pub struct Handler {
    pub job: SimJob,
    pub ends: Moment,
    fails: bool,
    /// Ends when it is told to.
    pub obeys: bool,
    /// Since when its claim is lost.
    pub lost_since: Option<Moment>,
}

pub struct SimWorker {
    pub machine: WorkerMachine<SimJob>,
    pub terms: WorkerTerms,
    pub lease: Duration,
    pub slots: CallSlots,
    pub ops: Vec<Op>,
    pub leases: Vec<leases::Held>,
    pub handlers: Vec<Handler>,
    /// Deliveries whose loss was told.
    pub told_lost: HashSet<Receipt>,
    pub stopped: Option<Moment>,
    pub is_out: bool,
}

impl SimWorker {
    pub fn new(scene: &mut Scene, slots: CallSlots) -> Self {
        let lease = scene.between(1_000, 3_000);
        let terms = WorkerTerms {
            concurrency: scene.rng.usize(2..=3),
            claims: scene.rng.usize(1..=2),
            parked: lease / 4,
            until_empty: false,
            grace: scene.between(0, 3_000),
            patience: scene.between(300, 2_000),
        };
        Self {
            machine: WorkerMachine::new(terms, scene.jitter()),
            terms,
            lease,
            slots,
            ops: Vec::new(),
            leases: Vec::new(),
            handlers: Vec::new(),
            told_lost: HashSet::new(),
            stopped: None,
            is_out: false,
        }
    }
}

impl World<'_> {
    /// Everything that a worker does when something has happened.
    pub(super) fn work(&mut self, client: usize) -> Played {
        loop {
            self.end_handlers(client);
            self.begin_handlers(client)?;
            let now = self.scene.now;
            let order = self.workers[client].machine.order(now);
            self.hear(client);
            match order {
                Order::Claim { max, wait, settle } => self.claim(client, max, wait, settle)?,
                Order::Settle(verdicts) => self.settle(client, verdicts)?,
                Order::Look => self.workers[client].machine.looked(now, false),
                Order::Abandon => self.abandon_claim(client),
                Order::Signal(job) => self.signal(client, &job),
                Order::Wait(until) => {
                    self.scene.wake_at(client, until);
                    return Ok(());
                }
                Order::Done => return self.done(client),
            }
        }
    }

    fn end_handlers(&mut self, client: usize) {
        let now = self.scene.now;
        let worker = &mut self.workers[client];
        for handler in worker.handlers.extract_if(.., |handler| handler.ends <= now).collect::<Vec<_>>() {
            let ending =
                if handler.fails { HandlerEnd::Failed("failed".into()) } else { HandlerEnd::Returned };
            worker.machine.ended(handler.job.receipt(), ending);
        }
    }

    fn begin_handlers(&mut self, client: usize) -> Played {
        while let Some(job) = self.workers[client].machine.begin(self.scene.now) {
            self.check_begin(client, &job)?;
            self.tally.begun += 1;
            let handler = self.new_handler(job);
            self.scene.wake_at(client, handler.ends);
            self.workers[client].handlers.push(handler);
        }
        Ok(())
    }

    fn new_handler(&mut self, job: SimJob) -> Handler {
        let (id, attempt) = (job.0.task.id.as_str().to_owned(), job.0.task.attempt);
        self.waiting.remove(&id);
        // Those that hang end before the calm's tasks come, but for one of them.
        let (work, fails, obeys) = match self.scene.rng.u32(0..20) {
            _ if id == "poison" && attempt == 1 => (Duration::from_secs(25), false, false),
            _ if self.part != Part::Storm => (self.scene.between(1, 20), false, true),
            0..9 => (self.scene.between(0, 50), false, true),
            9..13 => (self.scene.between(100, 8_000), self.scene.rng.bool(), true),
            13..16 => (self.scene.between(0, 500), true, true),
            16 => (self.scene.between(1_000, 6_000), false, false),
            _ => (self.scene.between(5_000, 20_000), false, false),
        };
        let ends = self.scene.now + work;
        Handler { job, ends, fails, obeys, lost_since: None }
    }

    /// What the worker tells.
    fn hear(&mut self, client: usize) {
        for news in self.workers[client].machine.events() {
            match news {
                News::Lost(job) => {
                    self.tally.lost += 1;
                    self.workers[client].told_lost.insert(job.receipt());
                    self.tell(client, &job);
                }
                News::Stuck(..) => self.tally.stuck += 1,
                News::Started(_) | News::Settled(_) | News::Empty | News::StoreBack(_) => {}
            }
        }
    }

    fn signal(&mut self, client: usize, job: &SimJob) {
        self.tally.signalled += 1;
        job.0.signalled.set(true);
        if self.mutant != Some(Mutant::StopUntold) {
            self.tell(client, job);
        }
    }

    /// A handler that obeys ends soon, and says that it has failed.
    fn tell(&mut self, client: usize, job: &SimJob) {
        let soon = self.scene.now + self.scene.between(0, 100);
        let handlers = &mut self.workers[client].handlers;
        let Some(handler) = handlers.iter_mut().find(|handler| handler.job.receipt() == job.receipt()) else {
            return;
        };
        if handler.obeys && soon < handler.ends {
            (handler.ends, handler.fails) = (soon, true);
            self.scene.wake_at(client, soon);
        }
    }

    /// The worker has ended. Its process may start another: a deploy.
    fn done(&mut self, client: usize) -> Played {
        let left: Vec<&Handler> = self.workers[client].handlers.iter().collect();
        if let Some(handler) = left.iter().find(|handler| handler.obeys && !self.was_frozen(client)) {
            return Err(format!("the worker ended without {:?}, whose handler obeys", handler.job));
        }
        self.tally.left_behind += left.len() as u64;
        if self.workers[client].stopped.is_none() {
            return Err("a worker ended that nobody has stopped".into());
        }
        self.workers[client].is_out = true;
        self.workers[client].leases.clear();
        if self.part != Part::Over {
            // Its process ends, and with it what was left behind.
            self.scene.processes[client].die();
            let pause = self.scene.between(10, 500);
            for after in [pause, STORM, STORM + AFTERMATH] {
                self.scene.act_after(client, after);
            }
        }
        Ok(())
    }
}
