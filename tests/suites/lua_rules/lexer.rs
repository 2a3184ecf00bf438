//! Lua words. Only what the scripts use: no long strings, no goto.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Name(String),
    Number(String),
    /// Without its quotes.
    Text(String),
    Sign(String),
}

impl Word {
    pub fn is(&self, text: &str) -> bool {
        matches!(self, Self::Name(word) | Self::Sign(word) if word == text)
    }

    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) if !KEYWORDS.contains(&&**name) => Some(name),
            _ => None,
        }
    }
}

pub const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The words of a script; comments are dropped.
pub fn words(source: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (word, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if rest.starts_with("--") {
            (None, rest.find('\n').unwrap_or(rest.len()))
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(rest.len());
            (Some(Word::Name(rest[..length].to_owned())), length)
        } else if first.is_ascii_digit() {
            let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            (Some(Word::Number(rest[..length].to_owned())), length)
        } else if matches!(first, '\'' | '"') {
            let length = 2 + rest[1..].find(first).expect("a string ends");
            (Some(Word::Text(rest[1..length - 1].to_owned())), length)
        } else {
            let sign = ["==", "~=", "<=", ">=", ".."].into_iter().find(|sign| rest.starts_with(sign));
            let length = sign.map_or(first.len_utf8(), str::len);
            (Some(Word::Sign(rest[..length].to_owned())), length)
        };
        words.extend(word);
        rest = &rest[length..];
    }
    words
}

/// The words between the bracket at `open` and the one that closes it, and the position after that.
pub fn bracketed(words: &[Word], open: usize) -> (&[Word], usize) {
    let mut depth = 0;
    for (index, word) in words.iter().enumerate().skip(open) {
        if ["(", "{", "["].into_iter().any(|sign| word.is(sign)) {
            depth += 1;
        } else if [")", "}", "]"].into_iter().any(|sign| word.is(sign)) {
            depth -= 1;
            if depth == 0 {
                return (&words[open + 1..index], index + 1);
            }
        }
    }
    panic!("a bracket is not closed")
}

#[test]
fn words_are_told_apart() {
    let found =
        words("local a = redis.call('GET', KEYS[1]) -- comment\nif a ~= 'x..y' then return {1, a .. 2} end");
    let texts: Vec<_> = found
        .iter()
        .map(|word| match word {
            Word::Name(text) | Word::Number(text) | Word::Sign(text) => text.clone(),
            Word::Text(text) => format!("'{text}'"),
        })
        .collect();
    assert_eq!(
        texts.join(" "),
        "local a = redis . call ( 'GET' , KEYS [ 1 ] ) if a ~= 'x..y' then return { 1 , a .. 2 } end"
    );
}
