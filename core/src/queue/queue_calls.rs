//! The calls of a queue: checked arguments, made into machines. Both `Queue` types wrap them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::base::error::{Error, ErrorKind};
use crate::base::name::{QueueName, TaskId};
use crate::base::wake::Place;
use crate::engine::Jitter;
use crate::engine::ask::{AskMachine, AskParams, Question};
use crate::engine::call::CallMachine;
use crate::engine::events::WhatHappens;
use crate::engine::result::WhatBecame;
use crate::engine::sweep::SweepMachine;
use crate::protocol::{
    CallId, Cancel, Cancelled, Due, Enqueue, EnqueueOutcome, Get, MAX_BATCH, MAX_REQUEST_BYTES, NewTask,
    Pause, Peek, Pop, QueueReply, QueueRequest, QueueStats, QueueVerb, Remove, Removed, Reply, Request,
    Reschedule, RescheduleReply, Sweep, Swept, Version,
};
use crate::queue::consumer::Consumer;
use crate::queue::dead_tasks::DeadTasks;
use crate::queue::queue_options::{ListOptions, QueueConfig, checked_count};
use crate::queue::task::{Enqueued, Task, TaskInfo, TaskPage, checked_due, wall_time};
use crate::session::metrics::QueueMeters;
use crate::session::options::MAX_TTL;
use crate::session::{Live, Session};

/// A queue's name, checked once.
#[derive(Clone)]
pub(crate) struct QueueCalls {
    pub(crate) session: Arc<Session>,
    pub(crate) name: Arc<str>,
    /// `None` if the name is bad.
    checked: Option<QueueName>,
}

impl QueueCalls {
    pub(crate) fn new(session: Arc<Session>, name: &str) -> Self {
        let checked = session.queue_name(name).ok();
        Self { session, name: name.into(), checked }
    }

    pub(crate) fn checked(&self) -> Result<QueueName, Error> {
        match &self.checked {
            Some(name) => Ok(name.clone()),
            // Says what is wrong with it.
            None => self.session.queue_name(&self.name),
        }
    }

    fn during(&self, operation: &'static str, error: Error) -> Error {
        error.during(operation, &self.name)
    }

    /// A request without arguments of its own, and how its reply is read.
    pub(crate) fn ask<T>(
        &self,
        verb: QueueVerb,
        read: impl FnOnce(QueueReply) -> Option<T> + Send + 'static,
    ) -> Result<Ask<T>, Error> {
        let queue = self.checked()?;
        let live = Arc::clone(self.session.live()?);
        let machine = live.call(Request::Queue(QueueRequest { queue, verb }));
        Ok(Ask::new(live, machine, read))
    }

    /// The parts of a batch that are sent one after the other. Everything is checked before the first.
    pub(crate) fn enqueue_many(&self, tasks: &[Task]) -> Result<Vec<Arc<[NewTask]>>, Error> {
        self.checked()?;
        let checked: Result<Vec<NewTask>, Error> = tasks.iter().map(Task::checked).collect();
        let checked = checked.map_err(|error| self.during("enqueue", error))?;
        let mut parts: Vec<Arc<[NewTask]>> = Vec::new();
        let (mut part, mut bytes) = (Vec::new(), 0);
        for task in checked {
            if part.len() >= MAX_BATCH || (bytes + task.body.len() > MAX_REQUEST_BYTES && !part.is_empty()) {
                parts.push(std::mem::take(&mut part).into());
                bytes = 0;
            }
            bytes += task.body.len();
            part.push(task);
        }
        if !part.is_empty() {
            parts.push(part.into());
        }
        Ok(parts)
    }

