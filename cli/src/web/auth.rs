//! Who may come in.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::sync::Semaphore;

use crate::arguments::WebOrder;
use crate::failure::Failure;

/// Characters of a token at least.
const TOKEN_LEAST: usize = 16;
/// Names and passwords that have been found right: to check one takes a tenth of a second on purpose.
const KNOWN_MOST: usize = 64;
/// Passwords that wait for being checked, at most.
const CHECKS_MOST: usize = 16;

/// How it is asked who somebody is.
pub enum Auth {
    /// Not at all.
    None,
    /// By one of these.
    Asked { passwords: Arc<HashMap<String, String>>, token: Option<String>, checks: Checks },
    /// A proxy has asked, and says it in this header.
    Proxy(String),
}

/// Passwords that are being checked, and those that were.
pub struct Checks {
    known: Mutex<HashMap<String, String>>,
    /// One at a time, on a thread of its own: each takes a tenth of a second on purpose, and anybody may ask.
    turn: Arc<Semaphore>,
    /// Whoever hangs up gives its place back.
    places: Semaphore,
}

impl Default for Checks {
    fn default() -> Self {
        let (turn, places) = (Arc::new(Semaphore::new(1)), Semaphore::new(CHECKS_MOST));
        Self { known: Mutex::default(), turn, places }
    }
}

/// What is answered to who is nobody.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A browser asks for name and password if it is told to.
    Unknown { basic: bool },
    /// The request did not come through the proxy.
    NoProxy,
    /// So many passwords are being checked that this one was not.
    Busy,
}

impl Auth {
    /// Reads the files that the arguments name.
    pub fn of(order: &WebOrder) -> Result<Self, Failure> {
        if let Some(header) = &order.behind_proxy {
            axum::http::HeaderName::try_from(header.as_str()).map_err(|_| {
                Failure::usage(format!("{header:?} is not a header's name"), "give one like X-Forwarded-User")
            })?;
            return Ok(Self::Proxy(header.clone()));
        }
        if order.auth.is_none() && order.token.is_none() {
            return Ok(Self::None);
        }
        let passwords = order.auth.as_deref().map_or_else(|| Ok(HashMap::new()), passwords)?;
        let token = order.token.as_deref().map(token).transpose()?;
        Ok(Self::Asked { passwords: Arc::new(passwords), token, checks: Checks::default() })
    }

    /// Whether anybody is asked.
    pub fn asks(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Who sent the request; nothing is known of them if nobody is asked.
    pub async fn who(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        match self {
            Self::None => Ok(String::new()),
            Self::Proxy(header) => {
                // Two of them: one is not the proxy's.
                let mut said = headers.get_all(header).iter();
                let (Some(who), None) = (said.next(), said.next()) else { return Err(Refusal::NoProxy) };
                let who = String::from_utf8_lossy(who.as_bytes());
                if who.is_empty() { Err(Refusal::NoProxy) } else { Ok(who.into_owned()) }
            }
            Self::Asked { passwords, token, checks } => {
                let unknown = Refusal::Unknown { basic: !passwords.is_empty() };
                let said = headers.get(AUTHORIZATION).and_then(|said| said.to_str().ok());
                let Some((scheme, secret)) = said.and_then(|said| said.split_once(' ')) else {
                    return Err(unknown);
                };
                let secret = secret.trim();
                if scheme.eq_ignore_ascii_case("bearer") {
                    let is_right = token.as_ref().is_some_and(|token| are_same(token, secret));
                    return if is_right { Ok("bearer".into()) } else { Err(unknown) };
                }
                if !scheme.eq_ignore_ascii_case("basic") {
                    return Err(unknown);
                }
                checks.basic(secret, passwords).await?.ok_or(unknown)
            }
        }
    }
}

impl Checks {
    /// Whose name and password these are.
    async fn basic(
        &self,
        secret: &str,
        passwords: &Arc<HashMap<String, String>>,
    ) -> Result<Option<String>, Refusal> {
        if let Some(name) = self.known().get(secret) {
            return Ok(Some(name.clone()));
        }
        let Some((name, password)) = decoded(secret) else { return Ok(None) };
        let _place = self.places.try_acquire().map_err(|_| Refusal::Busy)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| Refusal::Busy)?;
        let (of, passwords) = (name.clone(), Arc::clone(passwords));
        let checked = tokio::task::spawn_blocking(move || {
            // Until it is checked, also if nobody waits for it any more.
            let _turn = turn;
            // Who is not known takes as long as who is.
            let hash = passwords.get(&of).or_else(|| passwords.values().next());
            let is_right = hash.is_some_and(|hash| bcrypt::verify(password, hash).unwrap_or(false));
            is_right && passwords.contains_key(&of)
        });
        let is_right = checked.await.unwrap_or(false);
        if !is_right {
            return Ok(None);
        }
        let mut known = self.known();
        if known.len() >= KNOWN_MOST {
            known.clear();
        }
        known.insert(secret.to_owned(), name.clone());
        Ok(Some(name))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name and password.
fn decoded(secret: &str) -> Option<(String, String)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(secret).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// In a time that does not tell where they differ.
fn are_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("{} cannot be read: {error}", path.display()),
            "give the path of a file that can be",
        )
    })
}

