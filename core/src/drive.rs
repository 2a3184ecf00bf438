//! The two drivers: they do what a machine asks, and nothing else.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::channel::{HOST_TURN, Waited};
use crate::clock::Moment;
use crate::engine::{Machine, Step};
use crate::error::{Error, ErrorKind};
use crate::session::Live;
use crate::wake::Place;

/// How long an interrupted wait may take to leave the line: a person does not notice it.
const GOODBYE_WITHIN: Duration = Duration::from_millis(100);

/// Runs a machine on the running tokio runtime. Dropping the future abandons the call cleanly.
pub(crate) async fn drive<M: Machine>(
    live: &Live,
    machine: &mut M,
    place: Option<&Place>,
) -> Result<M::Output, Error> {
    let guard = Abandon { live, machine };
    let machine = &mut *guard.machine;
    loop {
        match machine.step(live.clock.now()) {
            Step::Send(call) => {
                let result = live.store.perform_async(&call.request, call.until).await;
                machine.reply(live.clock.now(), call.number, result);
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
                None => tokio::time::sleep(live.clock.nap(until)).await,
            },
            Step::Done(outcome) => return outcome,
        }
    }
}

/// What a host does while one of its threads waits; it may end the wait.
pub(crate) type HostTurn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Runs a machine on the calling thread. `host_turn` runs at least every 50 ms of waiting.
pub(crate) fn drive_blocking<M: Machine>(
    live: &Live,
    machine: &mut M,
    place: Option<&Place>,
    host_turn: HostTurn<'_>,
) -> Result<M::Output, Error> {
    let guard = Abandon { live, machine };
    let machine = &mut *guard.machine;
    loop {
        match machine.step(live.clock.now()) {
            Step::Send(call) => {
                let result = live.store.perform(&call.request, call.until);
                machine.reply(live.clock.now(), call.number, result);
            }
            Step::Listen => {
                live.channel.open();
                machine.listening();
            }
            Step::Wait { until, hints } => {
                let waited = match place.filter(|_| hints) {
                    Some(place) => live.channel.wait(place, until, host_turn),
                    None => pause(live, until, host_turn),
                };
                match waited {
                    Waited::Hinted => machine.hint(),
                    Waited::TimeUp => {}
                    Waited::Interrupted => {
                        say_goodbye(live, machine);
                        return Err(Error::new(ErrorKind::Cancelled, "the wait was interrupted"));
                    }
                }
            }
            Step::Done(outcome) => return outcome,
        }
    }
}

/// A host that interrupts a wait may exit at once: what cleans up is sent now, if the store answers soon.
fn say_goodbye<M: Machine>(live: &Live, machine: &mut M) {
    if let Some(request) = machine.abandon()
        && live.store.perform(&request, live.clock.now() + GOODBYE_WITHIN).is_err()
    {
        live.keeper.errand(request);
    }
}

/// Sleeps without hints.
fn pause(live: &Live, until: Moment, host_turn: HostTurn<'_>) -> Waited {
    loop {
        if host_turn().is_break() {
            return Waited::Interrupted;
        }
        let nap: Duration = live.clock.nap(until).min(HOST_TURN);
        if live.clock.now() >= until {
            return Waited::TimeUp;
        }
        std::thread::sleep(nap);
    }
}

/// However the call ends, what it left behind is cleaned up by the keeper.
struct Abandon<'a, M: Machine> {
    live: &'a Live,
    machine: &'a mut M,
}

impl<M: Machine> Drop for Abandon<'_, M> {
    fn drop(&mut self) {
        if let Some(request) = self.machine.abandon()
            && !self.live.is_inherited()
        {
            self.live.keeper.errand(request);
        }
    }
}
