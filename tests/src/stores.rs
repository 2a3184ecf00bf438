//! The stores that the conformance suite runs on, and what each can do.

use stanchion::{Client, ClientBuilder};
use tempfile::TempDir;

use crate::faces::{AnyClient, Face};
use crate::probe::Probe;
use crate::wait::feel_the_pulse;
use crate::{cluster, quorum, redis_server, sentinel, unique};

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `memory:NAME`
    Memory,
    /// `sqlite:PATH`
    Sqlite,
    /// A real Redis server.
    Redis,
    /// A real Redis server, found by a Sentinel.
    Sentinel,
    /// A real Redis cluster.
    Cluster,
    /// Three real Redis servers that vote. Nobody is in line there, and it has no queues.
    Quorum,
}

impl Kind {
    /// Whether programs other than this library can lock there too, as a test sees.
    pub fn has_foreign_lockers(self) -> bool {
        self == Self::Redis
    }
}

/// A fresh, empty store and a face to use it through. All clients of one bench share the store.
#[derive(Debug)]
pub struct Bench {
    /// Which kind of store.
    pub kind: Kind,
    /// Which face clients have.
    pub face: Face,
    url: String,
    _dir: Option<TempDir>,
}

impl Bench {
    /// A fresh store of this kind.
    pub fn new(kind: Kind, face: Face) -> Self {
        feel_the_pulse();
        let (url, dir) = match kind {
            Kind::Memory => (format!("memory:{}", unique("bench")), None),
            Kind::Redis => (redis_server::shared().fresh_db(), None),
            Kind::Sentinel => (sentinel::shared().fresh_db(), None),
            Kind::Cluster => (cluster::shared().fresh_prefix(), None),
            Kind::Quorum => (quorum::shared().fresh_db(), None),
            Kind::Sqlite => {
                let dir = tempfile::tempdir().expect("a temporary directory");
                (format!("sqlite:{}", dir.path().join("locks.db").display()), Some(dir))
            }
        };
        Self { kind, face, url, _dir: dir }
    }

    /// The store's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// One more client of the store.
    pub fn client(&self) -> AnyClient {
        self.open(self.builder())
    }

    /// A builder for one more client.
    pub fn builder(&self) -> ClientBuilder {
        Client::builder(&self.url)
    }

    /// Opens a client with options.
    pub fn open(&self, builder: ClientBuilder) -> AnyClient {
        AnyClient::open(self.face, builder).unwrap_or_else(|error| panic!("open: {error}"))
    }

    /// Looks into the store below the faces.
    pub fn probe(&self) -> Probe {
        Probe::open(&self.url)
    }

    /// A connection of the bare crate to the same database; panics unless this is Redis.
    pub fn raw(&self) -> redis::Connection {
        assert!(self.kind.has_foreign_lockers(), "only Redis has raw connections");
        redis::Client::open(self.url()).and_then(|client| client.get_connection()).expect("a raw connection")
    }
}

/// Makes six tests of each function: on every store, through either face. The function gets a [`Bench`].
#[macro_export]
macro_rules! on_every_store {
    ($($tests:tt)+) => { $crate::on_stores! { [memory sqlite redis] $($tests)+ } };
}

/// As [`on_every_store`], also on Redis behind a Sentinel and on a Redis cluster: ten tests.
#[macro_export]
macro_rules! on_every_topology {
    ($($tests:tt)+) => { $crate::on_stores! { [memory sqlite redis sentinel cluster] $($tests)+ } };
}

/// As [`on_every_store`], also on a quorum: what is said of exclusive locks but not of those who wait.
#[macro_export]
macro_rules! on_every_store_of_locks {
    ($($tests:tt)+) => { $crate::on_stores! { [memory sqlite redis quorum] $($tests)+ } };
}

/// As [`on_every_topology`], also on a quorum.
#[macro_export]
macro_rules! on_every_topology_of_locks {
    ($($tests:tt)+) => { $crate::on_stores! { [memory sqlite redis sentinel cluster quorum] $($tests)+ } };
}

/// As [`on_every_store`], for what needs the capability `has_foreign_lockers`.
#[macro_export]
macro_rules! on_stores_with_foreign_lockers {
    ($($tests:tt)+) => { $crate::on_stores! { [redis] $($tests)+ } };
}

/// Makes two tests of each function for each of these stores.
#[doc(hidden)]
#[macro_export]
macro_rules! on_stores {
    ($stores:tt $($(#[doc = $doc:literal])* fn $name:ident($bench:ident) $body:block)+) => {$(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            fn run($bench: &$crate::stores::Bench) $body
            $crate::face_tests!($stores);
        }
    )+};
}

#[doc(hidden)]
#[macro_export]
macro_rules! face_tests {
    ([$($store:ident)+]) => { $($crate::face_tests!($store);)+ };
    (memory) => { $crate::face_tests!(memory_async, memory_blocking, Memory); };
    (sqlite) => { $crate::face_tests!(sqlite_async, sqlite_blocking, Sqlite); };
    (redis) => { $crate::face_tests!(redis_async, redis_blocking, Redis); };
    (sentinel) => { $crate::face_tests!(sentinel_async, sentinel_blocking, Sentinel); };
    (cluster) => { $crate::face_tests!(cluster_async, cluster_blocking, Cluster); };
    (quorum) => { $crate::face_tests!(quorum_async, quorum_blocking, Quorum); };
    ($async_name:ident, $blocking_name:ident, $kind:ident) => {
        #[test]
        fn $async_name() {
            run(&$crate::stores::Bench::new($crate::stores::Kind::$kind, $crate::faces::Face::Async));
        }
        #[test]
        fn $blocking_name() {
            run(&$crate::stores::Bench::new($crate::stores::Kind::$kind, $crate::faces::Face::Blocking));
        }
    };
}

/// Makes three tests of each async function, one per store, for what only the async face has. The function
/// gets a [`Bench`] whose clients come from `stanchion::Client::open(bench.url())`.
#[macro_export]
macro_rules! async_on_every_store {
    ($($(#[doc = $doc:literal])* async fn $name:ident($bench:ident) $body:block)+) => {$(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            async fn run($bench: $crate::stores::Bench) $body
            fn on(kind: $crate::stores::Kind) {
                let bench = $crate::stores::Bench::new(kind, $crate::faces::Face::Async);
                $crate::faces::runtime().block_on(run(bench));
            }
            #[test]
            fn memory() {
                on($crate::stores::Kind::Memory);
            }
            #[test]
            fn sqlite() {
                on($crate::stores::Kind::Sqlite);
            }
            #[test]
            fn redis() {
                on($crate::stores::Kind::Redis);
            }
        }
    )+};
}
