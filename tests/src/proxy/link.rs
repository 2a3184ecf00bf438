//! A connection through the proxy: what becomes of each request, and of its reply.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::verb::verb_of;
use super::wire::{read_frame, read_request};
use super::{Fault, Half, Incoming, Shared, locked};

/// What becomes of the next reply of the server.
enum Fate {
    Pass,
    After(Duration),
    Swallow,
    SwallowOne,
    Cut,
    Replace(Vec<u8>),
}

impl Fate {
    fn of(fault: Option<Fault>) -> Self {
        match fault {
            Some(Fault::SwallowReply) => Self::Swallow,
            Some(Fault::DelayReply(time)) => Self::After(time),
            Some(Fault::CutAfter) => Self::Cut,
            Some(Fault::Rewrite(bytes) | Fault::Refuse(bytes)) => Self::Replace(bytes),
            _ => Self::Pass,
        }
    }
}

/// The two sockets of a connection, shared by its two threads.
pub(super) struct Link {
    client: TcpStream,
    server: TcpStream,
    /// For each reply that is due: the verb it answers, and what becomes of it.
    fates: Mutex<VecDeque<(String, Fate)>>,
}

impl Link {
    pub(super) fn cut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Shared {
    pub(super) fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.upstream)?;
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
        }
        let link = Arc::new(Link { client, server, fates: Mutex::default() });
        let mut links = locked(&self.links);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(&link));
        drop(links);
        let (up, down) = ((Arc::clone(self), Arc::clone(&link)), (Arc::clone(self), link));
        thread::spawn(move || {
            let _ = up.0.carry_requests(&up.1);
            up.1.cut();
        });
        thread::spawn(move || {
            let _ = down.0.carry_replies(&down.1);
            down.1.cut();
        });
        Ok(())
    }

    fn carry_requests(self: &Arc<Self>, link: &Link) -> io::Result<()> {
        let mut reader = BufReader::new(link.client.try_clone()?);
        let mut server = link.server.try_clone()?;
        let mut is_deaf = false;
        loop {
            let (raw, args) = read_request(&mut reader)?;
            let incoming = Incoming { verb: verb_of(&args), args };
            *locked(&self.counts).entry(incoming.verb.clone()).or_default() += 1;
            if is_deaf {
                continue;
            }
            let fault = self.fault_for(&incoming);
            match &fault {
                Some(Fault::Drop) => {
                    is_deaf = true;
                    continue;
                }
                Some(Fault::CutBefore) => return Ok(()),
                Some(Fault::CutAndLate(time)) => {
                    let (shared, time, verb) = (Arc::clone(self), *time, incoming.verb);
                    thread::spawn(move || shared.perform_late(time, &raw, verb));
                    return Ok(());
                }
                Some(Fault::DelayRequest(time)) => thread::sleep(*time),
                Some(Fault::Rewrite(bytes) | Fault::Refuse(bytes)) if incoming.verb == "SUBSCRIBE" => {
                    link.client.try_clone()?.write_all(bytes)?;
                    continue;
                }
                _ => {}
            }
            self.wait_while_held(Half::Requests);
            self.pass_on(link, &mut server, incoming.verb, fault, &raw)?;
        }
    }

    fn pass_on(
        &self,
        link: &Link,
        server: &mut TcpStream,
        verb: String,
        fault: Option<Fault>,
        raw: &[u8],
    ) -> io::Result<()> {
        let is_duplicated = fault == Some(Fault::Duplicate);
        let is_refused = matches!(fault, Some(Fault::Refuse(_)));
        // A confirmed subscription is answered by a push, which no fate waits for.
        if verb != "SUBSCRIBE" {
            let mut fates = locked(&link.fates);
            fates.push_back((verb.clone(), Fate::of(fault)));
            if is_duplicated {
                fates.push_back((verb.clone(), Fate::SwallowOne));
            }
        }
        if is_refused {
            // Something harmless, whose answer keeps the place of the refusal.
            return self.send(server, b"*1\r\n$4\r\nPING\r\n");
        }
        for _ in 0..=usize::from(is_duplicated) {
            self.send(server, raw)?;
            *locked(&self.forwarded).entry(verb.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// On a connection of its own, since the client's is cut.
    fn perform_late(&self, time: Duration, raw: &[u8], verb: String) -> io::Result<()> {
        thread::sleep(time);
        let mut server = TcpStream::connect(&self.upstream)?;
        server.write_all(raw)?;
        read_frame(&mut BufReader::new(server), &mut Vec::new())?;
        *locked(&self.late).entry(verb).or_default() += 1;
        Ok(())
    }

    fn carry_replies(&self, link: &Link) -> io::Result<()> {
        let mut reader = BufReader::new(link.server.try_clone()?);
        let mut client = link.client.try_clone()?;
        let mut is_mute = false;
        loop {
            let mut raw = Vec::new();
            read_frame(&mut reader, &mut raw)?;
            self.wait_while_held(Half::Replies);
            if raw.first() == Some(&b'>') {
                let is_message = raw.windows(9).take(16).any(|part| part == b"\r\nmessage");
                let is_dropped = is_message && locked(&self.flow).drop_messages;
                if !is_mute && !is_dropped {
                    self.send(&mut client, &raw)?;
                }
                continue;
            }
            let (verb, fate) = locked(&link.fates).pop_front().unwrap_or((String::new(), Fate::Pass));
            *locked(&self.performed).entry(verb).or_default() += 1;
            match fate {
                Fate::Pass => {}
                Fate::After(time) => thread::sleep(time),
                Fate::Swallow => is_mute = true,
                Fate::SwallowOne => continue,
                Fate::Cut => return Ok(()),
                Fate::Replace(bytes) => raw = bytes,
            }
            if !is_mute {
                self.send(&mut client, &raw)?;
            }
        }
    }

    fn wait_while_held(&self, half: Half) {
        let flow = locked(&self.flow);
        if flow.holds(half) {
            drop(self.flow_changed.wait_while(flow, |flow| flow.holds(half)));
        }
    }

    /// The fault of the first rule that matches; it is used up by one.
    fn fault_for(&self, incoming: &Incoming) -> Option<Fault> {
        let mut rules = locked(&self.rules);
        let rule = rules.iter_mut().find(|rule| rule.left > 0 && (rule.matches)(incoming))?;
        rule.left -= 1;
        Some(rule.fault.clone())
    }

    fn send(&self, to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        let Some(pause) = locked(&self.flow).sliced else { return to.write_all(bytes) };
        for byte in bytes {
            to.write_all(std::slice::from_ref(byte))?;
            thread::sleep(pause);
        }
        Ok(())
    }
}
