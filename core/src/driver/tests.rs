//! A host's thread in a call, with a store that answers as the test sets, on a clock that the test moves.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use super::*;
use crate::api::blocking::with_interrupt_check;
use crate::base::clock::{Clock, ManualClock};
use crate::base::name::{LockKind, LockName, Prefixes, QueueName};
use crate::base::token::Token;
use crate::base::wake::locked;
use crate::engine::Jitter;
use crate::engine::call::{Answer, CallMachine};
use crate::protocol::{Extend, ExtendReply, Release, Request};
use crate::store::{Hints, Pending, Store};

const TTL: Duration = Duration::from_secs(9);

/// What the store does with a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    AnswerAfter(Duration),
    /// Until the caller's patience is over.
    KeepSilent,
    /// In real time, too, so that the host has its turns.
    Hang,
}

#[derive(Debug)]
struct FakeStore {
    clock: ManualClock,
    acts: Mutex<VecDeque<Act>>,
    /// Which thread asked, for what, and how long it would have waited.
    asked: Mutex<Vec<(ThreadId, &'static str, Duration)>>,
}

impl Store for FakeStore {
    fn close(&self) {}

    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure> {
        let patience = until.since(Clock::Manual(self.clock.clone()).now());
        locked(&self.asked).push((thread::current().id(), request.verb(), patience));
        let act = locked(&self.acts).pop_front().unwrap_or(Act::AnswerAfter(Duration::ZERO));
        match act {
            Act::AnswerAfter(time) => {
                self.clock.advance(time);
                Ok(Reply::Extend(ExtendReply::Extended(TTL)))
            }
            Act::KeepSilent => {
                self.clock.advance(patience);
                Err(Failure::new(FailureKind::Lost, "no answer"))
            }
            Act::Hang => {
                thread::sleep(Duration::from_secs(5));
                Err(Failure::new(FailureKind::Lost, "no answer"))
            }
        }
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        Box::pin(async move { self.perform(request, until) })
    }

    fn listen(&self, _: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        Ok(None)
    }

    fn check(&self, _: Moment) -> Result<(), Failure> {
        Ok(())
    }

    fn doctor(&self, _: Moment) -> Result<Vec<crate::Finding>, Failure> {
        Ok(Vec::new())
    }

    fn list(&self, _: LockKind, _: u64, _: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        Ok((0, Vec::new()))
    }

    fn list_queues(&self, _: u64, _: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        Ok((0, Vec::new()))
    }
}

struct Stage {
    clock: ManualClock,
    store: Arc<FakeStore>,
    live: Arc<Live>,
}

impl Stage {
    fn new(acts: &[Act]) -> Self {
        let clock = ManualClock::new();
        CLOCK.set(Some(clock.clone()));
        let acts = Mutex::new(acts.iter().copied().collect());
        let store = Arc::new(FakeStore { clock: clock.clone(), acts, asked: Mutex::default() });
        let live = Live::on(Arc::clone(&store) as Arc<dyn Store>, &Clock::Manual(clock.clone()));
        Self { clock, store, live }
    }

    fn name() -> LockName {
        Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap()
    }

    fn machine(&self) -> CallMachine {
        let extend = Extend::new(Self::name(), Token::from_bits(1), TTL);
        let now = self.live.clock.now();
        CallMachine::new(Request::Extend(extend), now, now + TTL, Jitter::seeded(1))
    }

    fn call(&self, mut machine: CallMachine, turn: fn() -> ControlFlow<()>) -> Result<Answer, Error> {
        with_interrupt_check(turn, || drive_blocking(&self.live, &mut machine, None, None))
    }

    /// Which requests were sent on the test's own thread.
    fn asked_here(&self) -> Vec<bool> {
        locked(&self.store.asked).iter().map(|(asker, _, _)| *asker == thread::current().id()).collect()
    }