    /// One part of a batch.
    pub(crate) fn enqueue(&self, tasks: Arc<[NewTask]>) -> Result<Ask<Vec<Result<Enqueued, Error>>>, Error> {
        let name = Arc::clone(&self.name);
        let live = self.session.live()?;
        let (call, meters) = (live.slots.take_next(), live.meters.queue(&self.name));
        let unheard = Unheard { meters: Arc::clone(&meters), tasks: tasks.len() as u64 };
        let verb =
            QueueVerb::Enqueue(Enqueue { call, timeout: live.settings.timeout, tasks: Arc::clone(&tasks) });
        let mut ask = self.ask(verb, move |reply| match reply {
            QueueReply::Enqueue(outcomes) if outcomes.len() == tasks.len() => {
                let told = |(task, outcome)| {
                    let enqueued = enqueued(&name, task, outcome);
                    meters.enqueued(enqueued.as_ref().ok().map(|done| done.outcome));
                    enqueued
                };
                Some(tasks.iter().zip(outcomes).map(told).collect())
            }
            _ => None,
        })?;
        ask.enqueue = Some((call, unheard));
        Ok(ask)
    }

    pub(crate) fn pop(&self, max: usize) -> Result<Ask<Vec<TaskInfo>>, Error> {
        let max = checked_count("max", max).map_err(|error| self.during("pop", error))?;
        let meters = self.session.live()?.meters.queue(self.checked()?.as_str());
        let ask = self.ask(QueueVerb::Pop(Pop { max }), move |reply| match reply {
            QueueReply::Pop(tasks) => {
                let tasks = infos(tasks.unwrap_or_default());
                meters.popped.inc_by(tasks.len() as u64);
                Some(tasks)
            }
            _ => None,
        })?;
        Ok(ask.once())
    }

    pub(crate) fn peek(&self, max: usize) -> Result<Ask<Vec<TaskInfo>>, Error> {
        let max = checked_count("max", max).map_err(|error| self.during("peek", error))?;
        self.ask(QueueVerb::Peek(Peek { max }), |reply| match reply {
            QueueReply::Peek(tasks) => Some(infos(tasks)),
            _ => None,
        })
    }

    pub(crate) fn get(&self, id: &str) -> Result<Ask<Option<TaskInfo>>, Error> {
        let id = TaskId::parse(id).map_err(|error| self.during("get", error))?;
        self.ask(QueueVerb::Get(Get { id }), |reply| match reply {
            QueueReply::Get(task) => Some(task.map(|task| TaskInfo::from(*task))),
            _ => None,
        })
    }

    pub(crate) fn list(&self, options: &ListOptions) -> Result<Ask<TaskPage>, Error> {
        let list = options.checked().map_err(|error| self.during("list", error))?;
        self.ask(QueueVerb::List(list), |reply| match reply {
            QueueReply::List(page) => Some(TaskPage::from(page)),
            _ => None,
        })
    }

    pub(crate) fn remove(&self, id: &str, version: Option<Version>) -> Result<Ask<Removed>, Error> {
        let id = TaskId::parse(id).map_err(|error| self.during("remove", error))?;
        let ask = self.ask(QueueVerb::Remove(Remove { id, version }), |reply| match reply {
            QueueReply::Remove(reply) => Some(reply),
            _ => None,
        })?;
        // A repetition could remove the id's next life.
        Ok(ask.once())
    }

    /// A running question what became of a task.
    pub(crate) fn result(
        &self,
        id: &str,
        version: Option<Version>,
        wait: Duration,
    ) -> Result<Asking<WhatBecame>, Error> {
        let id = TaskId::parse(id).map_err(|error| self.during("result", error))?;
        self.asking(WhatBecame { id, version: version.unwrap_or(Version::NONE) }, wait)
    }

    /// A running question what happens.
    pub(crate) fn events(&self, after: Option<u64>, wait: Duration) -> Result<Asking<WhatHappens>, Error> {
        self.asking(WhatHappens { after }, wait)
    }

