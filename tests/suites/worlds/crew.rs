//! A worker's machine with its hands. A handler ends when a move says so; the one of the id "x" never does.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use stanchion::engine::Jitter;
use stanchion::engine::worker::{Event, Finished, HandlerEnd, Job, Order, WorkerMachine, WorkerTerms};
use stanchion::internals::{Moment, task_id};
use stanchion::name::TaskId;
use stanchion::protocol::{Receipt, Verdict};

use crate::again::{Again, Told};
use crate::mutant::Mutant;

/// Whose handler hangs.
pub const HANGS: &str = "x";
/// Hands of the worker.
pub const HANDS: usize = 2;

thread_local! {
    /// Claims that are lost, as far as their worker can see now.
    static LOST: RefCell<Rc<BTreeSet<Receipt>>> = RefCell::default();
}

/// A delivery, as the machine sees it.
#[derive(Clone, Debug)]
pub struct Work {
    pub id: TaskId,
    pub receipt: Receipt,
    /// A loss is seen only when the handler ends.
    blind: bool,
}

/// What is said of a delivery.
#[derive(Clone, Debug)]
pub struct Said {
    pub receipt: Receipt,
    pub verdict: Verdict,
}

impl Work {
    pub fn new(id: &TaskId, receipt: Receipt, mutant: Option<Mutant>) -> Self {
        let blind = mutant == Some(Mutant::HungHandlerUnseen);
        // To a machine that does not look at ids, each delivery is another task.
        let id = if blind { task_id(&format!("{}-{receipt}", id.as_str())).unwrap() } else { id.clone() };
        Self { id, receipt, blind }
    }
}

impl Job for Work {
    type Verdict = Said;

    fn id(&self) -> &TaskId {
        &self.id
    }

    fn receipt(&self) -> Receipt {
        self.receipt
    }

    fn size(said: &Said) -> usize {
        said.verdict.size()
    }

    fn is_lost(&self) -> bool {
        !self.blind && LOST.with(|lost| lost.borrow().contains(&self.receipt))
    }

    fn conclude(&self, ending: &HandlerEnd) -> Finished<Said> {
        let verdict = match ending {
            HandlerEnd::Returned => Verdict::Ack,
            HandlerEnd::Failed(reason) => {
                Verdict::Nack { delay: Duration::from_millis(100), reason: reason.as_str().into() }
            }
            HandlerEnd::Interrupted => Verdict::PUT_BACK,
            HandlerEnd::Lost | HandlerEnd::LeftBehind => return Finished::Lost,
        };
        Finished::Verdict(Said { receipt: self.receipt, verdict })
    }
}

/// The worker.
pub type Crew = Again<WorkerMachine<Work>>;

pub fn crew() -> Crew {
    Again::new(|| {
        let terms = WorkerTerms {
            concurrency: HANDS,
            claims: 2,
            parked: Duration::from_millis(100),
            until_empty: false,
            grace: Duration::from_secs(1),
            patience: Duration::from_millis(300),
        };
        WorkerMachine::new(terms, Jitter::seeded(1))
    })
}

#[derive(Clone)]
pub struct Happens {
    pub now: Moment,
    pub lost: Rc<BTreeSet<Receipt>>,
    pub what: What,
}

#[derive(Clone)]
pub enum What {
    Asked,
    /// A hand is free.
    Begin,
    Claimed(Vec<Work>),
    ClaimFailed(Vec<Said>, bool),
    Settled(Option<(Vec<Said>, bool)>),
    Looked,
    Ended(Receipt, HandlerEnd),
    Events,
}

pub enum Answer {
    Nothing,
    Order(Order<Work>),
    Begun(Option<Work>),
    Events(Vec<Event<Work>>),
}

impl Told for WorkerMachine<Work> {
    type Input = Happens;
    type Answer = Answer;

    fn tell(&mut self, happens: &Happens) -> Answer {
        LOST.with(|lost| lost.replace(Rc::clone(&happens.lost)));
        let now = happens.now;
        match happens.what.clone() {
            What::Asked => return Answer::Order(self.order(now)),
            What::Begin => return Answer::Begun(self.begin(now)),
            What::Events => return Answer::Events(self.events()),
            What::Claimed(works) => self.claimed(now, works),
            What::ClaimFailed(again, may_pass) => drop(self.claim_failed(now, again, may_pass)),
            What::Settled(failure) => drop(self.settled(now, failure)),
            What::Looked => self.looked(now, false),
            What::Ended(receipt, ending) => drop(self.ended(receipt, ending)),
        }
        Answer::Nothing
    }
}
