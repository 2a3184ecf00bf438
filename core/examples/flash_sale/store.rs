//! Where the demo's lock lives, and what is cleaned up afterwards.

use std::path::Path;

use stanchion::blocking::Client;
use stanchion::{DEFAULT_LOCK_PREFIX, URL_VARIABLE};
use tempfile::TempDir;
use url::Url;

use crate::Outcome;

pub struct DemoStore {
    url: String,
    /// Whether `STANCHION_URL` chose it.
    chosen: bool,
    lock_name: String,
    folder: TempDir,
}

impl DemoStore {
    /// The store that `STANCHION_URL` names, or a fresh embedded one in a temporary folder.
    pub fn choose() -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("flash-sale-").tempdir()?;
        // A name of its own: the store may be somebody's.
        let lock_name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let given = std::env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty());
        let chosen = given.is_some();
        let url = given.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("locks.db").display()));
        if url.starts_with("memory:") {
            return Err(
                "memory: is a store for one process, and this demo has eight; use redis:// or sqlite:".into(),
            );
        }
        // Eight processes would all say the same about a store that cannot be used.
        Client::builder(&url).open_blocking()?;
        Ok(Self { url, chosen, lock_name, folder })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn lock_name(&self) -> &str {
        &self.lock_name
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// For people; without the part of the URL that may be secret.
    pub fn describe(&self) -> String {
        let scheme = self.url.split(':').next().unwrap_or_default();
        match (self.chosen, Url::parse(&self.url).ok().as_ref().and_then(Url::host_str)) {
            (false, _) => "embedded (SQLite), a fresh file in a temporary folder; no server".into(),
            (true, Some(host)) => format!("{scheme}://{host}, from {URL_VARIABLE}"),
            (true, None) => format!("{scheme}, from {URL_VARIABLE}"),
        }
    }

    /// Removes what the lock left on a server: its record would go by itself only after seven days.
    pub fn tidy(&self) {
        let removed = match self.url.split(':').next() {
            Some("redis" | "rediss" | "redis+unix" | "unix") => {
                remove_keys(&self.url, &self.lock_name).is_ok()
            }
            _ => !self.chosen,
        };
        if !removed {
            println!("\n   The record of the lock {:?} stays in the store for seven days.", self.lock_name);
        }
    }
}

fn remove_keys(url: &str, lock_name: &str) -> Outcome<()> {
    let url = Url::parse(url)?;
    let prefix =
        url.query_pairs().find(|(key, _)| key == "lock_prefix").map(|(_, prefix)| prefix.into_owned());
    let key = prefix.unwrap_or_else(|| DEFAULT_LOCK_PREFIX.to_owned()) + lock_name;
    let (tag, key) = if key.contains('{') { ("tag-", key) } else { ("", format!("{{{key}}}")) };

    let mut plain = url.clone();
    if !url.scheme().ends_with("unix") {
        // The parameters are this library's; the client crate has others.
        plain.set_query(None);
    }
    let mut connection = redis::Client::open(plain)?.get_connection()?;
    let mut delete = redis::cmd("DEL");
    for part in ["meta", "line", "waiters"] {
        delete.arg(format!("stanchion:{tag}{part}:{key}"));
    }
    Ok(delete.exec(&mut connection)?)
}
