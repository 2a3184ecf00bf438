//! A request on its way: encoded once, whichever servers it is sent to.

use std::sync::OnceLock;

use redis::{Arg, Cmd};

use crate::protocol::Request;
use crate::store::redis::look::Look;
use crate::store::redis::script::Scripts;
use crate::store::redis::{codec, keys};

/// Where a script's number of keys is: after the command's name and the script.
pub(super) const COUNT: usize = 2;

pub(crate) struct Sending<'a> {
    request: &'a Request,
    scripts: &'static Scripts,
    /// Encoded when it is needed: a look may have the answer before.
    command: OnceLock<Cmd>,
    in_a_cluster: bool,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(request: &'a Request, scripts: &'static Scripts) -> Self {
        Self { request, scripts, command: OnceLock::new(), in_a_cluster: false }
    }

    /// For a cluster, with one key more, that never exists. While the slot is on its way to another node, a
    /// script whose keys are all still there would be carried out, and would fail half-way when it touches a key
    /// that it has removed: it would count as moved. With a missing key the node answers TRYAGAIN instead, or ASK if it has no key at all,
    /// and the other node, if asked, TRYAGAIN.
    pub(crate) fn to_a_cluster(request: &'a Request, scripts: &'static Scripts) -> Self {
        Self { in_a_cluster: true, ..Self::new(request, scripts) }
    }

    /// What it asks for.
    pub(crate) fn request(&self) -> &'a Request {
        self.request
    }

    /// What another thread needs to send it.
    pub(crate) fn to_own(&self) -> Own {
        Own { request: self.request.clone(), scripts: self.scripts, in_a_cluster: self.in_a_cluster }
    }

    /// The same for another request to the same server.
    pub(crate) fn like<'b>(&self, request: &'b Request) -> Sending<'b> {
        made(request, self.scripts, self.in_a_cluster)
    }

    /// What is asked before the script, if its answer may be had without.
    pub(crate) fn look(&self) -> Option<Look> {
        Look::of(self.request)
    }

    /// For a server that knows the script.
    pub(crate) fn command(&self) -> &Cmd {
        self.command.get_or_init(|| self.guarded(codec::encode(self.request, self.scripts)))
    }

    /// For a server that does not.
    pub(crate) fn with_text(&self) -> Cmd {
        self.guarded(codec::encode_with_text(self.request, self.scripts))
    }

    fn guarded(&self, command: Cmd) -> Cmd {
        if self.in_a_cluster { guarded(&command) } else { command }
    }
}

/// A request to be sent by another thread.
pub(crate) struct Own {
    request: Request,
    scripts: &'static Scripts,
    in_a_cluster: bool,
}

impl Own {
    pub(crate) fn sending(&self) -> Sending<'_> {
        made(&self.request, self.scripts, self.in_a_cluster)
    }
}

fn made<'a>(request: &'a Request, scripts: &'static Scripts, in_a_cluster: bool) -> Sending<'a> {
    if in_a_cluster { Sending::to_a_cluster(request, scripts) } else { Sending::new(request, scripts) }
}

/// The same command with a missing key after its keys.
fn guarded(command: &Cmd) -> Cmd {
    let arguments: Vec<_> = command.args_iter().collect();
    let text =
        |index: usize| arguments.get(index).and_then(|argument| std::str::from_utf8(bytes(argument)).ok());
    let (Some(Ok(count)), Some(key)) = (text(COUNT).map(str::parse::<usize>), text(COUNT + 1)) else {
        return command.clone();
    };
    let missing = keys::missing(key);
    let mut guarded = Cmd::with_capacity(arguments.len() + 1, command.get_packed_command().len() + 64);
    for (index, argument) in arguments.iter().enumerate() {
        match index {
            COUNT => guarded.arg(count + 1),
            _ => guarded.arg(bytes(argument)),
        };
        if index == COUNT + count {
            guarded.arg(&missing);
        }
    }
    guarded
}

pub(super) fn bytes<'a>(argument: &Arg<&'a [u8]>) -> &'a [u8] {
    match argument {
        Arg::Simple(bytes) => bytes,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::protocol::Holder;
    use crate::store::redis::script::SCRIPTS;

    #[test]
    fn in_a_cluster_there_is_one_key_more() {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
        let request = Request::Holder(Holder { name });
        let words = |command: &Cmd| -> Vec<String> {
            command
                .args_iter()
                .skip(2)
                .map(|word| String::from_utf8(bytes(&word).to_vec()).unwrap())
                .collect()
        };
        let sending = Sending::to_a_cluster(&request, &SCRIPTS);
        let keys =
            ["4", "Lock:a", "stanchion:meta:{Lock:a}", "stanchion:line:{Lock:a}", "stanchion:none:{Lock:a}"];
        assert_eq!(words(sending.command()), keys);
        assert_eq!(words(&sending.with_text()), keys);
        assert_eq!(words(Sending::new(&request, &SCRIPTS).command()).len(), 4);
    }
}
