//! What the tests of calls that are given up share.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use stanchion_tests::proxy::{Fault, Proxy};

use crate::ms;

/// What may happen to the call that is given up.
pub(crate) fn faults() -> Vec<Option<Fault>> {
    vec![
        None,
        Some(Fault::DelayRequest(ms(150))),
        Some(Fault::DelayReply(ms(150))),
        Some(Fault::SwallowReply),
        Some(Fault::Drop),
        Some(Fault::CutBefore),
        Some(Fault::CutAfter),
        Some(Fault::CutAndLate(ms(150))),
        Some(Fault::Duplicate),
    ]
}

/// How many requests of the verb have reached the server, of those that this fault holds up; none if it holds up none.
pub(crate) fn late(proxy: &Proxy, fault: Option<&Fault>, verb: &str) -> Option<usize> {
    match fault {
        Some(Fault::DelayRequest(_)) => Some(proxy.forwarded(verb)),
        Some(Fault::CutAndLate(_)) => Some(proxy.late(verb)),
        _ => None,
    }
}

/// Polls a future a number of times, and gives it up then.
pub(crate) struct Polls<F> {
    future: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Polls<F> {
    pub(crate) fn new(future: F, left: usize) -> Self {
        Self { future: Box::pin(future), left }
    }
}

impl<F: Future> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(value) = self.future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        self.left -= 1;
        if self.left == 0 { Poll::Ready(None) } else { Poll::Pending }
    }
}
