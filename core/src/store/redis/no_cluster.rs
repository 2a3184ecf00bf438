//! In place of `cluster` and `sentinel` in a build without them: types that have no values, so that whoever tells
//! servers apart needs not know.

use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, Connection, Value};

use crate::base::error::Error;
use crate::protocol::Failure;
use crate::store::Hear;
use crate::store::features::{CLUSTER, SENTINEL};
use crate::store::redis::confirm::Confirm;
use crate::store::redis::era::Era;
use crate::store::redis::hints::RedisHints;
use crate::store::redis::node::Calls;
use crate::store::redis::sending::Sending;
use crate::store::redis::server::Server;
use crate::store::url::Endpoint;

#[derive(Debug)]
pub(crate) enum Cluster {}

impl Cluster {
    pub(crate) fn new(_template: Server, _seeds: Vec<Endpoint>) -> Result<Self, Error> {
        Err(CLUSTER.missing())
    }

    pub(crate) fn place(&self) -> &str {
        match *self {}
    }

    pub(crate) fn are_together(&self, _keys: &[&str]) -> bool {
        match *self {}
    }

    pub(crate) fn run(&self, _sending: &Sending<'_>, _give_up: Instant) -> Result<Value, Failure> {
        match *self {}
    }

    pub(crate) async fn run_async(
        self: &Arc<Self>,
        _sending: &Sending<'_>,
        _give_up: Instant,
    ) -> Result<Value, Failure> {
        match **self {}
    }

    pub(crate) fn run_all(&self, _sendings: &[Sending<'_>], _give_up: Instant, _hear: Hear<'_, Value>) {
        match *self {}
    }

    pub(crate) fn call_any(&self, _command: &Cmd, _give_up: Instant) -> Result<Value, Failure> {
        match *self {}
    }

    pub(crate) fn scan<T>(
        &self,
        _page: u64,
        _step: impl Fn(u64, Calls<'_>) -> Result<(u64, T), Failure>,
        _give_up: Instant,
    ) -> Result<(u64, Option<T>), Failure> {
        match *self {}
    }

    pub(crate) fn hints(&self, _channel: &str, _give_up: Instant) -> Result<RedisHints, Failure> {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }

    pub(crate) fn close_inherited(&self) {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Sentinels {}

pub(crate) struct Master {
    pub(crate) server: Server,
    pub(crate) connection: Connection,
    pub(crate) era: Era,
}

impl Sentinels {
    pub(crate) fn new(_name: String, _group: Server, _sentinels: Vec<Server>) -> Result<Self, Error> {
        Err(SENTINEL.missing())
    }

    pub(crate) fn place(&self) -> &str {
        match *self {}
    }

    pub(crate) fn confirm(&self) -> Option<Confirm> {
        match *self {}
    }

    pub(crate) fn era(&self) -> Era {
        match *self {}
    }

    pub(crate) fn master(&self, _give_up: Instant) -> Result<Master, Failure> {
        match *self {}
    }
}