    fn asking<Q: Question>(&self, question: Q, wait: Duration) -> Result<Asking<Q>, Error> {
        if wait > MAX_TTL {
            return Err(self.during(Q::VERB, Error::invalid("wait is over 365 days")));
        }
        let queue = self.checked()?;
        let live = Arc::clone(self.session.live()?);
        let place = live.hub.enter();
        let params = AskParams { queue, wait, timeout: live.settings.timeout, waiter: place.waiter() };
        let listens = live.channel.is_open();
        let machine = AskMachine::new(question, params, live.clock.now(), listens, Jitter::random());
        Ok(Asking { live, machine, place })
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<Ask<Cancelled>, Error> {
        let id = TaskId::parse(id).map_err(|error| self.during("cancel", error))?;
        let ask = self.ask(QueueVerb::Cancel(Cancel { id }), |reply| match reply {
            QueueReply::Cancel(reply) => Some(reply),
            _ => None,
        })?;
        // A repetition could cancel the id's next life.
        Ok(ask.once())
    }

    pub(crate) fn reschedule(&self, id: &str, due: SystemTime) -> Result<Ask<Rescheduled>, Error> {
        let id = TaskId::parse(id).map_err(|error| self.during("reschedule", error))?;
        let due = checked_due(due).map_err(|problem| self.during("reschedule", Error::invalid(problem)))?;
        let verb = QueueVerb::Reschedule(Reschedule { id, due: Due::At(due) });
        self.ask(verb, |reply| match reply {
            QueueReply::Reschedule(reply) => Some(reply.into()),
            _ => None,
        })
    }

    /// Which dead tasks a kick or a removal is about; also fails for a bad name.
    pub(crate) fn sweep(&self, operation: &'static str, dead: &DeadTasks) -> Result<SweepMachine, Error> {
        self.checked()?;
        dead.checked().map_err(|error| self.during(operation, error))
    }

    pub(crate) fn kick(&self, sweep: Sweep) -> Result<Ask<Swept>, Error> {
        let ask = self.ask(QueueVerb::Kick(sweep), |reply| match reply {
            QueueReply::Kick(swept) => Some(swept),
            _ => None,
        })?;
        Ok(ask.once())
    }

    pub(crate) fn remove_dead(&self, sweep: Sweep) -> Result<Ask<Swept>, Error> {
        let ask = self.ask(QueueVerb::RemoveDead(sweep), |reply| match reply {
            QueueReply::RemoveDead(swept) => Some(swept),
            _ => None,
        })?;
        // A repetition would count only what is left.
        Ok(ask.once())
    }

    pub(crate) fn stats(&self) -> Result<Ask<QueueStats>, Error> {
        self.ask(QueueVerb::Stats, |reply| match reply {
            QueueReply::Stats(stats) => Some(*stats),
            _ => None,
        })
    }

    pub(crate) fn consumers(&self) -> Result<Ask<Vec<Consumer>>, Error> {
        self.ask(QueueVerb::Consumers, |reply| match reply {
            QueueReply::Consumers(consumers) => Some(consumers.into_iter().map(Consumer::from).collect()),
            _ => None,
        })
    }

    pub(crate) fn pause(&self, paused: bool) -> Result<Ask<()>, Error> {
        self.ask(QueueVerb::Pause(Pause { paused }), |reply| (reply == QueueReply::Pause).then_some(()))
    }

    pub(crate) fn purge(&self) -> Result<Ask<u64>, Error> {
        let ask = self.ask(QueueVerb::Purge, |reply| match reply {
            QueueReply::Purge(count) => Some(count),
            _ => None,
        })?;
        // A repetition would drop what came after.
        Ok(ask.once())
    }

    pub(crate) fn configure(&self, settings: &QueueConfig) -> Result<Ask<()>, Error> {
        let settings = settings.checked().map_err(|error| self.during("configure", error))?;
        self.ask(QueueVerb::Configure(settings), |reply| (reply == QueueReply::Configure).then_some(()))
    }
}

/// A question that waits for its answer.
pub(crate) struct Asking<Q: Question> {
    pub(crate) live: Arc<Live>,
    pub(crate) machine: AskMachine<Q>,
    pub(crate) place: Place,
}

/// The outcome of a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rescheduled {
    /// The task is due at the new time.
    Moved(SystemTime),
    /// There is no such task.
    Absent,
    /// It is claimed: nothing was changed.
    Claimed,
    /// It is dead: nothing was changed. Kick it instead.
    Dead,
}

