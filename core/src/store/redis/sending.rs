//! A request on its way: encoded once, whichever servers it is sent to.

use redis::{Arg, Cmd};

use crate::store::redis::cluster::slot;
use crate::store::redis::codec;
use crate::verbs::Request;

/// Where a script's first key is: after its name, the script and the number of keys.
const FIRST_KEY: usize = 3;

pub(crate) struct Sending<'a> {
    request: &'a Request,
    command: Cmd,
    /// Whether it goes to a node that was named by ASK.
    asking: bool,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(request: &'a Request) -> Self {
        Self { request, command: codec::encode(request), asking: false }
    }

    /// For a server that knows the script.
    pub(crate) fn command(&self) -> &Cmd {
        &self.command
    }

    /// For a server that does not.
    pub(crate) fn with_text(&self) -> Cmd {
        codec::encode_with_text(self.request)
    }

    pub(crate) fn asking(&self) -> bool {
        self.asking
    }

    pub(crate) fn ask(&mut self, asking: bool) {
        self.asking = asking;
    }

    /// The cluster slot of its keys: all of a request are in one.
    pub(crate) fn slot(&self) -> u16 {
        match self.command.args_iter().nth(FIRST_KEY) {
            Some(Arg::Simple(key)) => slot::of(key),
            _ => 0,
        }
    }
}
