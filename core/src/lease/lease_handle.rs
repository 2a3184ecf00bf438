//! A lease on its way to another process.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::name::{LockKind, LockName, Prefixes};
use crate::base::token::Token;
use crate::engine::call::CallMachine;
use crate::protocol::{Request, Resume};
use crate::session::Live;

/// A detached lease in serialisable form. It works once: resuming it swaps the secret inside.
///
/// [`LeaseHandle::to_text`] and `parse` turn it into text and back; the text is a secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseHandle {
    kind: LockKind,
    key: String,
    token: Token,
    ttl: Duration,
    max_hold: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Text {
    stanchion: u32,
    /// Absent if the lock is exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    key: String,
    token: String,
    ttl_ms: u64,
    #[serde(default)]
    max_hold_ms: Option<u64>,
}

/// The version of the text form. One that older readers must refuse has a larger number.
const VERSION: u32 = 1;
/// Of handles with a kind.
const VERSION_WITH_KIND: u32 = 2;

impl LeaseHandle {
    pub(crate) fn new(name: &LockName, token: Token, ttl: Duration, max_hold: Option<Duration>) -> Self {
        Self { kind: name.kind(), key: name.key().to_owned(), token, ttl, max_hold }
    }

    /// The text form. Whoever has it can take the lease: treat it as a password.
    pub fn to_text(&self) -> String {
        let kind = (self.kind != LockKind::Exclusive).then(|| self.kind.name());
        let text = Text {
            stanchion: if kind.is_some() { VERSION_WITH_KIND } else { VERSION },
            kind: kind.map(str::to_owned),
            key: self.key.clone(),
            token: self.token.as_str().to_owned(),
            ttl_ms: millis(self.ttl),
            max_hold_ms: self.max_hold.map(millis),
        };
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// The lock's name under this client's prefix.
    pub(crate) fn name(&self, prefixes: &Prefixes) -> Result<LockName, Error> {
        prefixes.lock_of_key(self.kind, &self.key).ok_or_else(|| {
            Error::invalid("the handle's lock has another prefix than this client's lock_prefix")
        })
    }

    /// The request that swaps its token, and the new token.
    pub(crate) fn resume(&self, live: &Live) -> Result<(CallMachine, Token), Error> {
        let new = Token::random()?;
        let request = Request::Resume(Resume {
            name: self.name(&live.prefixes)?,
            old: self.token.clone(),
            new: new.clone(),
            undo: false,
            owner: live.owner(),
        });
        // If the caller has gone when the reply arrives, the swap is undone, and the handle can be used again.
        let undo = Request::Resume(Resume {
            name: self.name(&live.prefixes)?,
            old: new.clone(),
            new: self.token.clone(),
            undo: true,
            owner: live.owner(),
        });
        Ok((live.call(request).or_else(undo), new))
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn max_hold(&self) -> Option<Duration> {
        self.max_hold
    }
}

impl FromStr for LeaseHandle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let malformed = || Error::invalid("this is not the text of a lease handle");
        let text: Text = serde_json::from_str(text).map_err(|_| malformed())?;
        let version = if text.kind.is_some() { VERSION_WITH_KIND } else { VERSION };
        if text.stanchion != version {
            return Err(Error::invalid(
                "the lease handle was made by a newer version of stanchion; upgrade this one",
            ));
        }
        let kind = text.kind.as_deref().unwrap_or(LockKind::Exclusive.name());
        let kind = LockKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(malformed)?;
        let ttl =
            crate::session::options::checked_ttl("the handle's ttl", Duration::from_millis(text.ttl_ms))?;
        Ok(Self {
            kind,
            key: text.key,
            token: Token::parse(&text.token).ok_or_else(malformed)?,
            ttl,
            max_hold: text.max_hold_ms.map(Duration::from_millis),
        })
    }
}

impl fmt::Debug for LeaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseHandle({:?}, ..)", self.key)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> LeaseHandle {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a\"b").unwrap();
        LeaseHandle::new(&name, Token::from_bits(5), Duration::from_secs(30), Some(Duration::from_secs(60)))
    }

    #[test]
    fn it_survives_its_text_form() {
        assert_eq!(handle().to_text().parse::<LeaseHandle>().unwrap(), handle());
    }

    #[test]
    fn it_shows_no_secret() {
        assert!(!format!("{:?}", handle()).contains("99999"));
    }

    #[test]
    fn anything_else_is_invalid() {
        let newer = handle().to_text().replace("\"stanchion\":1", "\"stanchion\":3");
        for text in ["", "{}", "null", &newer, &handle().to_text().replace("9999", "")] {
            assert_eq!(
                text.parse::<LeaseHandle>().unwrap_err().kind(),
                crate::base::error::ErrorKind::InvalidArgument
            );
        }
    }
}
