//! What all pages have in common.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::text::plain;

/// Who reads a page.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Nothing if nobody was asked.
    pub who: String,
    /// Whether actions are offered.
    pub can_act: bool,
}

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Overview,
    Queues,
    Locks,
    Limiters,
    Workers,
    Server,
    Elsewhere,
}

const PLACES: [(Place, &str, &str); 6] = [
    (Place::Overview, "/", "Now"),
    (Place::Queues, "/queues", "Queues"),
    (Place::Locks, "/locks", "Locks"),
    (Place::Limiters, "/limiters", "Limiters"),
    (Place::Workers, "/workers", "Workers"),
    (Place::Server, "/server", "Server"),
];

/// Keys, and what they do.
const KEYS: [(&str, &str); 5] = [
    ("/", "search"),
    ("j, k", "next and previous row"),
    ("Enter", "open the row"),
    ("g", "back to what is wrong now"),
    ("?", "this list"),
];

/// A whole page.
pub fn page(
    place: Place,
    title: &str,
    reader: Option<&Reader>,
    note: Option<Markup>,
    main: &Markup,
) -> Response {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (shown(title)) " \u{b7} Stanchion" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                script src="/assets/page.js" defer {}
                noscript { meta http-equiv="refresh" content="5"; }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href="/" { "Stanchion" }
                    nav aria-label="Pages" {
                        @for (other, link, name) in PLACES {
                            a href=(link) aria-current=[(other == place).then_some("page")] { (name) }
                        }
                    }
                    form.search action="/search" role="search" {
                        input type="search" name="q" aria-label="Search queues, locks and tasks" placeholder="Search  /";
                    }
                    @if let Some(reader) = reader {
                        @if !reader.who.is_empty() { span.who { (shown(&reader.who)) } }
                        @if !reader.can_act { span.tag { "read-only" } }
                    }
                }
                p #lost hidden role="status" { "The dashboard does not answer. Trying again." }
                main #main tabindex="-1" {
                    @if let Some(note) = note { div.note role="status" { (note) } }
                    (main)
                }
                dialog #keys aria-label="Keys" {
                    h2 { "Keys" }
                    dl { @for (key, what) in KEYS { dt { kbd { (key) } } dd { (what) } } }
                    form method="dialog" { button { "Close" } }
                }
            }
        }
    };
    Html(whole.into_string()).into_response()
}

/// A page that says why there is none.
pub fn refused(status: StatusCode, what: &str, next: &str) -> Response {
    let main = html! {
        h1 { (shown(what)) }
        p { (shown(next)) }
    };
    let mut response = page(Place::Elsewhere, what.trim_end_matches('.'), None, None, &main);
    *response.status_mut() = status;
    response
}

/// What others have stored, as text: nothing in it turns the direction, or is invisible.
pub fn shown(text: &str) -> String {
    plain(text)
}

/// A name as a part of a path. Browsers take two dots for the folder above, also if they are encoded: to such names a tilde is
/// added, which [`name_of`] takes away.
pub fn part(name: &str) -> String {
    if is_dots(name) { encoded(&format!("{name}~")) } else { encoded(name) }
}

/// The name that [`part`] made a part of a path.
pub fn name_of(part: String) -> String {
    match part.strip_suffix('~') {
        Some(name) if is_dots(name) => name.to_owned(),
        _ => part,
    }
}

fn is_dots(name: &str) -> bool {
    matches!(name.trim_end_matches('~'), "." | "..")
}

/// A text in an address.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// With a comma for each thousand.
pub fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something.
pub fn many(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { several })
}