fn passwords(path: &Path) -> Result<HashMap<String, String>, Failure> {
    let wrong = |line: usize| {
        let what = format!("line {line} of {} is not a name, a colon and a bcrypt hash", path.display());
        Failure::usage(what, "make it with htpasswd -B")
    };
    let text = read(path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let passwords: HashMap<String, String> = lines
        .map(|(number, line)| {
            let (name, hash) = line.trim().split_once(':').ok_or_else(|| wrong(number))?;
            let is_bcrypt = ["$2y$", "$2b$", "$2a$"].iter().any(|start| hash.starts_with(start));
            if name.is_empty() || !is_bcrypt { Err(wrong(number)) } else { Ok((name.into(), hash.into())) }
        })
        .collect::<Result<_, _>>()?;
    if passwords.is_empty() {
        return Err(Failure::usage(format!("{} has no names", path.display()), "make it with htpasswd -B"));
    }
    Ok(passwords)
}

fn token(path: &Path) -> Result<String, Failure> {
    let text = read(path)?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < TOKEN_LEAST {
        let what = format!("the token in {} has fewer than {TOKEN_LEAST} characters", path.display());
        return Err(Failure::usage(what, "make one with openssl rand -hex 16"));
    }
    Ok(token.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use std::time::Duration;

    use super::*;

    async fn asked(header: &str, auth: &Auth) -> Result<String, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        auth.who(&headers).await
    }

    #[tokio::test]
    async fn only_the_right_password_or_token_comes_in() {
        let hash = bcrypt::hash("secret", 4).unwrap();
        let auth = Auth::Asked {
            passwords: Arc::new([("ann".into(), hash)].into()),
            token: Some("0123456789abcdef".into()),
            checks: Checks::default(),
        };
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        // The second time it is known.
        for _ in 0..2 {
            assert_eq!(asked(&basic("ann:secret"), &auth).await.as_deref(), Ok("ann"));
            assert!(asked(&basic("ann:secret2"), &auth).await.is_err());
            assert!(asked(&basic("bob:secret"), &auth).await.is_err());
        }
        assert_eq!(asked("bearer 0123456789abcdef", &auth).await.as_deref(), Ok("bearer"));
        for wrong in ["Bearer 0123456789abcde", "Bearer 0123456789abcdeg", "Digest x", "Basic !", "Basic"] {
            assert_eq!(asked(wrong, &auth).await, Err(Refusal::Unknown { basic: true }), "{wrong}");
        }
        assert_eq!(auth.who(&HeaderMap::new()).await, Err(Refusal::Unknown { basic: true }));
    }

    #[tokio::test]
    async fn who_hangs_up_while_a_password_is_checked_keeps_nobody_out() {
        let hash = bcrypt::hash("secret", 4).unwrap();
        let passwords = Arc::new([("ann".into(), hash)].into());
        let auth = Auth::Asked { passwords, token: None, checks: Checks::default() };
        let said = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        for number in 0..2 * CHECKS_MOST {
            let header = said(&format!("ann:wrong-{number}"));
            // Given up after the first step.
            let _ = tokio::time::timeout(Duration::ZERO, asked(&header, &auth)).await;
        }
        let came_in = async {
            while asked(&said("ann:secret"), &auth).await.as_deref() != Ok("ann") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), came_in).await.unwrap();
    }

    #[tokio::test]
    async fn a_proxy_says_who_it_is() {
        let auth = Auth::Proxy("X-User".into());
        let mut headers = HeaderMap::new();
        assert_eq!(auth.who(&headers).await, Err(Refusal::NoProxy));
        headers.insert("x-user", "ann".parse().unwrap());
        assert_eq!(auth.who(&headers).await.as_deref(), Ok("ann"));
        headers.append("x-user", "bob".parse().unwrap());
        assert_eq!(auth.who(&headers).await, Err(Refusal::NoProxy), "one of the two is not the proxy's");
    }
}
