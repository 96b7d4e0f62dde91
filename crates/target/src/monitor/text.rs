//! Texts of statements: on one line, truncated, and an identity for those that the server gives
//! none.

/// The longest text that is reported, in characters.
pub const TEXT_CHARACTERS: usize = 200;

/// `text` in one line, cut.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * TEXT_CHARACTERS {
            break;
        }
    }
    line.chars().take(TEXT_CHARACTERS).collect()
}

/// `text` with `?` for each number and quoted string, on one line, not truncated.
pub fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let in_word = out.ends_with(|last: char| last.is_alphanumeric() || "_$\"`".contains(last));
        match character {
            '\'' => {
                // A doubled quote inside begins the next string at once, and adds nothing.
                while rest.next().is_some_and(|inner| inner != '\'') {}
                if !out.ends_with('?') {
                    out.push('?');
                }
            }
            digit if digit.is_ascii_digit() && !in_word => {
                while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '.').is_some() {}
                out.push('?');
            }
            blank if blank.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            other => out.push(other),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// An identity of a normalised text: FNV-1a, as `x` and sixteen hexadecimal digits.
pub fn identity(normalised: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("x{:016x}", normalised.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_their_values_are_one() {
        let one = normalised("SELECT *  FROM t1\nWHERE k = 12.5 AND v = 'it''s' ");
        assert_eq!(one, "SELECT * FROM t1 WHERE k = ? AND v = ?");
        let other = normalised("SELECT * FROM t1 WHERE k=7".replace('=', " = ").as_str());
        assert_eq!(other, "SELECT * FROM t1 WHERE k = ?");
        assert_eq!(identity(&one), identity(&normalised(&one)));
        assert_ne!(identity(&one), identity(&other));
        assert_eq!(normalised("SELECT 'left open"), "SELECT ?");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let line = one_line(&"µ \n".repeat(900));
        assert_eq!(line.chars().count(), TEXT_CHARACTERS);
        assert!(line.starts_with("µ µ"));
    }
}
