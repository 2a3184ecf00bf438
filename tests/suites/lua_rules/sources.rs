//! The source files: headers, and what they say about keys, arguments and replies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stanchion::store::redis::script::{Code, SCRIPTS};

use crate::lexer::words;
use crate::rules::{has_own_keys, used_arguments, used_keys};

/// Files with what several verbs share.
const SHARED: [&str; 72] = [
    "absence",
    "cached_waiters",
    "call",
    "cancel_task",
    "check",
    "check_flows",
    "claim_tasks",
    "count_runs",
    "dead",
    "die",
    "due",
    "end_delivery",
    "end_lease",
    "end_take",
    "end_token",
    "enqueue_task",
    "flows",
    "flows_due",
    "foreign",
    "gate",
    "give_again",
    "hand_off",
    "happen",
    "held",
    "hints",
    "intake",
    "keep",
    "keys",
    "leave_line",
    "limits",
    "line",
    "live_waiters",
    "next_walk",
    "order",
    "outbox",
    "permits_absence",
    "permits_end",
    "permits_offer",
    "places",
    "promote",
    "promote_keys",
    "pull",
    "put",
    "rate",
    "record",
    "results",
    "schedule",
    "sets",
    "settings",
    "settle_tasks",
    "spec",
    "step_nodes",
    "succeed",
    "sweep",
    "take",
    "take_in",
    "take_messages",
    "task",
    "tell",
    "throttle",
    "trim_flows",
    "turn",
    "use_keys",
    "waiters_with",
    "wake",
    "walk",
    "widen",
    "write",
    "write_events",
    "write_messages",
    "write_outbox",
    "write_results",
];

fn sources() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/store/redis/lua");
    let parts = ["", "cached", "limiter", "permits", "queue"].map(|part| folder.join(part));
    let entries = parts.into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
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

/// The names in "LOCK, META; ENDED, if ...".
fn named(list: &str) -> Vec<&str> {
    let words = list.split([' ', ',', ';', ':']);
    words.filter(|word| word.starts_with(|letter: char| letter.is_ascii_uppercase())).collect()
}

/// The parts that a source includes; or a line that only looks as if it included one.
fn includes(source: &str) -> Result<Vec<&str>, &str> {
    let comments = source.lines().map(str::trim).filter(|line| line.starts_with("--"));
    let like_one = comments.filter(|line| line.contains("include") && line.contains(".lua"));
    like_one.map(included).collect()
}

fn included(line: &str) -> Result<&str, &str> {
    let part = line.strip_prefix("-- include ").and_then(|file| file.strip_suffix(".lua"));
    part.filter(|part| SHARED.contains(part)).ok_or(line)
}

/// The parts that a script has: those that it includes, and what they include.
fn parts(source: &str, sources: &BTreeMap<String, String>) -> BTreeSet<String> {
    let (mut parts, mut open) = (BTreeSet::new(), vec![source]);
    while let Some(source) = open.pop() {
        let new = includes(source).unwrap().into_iter().filter(|part| parts.insert((*part).to_owned()));
        open.extend(new.map(|part| &*sources[part]).collect::<Vec<_>>());
    }
    parts
}

/// What stands in brackets after KEYS where no key has a name.
fn nameless_keys(source: &str) -> Vec<&str> {
    let names = |text: &str| {
        let name = text.strip_prefix('@').and_then(|text| text.split(']').next()).unwrap_or_default();
        let name = name.strip_suffix("[i").unwrap_or(name);
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    let inside = source.split("KEYS").skip(1).map(|rest| rest.strip_prefix('[').unwrap_or_default());
    inside.filter(|text| !names(text)).map(|text| text.split(']').next().unwrap_or_default()).collect()
}

/// What a part keeps beyond its functions, as far as no constants stand in it.
fn kept(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().filter(|line| line.starts_with("local ") && !line.contains('@'));
    lines.filter(|line| !line.starts_with("local function "))
}

/// A part may be included in several blocks. If it kept something, there would be one of it in each.
#[test]
fn what_a_part_keeps_is_in_a_script_once() {
    let (sources, mut looked_at) = (sources(), 0);
    for (verb, script) in SCRIPTS.all() {
        for part in parts(&sources[verb], &sources) {
            for line in kept(&sources[&part]) {
                looked_at += 1;
                let found = script.text.lines().filter(|other| *other == line).count();
                assert_eq!(found, 1, "{verb} has this of {part}.lua: {line}");
            }
        }
    }
    assert!(looked_at > 200, "{looked_at} lines");
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
        if has_own_keys(verb) {
            assert_eq!(named(keys), script.keys, "{verb}: keys");
            assert_eq!(script.keys.len(), used.len(), "{verb}: keys that are not used");
        } else {
            assert!(keys.starts_with("the queue's"), "{verb}: {keys}");
            let more = &script.keys[17..];
            assert_eq!(named(keys), more, "{verb}: {keys}");
            assert!((18..18 + more.len()).all(|key| used.contains(&key)), "{verb}: keys that are not used");
        }
        let arguments = field(&header, "args:");
        assert_eq!(numbered(arguments), used_arguments(&words).len(), "{verb}: {arguments}");
        assert!(field(&header, "returns:").starts_with("{@"), "{verb}: returns");
    }
}

#[test]
fn every_key_has_a_name() {
    assert_eq!(nameless_keys("redis.call('GET', KEYS[@LOCK], KEYS[@META[i]])"), [""; 0]);
    assert_eq!(
        nameless_keys("KEYS[1] KEYS[3 * i - 2] KEYS[@LOCK + 1] KEYS[@]"),
        ["1", "3 * i - 2", "@LOCK + 1", "@"]
    );
    assert_eq!(nameless_keys("local keys = KEYS"), [""]);
    for (name, source) in sources() {
        assert_eq!(nameless_keys(&source), [""; 0], "{name}");
    }
}

#[test]
fn every_include_is_one() {
    assert_eq!(
        includes("-- include line.lua\n  -- include absence.lua\n-- A comment.\nx()"),
        Ok(vec!["line", "absence"])
    );
    for wrong in
        ["-- include lines.lua", "--include line.lua", "-- includes line.lua", "-- include line.lua."]
    {
        assert_eq!(includes(wrong), Err(wrong));
    }
    for (name, source) in sources() {
        assert!(includes(&source).is_ok(), "{name}: {:?}", includes(&source));
    }
}

#[test]
fn every_part_is_used() {
    let sources = sources();
    let used: BTreeSet<_> =
        SCRIPTS.all().iter().flat_map(|(verb, _)| parts(&sources[*verb], &sources)).collect();
    assert_eq!(used.iter().collect::<Vec<_>>(), SHARED);
}

/// The codes in the header are the codes in the text, so that the header cannot be out of date.
#[test]
fn every_code_is_in_the_header() {
    let sources = sources();
    for (verb, _) in SCRIPTS.all() {
        let source = &sources[verb];
        let shared: String = parts(source, &sources).iter().map(|part| &*sources[part]).collect();
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

/// The names of codes. A key may have the name of one.
fn codes(code: &str) -> Vec<String> {
    let is_code = |name: &String| Code::ALL.iter().any(|(code, _)| code == name);
    names(&code.replace("KEYS[@", "KEYS[")).into_iter().filter(is_code).collect()
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
