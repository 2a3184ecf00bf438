//! The two drivers, for tokio and for threads: they carry out the steps that a machine returns, and nothing else.

pub(crate) mod interrupt;

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::Instrument;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::sigmask::undisturbed;
use crate::base::wake::Place;
use crate::driver::interrupt::{Unattended, around, attend};
use crate::engine::call::{Answer, CallMachine};
use crate::engine::{Call, Machine, Step};
use crate::protocol::{Failure, FailureKind, Reply};
use crate::session::Live;
use crate::session::channel::{INTERRUPT_CHECK, Waited};
use crate::session::closing::{OnItsWay, closed};
use crate::session::trace;

/// How long an interrupted wait may take to leave the line: a person does not notice it.
const GOODBYE_WITHIN: Duration = Duration::from_millis(100);

/// Runs a machine on the running tokio runtime. Dropping the future abandons the call cleanly.
pub(crate) async fn drive<M: Machine>(
    live: &Live,
    machine: &mut M,
    place: Option<&Place>,
) -> Result<M::Output, Error> {
    let span = trace::operation(&machine.subject());
    // Pinned first: it is large, and would be copied.
    let running = pin!(run(live, machine, place));
    let outcome = running.instrument(span.clone()).await;
    trace::ended(&span, outcome.as_ref().map(M::told));
    outcome
}

async fn run<M: Machine>(live: &Live, machine: &mut M, place: Option<&Place>) -> Result<M::Output, Error> {
    let guard = Abandon::new(live, machine);
    let machine = &mut *guard.machine;
    let mut traffic = RequestTiming::new(live);
    let mut now = live.clock.now();
    loop {
        if live.closing.is_over() && !machine.gives_back() {
            return cut_off_async(live, machine).await;
        }
        match machine.step(now) {
            Step::Done(outcome) => return outcome,
            _ if live.closing.has_begun() && !machine.gives_back() => {
                return cut_off_async(live, machine).await;
            }
            Step::Send(call) => {
                traffic.sends(now);
                let result = live.store.perform_async(&call.request, call.until).await;
                now = traffic.heard(&result);
                machine.reply(now, call.number, result);
                continue;
            }
            Step::Listen => {
                live.channel.open_async().await;
                machine.listening();
            }
            Step::Wait { until, hints } => match place.filter(|_| hints) {
                Some(place) => {
                    if live.channel.wait_async(place, until).await {
                        machine.hint();
                    }
                }
                None => live.closing.nap(live.clock.nap(until)).await,
            },
        }
        now = live.clock.now();
    }
}

