//! What both faces of a client share: the store, the hub, the keeper, and the lives of leases.

pub(crate) mod builder;
pub(crate) mod call_slots;
pub(crate) mod channel;
pub(crate) mod circuit;
pub(crate) mod closing;
pub(crate) mod doctor;
pub(crate) mod fence_memory;
pub(crate) mod keeper;
pub(crate) mod lease_cell;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod pulse;
pub(crate) mod trace;
pub(crate) mod tracked_lease;

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::error::{Error, ErrorKind};
use crate::base::fork::{self, Generation};
use crate::base::name::{LimiterName, LockKind, LockName, Prefixes, QueueName};
use crate::base::token::Token;
use crate::base::wake::{Hub, Place};
use crate::engine::Jitter;
use crate::engine::acquire::{AcquireMachine, AcquireParams, ForeignHolder, LockPlan};
use crate::engine::call::CallMachine;
use crate::engine::reentrancy::Owners;
use crate::engine::single_flight::SingleFlight;
use crate::engine::take::TakeMachine;
use crate::protocol::{CLOCK_MARGIN, ClientId, Fence, Request, Take};
use crate::session::call_slots::CallSlots;
use crate::session::channel::Channel;
use crate::session::circuit::Circuit;
use crate::session::closing::{Closing, closed};
use crate::session::fence_memory::FenceMemory;
use crate::session::keeper::Keeper;
use crate::session::lease_cell::LeaseCell;
use crate::session::metrics::Meters;
use crate::session::options::Settings;
use crate::session::pulse::Pulse;
use crate::store::open::open;
use crate::store::url::{Address, RedisPlace, SqliteTarget, StoreUrl};
use crate::store::{Store, StoreConfig};

/// A client's configuration, and its life in this process. After a fork the child gets a life of its own.
pub(crate) struct Session {
    config: Config,
    first: Link,
    closed: AtomicBool,
}

/// Everything a client is made of.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) url: StoreUrl,
    pub(crate) prefixes: Prefixes,
    pub(crate) clock: Clock,
    pub(crate) label: String,
    pub(crate) foreign_share: bool,
    pub(crate) timeout: Option<Duration>,
}

/// The lives of a client, one per process generation. A list that only grows needs no lock, and a lock
/// could be inherited locked.
struct Link {
    live: Arc<Live>,
    next: OnceLock<Box<Link>>,
}

impl Session {
    pub(crate) fn open(config: Config) -> Result<Self, Error> {
        fork::install();
        let live = Live::open(&config)?;
        Ok(Self { config, first: Link { live, next: OnceLock::new() }, closed: AtomicBool::new(false) })
    }

    /// Checks a name. No I/O.
    pub(crate) fn lock_name(&self, kind: LockKind, name: &str) -> Result<LockName, Error> {
        self.config.prefixes.name_of_kind(kind, name)
    }

    /// Checks a name. No I/O.
    pub(crate) fn limiter_name(&self, name: &str) -> Result<LimiterName, Error> {
        self.config.prefixes.limiter_name(name)
    }

    /// Checks a name. No I/O.
    pub(crate) fn queue_name(&self, name: &str) -> Result<QueueName, Error> {
        self.config.prefixes.queue_name(name)
    }

    /// The client's life in this process; made anew in a forked child.
    pub(crate) fn live(&self) -> Result<&Arc<Live>, Error> {
        match self.closed.load(Ordering::Relaxed) {
            true => Err(closed()),
            false => self.life(),
        }
    }

    /// The same, also when it was closed: for what needs no store.
    pub(crate) fn life(&self) -> Result<&Arc<Live>, Error> {
        let generation = fork::generation();
        let mut link = &self.first;
        loop {
            if link.live.generation == generation {
                return Ok(&link.live);
            }
            if link.next.get().is_none() {
                self.check_fork()?;
                let live = Live::open(&self.config)?;
                link.live.leave_to_parent();
                // If another thread was faster, its life is the one that counts.
                let _ = link.next.set(Box::new(Link { live, next: OnceLock::new() }));
            }
            match link.next.get() {
                Some(next) => link = next,
                None => return Err(Error::new(ErrorKind::Internal, "the client could not be reopened")),
            }
        }
    }

