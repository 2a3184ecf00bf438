//! A look at a cached value by plain reads, in one round trip: for a value that is fresh without a doubt it says what the
//! script would, at the server's price of a GET. In any doubt there is no answer, and the script is asked.

use std::time::Duration;

use redis::{Pipeline, Value};

use crate::base::name::LockKind;
use crate::protocol::{Acquire, Request};
use crate::store::redis::code::Code;
use crate::store::redis::keys::LockKey;

/// How many answers a look has.
pub(crate) const ANSWERS: usize = 2;

pub(crate) struct Look {
    pub(crate) commands: Pipeline,
    early: f64,
}

impl Look {
    /// For a request that wants one.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let Request::Acquire(Acquire { name, looks: true, early, .. }) = request else { return None };
        if name.kind() != LockKind::Cached {
            return None;
        }
        let key = LockKey::Value.of(name, None);
        let mut commands = redis::pipe();
        // In this order: should another value come in between, its own life is longer than the one that was told.
        commands.cmd("PTTL").arg(&*key);
        commands.cmd("HMGET").arg(&*key).arg(&["took", "fresh_until", "stale", "value"]);
        Some(Self { commands, early: *early })
    }

    /// The script's answer, if the value is fresh. Only the server's clock counts: for the last part of the key's life the
    /// value is stale, and it counts as stale so many computation times before that.
    pub(crate) fn judge(&self, answers: &[Value]) -> Option<Value> {
        let [Value::Int(left), Value::Array(fields)] = answers else { return None };
        let texts: Option<Vec<_>> = fields.iter().map(text).collect();
        let [took, fresh_until, stale, value] = texts?[..] else { return None };
        // An older library leaves the one that it finds, of a value that ended at another time.
        let stale = stale.strip_prefix(fresh_until)?.strip_prefix(b" ")?;
        let fresh_for = u64::try_from(*left).ok()?.checked_sub(millis(stale)?)?;
        let seconds = |millis| Duration::from_millis(millis).as_secs_f64();
        let is_fresh = seconds(fresh_for) > seconds(millis(took)?) * self.early;
        is_fresh
            .then(|| Value::Array(vec![Value::Int(Code::Cached as i64), Value::BulkString(value.to_vec())]))
    }
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

fn millis(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(left: i64, early: f64, fields: [Option<&str>; 4]) -> bool {
        let field = |field: Option<&str>| field.map_or(Value::Nil, |text| Value::BulkString(text.into()));
        let answers = [Value::Int(left), Value::Array(fields.map(field).into())];
        let answer = Look { commands: redis::pipe(), early }.judge(&answers);
        let value = || Value::BulkString("v".into());
        assert!(answer.iter().all(|answer| *answer == Value::Array(vec![Value::Int(43), value()])));
        answer.is_some()
    }

    #[test]
    fn only_a_value_that_is_fresh_is_an_answer() {
        let value = [Some("200"), Some("1800000000000"), Some("1800000000000 5000"), Some("v")];
        let without = |place: usize| {
            let mut fields = value;
            fields[place] = None;
            fields
        };
        assert!(found(5_001, 0.0, value));
        assert!(!found(5_000, 0.0, value), "stale");
        assert!(found(6_001, 5.0, value));
        assert!(!found(6_000, 5.0, value), "by so many computation times too late");
        assert!(!found(4_999, 0.0, value), "stale for long");
        assert!((0..4).all(|place| !found(5_001, 0.0, without(place))));
        let [took, end, ..] = value;
        for stale in ["1799999999999 5000", "1800000000000", "1800000000000 -5000", "18000000000005000", ""] {
            assert!(!found(5_001, 0.0, [took, end, Some(stale), Some("v")]), "{stale:?}");
        }
        // Neither a key nor its end.
        assert!([-1, -2].iter().all(|left| !found(*left, 0.0, value)));
    }

    #[test]
    fn nonsense_is_no_answer() {
        let look = Look { commands: redis::pipe(), early: 0.0 };
        let int = || Value::Int(9_000);
        for answers in [vec![], vec![int()], vec![int(), int()], vec![Value::Nil, Value::Array(vec![])]] {
            assert_eq!(look.judge(&answers), None);
        }
    }
}
