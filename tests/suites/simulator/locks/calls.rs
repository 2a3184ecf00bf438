//! Calls of the users: begun, driven, finished, cancelled.

use super::*;

impl World<'_> {
    pub(super) fn act(&mut self, client: usize) -> Played {
        if !self.clients[client].is_idle() || self.scene.processes[client].turns == 0 {
            return Ok(());
        }
        self.scene.processes[client].turns -= 1;
        if !self.scene.calm && self.breaks && self.scene.rng.u32(0..4) == 0 {
            let name = self.any_name();
            let request = Request::BreakLease(BreakLease { name });
            let machine = CallMachine::new(
                request,
                self.scene.now,
                self.scene.now + Duration::from_secs(2),
                self.scene.jitter(),
            );
            self.begin(client, OpKind::Break { machine: machine.once() });
        } else if self.names.len() > 1 && self.scene.rng.bool() {
            self.begin_several(client);
        } else {
            self.begin_acquire(client);
        }
        self.step(client)
    }

    pub(super) fn begin(&mut self, client: usize, kind: OpKind) {
        let id = self.scene.processes[client].next_id();
        self.clients[client].op =
            Some(Op { id, kind, awaited: Vec::new(), asked: Sendings::default(), left: Sendings::default() });
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

    fn any_name(&mut self) -> LockName {
        let index = self.scene.rng.usize(0..self.names.len());
        self.names[index].clone()
    }

    /// What a call asks for, with its ttl in milliseconds.
    fn order(&mut self, name: LockName, place: &Place) -> (AcquireParams, u64) {
        let ttl_ms = if self.scene.calm { 500 } else { self.scene.rng.u64(50..=LONGEST_MS) };
        let wait = match self.scene.rng.u32(0..5) {
            _ if self.scene.calm => Duration::from_secs(60),
            0 => Duration::ZERO,
            1 => self.scene.between(20, 600),
            _ => self.scene.between(500, 8_000),
        };
        let (ttl, timeout) = (Duration::from_millis(ttl_ms), Duration::from_secs(3));
        let plan = LockPlan {
            permits: self.wanted_permits(),
            fail_fast: !self.scene.calm && self.scene.rng.u32(0..8) == 0,
            can_do_without: !self.scene.calm && self.scene.rng.u32(0..8) == 0,
            ..LockPlan::new(name, ttl, wait, timeout, "1 sim client".into())
        };
        let (token, waiter) = (self.next_token(), place.waiter());
        (AcquireParams { plan, token, min_fence: Fence::NONE, waiter }, ttl_ms)
    }

    pub(super) fn begin_acquire(&mut self, client: usize) {
        let place = self.enter(client);
        let name = self.any_name();
        let (order, ttl_ms) = self.order(name.clone(), &place);
        let (token, permits) = (order.token.clone(), order.plan.permits);
        let listening = self.scene.calm || self.scene.rng.bool();
        let machine = AcquireMachine::new(order, self.scene.now, listening, None, self.scene.jitter());
        let renews = self.scene.rng.bool() && !self.scene.calm;
        self.begin(client, OpKind::Acquire { machine, place, name, token, permits, renews, ttl_ms });
    }

    /// All locks that there are, together.
    fn begin_several(&mut self, client: usize) {
        let place = self.enter(client);
        let (first, ttl_ms) = self.order(self.names[0].clone(), &place);
        let lock = |name: &LockName| {
            let plan = LockPlan { name: name.clone(), ..first.plan.clone() };
            AcquireParams { plan, ..first.clone() }
        };
        let locks: Vec<_> = self.names.iter().map(lock).collect();
        let foreign_holders = vec![None; locks.len()];
        let order = SeveralParams { locks, foreign_holders, in_one_step: self.scene.rng.bool() };
        let listening = self.scene.calm || self.scene.rng.bool();
        let machine = SeveralMachine::new(order, self.scene.now, listening, self.scene.jitter());
        let renews = self.scene.rng.bool() && !self.scene.calm;
        self.begin(client, OpKind::Several { machine, place, renews, ttl_ms });
    }

    pub(super) fn acquire_request(&self, name: &LockName, token: Token) -> Request {
        Request::Acquire(Acquire {
            name: name.clone(),
            permits: self.limit.map(|limit| Permits { weight: limit, limit }),
            token,
            ttl: Duration::from_millis(LONGEST_MS),
            min_fence: Fence::NONE,
            waiter: None,
            patience: None,
            owner: "".into(),
            adopt: None,
            early: 0.0,
            looks: false,
        })
    }

    /// Does what the machine of the running call asks.
    pub(super) fn step(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        loop {
            let step = match &mut op.kind {
                OpKind::Acquire { machine, .. } => Asked::of(machine.step(self.scene.now), Outcome::Acquired),
                OpKind::Several { machine, .. } => Asked::of(machine.step(self.scene.now), Outcome::Several),
                OpKind::Release { machine, .. }
                | OpKind::Break { machine }
                | OpKind::Change { machine, .. } => {
                    Asked::of(machine.step(self.scene.now), Outcome::Answered)
                }
            };
            match step {
                Asked::Send(number, request, until) => {
                    if self.loses_its_place(&op, number) {
                        return self.start_over(client, op);
                    }
                    if let Some(reply) = self.forged(&op, &request) {
                        op.kind.reply(self.scene.now, number, Ok(reply));
                        continue;
                    }
                    op.asked.add(self.scene.now);
                    op.awaited.push((number, until));
                    if self.scene.send(client, Route::Op(op.id), number, request) {
                        op.left.add(self.scene.now);
                    }
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Listen => match &mut op.kind {
                    OpKind::Acquire { machine, .. } => machine.listening(),
                    OpKind::Several { machine, .. } => machine.listening(),
                    _ => {}
                },
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

    /// What a mutant believes without asking.
    fn forged(&self, op: &Op, request: &Request) -> Option<Reply> {
        let forgets = self.mutant == Some(Mutant::ForgetsEarlierLocks);
        match (&op.kind, request) {
            (OpKind::Several { .. }, Request::Extend(extend)) if forgets => {
                Some(Reply::Extend(ExtendReply::Extended(extend.ttl)))
            }
            _ => None,
        }
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
        while let Some(request) = op.kind.abandon() {
            self.scene.run_errand(client, request);
        }
        match (op.kind, outcome) {
            (
                OpKind::Acquire { name, token, permits, renews, ttl_ms, .. },
                Outcome::Acquired(Ok(Acquired::Granted(grant))),
            ) => {
                if self.scene.calm {
                    self.grants.push((client, self.scene.now));
                }
                let ends = self.holds_until(ttl_ms);
                return self.granted(client, &name, token, permits, renews, ttl_ms, &grant, ends);
            }
            (
                OpKind::Several { renews, ttl_ms, .. },
                Outcome::Several(Ok(Several::Granted { token, grants })),
            ) => {
                if self.scene.calm {
                    self.grants.push((client, self.scene.now));
                }
                self.tally.together += 1;
                let ends = self.holds_until(ttl_ms);
                for (name, grant) in self.names.clone().iter().zip(&grants) {
                    self.granted(client, name, token.clone(), None, renews, ttl_ms, grant, ends)?;
                }
                return Ok(());
            }
            (
                OpKind::Release { name, token, fence, company, deadline, .. },
                Outcome::Answered(Ok(mut answer)),
            ) => {
                if self.mutant == Some(Mutant::CountsUnsent) {
                    answer.copies = op.asked.count;
                    answer.first_sent = op.asked.first.unwrap_or(answer.first_sent);
                }
                if judge_release(&answer, fence, company, deadline).is_ok() {
                    let first_sent = op.left.first.unwrap_or(Moment::FAR);
                    self.checker(&name).released(&token, first_sent, op.left.count > 1)?;
                }
                return self.release_next(client);
            }
            (OpKind::Release { .. }, _) => return self.release_next(client),
            (OpKind::Change { lease, share, upgrades, .. }, Outcome::Answered(answer)) => {
                return self.changed(client, lease, &share, upgrades, answer);
            }
            _ => {}
        }
        let pause = self.scene.between(0, 200);
        self.scene.act_after(client, pause);
        Ok(())
    }

    fn holds_until(&mut self, ttl_ms: u64) -> Moment {
        let hold = if self.scene.calm { 20..=50 } else { 0..=2 * ttl_ms };
        self.scene.now + Duration::from_millis(self.scene.rng.u64(hold))
    }

    #[allow(clippy::too_many_arguments, reason = "what a lease is made of")]
    pub(super) fn granted(
        &mut self,
        client: usize,
        name: &LockName,
        token: Token,
        permits: Option<Permits>,
        renews: bool,
        ttl_ms: u64,
        grant: &Grant,
        ends: Moment,
    ) -> Played {
        let (now, ttl) = (self.scene.now, Duration::from_millis(ttl_ms));
        let mut deadline = grant.deadline;
        if self.mutant == Some(Mutant::DeadlineFromReply) {
            deadline = now + ttl;
        }
        if self.mutant == Some(Mutant::IgnoresDeadline) {
            deadline = deadline + ttl * 4;
        }
        self.checker(name).began(now, &token, grant.fence, permits.unwrap_or(ONE), deadline)?;
        let lock = LockLease {
            name: name.clone(),
            token,
            granted: grant.fence,
            acquire_resent: grant.resent,
            foreign_share: false,
            share: permits.map(Share::new),
            owner: "".into(),
        };
        let hold_until = renews.then(|| now + Duration::from_millis(LONGEST_MS * 2));
        let terms =
            LeaseTerms { leased: Leased::Lock(lock.clone()), ttl, deadline, hold_until, timeout: None };
        let id = self.scene.processes[client].next_id();
        let state = LeaseState::new(terms, now);
        self.scene.wake_at(client, state.due());
        self.scene.wake_at(client, ends);
        let lease = SimLease { id, state, lock, ends, renewal: None, renewals: 0, is_over: false };
        self.clients[client].leases.push(lease);
        self.write(client, id)?;
        self.change(client, id)
    }

    /// The owner writes to the resource, if it believes in its lease.
    pub(super) fn write(&mut self, client: usize, id: u64) -> Played {
        let now = self.scene.now;
        match self.lease(client, id) {
            Some(lease) if now < lease.state.deadline() => {
                let LockLease { name, token, .. } = lease.lock.clone();
                let fence = lease.lock.fence();
                self.checker(&name).writes(&token, fence)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn wake(&mut self, client: usize) -> Played {
        self.give_up_on_replies(client);
        self.step(client)?;
        self.care_for_leases(client)?;
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
            op.kind.reply(now, number, lost);
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
                op.kind.reply(now, number, result);
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
        let mutant = self.mutant;
        let Some(lease) = self.lease(client, id) else { return Ok(()) };
        let Some((awaited, sent, _)) = lease.renewal else { return Ok(()) };
        if awaited != number {
            return Ok(());
        }
        lease.renewal = None;
        let before = lease.state.deadline();
        let LockLease { name, token, .. } = lease.lock.clone();
        let is_refused = matches!(result, Ok(Reply::Extend(ExtendReply::Gone(_))));
        let revives = mutant == Some(Mutant::LateReplyRevives) && now >= before;
        if revives && let Ok(Reply::Extend(ExtendReply::Extended(left))) = result {
            return self.checker(&name).prolonged(now, &token, now + *left);
        }
        if is_refused && mutant == Some(Mutant::IgnoresRefusal) {
            self.checker(&name).refused(&token);
            return Ok(());
        }
        let need = lease.state.extended(now, sent, result);
        let after = lease.state.deadline();
        if is_refused {
            self.checker(&name).refused(&token);
        }
        if after != before {
            self.checker(&name).prolonged(now, &token, after)?;
        }
        self.follow(client, id, need)
    }

    pub(super) fn hinted(&mut self, client: usize, op: u64) -> Played {
        let now = self.scene.now;
        let Some(running) = self.clients[client].op.as_mut().filter(|running| running.id == op) else {
            return Ok(());
        };
        if self.mutant == Some(Mutant::HintIsGrant)
            && let OpKind::Acquire { name, token, permits, .. } = &running.kind
        {
            let (name, token, permits) = (name.clone(), token.clone(), *permits);
            let fence = self.lease_or_offer(client, &name);
            return self.checker(&name).began(
                now,
                &token,
                fence,
                permits.unwrap_or(ONE),
                now + Duration::from_secs(1),
            );
        }
        match &mut running.kind {
            OpKind::Acquire { machine, .. } => machine.hint(),
            OpKind::Several { machine, .. } => machine.hint(),
            _ => return Ok(()),
        }
        if running.awaited.is_empty() || !self.scene.processes[client].drops_late_replies {
            return self.step(client);
        }
        Ok(())
    }

    pub(super) fn lease_or_offer(&mut self, client: usize, name: &LockName) -> Fence {
        match self.store(client, &Request::Holder(Holder { name: name.clone() })) {
            Reply::Holder(held) => held.first().map_or(Fence::NONE, |holder| holder.fence),
            _ => Fence::NONE,
        }
    }

    pub(super) fn cancel(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        while let Some(request) = op.kind.abandon() {
            self.scene.run_errand(client, request);
        }
        if matches!(op.kind, OpKind::Release { .. }) {
            return self.release_next(client);
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
    Several(Result<Several, stanchion::Error>),
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
