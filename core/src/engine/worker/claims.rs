//! The claims of a worker that are on their way.

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claiming {
    /// It asks for so many tasks.
    pub(super) max: usize,
    /// It waits for tasks. Such a one is alone.
    pub(super) waits: bool,
    /// It began while there was work: when this is done, there may be nothing to wait for any more.
    pub(super) beside_work: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Claims {
    /// So many at once.
    most: usize,
    /// What one asks for at most. With several on their way, one share of the hands is at work meanwhile.
    share: usize,
    sent: Vec<Claiming>,
    /// The last one brought as many as it asked for: there may be work for one more.
    plenty: bool,
}

impl Claims {
    pub(super) fn new(most: usize, hands: usize) -> Self {
        let shares = if most > 1 { most + 1 } else { 1 };
        Self { most, share: (hands / shares).max(1), sent: Vec::new(), plenty: false }
    }

    /// How many tasks the next one is to ask for, with so many hands free; none if no claim is to be sent now.
    pub(super) fn next(&self, free: usize, waits: bool) -> usize {
        let expected: usize = self.sent.iter().map(|claiming| claiming.max).sum();
        let max = free.saturating_sub(expected).min(self.share);
        if self.sent.is_empty() || self.may_share(max, waits) { max } else { 0 }
    }

    /// Whether it may be sent beside those on their way: a small one would cost more than it brings.
    fn may_share(&self, max: usize, waits: bool) -> bool {
        let is_room = self.sent.len() < self.most && self.plenty && max == self.share;
        is_room && !waits && self.waiting().is_none()
    }

    pub(super) fn send(&mut self, claiming: Claiming) {
        self.sent.push(claiming);
    }

    /// One has brought so many tasks.
    pub(super) fn answered(&mut self, count: usize) {
        self.plenty = count >= self.ended();
    }

    /// One is on its way no more; how many it asked for. Which of them is not said: the smallest, so that no more tasks
    /// come than there are hands.
    pub(super) fn ended(&mut self) -> usize {
        let smallest = (0..self.sent.len()).min_by_key(|number| self.sent[*number].max);
        smallest.map_or(0, |number| self.sent.remove(number).max)
    }

    pub(super) fn give_up(&mut self) {
        self.sent.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The one that waits for tasks.
    pub(super) fn waiting(&self) -> Option<Claiming> {
        self.sent.first().copied().filter(|claiming| claiming.waits)
    }

    /// Whether one is on its way that comes back at once.
    pub(super) fn come_back(&self) -> bool {
        !self.sent.is_empty() && self.waiting().is_none()
    }
}
