//! What is promised of workers.

use stanchion::engine::lease::Status;
use stanchion::engine::worker::Job;

use super::worker::SimJob;
use super::*;

/// A loss is told within this.
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// How long after its grace and patience a worker that stops may still try to settle: a lease, and a call.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether all is done.
const LOOK: Duration = Duration::from_millis(500);
/// A task of the calm is begun within this, whatever hangs.
const BEGUN_WITHIN: Duration = Duration::from_secs(3);

impl World<'_> {
    /// No id is run twice at a time by one worker, nor by two that both believe to have it.
    pub(super) fn check_begin(&self, client: usize, job: &SimJob) -> Played {
        if self.workers[client].stopped.is_some() {
            return Err(format!("{job:?} was begun after the stop"));
        }
        if job.status() != Status::Held {
            return Err(format!("{job:?} was begun although it is lost"));
        }
        for (other, worker) in self.workers.iter().enumerate() {
            let same = worker.handlers.iter().find(|handler| handler.job.0.task.id == job.0.task.id);
            let Some(handler) = same else { continue };
            if other == client {
                return Err(format!(
                    "{job:?} was begun beside {:?}, which this worker still runs",
                    handler.job
                ));
            }
            if handler.job.status() == Status::Held {
                return Err(format!("{job:?} was begun beside {:?}, which is held", handler.job));
            }
            if handler.job.0.left_until.get() > self.scene.now {
                return Err(format!("{job:?} was begun beside {:?}, which was left behind", handler.job));
            }
        }
        Ok(())
    }

    /// A loss is told in time, whether its handler ends or not.
    pub(super) fn check_handlers(&mut self) -> Played {
        let now = self.scene.now;
        for client in 0..self.workers.len() {
            let thawed = self.scene.processes[client].frozen_until;
            let worker = &mut self.workers[client];
            if worker.is_out {
                continue;
            }
            for handler in &mut worker.handlers {
                if !matches!(handler.job.status(), Status::Lost(_)) {
                    continue;
                }
                let since = (*handler.lost_since.get_or_insert(now)).max(thawed);
                if now > since + TOLD_WITHIN && !worker.told_lost.contains(&handler.job.receipt()) {
                    return Err(format!("the loss of {:?} was not told", handler.job));
                }
            }
        }
        Ok(())
    }

    /// A worker that was stopped ends in time.
    pub(super) fn check_stops(&self) -> Played {
        for (worker, process) in self.workers.iter().zip(&self.scene.processes) {
            let Some(stopped) = worker.stopped.filter(|_| !worker.is_out) else { continue };
            let from = stopped.max(process.frozen_until);
            let most = worker.terms.grace + worker.terms.patience + SETTLED_WITHIN;
            if self.scene.now > from + most {
                return Err(format!("a worker was stopped and goes on after {most:?}"));
            }
        }
        Ok(())
    }

    /// Whether it stood still not long ago: what it does late then is no fault of its.
    pub(super) fn was_frozen(&self, client: usize) -> bool {
        let worker = &self.workers[client];
        self.scene.processes[client].frozen_until + worker.terms.patience >= self.scene.now
    }

    /// Liveness: after every step.
    pub(super) fn check_calm(&mut self) -> Played {
        let now = self.scene.now;
        if self.part == Part::Storm && now >= self.calm_from {
            self.part = Part::Calm;
            self.scene.calm = true;
            self.scene.weather = Weather::CALM;
        }
        if self.part != Part::Calm {
            return Ok(());
        }
        if let Some((id, _)) = self.waiting.iter().find(|(_, since)| now > **since + BEGUN_WITHIN) {
            return Err(format!("liveness: nobody has begun {id:?} within {BEGUN_WITHIN:?}"));
        }
        if now > self.calm_from + DRAINED_WITHIN {
            return Err(format!("liveness: tasks are left after {DRAINED_WITHIN:?}: {:?}", self.stats()?));
        }
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + LOOK;
        let stats = self.stats()?;
        if stats.dead > 0 {
            return Err("a task is dead".into());
        }
        if self.plan.is_empty() && stats.scheduled + stats.ready + stats.claimed + stats.successors == 0 {
            self.part = Part::Over;
            for client in 0..self.workers.len() {
                self.stop(client)?;
            }
        }
        Ok(())
    }
}