/// Drives several calls at the same time; the results in their order. Dropping the future abandons all cleanly.
pub(crate) async fn drive_all<'a, M: Machine + 'a>(
    live: &Live,
    machines: impl Iterator<Item = &'a mut M>,
) -> Vec<Result<M::Output, Error>> {
    let mut calls: Vec<_> = machines.map(|machine| Box::pin(drive(live, machine, None))).collect();
    let mut results: Vec<_> = calls.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (call, result) in calls.iter_mut().zip(&mut results) {
            if result.is_none() {
                match call.as_mut().poll(context) {
                    Poll::Ready(outcome) => *result = Some(outcome),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Counts and times the requests of a call.
struct RequestTiming<'a> {
    live: &'a Live,
    sent: Moment,
    failed: bool,
}

impl<'a> RequestTiming<'a> {
    fn new(live: &'a Live) -> Self {
        Self { live, sent: Moment::FAR, failed: false }
    }

    fn sends(&mut self, now: Moment) {
        self.sent = now;
        if self.failed {
            self.live.meters.retried();
            trace::sent_again();
        }
    }

    /// Says when it was.
    fn heard(&mut self, result: &Result<Reply, Failure>) -> Moment {
        let now = self.live.clock.now();
        self.failed = result.is_err();
        self.live.meters.asked(result.as_ref().err(), now.since(self.sent));
        now
    }
}

/// A callback of the host that runs while one of its threads waits, and may end the wait; `None` if it has none.
pub(crate) type Interrupt<'a> = Option<&'a mut dyn FnMut() -> ControlFlow<()>>;

/// The same callback, for one of several calls.
pub(crate) fn again<'a>(interrupt: &'a mut Interrupt<'_>) -> Interrupt<'a> {
    match interrupt {
        Some(turn) => Some(&mut **turn),
        None => None,
    }
}

/// The caller's interrupt check, else the thread's ([`with_interrupt_check`](crate::api::blocking::with_interrupt_check)). It also
/// ends the wait if the callback has forked this process: the child's copy of the wait would use the parent's token, and
/// read replies that are the parent's.
fn its_turn<'a>(
    live: &'a Live,
    interrupt: Interrupt<'a>,
    around: &'a mut Option<fn() -> ControlFlow<()>>,
) -> Option<impl FnMut() -> ControlFlow<()> + use<'a>> {
    let turn: &'a mut dyn FnMut() -> ControlFlow<()> = match (interrupt, around) {
        (Some(turn), _) => turn,
        (None, Some(turn)) => turn,
        (None, None) => return None,
    };
    Some(move || {
        let in_turn = live.closing.turn();
        let went_on = turn();
        drop(in_turn);
        went_on?;
        if live.is_inherited() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Fails in the child of a fork that happened in the host's callback.
fn not_forked(live: &Live) -> Result<(), Error> {
    if live.is_inherited() {
        return Err(Error::new(
            ErrorKind::Forked,
            "this process was forked during the wait, which continues in the parent process only",
        ));
    }
    Ok(())
}

/// Runs a machine on the calling thread. `interrupt`, or else the one of
/// [`with_interrupt_check`](crate::api::blocking::with_interrupt_check), runs at least every 50 ms.
pub(crate) fn drive_blocking<M: Machine>(
    live: &Live,
    machine: &mut M,
    place: Option<&Place>,
    interrupt: Interrupt<'_>,
) -> Result<M::Output, Error> {
    let span = trace::operation(&machine.subject());
    let outcome = span.in_scope(|| run_blocking(live, machine, place, interrupt));
    trace::ended(&span, outcome.as_ref().map(M::told));
    outcome
}

fn run_blocking<M: Machine>(
    live: &Live,
    machine: &mut M,
    place: Option<&Place>,
    mut interrupt: Interrupt<'_>,
) -> Result<M::Output, Error> {
    let mut around = around();
    let mut interrupt = its_turn(live, again(&mut interrupt), &mut around);
    let mut interrupt: Interrupt<'_> = interrupt.as_mut().map(|turn| turn as _);
    let guard = Abandon::new(live, machine);
    let machine = &mut *guard.machine;
    let mut traffic = RequestTiming::new(live);
    loop {
        if live.closing.is_over() && !machine.gives_back() {
            return cut_off(live, machine);
        }
        let now = live.clock.now();
        let went_on = match machine.step(now) {
            Step::Done(outcome) => return outcome,
            _ if live.closing.has_begun() && !machine.gives_back() => return cut_off(live, machine),
            Step::Send(call) => {
                traffic.sends(now);
                let number = call.number;
                let result = match &mut interrupt {
                    Some(interrupt) => attended(live, call, machine.may_repeat(), *interrupt),
                    None => ControlFlow::Continue(performed(live, &call, machine.may_repeat())),
                };
                result.map_continue(|result| machine.reply(traffic.heard(&result), number, result))
            }
            Step::Listen => {
                live.channel.open();
                machine.listening();
                ControlFlow::Continue(())
            }
            Step::Wait { until, hints } => {
                let mut turn = || interrupt.as_mut().map_or(ControlFlow::Continue(()), |turn| turn());
                match place.filter(|_| hints) {
                    Some(place) => match live.channel.wait(place, until, machine.is_exact(), &mut turn) {
                        Waited::Hinted => {
                            // It has just spoken, so it will answer.
                            let now = live.clock.now();
                            live.pulse.answered(now, now);
                            machine.hint();
                            ControlFlow::Continue(())
                        }
                        Waited::TimeUp => ControlFlow::Continue(()),
                        Waited::Interrupted => ControlFlow::Break(()),
                    },
                    None => pause(live, until, &mut turn),
                }
            }
        };
        if went_on.is_break() {
            not_forked(live)?;
            say_goodbye(live, machine);
            return Err(Error::new(ErrorKind::Cancelled, "the wait was interrupted"));
        }
    }
}

/// Drives several calls on the calling thread, and sends them together; the results in their order.
pub(crate) fn drive_all_blocking<'a>(
    live: &Live,
    machines: impl Iterator<Item = &'a mut CallMachine>,
) -> Vec<Result<Answer, Error>> {
    let mut machines: Vec<_> = machines.collect();
    if machines.len() > 1 {
        send_together(live, &mut machines);
    }
    machines.into_iter().map(|machine| drive_blocking(live, machine, None, None)).collect()
}

/// The first sending of each call, in one round trip. Not with a host that wants its turns, unless the store is awake
/// and will answer at once: then each call by itself gives the host its turns.
fn send_together(live: &Live, machines: &mut [&mut CallMachine]) {
    let now = live.clock.now();
    let until = match around() {
        Some(_) => match live.pulse.awake_until(now) {
            Some(briefly) => briefly,
            None => return,
        },
        None => Moment::FAR,
    };
    let calls: Vec<_> = machines.iter_mut().filter_map(|machine| machine.first(now)).collect();
    let Some(patience) = calls.iter().map(|call| call.until).max() else { return };
    let requests: Vec<_> = calls.into_iter().map(|call| call.request).collect();
    live.store.perform_all(&requests, until.min(patience), &mut |number, result| {
        let heard = live.clock.now();
        live.meters.asked(result.as_ref().err(), heard.since(now));
        machines[number].reply(heard, 1, result);
    });
}

/// Waits on the calling thread for a hint from within this process; others read the channel. The host has its turns.
pub(crate) fn rest(
    live: &Live,
    place: &Place,
    until: Moment,
    mut interrupt: Interrupt<'_>,
) -> Result<(), Error> {
    let mut around = around();
    let mut interrupt = its_turn(live, again(&mut interrupt), &mut around);
    while !place.take_hint() && live.clock.now() < until {
        if interrupt.as_mut().is_some_and(|turn| turn().is_break()) {
            not_forked(live)?;
            return Err(Error::new(ErrorKind::Cancelled, "the wait was interrupted"));
        }
        place.sleep(live.clock.nap(until).min(INTERRUPT_CHECK));
    }
    Ok(())
}

/// The same as a task.
pub(crate) async fn rest_async(live: &Live, place: &Place, until: Moment) {
    while live.clock.now() < until {
        if tokio::time::timeout(live.clock.nap(until), place.hinted()).await.is_ok() {
            return;
        }
    }
}

/// Performs a request. What may not be sent again must not lose its answer to a signal.
fn performed(live: &Live, call: &Call, may_be_repeated: bool) -> Result<Reply, Failure> {
    let perform = || live.store.perform(&call.request, call.until);
    if may_be_repeated { perform() } else { undisturbed(perform) }
}

/// Performs a request while the host gets its turns. One that may be repeated is first sent on this thread, for
/// a moment, if the store is awake.
fn attended(
    live: &Live,
    call: Call,
    may_be_repeated: bool,
    interrupt: &mut dyn FnMut() -> ControlFlow<()>,
) -> ControlFlow<(), Result<Reply, Failure>> {
    let sent = live.clock.now();
    if let Some(briefly) = live.pulse.awake_until(sent).filter(|_| may_be_repeated) {
        let result = live.store.perform(&call.request, call.until.min(briefly));
        if result.is_ok() {
            live.pulse.answered(sent, live.clock.now());
        }
        return ControlFlow::Continue(result);
    }
    let store = Arc::clone(&live.store);
    let run = move || store.perform(&call.request, call.until);
    attend(interrupt, run).map_continue(|result| {
        if matches!(result, Ok(Ok(_))) {
            live.pulse.answered(sent, live.clock.now());
        }
        result.unwrap_or_else(|problem| {
            let kind = match problem {
                Unattended::NoThread => FailureKind::NotSent,
                Unattended::CutShort => FailureKind::Lost,
            };
            Err(Failure::new(kind, problem.message()))
        })
    })
}

/// A host that interrupts a wait may exit at once: what cleans up is sent now, if the store answers soon.
fn say_goodbye<M: Machine>(live: &Live, machine: &mut M) {
    let until = live.clock.now() + GOODBYE_WITHIN;
    while let Some(request) = machine.abandon() {
        if live.store.perform(&request, until).is_err() {
            live.keeper.clean_up(request);
        }
    }
}

/// The end of a call whose client is closed. Nobody waits for it there if it is over already.
fn cut_off<M: Machine>(live: &Live, machine: &mut M) -> Result<M::Output, Error> {
    say_goodbye(live, machine);
    if live.closing.is_over() {
        live.store.close();
    }
    Err(closed())
}

/// The same as a task.
async fn cut_off_async<M: Machine>(live: &Live, machine: &mut M) -> Result<M::Output, Error> {
    let until = live.clock.now() + GOODBYE_WITHIN;
    while let Some(request) = machine.abandon() {
        if live.store.perform_async(&request, until).await.is_err() {
            live.keeper.clean_up(request);
        }
    }
    if live.closing.is_over() {
        live.store.close();
    }
    Err(closed())
}

/// Sleeps without hints.
fn pause(live: &Live, until: Moment, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> ControlFlow<()> {
    while live.clock.now() < until && !live.closing.has_begun() {
        interrupt()?;
        std::thread::sleep(live.clock.nap(until).min(INTERRUPT_CHECK));
    }
    ControlFlow::Continue(())
}

/// However the call ends, what it left behind is cleaned up by the keeper.
struct Abandon<'a, M: Machine> {
    live: &'a Live,
    machine: &'a mut M,
    /// Dropped last: whoever closes the client sees to what is left after all calls.
    _call: OnItsWay<'a>,
}

impl<'a, M: Machine> Abandon<'a, M> {
    fn new(live: &'a Live, machine: &'a mut M) -> Self {
        Self { live, machine, _call: live.closing.call() }
    }
}

impl<M: Machine> Drop for Abandon<'_, M> {
    fn drop(&mut self) {
        while let Some(request) = self.machine.abandon() {
            if !self.live.is_inherited() {
                self.live.keeper.clean_up(request);
            }
        }
    }
}

#[cfg(test)]
mod tests;
