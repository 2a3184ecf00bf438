//! The proxy for programs in other languages: `proxy HOST:PORT` stands before that server, says `{"port": N}`, and
//! obeys JSON lines, each of which it answers by a line.
//!
//! ```text
//! {"do": "fault", "verb": "acquire", "times": 1, "kind": "swallow_reply"}    `ms` for delays, `says` for refusals
//! {"do": "flow", "drop_messages": true, "sliced_us": 100, "held": "replies"}  what is not named is as usual
//! {"do": "refuse", "refuses": true}   {"do": "cut"}   {"do": "behave"}   {"do": "counts"}   {"do": "faults_left"}
//! {"do": "scripts"}                   the server knows all scripts again, and those of another release that were seen
//! ```
//!
//! It ends when there are no more lines.

#![expect(clippy::expect_used, clippy::panic, reason = "a broken order ends the proxy, and with it the test")]

use std::io::{BufRead, stdin};
use std::time::Duration;

use serde_json::{Value, json};
use stanchion_tests::proxy::{Fault, Flow, Half, Proxy, load_scripts};

/// A length that no client allocates, and nothing after it.
const GARBAGE: &[u8] = b"$999999999999999\r\n";

fn main() {
    let upstream = std::env::args().nth(1).expect("the server: HOST:PORT");
    let proxy = Proxy::to_address(upstream.clone());
    println!("{}", json!({ "port": proxy.port() }));
    for line in stdin().lock().lines().map_while(Result::ok) {
        let order: Value = serde_json::from_str(&line).expect("an order");
        println!("{}", json!({ "ok": obey(&proxy, &upstream, &order) }));
    }
}

fn obey(proxy: &Proxy, upstream: &str, order: &Value) -> Value {
    match order["do"].as_str().expect("what to do") {
        "fault" => {
            let times =
                order["times"].as_u64().map_or(1, |times| usize::try_from(times).unwrap_or(usize::MAX));
            proxy.fault(order["verb"].as_str().expect("a verb"), times, fault(order));
        }
        "flow" => proxy.flow(flow(order)),
        "refuse" => proxy.refuse(order["refuses"].as_bool().unwrap_or(true)),
        "cut" => proxy.cut(),
        "behave" => {
            proxy.behave();
            proxy.refuse(false);
        }
        "counts" => return json!(proxy.counts()),
        "faults_left" => return json!(proxy.faults_left()),
        "scripts" => {
            let client = redis::Client::open(format!("redis://{upstream}/")).expect("an address");
            let mut raw = client.get_connection().expect("the server is there");
            // What was not seen here has to be sent here, or its verb would stay unknown.
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut raw).expect("the server forgets scripts");
            load_scripts(&mut raw);
        }
        other => panic!("there is no order {other}"),
    }
    Value::Null
}

fn fault(order: &Value) -> Fault {
    let time = Duration::from_millis(order["ms"].as_u64().unwrap_or(0));
    match order["kind"].as_str().expect("a kind") {
        "drop" => Fault::Drop,
        "swallow_reply" => Fault::SwallowReply,
        "delay_request" => Fault::DelayRequest(time),
        "delay_reply" => Fault::DelayReply(time),
        "duplicate" => Fault::Duplicate,
        "cut_before" => Fault::CutBefore,
        "cut_after" => Fault::CutAfter,
        "garble" => Fault::Rewrite(GARBAGE.to_vec()),
        "refuse" => {
            let error = order["says"].as_str().expect("an error");
            Fault::Refuse(format!("-{error}\r\n").into_bytes())
        }
        other => panic!("there is no fault {other}"),
    }
}

fn flow(order: &Value) -> Flow {
    Flow {
        drop_messages: order["drop_messages"].as_bool().unwrap_or(false),
        sliced: order["sliced_us"].as_u64().map(Duration::from_micros),
        held: order["held"].as_str().map(|half| match half {
            "requests" => Half::Requests,
            "replies" => Half::Replies,
            _ => Half::Both,
        }),
    }
}
