//! The rules for one completed script.

use std::collections::BTreeSet;

use stanchion::ACL_RULE;
use stanchion::store::redis::script::{Code, SCRIPTS};

use crate::lexer::{KEYWORDS, Word, bracketed, words};
use crate::paths::{Write, paths};

/// Names a script may use without declaring them.
const GLOBALS: [&str; 10] =
    ["redis", "KEYS", "ARGV", "tonumber", "math", "string", "unpack", "ipairs", "type", "cmsgpack"];
/// Fields of the libraries that scripts may use. math.random is not: its sequence is the same every time.
const FIELDS: [&str; 17] = [
    "call",
    "pcall",
    "sha1hex",
    "floor",
    "ceil",
    "max",
    "min",
    "huge",
    "format",
    "find",
    "byte",
    "match",
    "gsub",
    "sub",
    "pack",
    "unpack",
    "unpack_one",
];
/// What enqueue_task.lua makes of a task's options.
const OPTIONS: [&str; 8] = ["due", "priority", "max_attempts", "expires", "policy", "span", "key", "node"];
/// The others are the queue's. Those all get the same keys, and may have a list of arguments at the end.
const LOCK_VERBS: [&str; 22] = [
    "acquire",
    "acquire_all",
    "extend",
    "release",
    "leave",
    "resume",
    "holder",
    "waiters",
    "break_lease",
    "permits_acquire",
    "permits_extend",
    "permits_release",
    "permits_leave",
    "permits_resume",
    "permits_downgrade",
    "permits_upgrade",
    "permits_holder",
    "permits_waiters",
    "permits_break_lease",
    "cached_acquire",
    "store_value",
    "invalidate",
];
/// Those of limiters: one key, and no lists.
const LIMITER_VERBS: [&str; 6] =
    ["gcra_take", "gcra_give_back", "fixed_take", "fixed_give_back", "sliding_take", "sliding_give_back"];
/// Those that are about several locks: their keys are those of each lock, one after the other.
const OF_SEVERAL: [&str; 1] = ["acquire_all"];
/// The keys of a queue, with those of its results and of its flows.
const QUEUE_KEYS: usize = 22;

/// What is wrong with a script; empty if nothing is.
pub fn check(verb: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.starts_with("#!") {
        wrong.push("a shebang: scripts must run on servers that do not know it".into());
    }
    let words = words(text.strip_prefix("#!lua").unwrap_or(text));
    check_commands(&words, &mut wrong);
    check_keys(verb, &words, &mut wrong);
    check_arguments(verb, &words, &mut wrong);
    check_names(&words, &mut wrong);
    check_numbers(&words, &mut wrong);
    check_codes(verb, &words, &mut wrong);
    if wrong.is_empty() {
        check_paths(verb, &words, &mut wrong);
    }
    wrong
}

/// The command's words at each place where `redis.call` or `redis.pcall` is written.
fn check_commands(words: &[Word], wrong: &mut Vec<String>) {
    let mut keys_seen = 0;
    for at in positions(words, "redis") {
        let field = words.get(at + 2).and_then(Word::name).unwrap_or_default();
        if field == "sha1hex" {
            continue;
        }
        if !["call", "pcall"].contains(&field) || !words.get(at + 3).is_some_and(|word| word.is("(")) {
            wrong.push("redis.call is used other than by calling it".into());
            continue;
        }
        let (arguments, _) = bracketed(words, at + 3);
        let Some(Word::Text(command)) = arguments.first() else {
            wrong.push("a command is not a literal".into());
            continue;
        };
        if command == "PUBLISH" && field == "call" {
            wrong.push("PUBLISH by call: its failure would end the script after its writes".into());
        }
        if command != "PUBLISH" && field == "pcall" {
            wrong.push(format!("{command} by pcall: its failure would go unnoticed"));
        }
        if !ACL_RULE.contains(&format!("+{}", command.to_lowercase())) {
            wrong.push(format!("{command} is not in the documented ACL rule"));
        }
        let key = matches!(arguments, [_, comma, keys, ..] if comma.is(",") && keys.is("KEYS"))
            && index(arguments, 2)
                .is_some_and(|(_, length)| arguments.get(3 + length).is_none_or(|word| word.is(",")));
        if key {
            keys_seen += 1;
        } else if !["TIME", "PUBLISH"].contains(&&**command) {
            wrong.push(format!("the key of {command} is not a literal KEYS[n]"));
        }
    }
    if positions(words, "KEYS").count() > keys_seen {
        wrong.push("KEYS is used other than as a command's key".into());
    }
}

/// Indexes are literals, or those of one of several locks, and none is left out.
fn check_keys(verb: &str, words: &[Word], wrong: &mut Vec<String>) {
    let Some(used) = used_keys(words) else {
        wrong.push("KEYS has an index that is not a literal".into());
        return;
    };
    if has_own_keys(verb) && used.iter().copied().ne(1..=used.len()) {
        wrong.push(format!("KEYS has gaps: {used:?}"));
    }
    if used.last().is_some_and(|most| *most > QUEUE_KEYS) {
        wrong.push(format!("KEYS[{used:?}]: there are {QUEUE_KEYS}"));
    }
}

