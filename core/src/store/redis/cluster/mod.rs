//! A Redis cluster: each request goes to the node that serves its slot, and follows the slot when it moves.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use crate::base::error::{Error, ErrorKind};
use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind};
use crate::store::Hear;
use crate::store::redis::connector::aside;
use crate::store::redis::failure::{Miss, Next};
use crate::store::redis::hints::RedisHints;
use crate::store::redis::node::{Calls, Node};
use crate::store::redis::patience::rest;
use crate::store::redis::sending::Sending;
use crate::store::redis::server::Server;
use crate::store::url::Endpoint;

mod layout;
mod map;
mod parts;
pub(super) mod slot;

use layout::Layout;
use map::Map;
use parts::at_once;

/// What a user needs in a cluster besides the rule for one server.
const CLUSTER_RIGHT: &str = "+cluster|slots";
/// How often a request is sent on by nodes before it is refused: they disagree about where it belongs.
const HOPS: usize = 5;
/// How long a map that may be out of date is used before the nodes are asked again: while slots move, each that
/// has moved is redirected.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A page of a listing is a master's number and its cursor. More masters than a cluster can have.
const MASTERS: u64 = 1_024;

#[derive(Debug)]
pub(crate) struct Cluster {
    /// Any node: credentials and TLS files are the same for all.
    template: Server,
    seeds: Vec<Endpoint>,
    place: String,
    state: Mutex<Routing>,
    /// Somebody has looked which node serves what.
    looked: Condvar,
}

#[derive(Debug, Default)]
struct Routing {
    map: Map,
    /// The map may be out of date.
    is_doubtful: bool,
    /// Somebody asks the nodes now.
    is_looking: bool,
    asked: Option<Instant>,
}

