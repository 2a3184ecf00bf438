//! The Lua scripts: one per verb, completed with shared parts, reply codes and constants.

use std::sync::LazyLock;

use crate::store::{
    ENDED_TTL, GRANT_WINDOW, LINE_TTL, META_REFRESH, META_TTL, SHARE_AFTER, SHARE_WINDOW, WAITER_LIVE, YEAR,
};
use crate::token::COOLDOWN_MARKER;
use crate::verbs::HeldAs;

/// The first element of every script's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// acquire
    Granted = 1,
    /// acquire
    Waiting = 2,
    /// acquire
    Busy = 3,
    /// acquire
    Ended = 4,
    /// extend
    Extended = 5,
    /// extend, release, resume
    Gone = 6,
    /// release
    Released = 7,
    /// leave
    Left = 8,
    /// resume
    Resumed = 9,
    /// holder
    Held = 10,
    /// holder, break_lease
    Free = 11,
    /// break_lease
    Broken = 12,
}

impl Code {
    const ALL: [(&'static str, Self); 12] = [
        ("GRANTED", Self::Granted),
        ("WAITING", Self::Waiting),
        ("BUSY", Self::Busy),
        ("ENDED", Self::Ended),
        ("EXTENDED", Self::Extended),
        ("GONE", Self::Gone),
        ("RELEASED", Self::Released),
        ("LEFT", Self::Left),
        ("RESUMED", Self::Resumed),
        ("HELD", Self::Held),
        ("FREE", Self::Free),
        ("BROKEN", Self::Broken),
    ];

    /// The code with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.iter().map(|(_, code)| *code).find(|code| *code as i64 == number)
    }
}

/// How holder.lua says how a lock is held.
pub(crate) const HELD_AS: [(&str, i64, HeldAs); 4] = [
    ("AS_LEASE", 1, HeldAs::Lease),
    ("AS_OFFER", 2, HeldAs::Offer),
    ("AS_COOLDOWN", 3, HeldAs::Cooldown),
    ("AS_FOREIGN", 4, HeldAs::Foreign),
];

/// A script ready to run.
#[derive(Debug)]
pub struct Script {
    /// Its text, for SCRIPT LOAD.
    pub text: String,
    /// Its SHA-1, for EVALSHA.
    pub sha: String,
}

/// All scripts, by verb.
#[derive(Debug)]
pub struct Scripts {
    /// acquire.lua
    pub acquire: Script,
    /// extend.lua
    pub extend: Script,
    /// release.lua
    pub release: Script,
    /// leave.lua
    pub leave: Script,
    /// resume.lua
    pub resume: Script,
    /// holder.lua
    pub holder: Script,
    /// break_lease.lua
    pub break_lease: Script,
}

impl Scripts {
    /// Every script with its verb.
    pub fn all(&self) -> [(&'static str, &Script); 7] {
        [
            ("acquire", &self.acquire),
            ("extend", &self.extend),
            ("release", &self.release),
            ("leave", &self.leave),
            ("resume", &self.resume),
            ("holder", &self.holder),
            ("break_lease", &self.break_lease),
        ]
    }
}

/// The completed scripts, made on first use.
pub static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    acquire: complete(include_str!("lua/acquire.lua")),
    extend: complete(include_str!("lua/extend.lua")),
    release: complete(include_str!("lua/release.lua")),
    leave: complete(include_str!("lua/leave.lua")),
    resume: complete(include_str!("lua/resume.lua")),
    holder: complete(include_str!("lua/holder.lua")),
    break_lease: complete(include_str!("lua/break_lease.lua")),
});

const SHARED: [(&str, &str); 3] = [
    ("-- include hand_off.lua", include_str!("lua/hand_off.lua")),
    ("-- include absence.lua", include_str!("lua/absence.lua")),
    ("-- include end_token.lua", include_str!("lua/end_token.lua")),
];

/// Puts in the shared parts and replaces every `@NAME`; drops comments and indentation.
fn complete(source: &str) -> Script {
    let mut text = String::new();
    for line in source.lines() {
        match SHARED.iter().find(|(marker, _)| *marker == line.trim()) {
            Some((_, shared)) => shared.lines().for_each(|line| push_code(&mut text, line)),
            None => push_code(&mut text, line),
        }
    }
    // Longest names first: one name may begin with another.
    let mut values = values();
    values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in values {
        text = text.replace(&format!("@{name}"), &value);
    }
    let sha = redis::Script::new(&text).get_hash().to_owned();
    Script { text, sha }
}

fn push_code(text: &mut String, line: &str) {
    let line = line.trim();
    if !line.is_empty() && !line.starts_with("--") {
        text.push_str(line);
        text.push('\n');
    }
}

fn values() -> Vec<(&'static str, String)> {
    let millis = [
        ("META_TTL", META_TTL),
        ("META_REFRESH", META_REFRESH),
        ("GRANT_WINDOW", GRANT_WINDOW),
        ("LIVE", WAITER_LIVE),
        ("LINE_TTL", LINE_TTL),
        ("ENDED_TTL", ENDED_TTL),
        ("SHARE_WINDOW", SHARE_WINDOW),
        ("YEAR", YEAR),
    ];
    let mut values: Vec<_> =
        millis.iter().map(|(name, time)| (*name, time.as_millis().to_string())).collect();
    values.extend(Code::ALL.iter().map(|(name, code)| (*name, (*code as i64).to_string())));
    values.extend(HELD_AS.iter().map(|(name, number, _)| (*name, number.to_string())));
    values.push(("SHARE_AFTER", SHARE_AFTER.to_string()));
    values.push(("COOLDOWN_MARKER", COOLDOWN_MARKER.to_owned()));
    values
}
