//! How things are shown to people.

use std::time::Duration;

/// A time in its two largest units.
pub fn left(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// What others have stored must not steer the reader's terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if steers(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Control characters, those that turn the direction of what follows, and those that nobody sees: a name could look like another.
pub fn steers(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    // Nobody sees the others, and two of them end a line.
    let hides = matches!(letter, '\u{ad}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}' | '\u{feff}');
    turns || hides || letter.is_control()
}

/// The beginning of a text, as long as a table's column may be.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
    }
}

/// Rows below their headings, in columns.
pub fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        let shown = |millis| left(Duration::from_millis(millis));
        assert_eq!(shown(1_250), "1.2s");
        assert_eq!(shown(61_000), "1m01s");
        assert_eq!(shown(3_600_000), "1h00m");
        assert_eq!(shown(90_000_000), "1d01h");
    }

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(plain("a\x1b[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
    }

    #[test]
    fn nothing_turns_the_direction() {
        let turning = "a\u{202e}b\u{202a}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}c";
        assert_eq!(plain(turning), "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}c");
        assert_eq!(plain("größe שלום \u{200d}"), "größe שלום \u{200d}");
    }

    #[test]
    fn long_texts_are_shortened() {
        assert_eq!((&*shortened("größe", 5), &*shortened("größer", 5)), ("größe", "größ…"));
    }
}