impl Cluster {
    pub(crate) fn new(template: Server, seeds: Vec<Endpoint>) -> Result<Self, Error> {
        let hosts: Vec<_> = seeds.iter().map(ToString::to_string).collect();
        let place = format!("the cluster at {}", hosts.join(", "));
        Ok(Self { template, seeds, place, state: Mutex::default(), looked: Condvar::new() })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Whether one node has all of these keys, wherever slots are.
    pub(crate) fn are_together(&self, keys: &[&str]) -> bool {
        let mut slots = keys.iter().map(|key| slot::of(key.as_bytes()));
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }

    pub(crate) fn run(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Failure> {
        let slot = sending.slot();
        let mut node = self.route(slot, give_up)?;
        for _ in 0..HOPS {
            match node.run(sending, give_up) {
                Ok(value) => return Ok(value),
                Err(miss) => node = self.follow(&node, slot, miss)?,
            }
        }
        Err(self.circles(slot))
    }

    pub(crate) async fn run_async(
        self: &Arc<Self>,
        sending: &Sending<'_>,
        give_up: Instant,
    ) -> Result<Value, Failure> {
        let slot = sending.slot();
        let mut node = self.route_async(slot, give_up).await?;
        for _ in 0..HOPS {
            match node.run_async(sending, give_up).await {
                Ok(value) => return Ok(value),
                Err(miss) => node = self.follow(&node, slot, miss)?,
            }
        }
        Err(self.circles(slot))
    }

    /// One round trip to each node, to all at the same time: one that is silent must not keep others' leases from
    /// being renewed.
    pub(crate) fn run_all(&self, sendings: &[Sending<'_>], give_up: Instant, hear: Hear<'_, Value>) {
        let mut parts = BTreeMap::new();
        for (number, sending) in sendings.iter().enumerate() {
            match self.route(sending.slot(), give_up) {
                Ok(node) => {
                    let (_, numbers) = parts.entry(Arc::as_ptr(&node)).or_insert((node, Vec::new()));
                    numbers.push(number);
                }
                Err(failure) => hear(number, Err(failure)),
            }
        }
        let mut moved = Vec::new();
        at_once(parts.into_values().collect(), sendings, give_up, &mut |number, result| match result {
            Ok(value) => hear(number, Ok(value)),
            Err(Miss { next: Next::Moved(_), .. }) => moved.push(number),
            Err(Miss { failure, next }) => {
                if next == Next::LookAgain {
                    self.doubt();
                }
                hear(number, Err(failure));
            }
        });
        if !moved.is_empty() {
            self.doubt();
        }
        for number in moved {
            hear(number, self.run(&sendings[number], give_up));
        }
    }

    /// What any node answers: for what is the same on all.
    pub(crate) fn call_any(&self, command: &Cmd, give_up: Instant) -> Result<Value, Failure> {
        self.look_if_needed(give_up)?;
        self.ask_any(command, give_up).map(|(value, _)| value)
    }

    /// One step of a listing over all masters; nothing is found where there is no such master any more.
    pub(crate) fn scan<T>(
        &self,
        page: u64,
        step: impl Fn(u64, Calls<'_>) -> Result<(u64, T), Failure>,
        give_up: Instant,
    ) -> Result<(u64, Option<T>), Failure> {
        if page == 0 {
            // A replica would answer too, and nobody would notice.
            self.doubt();
        }
        self.look_if_needed(give_up)?;
        let masters = locked(&self.state).map.masters();
        let (number, cursor) = (page % MASTERS, page / MASTERS);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(master) = masters.get(index) else { return Ok((0, None)) };
        let call = |command: &Cmd| master.pool.call(command, give_up).inspect_err(|_| self.doubt());
        let (next, found) = step(cursor, &call)?;
        let is_last = index + 1 == masters.len();
        let next_page = match next {
            0 if is_last => Some(0),
            0 => Some(number + 1),
            next => next.checked_mul(MASTERS).map(|next| next + number),
        };
        Ok((next_page.ok_or_else(no_listing)?, Some(found)))
    }

    /// Subscribes at any master: the cluster's bus brings a PUBLISH to all nodes.
    pub(crate) fn hints(&self, channel: &str, give_up: Instant) -> Result<RedisHints, Failure> {
        self.look_if_needed(give_up)?;
        let mut masters = locked(&self.state).map.masters();
        fastrand::shuffle(&mut masters);
        masters.sort_by_key(|node| node.is_ailing());
        let mut last = self.unanswered();
        for (position, node) in masters.iter().enumerate() {
            let share = share(give_up, masters.len() - position);
            match RedisHints::open(&node.connector, channel, Instant::now() + share) {
                Ok(hints) => return Ok(hints),
                Err(failure) => last = failure,
            }
        }
        self.doubt();
        Err(last)
    }

    pub(crate) fn close(&self) {
        locked(&self.state).map.nodes().iter().for_each(|node| node.close());
    }

    pub(crate) fn close_inherited(&self) {
        if let Ok(state) = self.state.try_lock() {
            state.map.nodes().iter().for_each(|node| node.pool.close_inherited());
        }
    }

    /// The node that serves a slot.
    fn route(&self, slot: u16, give_up: Instant) -> Result<Arc<Node>, Failure> {
        self.look_if_needed(give_up)?;
        self.owner(slot)
    }

    async fn route_async(self: &Arc<Self>, slot: u16, give_up: Instant) -> Result<Arc<Node>, Failure> {
        if self.needs_a_look() {
            let cluster = Arc::clone(self);
            aside(move || cluster.look_if_needed(give_up)).await?;
        }
        self.owner(slot)
    }

    fn owner(&self, slot: u16) -> Result<Arc<Node>, Failure> {
        let owner = locked(&self.state).map.owner(slot);
        owner.ok_or_else(|| {
            self.doubt();
            let message = format!("no node of {} serves slot {slot} now", self.place);
            Failure::new(FailureKind::Refused, message)
        })
    }

    /// Who is asked after a miss, if anybody.
    fn follow(&self, node: &Node, slot: u16, miss: Miss) -> Result<Arc<Node>, Failure> {
        let Miss { failure, next } = miss;
        let complete = |there: Endpoint| match &node.endpoint {
            Some(here) if there.host.is_empty() => Endpoint { host: here.host.clone(), ..there },
            _ => there,
        };
        match next {
            Next::Nowhere => Err(failure),
            Next::LookAgain => {
                self.doubt();
                Err(failure)
            }
            Next::Moved(there) => {
                let mut state = locked(&self.state);
                state.is_doubtful = true;
                state.map.moved(slot, &complete(there), &self.template)
            }
        }
    }

    fn doubt(&self) {
        locked(&self.state).is_doubtful = true;
    }

    fn needs_a_look(&self) -> bool {
        let state = locked(&self.state);
        state.map.is_blank()
            || state.is_doubtful && state.asked.is_none_or(|asked| asked.elapsed() >= LOOK_EVERY)
    }

    /// Asks the nodes who serves what, unless it is known for sure or somebody else asks already. An old map is
    /// better than none.
    fn look_if_needed(&self, give_up: Instant) -> Result<(), Failure> {
        if !self.needs_a_look() {
            return Ok(());
        }
        let mut state = locked(&self.state);
        if state.is_looking {
            let (state, _) = self
                .looked
                .wait_timeout_while(state, rest(give_up), |state| state.is_looking)
                .unwrap_or_else(PoisonError::into_inner);
            return if state.map.is_blank() { Err(self.unanswered()) } else { Ok(()) };
        }
        state.is_looking = true;
        drop(state);
        let layout = self.look(give_up);
        let mut state = locked(&self.state);
        state.is_looking = false;
        state.asked = Some(Instant::now());
        let drawn = layout.and_then(|layout| state.map.redraw(layout, &self.template));
        state.is_doubtful &= drawn.is_err();
        self.looked.notify_all();
        if state.map.is_blank() { drawn } else { Ok(()) }
    }

    fn look(&self, give_up: Instant) -> Result<Layout, Failure> {
        let question = redis::cmd("CLUSTER").arg("SLOTS").clone();
        let (answer, teller) = self.ask_any(&question, give_up).map_err(|failure| match failure.kind {
            FailureKind::Final(ErrorKind::Denied) => {
                let message = format!("{}; in a cluster also: {CLUSTER_RIGHT}", failure.message);
                Failure { message, ..failure }
            }
            _ => failure,
        })?;
        Layout::parse(&answer, &teller).ok_or_else(|| {
            let message = format!("unexpected reply of {teller} to CLUSTER SLOTS");
            Failure::new(FailureKind::NotSent, message)
        })
    }

    /// Asks one node after the other until one answers; those that are well first. Each gets a share of the time.
    fn ask_any(&self, command: &Cmd, give_up: Instant) -> Result<(Value, Endpoint), Failure> {
        let nodes = self.candidates()?;
        let mut last = self.unanswered();
        for (position, (node, endpoint)) in nodes.iter().enumerate() {
            let share = share(give_up, nodes.len() - position);
            match node.pool.call(command, Instant::now() + share) {
                Ok(value) => return Ok((value, endpoint.clone())),
                Err(failure @ Failure { kind: FailureKind::Final(_), .. }) => return Err(failure),
                Err(failure) => {
                    let message =
                        format!("no node of {} answers; last error: {}", self.place, failure.message);
                    last = Failure::new(FailureKind::NotSent, message);
                }
            }
        }
        Err(last)
    }

    fn candidates(&self) -> Result<Vec<(Arc<Node>, Endpoint)>, Failure> {
        let state = locked(&self.state);
        let mut nodes: Vec<_> = state.map.nodes().to_vec();
        let others = state.map.replicas.iter().chain(&self.seeds).cloned().collect::<Vec<_>>();
        drop(state);
        fastrand::shuffle(&mut nodes);
        for endpoint in others {
            if !nodes.iter().any(|node| node.endpoint.as_ref() == Some(&endpoint)) {
                nodes.push(Arc::new(map::node(&endpoint, &self.template)?));
            }
        }
        nodes.sort_by_key(|node| node.is_ailing());
        Ok(nodes.into_iter().filter_map(|node| node.endpoint.clone().map(|at| (node, at))).collect())
    }

    fn unanswered(&self) -> Failure {
        Failure::new(FailureKind::NotSent, format!("{} does not answer", self.place))
    }

    fn circles(&self, slot: u16) -> Failure {
        self.doubt();
        let message = format!("the nodes of {} do not agree about who serves slot {slot}", self.place);
        Failure::new(FailureKind::Refused, message)
    }
}

/// What is left of the time, in equal parts for those to come, with one for what follows.
fn share(give_up: Instant, count: usize) -> Duration {
    rest(give_up) / u32::try_from(count + 1).unwrap_or(u32::MAX)
}

fn no_listing() -> Failure {
    Failure::new(FailureKind::Lost, "unexpected reply to SCAN")
}
