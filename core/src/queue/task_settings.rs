//! What a task says about its runs. It travels in headers whose names begin with `stanchion-`, so stores keep it without
//! looking into it, a schedule's tasks have it too, and a library that does not know of it hands it on.

use std::str::FromStr;
use std::time::Duration;

use crate::base::envelope::Headers;
use crate::base::error::not_between;
use crate::engine::Jitter;
use crate::engine::task_backoff::{Backoff, backoff};
use crate::protocol::RESULT_AGE;
use crate::session::options::MAX_TTL;

/// What the names of these headers begin with. Programs have no such headers of their own.
const RESERVED: &str = "stanchion-";
const KIND: &str = "stanchion-kind";
const TIMEOUT: &str = "stanchion-timeout";
const BACKOFF: &str = "stanchion-backoff";
const KEEP_RESULT: &str = "stanchion-keep-result";
/// Longest kind, in bytes.
const MAX_KIND: usize = 128;
/// For how long a result is kept if the task does not say.
pub(crate) const DEFAULT_KEEP_RESULT: Duration = Duration::from_secs(3_600);

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaskSettings {
    pub(crate) kind: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) keep_result: Option<Duration>,
}

impl TaskSettings {
    /// Puts them beside the program's own headers.
    pub(crate) fn write(&self, headers: &Headers) -> Result<Headers, String> {
        if let Some(name) = headers.keys().find(|name| name.starts_with(RESERVED)) {
            return Err(format!("header {name:?}: names that begin with {RESERVED:?} are the library's own"));
        }
        self.check()?;
        let millis = |time: Duration| time.as_millis().to_string();
        let Self { kind, timeout, backoff, keep_result } = self;
        let own = [
            (KIND, kind.clone()),
            (TIMEOUT, timeout.map(millis)),
            (BACKOFF, backoff.as_ref().map(ToString::to_string)),
            (KEEP_RESULT, keep_result.map(millis)),
        ];
        let own = own.into_iter().filter_map(|(name, value)| value.map(|value| (name.to_owned(), value)));
        Ok(headers.clone().into_iter().chain(own).collect())
    }

    /// Takes them out of the headers of a stored task. What cannot be read, perhaps a newer library's, is as if it was not
    /// there.
    pub(crate) fn take(headers: &mut Headers) -> Self {
        if !headers.keys().any(|name| name.starts_with(RESERVED)) {
            return Self::default();
        }
        let settings = Self {
            kind: headers.get(KIND).cloned(),
            timeout: read::<u64>(headers, TIMEOUT).map(Duration::from_millis),
            backoff: read(headers, BACKOFF),
            keep_result: read::<u64>(headers, KEEP_RESULT).map(Duration::from_millis),
        };
        headers.retain(|name, _| !name.starts_with(RESERVED));
        settings
    }

    /// How long the task waits after the attempt with this number failed.
    pub(crate) fn pause(&self, attempt: u32, jitter: &mut Jitter) -> Duration {
        match &self.backoff {
            Some(own) => own.pause(attempt, jitter),
            None => backoff(attempt, jitter),
        }
    }

    fn check(&self) -> Result<(), String> {
        if let Some(kind) = &self.kind {
            check_kind(kind)?;
        }
        if let Some(timeout) = self.timeout
            && !(Duration::from_millis(1)..=MAX_TTL).contains(&timeout)
        {
            return Err(not_between("timeout", timeout, "1 ms"));
        }
        if let Some(keep) = self.keep_result
            && !(Duration::from_millis(1)..=RESULT_AGE).contains(&keep)
        {
            return Err(format!("keep_result ({keep:?}) is not between 1 ms and 30 days"));
        }
        self.backoff.as_ref().map_or(Ok(()), Backoff::check)
    }
}

/// What is wrong with a kind, if anything is.
pub(crate) fn check_kind(kind: &str) -> Result<(), String> {
    if kind.is_empty() || kind.len() > MAX_KIND || kind.chars().any(char::is_control) {
        return Err(format!("kind {kind:?} is not 1 to {MAX_KIND} bytes without control characters"));
    }
    Ok(())
}

fn read<T: FromStr>(headers: &Headers, name: &str) -> Option<T> {
    headers.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_as_they_were_and_leave_the_other_headers() {
        let own = Headers::from([("trace".to_owned(), "x".to_owned())]);
        let settings = TaskSettings {
            kind: Some("send-welcome".into()),
            timeout: Some(Duration::from_millis(1_500)),
            backoff: Some(Backoff::list([Duration::from_secs(1)])),
            keep_result: Some(Duration::from_secs(60)),
        };
        for settings in [TaskSettings::default(), settings] {
            let mut headers = settings.write(&own).unwrap();
            assert_eq!((TaskSettings::take(&mut headers), &headers), (settings, &own));
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let name = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = Headers::from([
            name(TIMEOUT, "soon"),
            name(BACKOFF, "[]"),
            name("stanchion-new", "1"),
            name("a", "b"),
        ]);
        assert_eq!(TaskSettings::take(&mut headers), TaskSettings::default());
        assert_eq!(headers, Headers::from([name("a", "b")]));
    }

    #[test]
    fn bad_ones_are_refused() {
        let bad = [
            TaskSettings { kind: Some(String::new()), ..TaskSettings::default() },
            TaskSettings { kind: Some("a\nb".into()), ..TaskSettings::default() },
            TaskSettings { kind: Some("x".repeat(129)), ..TaskSettings::default() },
            TaskSettings { timeout: Some(Duration::ZERO), ..TaskSettings::default() },
            TaskSettings { keep_result: Some(Duration::MAX), ..TaskSettings::default() },
            TaskSettings { backoff: Some(Backoff::list([])), ..TaskSettings::default() },
        ];
        for settings in bad {
            assert!(settings.write(&Headers::new()).is_err(), "{settings:?}");
        }
        let reserved = Headers::from([("stanchion-x".to_owned(), String::new())]);
        assert!(TaskSettings::default().write(&reserved).is_err());
    }
}
