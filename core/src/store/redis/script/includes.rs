//! How the shared parts come into a script: a line `-- include NAME.lua` puts one in, after what it includes itself, and
//! once only. In a block of the script it is there up to the block's end. `complete` in `script.rs` calls it; constants are
//! in `values.rs`.

/// After this part, what a queue's script does is a function of its own. A function that is made finds each name that it
/// uses by going through all those around it that are in use, but the names of an outer function at once: an
/// eighth of what a script costs before it begins.
const OUTER: &str = "record";

/// A script with its parts, without comments and indentation.
#[derive(Debug, Default)]
pub(super) struct Included {
    pub(super) text: String,
    /// What is wrong with its includes; a test sees to it that nothing is.
    pub(super) wrong: Vec<String>,
    /// The parts that are there, each with the depth of the block from which on.
    there: Vec<(usize, String)>,
    /// The parts that are being put in, each by the one before it.
    open: Vec<String>,
}

/// The script with its parts, found by their names.
pub(super) fn included(source: &str, part: impl Fn(&str) -> Option<&'static str>) -> Included {
    let mut included = Included::default();
    included.push(source, 0, &part);
    if included.there.iter().any(|(_, name)| name == OUTER) {
        included.text.push_str("end\nreturn run()\n");
    }
    included
}

impl Included {
    fn push(&mut self, source: &str, depth: usize, part: &impl Fn(&str) -> Option<&'static str>) {
        for line in source.lines() {
            let code = line.trim();
            if code.is_empty() {
                continue;
            }
            let depth = depth + line.len() - line.trim_start().len();
            self.there.retain(|(from, _)| *from <= depth);
            match code.strip_prefix("-- include ") {
                Some(file) => self.include(file, depth, part),
                None if code.starts_with("--") => {}
                None => {
                    self.text.push_str(code);
                    self.text.push('\n');
                }
            }
        }
    }

    fn include(&mut self, file: &str, depth: usize, part: &impl Fn(&str) -> Option<&'static str>) {
        let name = file.strip_suffix(".lua").unwrap_or(file);
        if self.open.iter().any(|open| open == name) {
            self.wrong.push(format!("{} includes itself: {name}", self.open.join(", ")));
            return;
        }
        if self.there.iter().any(|(_, there)| there == name) {
            return;
        }
        let Some(source) = part(name) else {
            self.wrong.push(format!("there is no {file}"));
            return;
        };
        self.open.push(name.to_owned());
        self.push(source, depth, part);
        self.open.pop();
        self.there.push((depth, name.to_owned()));
        if name == OUTER {
            self.text.push_str("local function run()\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> Option<&'static str> {
        Some(match name {
            "record" => "-- Shared: the record.\nlocal record = 1",
            "base" => "local base = 1",
            "left" => "-- include base.lua\n\nlocal left = base",
            "right" => "-- include base.lua\n-- include left.lua\n\nlocal right = base",
            "loop" => "-- include round.lua",
            "round" => "-- include base.lua\n-- include loop.lua",
            _ => return None,
        })
    }

    #[test]
    fn each_part_comes_once_after_what_it_includes() {
        let text = "-- include right.lua\n-- include left.lua\n-- include base.lua\nreturn right";
        let Included { text, wrong, .. } = included(text, part);
        assert_eq!(text, "local base = 1\nlocal left = base\nlocal right = base\nreturn right\n");
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn a_part_is_there_up_to_the_end_of_its_block() {
        let text =
            "if a then\n  -- include left.lua\n\n  -- include base.lua\n  b()\nend\n-- include base.lua\nc()";
        let text = included(text, part).text;
        assert_eq!(text, "if a then\nlocal base = 1\nlocal left = base\nb()\nend\nlocal base = 1\nc()\n");
    }

    #[test]
    fn what_follows_the_record_is_a_function() {
        let text = included("-- include record.lua\n-- include base.lua\nreturn base", part).text;
        assert_eq!(
            text,
            "local record = 1\nlocal function run()\nlocal base = 1\nreturn base\nend\nreturn run()\n"
        );
    }

    #[test]
    fn an_unknown_part_and_a_cycle_are_found() {
        assert_eq!(included("-- include other.lua", part).wrong, ["there is no other.lua"]);
        assert_eq!(included("-- include loop.lua", part).wrong, ["loop, round includes itself: loop"]);
    }
}
