//! Reading the arguments; what is wrong with them is told in one line, as every other error.

use std::ffi::OsString;

use clap::Parser;
use clap::error::ErrorKind;

use crate::arguments::Arguments;
use crate::exit;
use crate::failure::Failure;
use crate::report::Report;

/// The arguments, or the exit code if there is nothing more to do.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, u8> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    Arguments::try_parse_from(&arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that has gone away is content.
            let _ = error.print();
            exit::DONE
        }
        _ => {
            Report::bare(wants_json(&arguments)).failure(&failure(&error, &arguments));
            exit::USAGE
        }
    })
}

fn failure(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let what = first_paragraph(&error.to_string());
    // Others such as flock need nothing before the command.
    let lacks_dashes = what.contains("<CMD>") && !arguments.iter().any(|argument| argument == "--");
    Failure::usage(what, if lacks_dashes { "write -- before the command; see --help" } else { "see --help" })
}

/// The error itself; tips and usage follow after an empty line.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// Whether errors are wanted as JSON, as far as arguments that cannot be read say.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_error_is_the_first_paragraph() {
        assert_eq!(first_paragraph("error: missing:\n  <NAME>\n\nUsage: x"), "missing: <NAME>");
    }
}
