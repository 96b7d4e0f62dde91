//! Colours and emphasis, or none; and the characters that may reach a terminal at all.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Style of the output on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI escapes may be used.
    pub color: bool,
    /// Columns available.
    pub width: usize,
}

impl Style {
    pub fn bold(&self, text: &str) -> String {
        self.wrapped(text, "1", "22")
    }

    pub fn dim(&self, text: &str) -> String {
        self.wrapped(text, "2", "22")
    }

    pub fn good(&self, text: &str) -> String {
        self.wrapped(text, "32", "39")
    }

    pub fn warning(&self, text: &str) -> String {
        self.wrapped(text, "33", "39")
    }

    pub fn bad(&self, text: &str) -> String {
        self.wrapped(text, "1;31", "22;39")
    }

    /// Returns a condemned number, struck through; without colours as in Markdown, so that it
    /// survives a log file.
    pub fn struck(&self, text: &str) -> String {
        if self.color { self.wrapped(text, "9", "29") } else { format!("~~{text}~~") }
    }

    /// Sequences that begin and end the emphasis of the functions above.
    const SEQUENCES: [&str; 10] = [
        "\x1b[1m",
        "\x1b[2m",
        "\x1b[22m",
        "\x1b[32m",
        "\x1b[33m",
        "\x1b[39m",
        "\x1b[1;31m",
        "\x1b[22;39m",
        "\x1b[9m",
        "\x1b[29m",
    ];

    fn wrapped(&self, text: &str, on: &str, off: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{on}m{text}\x1b[{off}m")
        } else {
            text.to_owned()
        }
    }
}

/// Returns `text` with everything spelled out, as `\u{1b}`, that a terminal would obey or that
/// would reorder what is read: names, statements and messages come from anywhere. With `color`, the
/// sequences that [`Style`] writes stay. Line feeds stay.
pub fn visible(text: &str, color: bool) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let own = Style::SEQUENCES.iter().find(|it| color && rest.starts_with(**it));
        let taken = if let Some(own) = own {
            shown.push_str(own);
            own.len()
        } else {
            let obeyed = rest.chars().next().unwrap_or_default();
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(obeyed));
            obeyed.len_utf8()
        };
        rest = &rest[taken..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Returns whether it is a control character other than a line feed, or a mark that changes the
/// direction of a text.
pub fn is_obeyed(c: char) -> bool {
    let reorders =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && c != '\n' || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        for (text, shown) in [
            ("plain, µs and 漢字\n", "plain, µs and 漢字\n"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\x1b[2J\x1b[31m", "\\u{1b}[2J\\u{1b}[31m"),
            ("\u{9b}31m\r\t\x7f", "\\u{9b}31m\\u{d}\\u{9}\\u{7f}"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            for color in [false, true] {
                assert_eq!(visible(text, color), shown);
            }
        }
    }

    #[test]
    fn own_emphasis_stays_where_colours_are_wanted() {
        let style = Style { color: true, width: 80 };
        for text in [
            style.bold("a"),
            style.dim("a"),
            style.good("a"),
            style.warning("a"),
            style.bad("a"),
            style.struck("a"),
        ] {
            assert_eq!(visible(&text, true), text);
            assert!(!visible(&text, false).contains('\x1b'), "{text}");
        }
    }
}
