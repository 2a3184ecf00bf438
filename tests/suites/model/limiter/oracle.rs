//! What a limiter has to answer, computed from nothing but the list of all that was granted.

use stanchion::protocol::{LimitKind, Rule};

/// Deliberate mistakes: each must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Of a rate, one more at once.
    BurstIsLarger,
    /// Of windows, one more.
    WindowIsLarger,
    /// A microsecond too early.
    IsEarly,
    /// A window ends a microsecond later.
    WindowIsClosed,
    /// Who needs less passes those who are in line.
    NoLine,
    /// A reservation is given back also from the middle of the line.
    GivesAnyBack,
    /// What was given back stays taken.
    KeepsAll,
    /// A try reserves.
    TriesReserve,
}

/// What was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When it begins.
    pub begins: u64,
    /// How many.
    pub count: u32,
    /// Whose reservation it is.
    pub token: Option<u128>,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Oracle {
    rule: Rule,
    mutant: Option<Mutant>,
    /// In the order of the calls, and so of their beginnings.
    pub grants: Vec<Grant>,
    /// The last window that was looked at: those before are passed.
    window: u64,
}

impl Oracle {
    pub fn new(rule: Rule, mutant: Option<Mutant>) -> Self {
        Self { rule, mutant, grants: Vec::new(), window: 0 }
    }

    fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// When so many would begin. A token can wait for so long, in us; `Err`: it is refused for so long.
    pub fn take(&mut self, now: u64, count: u32, wait: Option<(u64, u128)>) -> Result<u64, u64> {
        let mut begins = self.earliest(now, count);
        if self.has(Mutant::IsEarly) && begins > now {
            begins -= 1;
        }
        let ahead = begins - now;
        let most = wait.map_or(0, |(most, _)| most);
        if ahead > most && !self.has(Mutant::TriesReserve) {
            return Err(ahead);
        }
        let token = wait.map(|(_, token)| token).filter(|_| ahead > 0);
        self.grants.push(Grant { begins, count, token });
        self.window = begins - begins % self.rule.per;
        if ahead > most { Err(ahead) } else { Ok(ahead) }
    }

    /// Whether the reservation is given back.
    pub fn give_back(&mut self, token: u128) -> bool {
        let found = self.grants.iter().rposition(|grant| grant.token == Some(token));
        let last = self.grants.len().checked_sub(1);
        let Some(place) = found.filter(|_| found == last || self.has(Mutant::GivesAnyBack)) else {
            return false;
        };
        if !self.has(Mutant::KeepsAll) {
            self.grants.remove(place);
        }
        // Those that are left are nobody's to give back: the store knows of the last take only.
        self.grants.iter_mut().for_each(|grant| grant.token = None);
        true
    }

    fn earliest(&self, now: u64, count: u32) -> u64 {
        let last = self.grants.last().map_or(0, |grant| grant.begins);
        let first = if self.has(Mutant::NoLine) { now } else { now.max(last) };
        match self.rule.kind {
            LimitKind::Gcra => self.when_the_bucket_has_room(first, count),
            LimitKind::FixedWindow => self.when_a_window_has_room(first, count),
            _ => self.when_all_windows_have_room(first, count),
        }
    }

    /// A bucket that each grant fills and that leaks all the time, in us of leaking.
    fn when_the_bucket_has_room(&self, first: u64, count: u32) -> u64 {
        let (mut level, mut then) = (0_u64, 0_u64);
        for grant in &self.grants {
            level = level.saturating_sub(grant.begins.saturating_sub(then)) + self.rule.cost(grant.count);
            then = then.max(grant.begins);
        }
        let burst = self.rule.burst + u32::from(self.has(Mutant::BurstIsLarger));
        let room = self.rule.cost(burst) - self.rule.cost(count);
        let at_first = level.saturating_sub(first.saturating_sub(then));
        first + at_first.saturating_sub(room)
    }

    fn when_a_window_has_room(&self, first: u64, count: u32) -> u64 {
        let per = self.rule.per;
        let mut window = first - first % per;
        if !self.has(Mutant::NoLine) {
            window = window.max(self.window);
        }
        while self.granted_within(window, window + per - 1) + u64::from(count) > self.most() {
            window += per;
        }
        first.max(window)
    }

    fn when_all_windows_have_room(&self, first: u64, count: u32) -> u64 {
        let per = self.rule.per - 1 + u64::from(self.has(Mutant::WindowIsClosed));
        let ends = self.grants.iter().map(|grant| grant.begins + per + 1);
        let mut times: Vec<_> = ends.filter(|end| *end > first).chain([first]).collect();
        times.sort_unstable();
        let fits = |time: &u64| self.granted_within(time - per, *time) + u64::from(count) <= self.most();
        times.into_iter().find(fits).unwrap()
    }

    fn most(&self) -> u64 {
        u64::from(self.rule.most) + u64::from(self.has(Mutant::WindowIsLarger))
    }

    /// How many begin from one time to another, both of them in it.
    fn granted_within(&self, first: u64, last: u64) -> u64 {
        let within = self.grants.iter().filter(|grant| (first..=last).contains(&grant.begins));
        within.map(|grant| u64::from(grant.count)).sum()
    }

    /// Whether there were ever more than the limit: of each time from one grant to another.
    pub fn excess(&self) -> Option<String> {
        let Rule { kind, most, per, burst } = self.rule;
        for (place, from) in self.grants.iter().enumerate() {
            let mut granted = 0;
            for to in &self.grants[place..] {
                granted += u64::from(to.count);
                let lasts = to.begins - from.begins;
                let allowed = match kind {
                    LimitKind::Gcra => {
                        u128::from(burst) + u128::from(lasts) * u128::from(most) / u128::from(per)
                    }
                    LimitKind::FixedWindow if from.begins / per == to.begins / per => most.into(),
                    LimitKind::SlidingWindow if lasts < per => most.into(),
                    _ => u128::MAX,
                };
                if u128::from(granted) > allowed {
                    return Some(format!("{granted} in {lasts} us, no more than {allowed} are allowed"));
                }
            }
        }
        None
    }
}
