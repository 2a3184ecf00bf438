//! Calls of the users: begun, driven, finished, cancelled.

use super::*;

impl World<'_> {
    pub(super) fn act(&mut self, client: usize) -> Played {
        if !self.clients[client].is_idle() || self.scene.processes[client].turns == 0 {
            return Ok(());
        }
        self.scene.processes[client].turns -= 1;
        if !self.scene.calm && self.breaks && self.scene.rng.u32(0..4) == 0 {
            let request = Request::BreakLease(BreakLease { name: self.name.clone() });
            let machine = CallMachine::new(
                request,
                self.scene.now,
                self.scene.now + Duration::from_secs(2),
                self.scene.dice(),
            );
            self.begin(client, OpKind::Break { machine: machine.once() });
        } else {
            self.begin_acquire(client);
        }
        self.step(client)
    }

    pub(super) fn begin(&mut self, client: usize, kind: OpKind) {
        let id = self.scene.processes[client].next_id();
        self.clients[client].op = Some(Op { id, kind, awaited: Vec::new() });
    }

    /// What a call takes of a semaphore: mostly one permit, sometimes all.
    fn wanted_permits(&mut self) -> Option<Permits> {
        let limit = self.limit?;
        let weight = match self.scene.rng.u32(0..6) {
            0 => limit,
            1 => limit - 1,
            _ => 1,
        };
        Some(Permits { weight, limit })
    }

    pub(super) fn begin_acquire(&mut self, client: usize) {
        let ttl_ms = if self.scene.calm { 500 } else { self.scene.rng.u64(50..=LONGEST_MS) };
        let wait = match self.scene.rng.u32(0..5) {
            _ if self.scene.calm => Duration::from_secs(60),
            0 => Duration::ZERO,
            1 => self.scene.between(20, 600),
            _ => self.scene.between(500, 8_000),
        };
        let token = self.next_token();
        let place = self.stores.enter(client);
        let permits = self.wanted_permits();
        let order = AcquireOrder {
            name: self.name.clone(),
            permits,
            token: token.clone(),
            ttl: Duration::from_millis(ttl_ms),
            wait,
            timeout: Duration::from_secs(3),
            fail_fast: !self.scene.calm && self.scene.rng.u32(0..8) == 0,
            adopt_after: None,
            owner: "1 sim client".into(),
            min_fence: 0,
            waiter: place.waiter(),
            foreign_share: false,
            early: 0.0,
        };
        let listening = self.scene.calm || self.scene.rng.bool();
        let machine = AcquireMachine::new(order, self.scene.now, listening, None, self.scene.dice());
        let renews = self.scene.rng.bool() && !self.scene.calm;
        self.begin(client, OpKind::Acquire { machine, place, token, permits, renews, ttl_ms });
    }

    pub(super) fn acquire_request(&self, token: stanchion::Token) -> Request {
        Request::Acquire(Acquire {
            name: self.name.clone(),
            permits: self.limit.map(|limit| Permits { weight: limit, limit }),
            token,
            ttl: Duration::from_millis(LONGEST_MS),
            min_fence: 0,
            waiter: None,
            patience: None,
            owner: "".into(),
            adopt: None,
            early: 0.0,
        })
    }

    /// Does what the machine of the running call asks.
    pub(super) fn step(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        loop {
            let step = match &mut op.kind {
                OpKind::Acquire { machine, .. } => Asked::of(machine.step(self.scene.now), Outcome::Acquired),
                OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                    Asked::of(machine.step(self.scene.now), Outcome::Answered)
                }
            };
            match step {
                Asked::Send(number, request, until) => {
                    if self.loses_its_place(&op, number) {
                        return self.start_over(client, op);
                    }
                    if let OpKind::Release { first_sent, .. } = &mut op.kind {
                        *first_sent = (*first_sent).min(self.scene.now);
                    }
                    op.awaited.push((number, until));
                    self.scene.send(client, Route::Op(op.id), number, request);
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Listen => {
                    if let OpKind::Acquire { machine, .. } = &mut op.kind {
                        machine.listening();
                    }
                }
                Asked::Wait(until) => {
                    if self.mutant != Some(Mutant::NeverPolls) {
                        self.scene.wake_at(client, until);
                    }
                    break;
                }
                Asked::Done(outcome) => return self.finish(client, op, outcome),
            }
        }
        self.clients[client].op = Some(op);
        Ok(())
    }

    pub(super) fn loses_its_place(&self, op: &Op, number: u32) -> bool {
        self.mutant == Some(Mutant::PollLosesPlace) && matches!(op.kind, OpKind::Acquire { .. }) && number > 1
    }

    pub(super) fn start_over(&mut self, client: usize, mut op: Op) -> Played {
        if let OpKind::Acquire { machine, .. } = &mut op.kind
            && let Some(request) = machine.abandon()
        {
            self.scene.run_errand(client, request);
        }
        self.begin_acquire(client);
        self.step(client)
    }

    pub(super) fn finish(&mut self, client: usize, mut op: Op, outcome: Outcome) -> Played {
        let errand = match &mut op.kind {
            OpKind::Acquire { machine, .. } => machine.abandon(),
            OpKind::Release { machine, .. } | OpKind::Break { machine } => machine.abandon(),
        };
        if let Some(request) = errand {
            self.scene.run_errand(client, request);
        }
        match (op.kind, outcome) {
            (
                OpKind::Acquire { token, permits, renews, ttl_ms, .. },
                Outcome::Acquired(Ok(Acquired::Granted(grant))),
            ) => {
                return self.granted(client, token, permits, renews, ttl_ms, &grant);
            }
            (
                OpKind::Release { token, fence, company, deadline, first_sent, .. },
                Outcome::Answered(Ok(answer)),
            ) if judge_release(&answer, fence, company, deadline).is_ok() => {
                self.checker.released(&token, first_sent)?;
            }
            _ => {}
        }
        let pause = self.scene.between(0, 200);
        self.scene.act_after(client, pause);
        Ok(())
    }

    pub(super) fn granted(
        &mut self,
        client: usize,
        token: stanchion::Token,
        permits: Option<Permits>,
        renews: bool,
        ttl_ms: u64,
        grant: &Grant,
    ) -> Played {
        let ttl = Duration::from_millis(ttl_ms);
        let mut deadline = grant.deadline;
        if self.mutant == Some(Mutant::DeadlineFromReply) {
            deadline = self.scene.now + ttl;
        }
        if self.mutant == Some(Mutant::IgnoresDeadline) {
            deadline = deadline + ttl * 4;
        }
        self.checker.began(self.scene.now, &token, grant.fence, permits.unwrap_or(ONE), deadline)?;
        if self.scene.calm {
            self.grants.push(client);
        }
        let hold = if self.scene.calm { 20..=50 } else { 0..=2 * ttl_ms };
        let ends = self.scene.now + Duration::from_millis(self.scene.rng.u64(hold));
        let lock = LockLease {
            name: self.name.clone(),
            token: token.clone(),
            fence: grant.fence,
            acquire_resent: grant.resent,
            foreign_share: false,
            share: permits.map(Share::new),
        };
        let hold_until = renews.then(|| self.scene.now + Duration::from_millis(LONGEST_MS * 2));
        let terms = LeaseTerms { leased: Leased::Lock(lock.clone()), ttl, deadline, hold_until };
        let id = self.scene.processes[client].next_id();
        let state = LeaseState::new(terms, self.scene.now);
        self.scene.wake_at(client, state.due());
        self.scene.wake_at(client, ends);
        self.clients[client].lease = Some(SimLease { id, state, lock, ends, renewal: None, renewals: 0 });
        self.write(client)
    }

    /// The owner writes to the resource, if it believes in its lease.
    pub(super) fn write(&mut self, client: usize) -> Played {
        match &self.clients[client].lease {
            Some(lease) if self.scene.now < lease.state.deadline() => {
                self.checker.writes(&lease.lock.token, lease.lock.fence)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn wake(&mut self, client: usize) -> Played {
        self.give_up_on_replies(client);
        self.step(client)?;
        self.care_for_lease(client)?;
        self.scene.care_for_errands(client);
        Ok(())
    }

    /// As the drivers do: a reply that has not come in time counts as lost.
    pub(super) fn give_up_on_replies(&mut self, client: usize) {
        let now = self.scene.now;
        let drops_late_replies = self.scene.processes[client].drops_late_replies;
        let Some(op) = self.clients[client].op.as_mut().filter(|_| drops_late_replies) else { return };
        while let Some(index) = op.awaited.iter().position(|(_, until)| *until <= now) {
            let (number, _) = op.awaited.remove(index);
            let lost = Err(Failure::new(FailureKind::Lost, "no answer"));
            match &mut op.kind {
                OpKind::Acquire { machine, .. } => machine.reply(now, number, lost),
                OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                    machine.reply(now, number, lost);
                }
            }
        }
    }

    pub(super) fn deliver(
        &mut self,
        client: usize,
        route: Route,
        number: u32,
        result: Result<Reply, Failure>,
    ) -> Played {
        match route {
            Route::Op(id) => {
                let now = self.scene.now;
                let drops_late_replies = self.scene.processes[client].drops_late_replies;
                let Some(op) = &mut self.clients[client].op else { return Ok(()) };
                let index = op.awaited.iter().position(|(awaited, _)| *awaited == number);
                if op.id != id || (index.is_none() && drops_late_replies) {
                    return Ok(());
                }
                index.map(|index| op.awaited.remove(index));
                match &mut op.kind {
                    OpKind::Acquire { machine, .. } => machine.reply(now, number, result),
                    OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                        machine.reply(now, number, result);
                    }
                }
                self.step(client)
            }
            Route::Renewal(id) => self.renewed(client, id, number, &result),
            Route::Errand(id) => {
                self.scene.errand_answered(client, id, &result);
                Ok(())
            }
        }
    }

    pub(super) fn renewed(
        &mut self,
        client: usize,
        id: u64,
        number: u32,
        result: &Result<Reply, Failure>,
    ) -> Played {
        let now = self.scene.now;
        let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
        let Some((awaited, sent, _)) = lease.renewal else { return Ok(()) };
        if lease.id != id || awaited != number {
            return Ok(());
        }
        lease.renewal = None;
        let (before, token) = (lease.state.deadline(), lease.lock.token.clone());
        if matches!(result, Ok(Reply::Extend(ExtendReply::Gone(_)))) {
            self.checker.refused(&token);
            if self.mutant == Some(Mutant::IgnoresRefusal) {
                return Ok(());
            }
        }
        if self.mutant == Some(Mutant::LateReplyRevives)
            && now >= before
            && let Ok(Reply::Extend(ExtendReply::Extended(left))) = result
        {
            return self.checker.prolonged(now, &token, now + *left);
        }
        let need = lease.state.extended(now, sent, result);
        let after = lease.state.deadline();
        if after != before {
            self.checker.prolonged(now, &token, after)?;
        }
        self.follow(client, need)
    }

    pub(super) fn hinted(&mut self, client: usize, op: u64) -> Played {
        let now = self.scene.now;
        let Some(running) = self.clients[client].op.as_mut().filter(|running| running.id == op) else {
            return Ok(());
        };
        let OpKind::Acquire { machine, token, permits, .. } = &mut running.kind else { return Ok(()) };
        if self.mutant == Some(Mutant::HintIsGrant) {
            let (token, permits) = (token.clone(), *permits);
            let fence = self.lease_or_offer(client);
            return self.checker.began(
                now,
                &token,
                fence,
                permits.unwrap_or(ONE),
                now + Duration::from_secs(1),
            );
        }
        machine.hint();
        if running.awaited.is_empty() || !self.scene.processes[client].drops_late_replies {
            return self.step(client);
        }
        Ok(())
    }

    pub(super) fn lease_or_offer(&mut self, client: usize) -> Fence {
        match self.store(client, &Request::Holder(Holder { name: self.name.clone() })) {
            Reply::Holder(held) => held.first().map_or(0, |holder| holder.fence),
            _ => 0,
        }
    }

    pub(super) fn cancel(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        let errand = match &mut op.kind {
            OpKind::Acquire { machine, .. } => machine.abandon(),
            OpKind::Release { machine, .. } | OpKind::Break { machine } => machine.abandon(),
        };
        drop(op);
        if let Some(request) = errand {
            self.scene.run_errand(client, request);
        }
        let pause = self.scene.between(0, 500);
        self.scene.act_after(client, pause);
        Ok(())
    }
}

/// A step of either machine.
pub(super) enum Asked {
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Done(Outcome),
}

pub(super) enum Outcome {
    Acquired(Result<Acquired, stanchion::Error>),
    Answered(Result<stanchion::engine::call::Answer, stanchion::Error>),
}

impl Asked {
    fn of<T>(step: Step<T>, outcome: impl FnOnce(Result<T, stanchion::Error>) -> Outcome) -> Self {
        match step {
            Step::Send(call) => Self::Send(call.number, call.request, call.until),
            Step::Listen => Self::Listen,
            Step::Wait { until, .. } => Self::Wait(until),
            Step::Done(result) => Self::Done(outcome(result)),
        }
    }
}
