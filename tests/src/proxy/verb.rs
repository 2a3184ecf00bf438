//! Which verb a request is.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use stanchion::store::redis::script::SCRIPTS;

use super::locked;

/// A script is one of ours in another release from here on; its verb's own lines weigh that much at least.
const LIKE: f64 = 0.25;

/// By their SHA-1, the verbs and texts of scripts of other releases that were seen.
static OTHERS: Mutex<BTreeMap<String, (&str, String)>> = Mutex::new(BTreeMap::new());

/// The texts of scripts of other releases that were seen.
pub(super) fn others() -> Vec<String> {
    locked(&OTHERS).values().map(|(_, text)| text.clone()).collect()
}

/// The verb of a script, or the command. A script of another release is known from when its text was sent first.
pub(super) fn verb_of(args: &[Vec<u8>]) -> String {
    let text = |index: usize| args.get(index).map_or(Cow::default(), |arg| String::from_utf8_lossy(arg));
    let (command, script) = (text(0).to_uppercase(), text(1));
    let verb = match &*command {
        "EVALSHA" => of_sha(&script),
        "EVAL" => of_text(&script),
        _ => None,
    };
    verb.map_or(command, str::to_owned)
}

fn of_sha(sha: &str) -> Option<&'static str> {
    let ours = SCRIPTS.all().into_iter().find(|(_, script)| script.sha == sha).map(|(verb, _)| verb);
    ours.or_else(|| locked(&OTHERS).get(sha).map(|(verb, _)| *verb))
}

/// Of another release it is the verb whose script is the most like it: of the lines that are in either, the most are in both.
/// A line counts the less the more verbs have it, for most lines of a script are of parts that many share.
fn of_text(text: &str) -> Option<&'static str> {
    if let Some((verb, _)) = SCRIPTS.all().into_iter().find(|(_, script)| script.text == text) {
        return Some(verb);
    }
    let ours: Vec<(_, BTreeSet<_>)> =
        SCRIPTS.all().into_iter().map(|(verb, script)| (verb, script.text.lines().collect())).collect();
    let mut verbs_with = BTreeMap::new();
    for line in ours.iter().flat_map(|(_, lines)| lines) {
        *verbs_with.entry(*line).or_insert(0.0) += 1.0;
    }
    let weigh = |line: &&str| verbs_with.get(line).map_or(0.0, |verbs| 1.0 / verbs);
    let lines: BTreeSet<_> = text.lines().collect();
    let likeness = |other: &BTreeSet<&str>| {
        let in_both: f64 = other.intersection(&lines).map(weigh).sum();
        in_both / other.union(&lines).map(weigh).sum::<f64>()
    };
    let like = ours.iter().map(|(verb, other)| (likeness(other), *verb));
    let (_, verb) = like.filter(|(likeness, _)| *likeness > LIKE).max_by(|a, b| a.0.total_cmp(&b.0))?;
    locked(&OTHERS).insert(redis::Script::new(text).get_hash().to_owned(), (verb, text.to_owned()));
    Some(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str, script: &str) -> Vec<Vec<u8>> {
        [command, script].map(|word| word.as_bytes().to_vec()).to_vec()
    }

    #[test]
    fn scripts_of_another_release_are_known_by_their_lines() {
        for (verb, script) in SCRIPTS.all() {
            assert_eq!(verb_of(&words("EVALSHA", &script.sha)), verb);
            let other = format!("local of_another_release = 1\n{}", script.text);
            let sha = redis::Script::new(&other).get_hash().to_owned();
            assert_eq!(verb_of(&words("evalsha", &sha)), "EVALSHA");
            assert_eq!(verb_of(&words("EVAL", &other)), verb);
            assert_eq!(verb_of(&words("EVALSHA", &sha)), verb);
        }
        assert_eq!(verb_of(&words("EVAL", "return 1")), "EVAL");
        assert_eq!(verb_of(&words("SUBSCRIBE", "channel")), "SUBSCRIBE");
    }
}
