//! Limiters.

use napi_derive::napi;
use stanchion::{DEFAULT_WAIT, Limit};

use crate::bridge::Bridge;
use crate::client::Client;
use crate::convert::{Millis, Text, Whole, millis};
use crate::error::invalid;

#[napi]
impl Client {
    /// Milliseconds until a try would succeed; none if it was taken. A wait that is not given is the default.
    #[allow(clippy::too_many_arguments, reason = "a limit travels with each call")]
    #[napi]
    pub fn take(
        &self,
        bridge: Bridge,
        call: u32,
        name: Text,
        kind: Text,
        n: Whole,
        per: Millis,
        burst: Option<Whole>,
        count: Whole,
        wait: Option<Millis>,
    ) -> napi::Result<()> {
        let (n, count) = (n.narrow(u32::MAX), count.narrow(u32::MAX));
        let limit = match &*kind.0 {
            "gcra" => Limit::rate(n, per.0),
            "fixed-window" => Limit::fixed_window(n, per.0),
            "sliding-window" => Limit::sliding_window(n, per.0),
            _ => return Err(invalid("kind is one of 'gcra', 'fixed-window' and 'sliding-window'")),
        };
        let limit = burst.map_or(limit, |burst| limit.burst(burst.narrow(u32::MAX)));
        let (client, wait) = (self.0.clone(), wait.map_or(DEFAULT_WAIT, |wait| wait.0));
        bridge.start(call, async move {
            let taken = client.limiter(&name.0, limit)?.take(count, wait).await?;
            Ok(taken.retry_after().map(millis))
        })
    }
}
