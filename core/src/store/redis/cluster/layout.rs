//! Which node serves which slots, by the reply to CLUSTER SLOTS.

use redis::Value;

use crate::store::redis::cluster::slot;
use crate::store::url::Endpoint;

/// Ranges of slots with the nodes that serve them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// First slot, last slot, master.
    pub(super) ranges: Vec<(u16, u16, Endpoint)>,
    /// Who else can be asked.
    pub(super) replicas: Vec<Endpoint>,
}

impl Layout {
    /// The answer of the node at `teller`; `None` if it makes no sense.
    pub(super) fn parse(answer: &Value, teller: &Endpoint) -> Option<Self> {
        let Value::Array(rows) = answer else { return None };
        let mut layout = Self::default();
        for row in rows {
            let Value::Array(row) = row else { return None };
            let [Value::Int(first), Value::Int(last), nodes @ ..] = row.as_slice() else { return None };
            let first = u16::try_from(*first).ok()?;
            let last = u16::try_from(*last).ok().filter(|last| first <= *last && *last < slot::COUNT)?;
            let mut nodes = nodes.iter();
            if let Some(master) = node(nodes.next()?, teller)? {
                layout.ranges.push((first, last, master));
            }
            for replica in nodes {
                let Some(replica) = node(replica, teller)? else { continue };
                if !layout.replicas.contains(&replica) {
                    layout.replicas.push(replica);
                }
            }
        }
        Some(layout)
    }
}

/// Where a node listens: no host means that of the node that replied, and "?" that it does not know.
fn node(value: &Value, teller: &Endpoint) -> Option<Option<Endpoint>> {
    let Value::Array(items) = value else { return None };
    let [host, Value::Int(port), ..] = items.as_slice() else { return None };
    let port = u16::try_from(*port).ok()?;
    let host = match host {
        Value::Nil => "",
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        _ => return None,
    };
    let host = if host.is_empty() { &*teller.host } else { host };
    Some((host != "?").then(|| Endpoint { host: host.to_owned(), port }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Endpoint {
        Endpoint { host: host.into(), port }
    }

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port), Value::BulkString("id".into())])
    }

    fn row(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    #[test]
    fn ranges_have_a_master_and_replicas() {
        let answer = Value::Array(vec![
            row(0, 9, vec![node("a", 1), node("b", 2)]),
            row(10, 16_383, vec![node("", 3), node("b", 2)]),
            row(7, 7, vec![node("?", 4)]),
        ]);
        let layout = Layout::parse(&answer, &at("teller", 9)).unwrap();
        assert_eq!(layout.ranges, [(0, 9, at("a", 1)), (10, 16_383, at("teller", 3))]);
        assert_eq!(layout.replicas, [at("b", 2)]);
    }

    #[test]
    fn nonsense_is_refused() {
        for answer in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![row(0, 16_384, vec![node("a", 1)])]),
            Value::Array(vec![row(5, 4, vec![node("a", 1)])]),
            Value::Array(vec![row(-1, 4, vec![node("a", 1)])]),
            Value::Array(vec![row(0, 4, vec![])]),
            Value::Array(vec![row(0, 4, vec![node("a", 70_000)])]),
            Value::Array(vec![row(0, 4, vec![Value::Nil])]),
        ] {
            assert_eq!(Layout::parse(&answer, &at("teller", 9)), None, "{answer:?}");
        }
    }
}
