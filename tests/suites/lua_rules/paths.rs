//! What may happen on the paths through a script.
//!
//! The script is read as a tree of commands, calls of its own functions, branches, loops and returns; then
//! all paths are followed at once, as a set of states. What stands behind `and` or `or` may or may not run.

use std::collections::{BTreeMap, BTreeSet};

use crate::lexer::{Word, bracketed};

/// What a first write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Write {
    /// Takes memory: refused when memory is full.
    Adding,
    /// Removes, or sets an expiry: works when memory is full.
    Removing,
}

/// How far a path has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// Whether TIME was asked, and how often; two stand for "too often".
    pub times: u8,
    pub first_write: Option<Write>,
    pub published: bool,
    /// A command came after PUBLISH.
    pub late: bool,
}

#[derive(Debug)]
enum Step {
    Command(String),
    Call(String),
    /// May be skipped.
    Maybe(Vec<Step>),
    /// One of these.
    Either(Vec<Vec<Step>>),
    Return,
}

type Functions = BTreeMap<String, Vec<Step>>;

/// The state at the end of every path through the script.
pub fn paths(words: &[Word]) -> BTreeSet<Path> {
    let mut reader = Reader { words, at: 0, functions: Functions::new() };
    let main = reader.block();
    assert_eq!(reader.at, words.len(), "the script is read to its end");
    let Walked { going, returned } = walk(&main, BTreeSet::from([Path::default()]), &reader.functions);
    going.into_iter().chain(returned).collect()
}

struct Reader<'a> {
    words: &'a [Word],
    at: usize,
    functions: Functions,
}

impl Reader<'_> {
    fn peek(&self, text: &str) -> bool {
        self.words.get(self.at).is_some_and(|word| word.is(text))
    }

    fn block_ends(&self) -> bool {
        self.at >= self.words.len()
            || ["end", "else", "elseif", "until"].into_iter().any(|word| self.peek(word))
    }

    /// Steps up to the word that ends the block, which is not taken.
    fn block(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while !self.block_ends() {
            if self.peek("if") {
                steps.extend(self.branches());
            } else if self.peek("for") || self.peek("while") {
                steps.extend(self.steps_until("do"));
                let body = self.body();
                steps.push(Step::Maybe(body));
            } else if self.peek("function") {
                self.function();
            } else if self.peek("return") {
                self.at += 1;
                while !self.block_ends() {
                    self.word(&mut steps);
                }
                steps.push(Step::Return);
            } else {
                self.word(&mut steps);
            }
        }
        steps
    }

    /// A block with its `end`.
    fn body(&mut self) -> Vec<Step> {
        let body = self.block();
        assert!(self.peek("end"), "a block ends with end");
        self.at += 1;
        body
    }

    fn branches(&mut self) -> Vec<Step> {
        let mut steps = self.steps_until("then");
        let first = self.block();
        let mut choices = vec![first];
        if self.peek("elseif") {
            choices.push(self.branches());
        } else if self.peek("else") {
            self.at += 1;
            choices.push(self.body());
        } else {
            choices.push(Vec::new());
            self.at += 1;
        }
        steps.push(Step::Either(choices));
        steps
    }

    fn function(&mut self) {
        let name = self.words[self.at + 1].name().expect("functions have names").to_owned();
        self.at = bracketed(self.words, self.at + 2).1;
        let body = self.body();
        self.functions.insert(name, body);
    }

    fn steps_until(&mut self, end: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        while !self.peek(end) {
            self.word(&mut steps);
        }
        self.at += 1;
        steps
    }

    /// One word; or what runs only perhaps, behind `and` or `or`.
    fn word(&mut self, steps: &mut Vec<Step>) {
        let word = &self.words[self.at];
        if word.is("and") || word.is("or") {
            self.at += 1;
            let mut perhaps = Vec::new();
            // To the end of the expression: a word that cannot go on with it.
            let ends = ["then", "do", "local", "if", "for", "return", "=", ",", "}"];
            while !self.block_ends() && !ends.into_iter().any(|end| self.peek(end)) {
                self.word(&mut perhaps);
            }
            steps.push(Step::Maybe(perhaps));
            return;
        }
        if word.is("redis") && self.words.get(self.at + 3).is_some_and(|word| word.is("(")) {
            if let Some(Word::Text(command)) = self.words.get(self.at + 4) {
                steps.push(Step::Command(command.clone()));
            }
        } else if let Some(name) = word.name()
            && self.functions.contains_key(name)
            && self.words.get(self.at + 1).is_some_and(|word| word.is("("))
        {
            // Arguments come first.
            let name = name.to_owned();
            let (_, end) = bracketed(self.words, self.at + 1);
            self.at += 1;
            while self.at < end {
                self.word(steps);
            }
            steps.push(Step::Call(name));
            return;
        }
        self.at += 1;
    }
}