/// Literal indexes have no gaps. After them the queue's verbs, and those of several locks, may have a list, gone
/// through by `i`.
fn check_arguments(verb: &str, words: &[Word], wrong: &mut Vec<String>) {
    let used = used_arguments(words);
    if used.iter().copied().ne(1..=used.len()) {
        wrong.push(format!("ARGV has gaps: {used:?}"));
    }
    let has_list = !has_own_keys(verb) || OF_SEVERAL.contains(&verb);
    let others = positions(words, "ARGV").filter(|at| literal_index(words, *at).is_none());
    for at in others {
        let is_count = at > 0 && words[at - 1].is("#");
        let is_listed = words.get(at + 1).is_some_and(|word| word.is("["))
            && words.get(at + 2).is_some_and(|word| word.is("i"));
        if !has_list || !(is_count || is_listed) {
            wrong.push("ARGV has an index that is not a literal".into());
        }
    }
}

fn literal_index(words: &[Word], at: usize) -> Option<usize> {
    match &words[at + 1..] {
        [open, Word::Number(number), close, ..] if open.is("[") && close.is("]") => number.parse().ok(),
        _ => None,
    }
}

/// The index after the word at `at`, and how many words it has with its brackets. It is a literal, or that of one of
/// several locks, `3 * i - 2` to `3 * i`; of those it is the first lock's.
fn index(words: &[Word], at: usize) -> Option<(usize, usize)> {
    let (inner, _) = words.get(at + 1).filter(|word| word.is("[")).map(|_| bracketed(words, at + 1))?;
    let number = |word: &Word| match word {
        Word::Number(number) => number.parse::<usize>().ok(),
        _ => None,
    };
    let first = match inner {
        [literal] => number(literal)?,
        [each, times, i, ..] if times.is("*") && i.is("i") && number(each) == Some(3) => match &inner[3..] {
            [] => 3,
            [minus, less] if minus.is("-") => 3_usize.checked_sub(number(less)?)?,
            _ => return None,
        },
        _ => return None,
    };
    Some((first, inner.len() + 2))
}

/// The indexes of KEYS; `None` if one is neither a literal nor that of one of several locks.
pub fn used_keys(words: &[Word]) -> Option<BTreeSet<usize>> {
    positions(words, "KEYS").map(|at| index(words, at).map(|(first, _)| first)).collect()
}

/// The literal indexes of ARGV.
pub fn used_arguments(words: &[Word]) -> BTreeSet<usize> {
    positions(words, "ARGV").filter_map(|at| literal_index(words, at)).collect()
}

/// Whether its script uses each key that it is given, and no list of arguments: those of locks and limiters do.
pub fn has_own_keys(verb: &str) -> bool {
    LOCK_VERBS.contains(&verb) || LIMITER_VERBS.contains(&verb)
}

/// Everything is declared or known. A global that is not would be nil, or an error in the middle.
fn check_names(words: &[Word], wrong: &mut Vec<String>) {
    let mut declared: BTreeSet<&str> = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        if word.is("function") {
            declared.extend(words[at + 1].name());
            let Some(open) = (at..at + 3).find(|at| words[*at].is("(")) else { continue };
            declared.extend(bracketed(words, open).0.iter().filter_map(Word::name));
        } else if word.is("local") || word.is("for") {
            let names = words[at + 1..].iter().take_while(|word| word.name().is_some() || word.is(","));
            declared.extend(names.filter_map(Word::name));
        }
    }
    for (at, word) in words.iter().enumerate() {
        let Word::Name(name) = word else { continue };
        let is_field = at > 0 && words[at - 1].is(".");
        let known = match is_field {
            true => FIELDS.contains(&&**name) || OPTIONS.contains(&&**name),
            false => KEYWORDS.contains(&&**name) || GLOBALS.contains(&&**name) || declared.contains(&**name),
        };
        if !known {
            wrong.push(format!("{name} is not allowed, or not declared"));
        }
    }
    for (at, word) in words.iter().enumerate() {
        if word.is("function") && !words.get(at.wrapping_sub(1)).is_some_and(|word| word.is("local")) {
            wrong.push("a function that is not a local function with a name".into());
        }
        if word.is("while") || word.is("repeat") {
            wrong.push("a loop without a bound".into());
        }
    }
}

/// The only way to join the two numbers of TIME: with fewer digits the microseconds need zeros before them.
const JOINED: &str = "#time[2] == 6 and time[1] .. time[2]";

/// Numbers become text by `%.0f` only; the microseconds of a second by `%06d`.
fn check_numbers(words: &[Word], wrong: &mut Vec<String>) {
    let joined = crate::lexer::words(JOINED);
    let before = joined.iter().position(|word| word.is("..")).unwrap();
    for (at, word) in words.iter().enumerate() {
        if word.is("..") {
            // Beside the time, the only text that is put together is a channel's name, from a literal and a part of an entry.
            let is_time = at.checked_sub(before).is_some_and(|first| words[first..].starts_with(&joined));
            let published =
                matches!(words.get(at.wrapping_sub(3)), Some(Word::Text(word)) if word == "PUBLISH");
            if !is_time && (!published || !matches!(words[at - 1], Word::Text(_))) {
                wrong.push("`..`: it builds a key, or shortens a number to 14 digits".into());
            }
        }
        if word.is("format") {
            let Some(Word::Text(pattern)) = words.get(at + 2) else {
                wrong.push("string.format without a literal pattern".into());
                continue;
            };
            let plain =
                pattern.replace("%.0f", "").replace("%016.0f", "").replace("%s%06d", "").replace("%s", "");
            if plain.contains('%') {
                wrong.push(format!("string.format({pattern:?}): numbers are written by %.0f"));
            }
        }
    }
}