impl From<RescheduleReply> for Rescheduled {
    fn from(reply: RescheduleReply) -> Self {
        match reply {
            RescheduleReply::Moved(due) => Self::Moved(wall_time(due)),
            RescheduleReply::Absent => Self::Absent,
            RescheduleReply::Claimed => Self::Claimed,
            RescheduleReply::Dead => Self::Dead,
        }
    }
}

fn infos(tasks: Vec<crate::protocol::TaskRecord>) -> Vec<TaskInfo> {
    tasks.into_iter().map(TaskInfo::from).collect()
}

fn enqueued(queue: &str, task: &NewTask, outcome: EnqueueOutcome) -> Result<Enqueued, Error> {
    match outcome {
        EnqueueOutcome::Accepted { outcome, version, due } => Ok(Enqueued {
            id: task.id.as_str().to_owned(),
            outcome,
            version,
            due: (version != Version::NONE).then(|| wall_time(due)),
        }),
        EnqueueOutcome::Full => {
            let message = format!("the queue is at its limit; task {:?} was not accepted", task.id.as_str());
            Err(Error::new(ErrorKind::QueueFull, message).during("enqueue", queue))
        }
    }
}

/// Counts the tasks of an enqueue that got no reply, also of one whose future is dropped. With a reply its outcomes are
/// counted.
struct Unheard {
    meters: Arc<QueueMeters>,
    tasks: u64,
}

impl Unheard {
    fn end(mut self, error: Option<&Error>) {
        let tasks = std::mem::take(&mut self.tasks);
        if let Some(error) = error {
            self.meters.not_enqueued(error.kind(), tasks);
        }
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if self.tasks > 0 {
            self.meters.not_enqueued(ErrorKind::Cancelled, self.tasks);
        }
    }
}

/// One request, and how to read its reply.
pub(crate) struct Ask<T> {
    pub(crate) live: Arc<Live>,
    pub(crate) machine: CallMachine,
    /// Of an enqueue: its slot, and how it is counted.
    enqueue: Option<(CallId, Unheard)>,
    read: Box<dyn FnOnce(QueueReply) -> Option<T> + Send>,
}

impl<T> Ask<T> {
    pub(crate) fn new(
        live: Arc<Live>,
        machine: CallMachine,
        read: impl FnOnce(QueueReply) -> Option<T> + Send + 'static,
    ) -> Self {
        Self { live, machine, enqueue: None, read: Box::new(read) }
    }

    /// Never sent again once it may have been carried out.
    pub(crate) fn once(mut self) -> Self {
        self.machine = self.machine.once();
        self
    }

    /// What the machine has come to.
    pub(crate) fn finish(mut self, reply: Result<Reply, Error>) -> Result<T, Error> {
        let enqueue = self.enqueue.take();
        if let Some((slot, _)) = &enqueue {
            // If no answer came: the slot's next number makes a late copy of this call void.
            self.live.slots.give_back(*slot);
        }
        let result = self.read(reply);
        if let Some((_, unheard)) = enqueue {
            unheard.end(result.as_ref().err());
        }
        result
    }

    fn read(self, reply: Result<Reply, Error>) -> Result<T, Error> {
        let read = match reply? {
            Reply::Queue(QueueReply::Superseded) => {
                return Err(Error::new(
                    ErrorKind::Indeterminate,
                    "a later call of this client arrived first: this one may or may not have been carried out",
                ));
            }
            Reply::Queue(reply) => (self.read)(reply),
            _ => None,
        };
        read.ok_or_else(Error::unexpected_reply)
    }
}