    /// Waits up to `time` for what is done in the background; whether it is done. Opens nothing: a forked child
    /// that never used the client has nothing to wait for.
    pub(crate) fn linger(&self, time: Duration) -> bool {
        self.own_life().is_none_or(|live| live.keeper.linger(time))
    }

    /// Refuses all calls from now on, and returns what is to be closed. Opens nothing, as `linger`.
    pub(crate) fn close(&self) -> Option<&Arc<Live>> {
        self.closed.store(true, Ordering::Relaxed);
        self.own_life()
    }

    /// The client's life in this process, if it has one.
    fn own_life(&self) -> Option<&Arc<Live>> {
        let mut link = Some(&self.first);
        while let Some(Link { live, next }) = link {
            if !live.is_inherited() {
                return Some(live);
            }
            link = next.get().map(|next| &**next);
        }
        None
    }

    /// A copy of a memory store would be a second world in which the parent's locks look held for ever.
    fn check_fork(&self) -> Result<(), Error> {
        match self.config.url.address {
            Address::Sqlite(SqliteTarget::Memory { .. }) => Err(Error::new(
                ErrorKind::Forked,
                "a memory: store belongs to the process that opened it; open another one after the fork",
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What belongs to the parent process is not torn down here.
        let mut link = Some(&self.first);
        while let Some(Link { live, next }) = link {
            if live.is_inherited() {
                live.leave_to_parent();
            }
            link = next.get().map(|next| &**next);
        }
    }
}

/// A client's life in one process.
pub(crate) struct Live {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) hub: Arc<Hub>,
    pub(crate) channel: Arc<Channel>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) slots: CallSlots,
    pub(crate) settings: Settings,
    pub(crate) prefixes: Prefixes,
    pub(crate) pulse: Pulse,
    pub(crate) owners: Mutex<Owners<Arc<LeaseCell>>>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) flights: Mutex<SingleFlight>,
    pub(crate) circuit: Circuit,
    pub(crate) closing: Closing,
    memory: FenceMemory,
    generation: Generation,
}

impl Live {
    fn open(config: &Config) -> Result<Arc<Self>, Error> {
        let settings = Settings::new(config.timeout, config.foreign_share, &config.label)?;
        let clock = config.clock.clone();
        let hub = Hub::new(random_client()?);
        let store_config = StoreConfig {
            prefixes: config.prefixes.clone(),
            clock: clock.clone(),
            hub: Arc::clone(&hub),
            clock_margin: config.url.clock_margin.unwrap_or(CLOCK_MARGIN),
        };
        let store = open(&config.url.address, &store_config)?;
        let meters = Arc::new(Meters::new()?);
        let channel = Channel::new(Arc::clone(&store), clock.clone(), Arc::clone(&hub));
        if matches!(&config.url.address, Address::Redis(address) if matches!(address.place, RedisPlace::Quorum(_)))
        {
            // Without I/O. From the first request on it is told whether a call only tries.
            channel.open();
        }
        Ok(Arc::new(Self {
            channel,
            keeper: Keeper::new(Arc::clone(&store), clock.clone(), Arc::clone(&meters)),
            store,
            clock,
            slots: CallSlots::new(hub.client()),
            hub,
            settings,
            prefixes: config.prefixes.clone(),
            pulse: Pulse::default(),
            owners: Mutex::default(),
            meters,
            flights: Mutex::default(),
            circuit: Circuit::default(),
            closing: Closing::default(),
            memory: FenceMemory::default(),
            generation: fork::generation(),
        }))
    }

