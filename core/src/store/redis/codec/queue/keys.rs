//! Requests and replies about keys and limits.

use std::time::Duration;

use redis::Cmd;

use crate::base::name::TaskKey;
use crate::protocol::{
    Configure, Gate, KeyRecord, LimitKey, ListKeys, ListKeysReply, OwnLimits, Place, QueueSettings,
    QueueStats, Rate,
};
use crate::store::redis::codec::queue::reply::Items;
use crate::store::redis::codec::queue::{millis, text};

/// What a queue lets go and run at most, as configure.lua reads it: nothing leaves it, 0 takes it away.
pub(super) fn encode_limits(command: &mut Cmd, configure: &Configure) {
    let Configure { max_running, rate, key_concurrency, key_rate, .. } = configure;
    command.arg(text(max_running.map(|most| most.unwrap_or(0))));
    encode_rate(command, *rate);
    command.arg(text(key_concurrency.map(|most| most.unwrap_or(0).into())));
    encode_rate(command, *key_rate);
}

fn encode_rate(command: &mut Cmd, rate: Option<Option<Rate>>) {
    match rate {
        None => command.arg("").arg("").arg(""),
        Some(rate) => arg_rate(command, rate),
    };
}

fn arg_rate(command: &mut Cmd, rate: Option<Rate>) -> &mut Cmd {
    let (count, per, burst) = rate.map_or((0, 0, 0), |rate| (rate.count, millis(rate.per), rate.burst));
    command.arg(count).arg(per).arg(burst)
}

pub(super) fn encode_limit(command: &mut Cmd, limit: &LimitKey) {
    command.arg(limit.key.as_str());
    if let Some(OwnLimits { concurrency, rate, weight }) = limit.limits {
        command.arg(concurrency.unwrap_or(0));
        arg_rate(command, rate).arg(weight);
    }
}

pub(super) fn encode_list(command: &mut Cmd, list: &ListKeys) {
    match list {
        ListKeys::One(key) => command.arg("").arg(key.as_str()),
        ListKeys::Page { from: Some(Place { part, member, .. }), max } => {
            command.arg(*max).arg(*part).arg(&**member)
        }
        ListKeys::Page { from: None, max } => command.arg(*max).arg(0).arg(""),
    };
}

impl Items<'_> {
    pub(super) fn keys(&mut self) -> Option<ListKeysReply> {
        let (part, member) = (u8::try_from(self.int()?).ok()?, self.bytes()?);
        let next = (part > 0).then(|| Place { part, score: "0".into(), member: member.into() });
        let mut keys = Vec::new();
        while !self.is_empty() {
            keys.push(self.key()?);
        }
        Some(ListKeysReply { keys, next })
    }

    fn key(&mut self) -> Option<KeyRecord> {
        Some(KeyRecord {
            key: TaskKey::stored(self.bytes()?),
            running: self.number()?,
            in_line: self.number()?,
            held: self.number()?,
            opens: self.maybe()?.map(Duration::from_millis),
            limits: match self.bytes()? {
                [] => None,
                own => Some(own_limits(own)?),
            },
        })
    }

    /// What stats.lua says of limits.
    pub(super) fn limits(&mut self, stats: &mut QueueStats) -> Option<()> {
        (stats.held, stats.keys_waiting) = (self.number()?, self.number()?);
        stats.next_key = self.maybe()?.map(Duration::from_millis);
        let is_full = self.int()? == 1;
        let (opens, is_throttled) = (self.maybe()?.map(Duration::from_micros), self.int()? == 1);
        stats.gate = match opens {
            _ if stats.paused => Gate::Paused,
            Some(left) if is_throttled => Gate::Throttled(left),
            _ if is_full => Gate::MaxRunning,
            Some(left) => Gate::Rate(left),
            None => Gate::Open,
        };
        let settings: &mut QueueSettings = &mut stats.settings;
        settings.max_running = Some(self.number()?).filter(|most| *most > 0);
        settings.rate = self.rate()?;
        settings.key_concurrency = Some(self.number()?.try_into().ok()?).filter(|most| *most > 0);
        settings.key_rate = self.rate()?;
        Some(())
    }

    /// `None` within if there is none.
    fn rate(&mut self) -> Option<Option<Rate>> {
        rate(self.number()?, self.number()?, self.number()?)
    }
}

fn rate(count: u64, per: u64, burst: u64) -> Option<Option<Rate>> {
    let rate = Rate {
        count: count.try_into().ok()?,
        per: Duration::from_millis(per),
        burst: burst.try_into().ok()?,
    };
    Some(Some(rate).filter(|rate| rate.count > 0))
}

/// As limit_key.lua writes them.
fn own_limits(text: &[u8]) -> Option<OwnLimits> {
    let numbers: Option<Vec<u64>> =
        str::from_utf8(text).ok()?.split(' ').map(|number| number.parse().ok()).collect();
    let [concurrency, count, per, burst, weight] = *numbers? else { return None };
    Some(OwnLimits {
        concurrency: Some(concurrency.try_into().ok()?).filter(|most| *most > 0),
        rate: rate(count, per, burst)?,
        weight: weight.try_into().ok()?,
    })
}