#[derive(Default)]
struct Walked {
    going: BTreeSet<Path>,
    returned: BTreeSet<Path>,
}

fn walk(steps: &[Step], from: BTreeSet<Path>, functions: &Functions) -> Walked {
    let mut going = from;
    let mut returned = BTreeSet::new();
    for step in steps {
        going = match step {
            Step::Command(command) => going.into_iter().map(|path| path.after(command)).collect(),
            Step::Call(name) => {
                let inside = walk(&functions[name], going, functions);
                inside.going.into_iter().chain(inside.returned).collect()
            }
            Step::Maybe(steps) => {
                // Twice shows what a second round adds.
                let once = walk(steps, going.clone(), functions);
                let twice = walk(steps, once.going.clone(), functions);
                returned.extend(once.returned.into_iter().chain(twice.returned));
                going.into_iter().chain(once.going).chain(twice.going).collect()
            }
            Step::Either(choices) => {
                let mut joined = BTreeSet::new();
                for choice in choices {
                    let walked = walk(choice, going.clone(), functions);
                    joined.extend(walked.going);
                    returned.extend(walked.returned);
                }
                joined
            }
            Step::Return => {
                returned.append(&mut going);
                BTreeSet::new()
            }
        };
    }
    Walked { going, returned }
}

impl Path {
    fn after(mut self, command: &str) -> Self {
        // Several hints are as good as one: those that are denied change nothing.
        self.late |= self.published && command != "PUBLISH";
        match command {
            "TIME" => self.times = (self.times + 1).min(2),
            "PUBLISH" => self.published = true,
            command => self.first_write = self.first_write.or_else(|| write(command)),
        }
        self
    }
}

/// What a command writes; `None` for one that only reads.
pub fn write(command: &str) -> Option<Write> {
    match command {
        "SET" | "HSET" | "HSETNX" | "ZADD" | "INCR" | "HINCRBY" | "RPUSH" | "LPUSH" | "SADD" => {
            Some(Write::Adding)
        }
        "DEL" | "UNLINK" | "PEXPIRE" | "EXPIRE" | "PERSIST" | "ZREM" | "ZREMRANGEBYSCORE" | "HDEL"
        | "LPOP" | "RPOP" | "ZPOPMIN" => Some(Write::Removing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::words;

    fn ends(source: &str) -> BTreeSet<Path> {
        paths(&words(source))
    }

    #[test]
    fn branches_are_followed_one_at_a_time() {
        let found = ends("if a then redis.call('TIME') else redis.call('TIME') end return 1");
        assert!(found.iter().all(|path| path.times == 1), "{found:?}");
        let found = ends("if a then redis.call('TIME') end redis.call('TIME')");
        assert_eq!(found.iter().map(|path| path.times).collect::<Vec<_>>(), [1, 2]);
        let found = ends(
            "if a then return redis.call('TIME') elseif b then redis.call('TIME') end redis.call('TIME')",
        );
        assert_eq!(found.iter().map(|path| path.times).max(), Some(2));
        let found = ends("if a then return redis.call('TIME') end redis.call('TIME')");
        assert_eq!(found.iter().map(|path| path.times).max(), Some(1));
    }

    #[test]
    fn functions_run_where_they_are_called() {
        let source =
            "local function f() redis.call('DEL', KEYS[1]) return 1 end redis.call('SET', KEYS[1], f())";
        let found = ends(source);
        assert_eq!(found.len(), 1);
        let source =
            "local function f() return redis.call('DEL', KEYS[1]) end f() redis.call('SET', KEYS[1], 'x')";
        assert_eq!(ends(source).first().unwrap().first_write, Some(Write::Removing));
        let unused = "local function f() redis.call('DEL', KEYS[1]) end redis.call('SET', KEYS[1], 'x')";
        assert_eq!(ends(unused).first().unwrap().first_write, Some(Write::Adding));
    }

    #[test]
    fn loops_run_never_or_often_and_conditions_perhaps() {
        let found = ends("for i = 1, 2 do redis.call('TIME') end");
        assert_eq!(found.iter().map(|path| path.times).collect::<Vec<_>>(), [0, 1, 2]);
        let found =
            ends("if a and redis.call('SET', KEYS[1], 'x') then return 1 end redis.call('DEL', KEYS[1])");
        let writes: BTreeSet<_> = found.iter().map(|path| path.first_write).collect();
        // `None`: whether the branch belongs to the skipped condition is not looked at.
        assert_eq!(writes, BTreeSet::from([None, Some(Write::Adding), Some(Write::Removing)]));
    }
}
