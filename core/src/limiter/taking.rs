//! What is taken of a limiter: checked arguments, made into machines. Both `Limiter` types wrap it.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::name::LimiterName;
use crate::base::token::Token;
use crate::engine::take::{TakeEnd, TakeMachine};
use crate::limiter::limit::Limit;
use crate::protocol::{Rule, TAKE_WAIT_MOST, Take};
use crate::session::{Live, Session};

/// How a take ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "only what is allowed may be done"]
pub enum Taken {
    /// It was taken: go on.
    Allowed,
    /// Nothing was taken. A try succeeds this long after the answer, if nobody else takes any meanwhile.
    RetryAfter(Duration),
}

impl Taken {
    /// Whether it was taken.
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }

    /// When to try again, if it was not.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Allowed => None,
            Self::RetryAfter(time) => Some(time),
        }
    }
}

impl From<TakeEnd> for Taken {
    fn from(end: TakeEnd) -> Self {
        match end {
            TakeEnd::Allowed { .. } => Self::Allowed,
            TakeEnd::RetryAfter(time) => Self::RetryAfter(time),
        }
    }
}

/// A limiter, checked.
#[derive(Clone)]
pub(crate) struct TakeCalls {
    session: Arc<Session>,
    name: LimiterName,
    limit: Limit,
    rule: Rule,
}

impl TakeCalls {
    pub(crate) fn new(session: Arc<Session>, name: &str, limit: Limit) -> Result<Self, Error> {
        let name = session.limiter_name(name)?;
        let rule = limit.checked().map_err(|error| error.during("limiter", name.as_str()))?;
        Ok(Self { session, name, limit, rule })
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// One call. Without a wait nothing is reserved, so there is nothing to give back.
    pub(crate) fn take(&self, count: u32, wait: Duration) -> Result<(&Arc<Live>, TakeMachine), Error> {
        let check = || {
            if !(1..=self.rule.burst).contains(&count) {
                let most = self.rule.burst;
                return Err(Error::invalid(format!(
                    "{count} at once: a take is of 1 to {most}, which is what the limit allows at once"
                )));
            }
            if wait > TAKE_WAIT_MOST {
                return Err(Error::invalid(format!("wait {wait:?} is over 1 h")));
            }
            if wait.is_zero() { Ok(None) } else { Token::random().map(Some) }
        };
        let token = check().map_err(|error| error.during("take", self.name()))?;
        let live = self.session.live()?;
        let (name, rule) = (self.name.clone(), self.rule);
        Ok((live, live.take(Take { name, rule, count, wait_most: wait, token })))
    }
}
