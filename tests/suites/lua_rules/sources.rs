//! The source files: headers, and what they say about keys, arguments and replies.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stanchion::store::redis::script::{Code, SCRIPTS};

use crate::lexer::words;
use crate::rules::{is_lock_verb, used_arguments, used_keys};

/// Files with what several verbs share.
const SHARED: [&str; 36] = [
    "absence",
    "cached_waiters",
    "call",
    "check",
    "claim_tasks",
    "dead",
    "die",
    "due",
    "end_delivery",
    "end_lease",
    "end_token",
    "enqueue_task",
    "foreign",
    "hand_off",
    "intake",
    "keep",
    "leave_line",
    "line",
    "live_waiters",
    "permits_absence",
    "permits_end",
    "permits_offer",
    "promote",
    "record",
    "sets",
    "settings",
    "settle_tasks",
    "succeed",
    "sweep",
    "take",
    "take_in",
    "task",
    "tell",
    "wake",
    "walk",
    "write",
];

fn sources() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/store/redis/lua");
    let folders = [folder.clone(), folder.join("cached"), folder.join("permits"), folder.join("queue")];
    let entries = folders.into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let read = |path: PathBuf| {
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    };
    paths.map(read).collect()
}

/// The header: its comment lines, with continued ones joined.
fn header(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("-- "));
    lines.fold(String::new(), |text, line| {
        let joint = if line.starts_with("  ") { " " } else { "\n" };
        text + joint + line.trim()
    })
}

fn field<'a>(header: &'a str, name: &str) -> &'a str {
    header
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("no {name} in {header}"))
        .trim()
}

/// The numbers in "1 lock, 2 meta, ...": how many there are, if they are in order.
fn numbered(list: &str) -> usize {
    let mut count = 0;
    for word in list.split([' ', ',', ';', ':']) {
        if word.parse() == Ok(count + 1) {
            count += 1;
        }
    }
    count
}

#[test]
fn there_is_one_file_per_verb_and_per_shared_part() {
    let mut expected: Vec<_> = SCRIPTS.all().iter().map(|(verb, _)| *verb).chain(SHARED).collect();
    expected.sort_unstable();
    assert_eq!(sources().keys().collect::<Vec<_>>(), expected);
}

#[test]
fn every_file_says_what_it_is_for() {
    for (name, source) in sources() {
        let header = header(&source);
        let purpose = header.trim().lines().next().unwrap_or_default();
        assert!(purpose.len() > 15, "{name}.lua begins with {purpose:?}");
        assert_eq!(purpose.starts_with("Shared"), SHARED.contains(&&*name), "{name}");
    }
}

#[test]
fn every_verb_lists_its_keys_arguments_and_replies() {
    let sources = sources();
    for (verb, script) in SCRIPTS.all() {
        let header = header(&sources[verb]);
        let words = words(&script.text);
        let (keys, used) = (field(&header, "keys:"), used_keys(&words).unwrap());
        if is_lock_verb(verb) {
            assert_eq!(numbered(keys), used.len(), "{verb}: keys");
        } else {
            assert!(keys.starts_with("the queue's"), "{verb}: {keys}");
            assert_eq!(keys.contains("13 call"), used.contains(&13), "{verb}: {keys}");
        }
        let arguments = field(&header, "args:");
        assert_eq!(numbered(arguments), used_arguments(&words).len(), "{verb}: {arguments}");
        assert!(field(&header, "returns:").starts_with("{@"), "{verb}: returns");
    }
}

/// The codes in the header are the codes in the text, so that the header cannot be out of date.
#[test]
fn every_code_is_in_the_header() {
    let sources = sources();
    for (verb, _) in SCRIPTS.all() {
        let source = &sources[verb];
        let shared: String = SHARED
            .iter()
            .filter(|part| source.contains(&format!("-- include {part}.lua")))
            .map(|part| sources[*part].clone())
            .collect();
        let code: String =
            source.lines().filter(|line| !line.trim().starts_with("--")).collect::<Vec<_>>().join("\n");
        let mut used = codes(&code);
        used.extend(codes(&shared));
        used.sort();
        used.dedup();
        let mut told: Vec<_> = names(field(&header(source), "returns:"));
        told.sort();
        told.dedup();
        assert_eq!(told, used, "{verb}");
    }
}

/// The names of codes.
fn codes(code: &str) -> Vec<String> {
    let is_code = |name: &String| Code::ALL.iter().any(|(code, _)| code == name);
    names(code).into_iter().filter(is_code).collect()
}

/// What begins with `@`.
fn names(text: &str) -> Vec<String> {
    let name = |part: &str| {
        let end =
            part.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(part.len());
        part[..end].to_owned()
    };
    text.split('@').skip(1).map(name).collect()
}

/// A number written where a code or a constant belongs would not follow the Rust side.
#[test]
fn no_reply_code_is_written_as_a_number() {
    for (name, source) in sources() {
        for reply in source.split("return {").skip(1) {
            let first = reply.split([',', '}']).next().unwrap_or_default();
            assert!(first.contains('@') && !first.contains(char::is_numeric), "{name}: return {{{first}");
        }
    }
}

#[test]
fn scripts_are_short() {
    for (name, source) in sources() {
        let lines = source.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 130, "{name}.lua has {lines} lines: look for the second thing hiding in it");
    }
}
