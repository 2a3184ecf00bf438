use std::time::Instant;

use super::*;
use crate::shared;

/// A connection through the proxy that does not wait long for replies.
fn raw(proxy: &Proxy) -> redis::Connection {
    let raw = redis::Client::open(proxy.url()).unwrap().get_connection().unwrap();
    raw.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    raw
}

fn incr(raw: &mut redis::Connection, key: &str) -> redis::RedisResult<i64> {
    redis::cmd("INCR").arg(key).query(raw)
}

#[test]
fn without_rules_it_only_counts() {
    let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
    assert_eq!(incr(&mut raw(&proxy), &key).unwrap(), 1);
    assert_eq!(proxy.count("INCR"), 1);
}

#[test]
fn each_fault_does_what_it_says() {
    // Whether the client gets an answer, and how often the server performed the request.
    let rows = [
        (Fault::Drop, false, 0),
        (Fault::SwallowReply, false, 1),
        (Fault::Duplicate, true, 2),
        (Fault::CutBefore, false, 0),
        (Fault::CutAfter, false, 1),
        (Fault::Rewrite(b"+what\r\n".to_vec()), false, 1),
        (Fault::Refuse(b"-BUSY\r\n".to_vec()), false, 0),
        (Fault::DelayRequest(Duration::from_millis(20)), true, 1),
        (Fault::DelayReply(Duration::from_millis(20)), true, 1),
    ];
    for (fault, is_answered, performed) in rows {
        let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
        proxy.fault("INCR", 1, fault.clone());
        let begun = Instant::now();
        let answer = incr(&mut raw(&proxy), &key);
        assert_eq!(answer.is_ok(), is_answered, "{fault:?}: {answer:?}");
        assert_eq!(proxy.faults_left(), 0);
        if let Fault::DelayRequest(time) | Fault::DelayReply(time) = fault {
            assert!(begun.elapsed() >= time);
        }
        let get = || shared().cli(&["GET", &key]).parse().unwrap_or(0);
        crate::wait::eventually(crate::wait::SOON, || get() == performed);
        assert_eq!(incr(&mut raw(&proxy), &key).unwrap(), performed + 1, "{fault:?}");
    }
}

#[test]
fn after_a_lost_reply_the_connection_is_a_black_hole() {
    let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
    proxy.fault("INCR", 1, Fault::SwallowReply);
    let mut raw = raw(&proxy);
    incr(&mut raw, &key).unwrap_err();
    redis::cmd("PING").query::<String>(&mut raw).unwrap_err();
}

#[test]
fn scripts_are_counted_by_their_verb() {
    let proxy = Proxy::start(shared());
    let mut raw = raw(&proxy);
    for (verb, script) in SCRIPTS.all() {
        // Without keys it fails, which does not matter here.
        let _ = redis::cmd("EVALSHA").arg(&script.sha).arg(0).query::<redis::Value>(&mut raw);
        let _ = redis::cmd("EVAL").arg(&script.text).arg(0).query::<redis::Value>(&mut raw);
        assert_eq!(proxy.count(verb), 2, "{verb}");
    }
}

#[test]
fn slices_arrive_whole() {
    let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
    let mut raw = raw(&proxy);
    proxy.flow(Flow { sliced: Some(Duration::ZERO), ..Flow::default() });
    assert_eq!(incr(&mut raw, &key).unwrap(), 1);
}

#[test]
fn what_is_held_back_comes_later() {
    for (half, performed) in [(Half::Requests, 0), (Half::Replies, 1), (Half::Both, 0)] {
        let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
        let mut raw = raw(&proxy);
        proxy.flow(Flow { held: Some(half), ..Flow::default() });
        assert!(incr(&mut raw, &key).is_err_and(|error| error.is_timeout()), "{half:?}");
        let get = || shared().cli(&["GET", &key]).parse().unwrap_or(0);
        crate::wait::eventually(crate::wait::SOON, || get() == performed);
        proxy.flow(Flow::default());
        crate::wait::eventually(crate::wait::SOON, || get() == 1);
    }
}