/// Every reply begins with a code that the Rust side knows.
fn check_codes(verb: &str, words: &[Word], wrong: &mut Vec<String>) {
    for at in positions(words, "return") {
        if let Some(Word::Number(number)) = words.get(at + 1)
            && has_own_keys(verb)
        {
            // The code alone.
            if number.parse().ok().and_then(Code::from_number).is_none() {
                wrong.push(format!("a reply is {number}, which is no code"));
            }
        }
        if !words.get(at + 1).is_some_and(|word| word.is("{")) {
            continue;
        }
        let (fields, _) = bracketed(words, at + 1);
        let first = fields.split(|word| word.is(",")).next().unwrap_or_default();
        let numbers = |word: &Word| match word {
            Word::Number(number) => Some(number.clone()),
            _ => None,
        };
        let codes: Vec<String> = first.iter().filter_map(numbers).collect();
        // A choice is "condition and 2 or 3".
        let plain = first.iter().all(|word| !matches!(word, Word::Sign(_) | Word::Text(_)));
        let known = |number: &String| number.parse().ok().and_then(Code::from_number).is_some();
        if !plain || codes.is_empty() || !codes.iter().all(known) {
            wrong.push(format!("a reply begins with {codes:?}, which is no code"));
        }
    }
}

/// Verbs that have to work when memory is full begin with a removing or expiring write; those that take
/// memory begin with an adding one, so that they fail whole. Only a script's first write is checked by the
/// server.
fn check_paths(verb: &str, words: &[Word], wrong: &mut Vec<String>) {
    let allowed = match verb.strip_prefix("permits_").unwrap_or(verb) {
        "acquire" | "acquire_all" | "resume" | "downgrade" | "upgrade" | "store_value" | "enqueue"
        | "kick" | "gcra_take" | "fixed_take" | "sliding_take" | "put_flow" | "post_messages" => {
            Some(Write::Adding)
        }
        "release" | "leave" | "extend" | "break_lease" | "invalidate" | "claim" | "settle"
        | "settle_and_claim" | "extend_claim" | "abandon" | "pop" | "remove" | "remove_dead"
        | "reschedule" | "purge" | "cancel" | "result" | "events" | "gcra_give_back" | "fixed_give_back"
        | "sliding_give_back" | "read_outbox" | "step_flows" => Some(Write::Removing),
        _ => None,
    };
    // They set what is asked for, and take away what is not; or take the lock, and take out of the line who gets
    // the value. What is stored of a schedule depends on it.
    let either = matches!(
        verb,
        "pause"
            | "configure"
            | "limit_key"
            | "cached_acquire"
            | "put_schedules"
            | "fire"
            | "pause_schedule"
            | "remove_schedule"
    );
    for path in paths(words) {
        if path.times > 1 {
            wrong.push("TIME twice on one path: the two may differ".into());
        }
        if path.late {
            wrong.push(
                "a command after PUBLISH: where it is denied, that would be skipped or seen early".into(),
            );
        }
        if let Some(write) = path.first_write.filter(|write| Some(*write) != allowed && !either) {
            wrong.push(format!("a path of {verb} begins with a write that is {write:?}"));
        }
    }
    wrong.dedup();
}

fn positions<'a>(words: &'a [Word], name: &'a str) -> impl Iterator<Item = usize> + 'a {
    words.iter().enumerate().filter(move |(_, word)| word.is(name)).map(|(at, _)| at)
}

#[test]
fn every_script_keeps_every_rule() {
    assert_eq!(SCRIPTS.all().len(), 65);
    for (verb, script) in SCRIPTS.all() {
        let wrong = check(verb, &script.text);
        assert!(wrong.is_empty(), "{verb}: {wrong:#?}");
    }
}

#[test]
fn every_right_in_the_documented_rule_is_needed() {
    let text: String = SCRIPTS.all().iter().map(|(_, script)| script.text.clone()).collect();
    // What the client itself sends, outside of scripts.
    let plain = ["ping", "select", "eval", "evalsha", "script|load", "info", "scan", "subscribe"];
    for right in ACL_RULE.split_whitespace().filter_map(|word| word.strip_prefix('+')) {
        let used = text.contains(&format!("'{}'", right.to_uppercase()));
        assert!(used || plain.contains(&right), "{right} is not used");
    }
}

#[test]
fn the_hash_of_each_script_is_its_own() {
    for (verb, script) in SCRIPTS.all() {
        assert_eq!(redis::Script::new(&script.text).get_hash(), script.sha, "{verb}");
    }
}