    /// A life on a store that a test has made.
    #[cfg(test)]
    pub(crate) fn on(store: Arc<dyn Store>, clock: &Clock) -> Arc<Self> {
        let hub = Hub::new(ClientId(1));
        let meters = Arc::new(Meters::new().unwrap());
        Arc::new(Self {
            channel: Channel::new(Arc::clone(&store), clock.clone(), Arc::clone(&hub)),
            keeper: Keeper::new(Arc::clone(&store), clock.clone(), Arc::clone(&meters)),
            store,
            clock: clock.clone(),
            slots: CallSlots::new(hub.client()),
            hub,
            settings: Settings::new(None, false, "").unwrap(),
            prefixes: Prefixes::parse("Lock:", "Queue:").unwrap(),
            pulse: Pulse::default(),
            owners: Mutex::default(),
            meters,
            flights: Mutex::default(),
            circuit: Circuit::default(),
            closing: Closing::default(),
            memory: FenceMemory::default(),
            generation: fork::generation(),
        })
    }

    /// Fails in a process that was forked after this was made.
    pub(crate) fn check_generation(&self) -> Result<(), Error> {
        if self.generation == fork::generation() {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::Forked,
                "the lease was acquired before this process was forked and belongs to the parent process",
            ))
        }
    }

    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// In a forked child: closes inherited sockets and keeps everything else for ever, since tearing it
    /// down could wait for a thread that exists only in the parent.
    pub(crate) fn leave_to_parent(self: &Arc<Self>) {
        self.channel.close_inherited();
        self.store.close_inherited();
        mem::forget(Arc::clone(self));
    }

    /// Until when a call without a deadline of its own is tried.
    pub(crate) fn give_up(&self) -> Moment {
        self.clock.now() + self.settings.timeout
    }

    /// A single request as a machine.
    pub(crate) fn call(&self, request: Request) -> CallMachine {
        CallMachine::new(request, self.clock.now(), self.give_up(), Jitter::random())
    }

    /// A take as a machine.
    pub(crate) fn take(&self, take: Take) -> TakeMachine {
        let (now, stands) = (self.clock.now(), self.clock.stands());
        TakeMachine::new(take, now, self.give_up(), stands, Jitter::random())
    }

    /// An acquire as a machine, with the place where its hints arrive.
    pub(crate) fn acquire(&self, plan: LockPlan) -> Result<Attempt, Error> {
        let place = self.hub.enter();
        let token = Token::random()?;
        let (now, foreign_holder) = (self.clock.now(), self.foreign_holder(&plan));
        let order = self.order(plan, token, &place);
        let machine =
            AcquireMachine::new(order, now, self.channel.is_open(), foreign_holder, Jitter::random());
        Ok(Attempt { machine, place })
    }

    /// One call of an acquire.
    pub(crate) fn order(&self, plan: LockPlan, token: Token, place: &Place) -> AcquireParams {
        let min_fence = self.memory.min_fence(&plan.name);
        AcquireParams { plan, token, min_fence, waiter: place.waiter() }
    }

    /// The foreign value that an earlier acquire found at the key, if this one may take it over.
    pub(crate) fn foreign_holder(&self, plan: &LockPlan) -> Option<ForeignHolder> {
        plan.adopt_after.and_then(|_| self.memory.foreign_holder(&plan.name))
    }

    /// The owner's text that this client stores with its grants: process id, host and label.
    pub(crate) fn owner(&self) -> Arc<str> {
        Arc::clone(&self.settings.owner)
    }

    /// Remembers the fence of a grant.
    pub(crate) fn saw_fence(&self, name: &LockName, fence: Fence) {
        self.memory.saw_fence(name, fence);
    }

    /// Remembers what an acquire saw on its way.
    pub(crate) fn note(&self, plan: &LockPlan, foreign_holder: Option<&ForeignHolder>) {
        if plan.adopt_after.is_some() {
            self.memory.saw_sighting(&plan.name, foreign_holder);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.is_inherited() {
            self.keeper.close();
        }
    }
}

/// A running acquire.
pub(crate) struct Attempt {
    pub(crate) machine: AcquireMachine,
    pub(crate) place: Place,
}

fn random_client() -> Result<ClientId, Error> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Internal, "the system's random source failed").with_source(error)
    })?;
    // SQLite keeps signed numbers.
    Ok(ClientId(u64::from_le_bytes(bytes) >> 1))
}
