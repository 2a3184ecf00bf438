//! What this build has of the stores, and what an address needs.

use crate::base::error::Error;
use crate::store::url::{Address, RedisPlace};

/// A part that is compiled in with a cargo feature.
pub(crate) struct Part {
    /// What it is called.
    what: &'static str,
    feature: &'static str,
    is_here: bool,
}

const SQLITE: Part = Part { what: "SQLite", feature: "sqlite", is_here: cfg!(feature = "sqlite") };
const REDIS: Part = Part { what: "Redis", feature: "redis", is_here: cfg!(feature = "redis") };
const QUORUM: Part = Part { what: "quorum", feature: "quorum", is_here: cfg!(feature = "quorum") };
pub(crate) const TLS: Part = Part { what: "TLS", feature: "tls", is_here: cfg!(feature = "tls") };
pub(crate) const CLUSTER: Part =
    Part { what: "Redis Cluster", feature: "cluster", is_here: cfg!(feature = "cluster") };
pub(crate) const SENTINEL: Part =
    Part { what: "Redis Sentinel", feature: "cluster", is_here: cfg!(feature = "cluster") };

impl Part {
    /// The error of whoever wants what is not there.
    #[allow(dead_code, reason = "for what stands in place of a part; a build with all of them has none")]
    pub(crate) fn missing(&self) -> Error {
        missing(&[self])
    }
}

/// Whether this build has all that the address needs. No I/O.
pub(crate) fn check(address: &Address) -> Result<(), Error> {
    let needed = needed(address);
    let parts: Vec<_> = needed.iter().filter(|part| !part.is_here).collect();
    if parts.is_empty() { Ok(()) } else { Err(missing(&parts)) }
}

fn missing(parts: &[&Part]) -> Error {
    let listed =
        |word: fn(&Part) -> String| parts.iter().map(|part| word(part)).collect::<Vec<_>>().join(" and ");
    let (what, names) =
        (listed(|part| format!("no {}", part.what)), listed(|part| format!("`{}`", part.feature)));
    let features = if parts.len() == 1 { "feature" } else { "features" };
    Error::invalid(format!("this build of stanchion has {what}: enable the cargo {features} {names}"))
}

fn needed(address: &Address) -> Vec<Part> {
    let Address::Redis(address) = address else { return vec![SQLITE] };
    let servers = match &address.place {
        RedisPlace::Tcp { .. } | RedisPlace::Unix(_) => REDIS,
        RedisPlace::Sentinel(_) => SENTINEL,
        RedisPlace::Cluster { .. } => CLUSTER,
        RedisPlace::Quorum(_) => QUORUM,
    };
    let tls = address.place.is_encrypted().then_some(TLS);
    [servers].into_iter().chain(tls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::session::builder::ClientBuilder;

    const BUILT: [(&str, bool); 5] = [
        ("redis", cfg!(feature = "redis")),
        ("tls", cfg!(feature = "tls")),
        ("cluster", cfg!(feature = "cluster")),
        ("quorum", cfg!(feature = "quorum")),
        ("sqlite", cfg!(feature = "sqlite")),
    ];

    fn missing_of(features: &[&'static str]) -> Vec<&'static str> {
        let is_built = |feature: &&str| BUILT.contains(&(*feature, true));
        features.iter().copied().filter(|feature| !is_built(feature)).collect()
    }

    /// The features that a refusal tells to enable.
    fn named_by(error: &Error) -> Vec<&'static str> {
        let text = error.to_string();
        assert!(text.contains("this build of stanchion has no "), "{text}");
        let features = BUILT.iter().map(|(feature, _)| *feature);
        features.filter(|feature| text.contains(&format!("`{feature}`"))).collect()
    }

    #[test]
    fn a_url_opens_or_says_which_feature_it_needs() {
        for (url, features) in [
            ("redis://h", &["redis"][..]),
            ("valkey://h/3", &["redis"]),
            ("redis+unix:///run/redis.sock", &["redis"]),
            ("rediss://h", &["redis", "tls"]),
            ("redis-sentinel://h/m", &["cluster"]),
            ("rediss-sentinel://h/m", &["tls", "cluster"]),
            ("redis-cluster://a,b", &["cluster"]),
            ("rediss-cluster://a,b", &["tls", "cluster"]),
            ("redis-quorum://a,b,c", &["quorum"]),
            ("rediss-quorum://a,b,c", &["tls", "quorum"]),
            ("sqlite:never-made.db", &["sqlite"]),
            ("memory:", &["sqlite"]),
        ] {
            let missing = missing_of(features);
            match ClientBuilder::new(Some(url.into())).session() {
                Ok(_) => assert!(missing.is_empty(), "{url} opened without {missing:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}: {error}");
                    assert_eq!(named_by(&error), missing, "{url}: {error}");
                }
            }
        }
    }

    #[test]
    fn tls_files_are_not_looked_at_by_a_build_without_tls() {
        let builder = ClientBuilder::new(Some("rediss://h".into())).tls_ca("/nowhere/ca.pem");
        let error = builder.session().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let expected = if cfg!(feature = "tls") { "/nowhere/ca.pem" } else { "`tls`" };
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.to_string().contains("/nowhere"), cfg!(feature = "tls"), "{error}");
    }

    #[test]
    fn what_is_missing_is_said_in_one_sentence() {
        let one = "this build of stanchion has no SQLite: enable the cargo feature `sqlite`";
        assert!(SQLITE.missing().to_string().ends_with(one));
        let two = "this build of stanchion has no Redis Cluster and no TLS: enable the cargo features `cluster` and `tls`";
        assert!(missing(&[&CLUSTER, &TLS]).to_string().ends_with(two));
    }
}