    fn patiences(&self) -> Vec<Duration> {
        locked(&self.store.asked).iter().map(|(_, _, patience)| *patience).collect()
    }
}

thread_local! {
    static TURNS: Cell<u32> = const { Cell::new(0) };
    static CLOCK: RefCell<Option<ManualClock>> = const { RefCell::new(None) };
}

/// Time passes with the turns, so that pauses end.
fn count() -> ControlFlow<()> {
    TURNS.set(TURNS.get() + 1);
    CLOCK.with_borrow(|clock| clock.as_ref().unwrap().advance(millis(10)));
    ControlFlow::Continue(())
}

fn give_up() -> ControlFlow<()> {
    ControlFlow::Break(())
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn without_turns_to_give_the_store_is_asked_here() {
    let stage = Stage::new(&[]);
    drive_blocking(&stage.live, &mut stage.machine(), None, None).unwrap();
    assert_eq!(stage.asked_here(), [true]);
}

#[test]
fn a_store_that_answered_a_moment_ago_is_asked_here_but_not_for_long() {
    let stage = Stage::new(&[]);
    for _ in 0..3 {
        stage.call(stage.machine(), count).unwrap();
    }
    assert_eq!(stage.asked_here(), [false, true, true]);
    assert!(stage.patiences()[0] >= millis(500) && stage.patiences()[1] <= millis(100));
    stage.clock.advance(millis(101));
    stage.call(stage.machine(), count).unwrap();
    assert_eq!(stage.asked_here()[3..], [false]);
}

#[test]
fn a_slow_store_is_never_asked_here() {
    let slow = Act::AnswerAfter(millis(60));
    let stage = Stage::new(&[slow; 4]);
    for _ in 0..4 {
        assert_eq!(stage.call(stage.machine(), count).unwrap().copies, 1);
    }
    assert_eq!(stage.asked_here(), [false; 4]);
}

#[test]
fn a_store_that_falls_silent_is_asked_again_while_the_host_has_its_turns() {
    let stage = Stage::new(&[Act::AnswerAfter(Duration::ZERO), Act::KeepSilent]);
    stage.call(stage.machine(), count).unwrap();
    TURNS.set(0);
    let answer = stage.call(stage.machine(), count).unwrap();
    assert_eq!((answer.copies, stage.asked_here()), (2, vec![false, true, false]));
    assert!(TURNS.get() > 0, "no turn came between the two");
}

#[test]
fn a_host_may_give_up_on_a_store_that_falls_silent() {
    let stage = Stage::new(&[Act::AnswerAfter(Duration::ZERO), Act::KeepSilent]);
    stage.call(stage.machine(), count).unwrap();
    let before = stage.live.clock.now();
    let error = stage.call(stage.machine(), give_up).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(stage.live.clock.now().since(before) <= millis(100));
}

#[test]
fn a_host_may_give_up_on_a_store_that_hangs_from_the_start() {
    let stage = Stage::new(&[Act::Hang]);
    assert_eq!(stage.call(stage.machine(), give_up).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(stage.asked_here(), [false]);
}

#[test]
fn what_must_not_be_repeated_is_never_cut_short() {
    let stage = Stage::new(&[Act::AnswerAfter(Duration::ZERO), Act::AnswerAfter(millis(300))]);
    stage.call(stage.machine(), count).unwrap();
    let answer = stage.call(stage.machine().once(), count).unwrap();
    assert_eq!((answer.copies, stage.asked_here()), (1, vec![false, false]));
}

#[test]
fn an_interrupted_call_cleans_up_before_it_ends() {
    let stage = Stage::new(&[Act::AnswerAfter(Duration::ZERO), Act::KeepSilent]);
    stage.call(stage.machine(), count).unwrap();
    let release = Release {
        name: Stage::name(),
        token: Token::from_bits(1),
        cooldown: None,
        acquire_resent: true,
        own_fence: None,
        foreign_share: false,
    };
    let machine = stage.machine().or_else(Request::Release(release));
    stage.call(machine, give_up).unwrap_err();
    let verbs: Vec<_> = locked(&stage.store.asked).iter().map(|(_, verb, _)| *verb).collect();
    assert_eq!(verbs, ["extend", "extend", "release"]);
}