/// How long something has lasted, roughly.
pub fn age(time: Duration) -> String {
    match time.as_secs() {
        0 => "less than a second".into(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// A moment: how far away it is, and exactly when.
pub fn moment(at: SystemTime) -> Markup {
    let exact = stamp(at);
    let told = match SystemTime::now().duration_since(at) {
        Ok(ago) => format!("{} ago", age(ago)),
        Err(ahead) => format!("in {}", age(ahead.duration())),
    };
    html! { time datetime=(exact) title=(exact) { (told) } }
}

/// To the second, in UTC.
pub fn stamp(at: SystemTime) -> String {
    let at = jiff::Timestamp::try_from(at).ok().and_then(|at| at.round(jiff::Unit::Second).ok());
    at.map_or_else(|| "-".into(), |at| at.to_string())
}

/// The same moment without its day.
pub fn clock(at: SystemTime) -> String {
    let at = jiff::Timestamp::try_from(at).ok();
    at.map_or_else(|| "-".into(), |at| format!("{} UTC", at.strftime("%H:%M:%S")))
}

/// Who that is, as far as it is known.
pub fn who(label: &str, host: &str, pid: u32) -> String {
    let known: Vec<String> = [label, host].into_iter().filter(|text| !text.is_empty()).map(shown).collect();
    match (known.is_empty(), pid) {
        (true, 0) => "somebody".into(),
        (true, pid) => format!("process {pid}"),
        (false, 0) => known.join(" on "),
        (false, pid) => format!("{} ({pid})", known.join(" on ")),
    }
}

/// The command that shows, or does, the same.
pub fn command(words: &[&str]) -> Markup {
    let text = safe(words).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    html! {
        div.command {
            code { (text) }
            button type="button" data-copy=(text) hidden aria-label="Copy the command" { "Copy" }
        }
    }
}

/// Options with a value that are shown in commands.
const OPTIONS: [&str; 6] = ["--state", "--reason", "--prefix", "--older-than", "--key", "--rate"];

/// The same words, of which no name is taken for an option: behind `--` if need be, and the options before that.
fn safe<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let (mut names, mut options, mut words) = (Vec::new(), Vec::new(), words.iter());
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        if *word == "--" {
            rest.extend(words.by_ref().copied());
        } else if OPTIONS.contains(word) {
            options.push(*word);
            options.extend(words.next());
        } else {
            names.push(*word);
        }
    }
    if let Some(first) = names.iter().position(|name| name.starts_with('-')) {
        options.push("--");
        names.splice(first..first, options);
    } else {
        names.extend(options);
    }
    if !rest.is_empty() {
        names.push("--");
        names.extend(rest);
    }
    names
}

/// For a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.into();
    }
    format!("'{}'", plain(word).replace('\'', "'\\''"))
}

/// A button that sends something.
pub fn button(action: &str, name: &str, reader: &Reader) -> Markup {
    html! {
        @if reader.can_act {
            form.act method="post" action=(action) { button { (name) } }
        }
    }
}

/// A button that asks once more, and shows the words of the command that does the same.
pub fn careful(action: &str, name: &str, question: &str, words: &[&str], reader: &Reader) -> Markup {
    html! {
        @if reader.can_act {
            details.careful {
                summary { (name) }
                form method="post" action=(action) {
                    p { (shown(question)) }
                    button.danger { (name) }
                }
                (command(&[&["stanchion"], words].concat()))
            }
        }
    }
}

/// What a page without anything on it teaches.
pub fn empty(what: &str, words: &[&str]) -> Markup {
    html! { div.empty { p { (what) } (command(words)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_are_one_part() {
        assert_eq!(part("a/b?c#d%.."), "a%2Fb%3Fc%23d%25..");
        for name in [".", "..", "..~", "~", "...", ".a", "a~"] {
            let part = part(name);
            assert!(part != "." && part != ".." && name_of(part.clone()) == name, "{name}: {part}");
        }
        assert_eq!(part("\u{202e}x"), "%E2%80%AEx");
    }

    #[test]
    fn numbers_and_ages_are_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        let of = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(
            [of(0), of(90), of(360), of(10_000), of(200_000)],
            ["less than a second", "90 s", "6 min", "2 h", "2 days"]
        );
    }

    #[test]
    fn no_name_is_taken_for_an_option() {
        let of = |words: &[&str]| safe(words).join(" ");
        assert_eq!(
            of(&["s", "queues", "list", "--url=x", "--state", "dead"]),
            "s queues list --state dead -- --url=x"
        );
        assert_eq!(of(&["s", "queues", "list", "q", "--state", "dead"]), "s queues list q --state dead");
        assert_eq!(of(&["s", "run", "a", "--", "true"]), "s run a -- true");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            ["a", "", "it's", "$(x)", "a b"].map(quoted),
            ["a", "''", "'it'\\''s'", "'$(x)'", "'a b'"]
        );
    }
}
