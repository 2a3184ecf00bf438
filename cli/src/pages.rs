//! What is made from the definition of the arguments: completions and the manual page.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::arguments::{Arguments, Shell};
use crate::exit;
use crate::failure::Failure;
use crate::output::print;

const ENVIRONMENT: [(&str, &str); 8] = [
    ("STANCHION_URL", "The store, if --url is not given. The place for a URL with a password."),
    ("STANCHION_REQUIRE_URL", "If it is 1, a store has to be given: the embedded store is not used."),
    ("XDG_STATE_HOME", "Where the embedded store is (default ~/.local/state), if no URL is given."),
    (
        "STANCHION_FENCE",
        "Set by run: the number of this grant, larger than that of every earlier one; of several locks one per line.",
    ),
    ("STANCHION_LOCK", "Set by run: the lock's name; of several locks one per line."),
    (
        "STANCHION_RECEIPT",
        "Set by work: the number of this delivery, larger than that of every earlier one of the task.",
    ),
    (
        "STANCHION_TASK_ID, STANCHION_QUEUE, STANCHION_KIND, STANCHION_ATTEMPT, STANCHION_MAX_ATTEMPTS",
        "Set by work: the task's id, its queue, its kind or nothing, which delivery this is, counted from one, and of how many at most.",
    ),
    (
        "STANCHION_HEADERS",
        "Set by work: the task's headers as a JSON object; not if it is over 100,000 bytes long.",
    ),
];

const FILES: [(&str, &str); 1] =
    [("$XDG_STATE_HOME/stanchion/stanchion.db", "The store that is used if no URL is given.")];

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "stanchion", &mut script);
    print(&script)?;
    Ok(exit::DONE)
}

/// Prints the manual page: one page for all verbs.
pub fn man() -> Result<u8, Failure> {
    let page = page().map_err(|error| Failure::system("making the page failed", &error))?;
    print(&page)?;
    Ok(exit::DONE)
}

fn page() -> io::Result<Vec<u8>> {
    // The codes have a section of their own here.
    let mut command = Arguments::command().after_long_help("");
    command.build();
    let main = Man::new(command.clone()).source(concat!("stanchion ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    main.render_title(&mut page)?;
    main.render_name_section(&mut page)?;
    synopsis(&command, &mut page)?;
    main.render_description_section(&mut page)?;
    main.render_options_section(&mut page)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        verb_sections(verb, &mut page)?;
    }
    list("EXIT STATUS", &exit::TABLE, Some(exit::REMARK), &mut page)?;
    list("ENVIRONMENT", &ENVIRONMENT, None, &mut page)?;
    list("FILES", &FILES, None, &mut page)?;
    Ok(page)
}

/// One verb, or those below it: the same sections as its own page would have, one level deeper.
fn verb_sections(verb: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let below: Vec<_> = verb.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
    if !below.is_empty() {
        return below.into_iter().try_for_each(|verb| verb_sections(verb, page));
    }
    let title = verb.get_bin_name().unwrap_or(verb.get_name()).to_uppercase();
    Roff::new().control("SH", [title.as_str()]).to_writer(page)?;
    // What every verb takes is explained once.
    let own = verb.clone().mut_args(|argument| match argument.is_global_set() {
        true => argument.hide(true),
        false => argument,
    });
    let man = Man::new(own.clone());
    let mut sections = Vec::new();
    synopsis(&own, &mut sections)?;
    man.render_description_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    let sections = String::from_utf8_lossy(&sections).replace(".SH ", ".SS ");
    page.extend(sections.as_bytes());
    Ok(())
}

/// The usage line as the help has it.
fn synopsis(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    Roff::new().control("SH", ["SYNOPSIS"]).text([roman(usage)]).to_writer(page)
}

fn list(title: &str, rows: &[(&str, &str)], remark: Option<&str>, page: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in rows {
        roff.control("TP", []).text([bold(*term)]).text([roman(*meaning)]);
    }
    if let Some(remark) = remark {
        roff.control("PP", []).text([roman(remark)]);
    }
    roff.to_writer(page)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    /// The parser would take it without a word, and give it the value of both.
    #[test]
    fn no_option_of_a_verb_has_the_name_of_a_global_one() {
        fn check(verb: &Command, globals: &[String]) {
            for below in verb.get_subcommands() {
                let mut ids = below.get_arguments().map(|argument| argument.get_id().to_string());
                assert_eq!(ids.find(|id| globals.contains(id)), None, "{}", below.get_name());
                check(below, globals);
            }
        }
        let command = Arguments::command();
        let globals = command.get_arguments().filter(|argument| argument.is_global_set());
        let globals: Vec<String> = globals.map(|argument| argument.get_id().to_string()).collect();
        assert!(globals.contains(&"timeout".to_owned()));
        check(&command, &globals);
    }

    #[test]
    fn the_page_has_every_verb_and_code() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        for title in [
            "STANCHION RUN",
            "STANCHION WORK",
            "STANCHION LOCKS BREAK",
            "STANCHION QUEUES KICK",
            "EXIT STATUS",
            "ENVIRONMENT",
        ] {
            assert!(
                page.contains(&format!(".SH \"{title}\"")) || page.contains(&format!(".SH {title}\n")),
                "{title}"
            );
        }
    }
}
