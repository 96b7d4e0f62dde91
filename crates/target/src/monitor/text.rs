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

/// How a server writes literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A backslash means something in `E'…'` only; `$tag$…$tag$` is a string too.
    Postgres,
    /// A backslash always means something; `"…"` is a string, `#` begins a comment.
    Mysql,
}

/// `text` with `?` for each number and each string, on one line, not truncated. What is left open
/// is a string to its end. Comments stay.
pub fn normalised(text: &str, dialect: Dialect) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let in_word = out.ends_with(|last: char| last.is_alphanumeric() || "_$\"`".contains(last));
        let (taken, shown) =
            if let Some(len) = comment(rest, dialect).or_else(|| name(rest, dialect)) {
                (len, &rest[..len])
            } else if let Some(len) = string(rest, &out, in_word, dialect) {
                (len, "?")
            } else if next.is_ascii_digit() && !in_word {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
                (rest.find(|c| !is_part(c)).unwrap_or(rest.len()), "?")
            } else {
                (next.len_utf8(), &rest[..next.len_utf8()])
            };
        rest = &rest[taken..];
        // A string that continues in another is one.
        if shown == "?" && out.ends_with('?') {
            continue;
        }
        for c in shown.chars() {
            match c.is_whitespace() {
                false => out.push(c),
                true if out.is_empty() || out.ends_with(' ') => {}
                true => out.push(' '),
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The length of the comment that `text` begins with.
fn comment(text: &str, dialect: Dialect) -> Option<usize> {
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    let to_line_end = text.starts_with("--") || dialect == Dialect::Mysql && text.starts_with('#');
    to_line_end.then(|| text.find('\n').unwrap_or(text.len()))
}

/// The length of the quoted name that `text` begins with.
fn name(text: &str, dialect: Dialect) -> Option<usize> {
    let quote = if dialect == Dialect::Postgres { '"' } else { '`' };
    text.starts_with(quote).then(|| quoted(text, quote, false))
}

/// The length of the string that `text` begins with; `before` is what stands before it.
fn string(text: &str, before: &str, in_word: bool, dialect: Dialect) -> Option<usize> {
    let quote = text.chars().next()?;
    match (quote, dialect) {
        ('\'', Dialect::Postgres) => {
            // `E` by itself, not the end of a word.
            let mut last = before.chars().rev();
            let is_e = matches!(last.next(), Some('e' | 'E'));
            let escapes = is_e && !last.next().is_some_and(|c| c.is_alphanumeric() || c == '_');
            Some(quoted(text, quote, escapes))
        }
        ('\'' | '"', Dialect::Mysql) => Some(quoted(text, quote, true)),
        ('$', Dialect::Postgres) if !in_word => {
            let tag = &text[..text[1..].find('$')? + 2];
            let inner = &tag[1..tag.len() - 1];
            let is_tag = inner.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !inner.starts_with(|c: char| c.is_ascii_digit());
            let end = || text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len());
            is_tag.then(end)
        }
        _ => None,
    }
}

/// The length of what stands between `quote` and the next one. A doubled quote inside ends one
/// string and begins the next.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut is_literal = false;
    for (at, c) in text.char_indices().skip(1) {
        if is_literal {
            is_literal = false;
        } else if c == '\\' && escapes {
            is_literal = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
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
        let normalised = |text: &str| normalised(text, Dialect::Postgres);
        let one = normalised("SELECT *  FROM t1\nWHERE k = 12.5 AND v = 'it''s' ");
        assert_eq!(one, "SELECT * FROM t1 WHERE k = ? AND v = ?");
        let other = normalised("SELECT * FROM t1 WHERE k=7".replace('=', " = ").as_str());
        assert_eq!(other, "SELECT * FROM t1 WHERE k = ?");
        assert_eq!(identity(&one), identity(&normalised(&one)));
        assert_ne!(identity(&one), identity(&other));
        assert_eq!(normalised("SELECT 'left open"), "SELECT ?");
    }

    #[test]
    fn no_literal_stays_in_any_quoting() {
        use Dialect::{Mysql, Postgres};
        for (dialect, text, shown) in [
            (Postgres, "SELECT $$secret$$, 1", "SELECT ?, ?"),
            (Postgres, "SELECT $a$ it's $b$ secret $a$, x", "SELECT ?, x"),
            (Postgres, "SELECT $a$ secret", "SELECT ?"),
            (Postgres, "SELECT $1, a$b, $2", "SELECT $1, a$b, $2"),
            (Postgres, r"SELECT E'a\'secret', 'b\', c", "SELECT E?, ?, c"),
            (Postgres, r"SELECT 'a\', 'secret'", "SELECT ?, ?"),
            (Postgres, "SELECT nice'secret'", "SELECT nice?"),
            (
                Postgres,
                "SELECT \"Name 'x\" -- don't\n, 'secret'",
                "SELECT \"Name 'x\" -- don't , ?",
            ),
            (Postgres, "/* it's */ SELECT 'secret'", "/* it's */ SELECT ?"),
            (Mysql, r#"SELECT 'a\'secret', "b'secret", c"#, "SELECT ?, ?, c"),
            (Mysql, "SELECT `a'b`, 'secret' # don't", "SELECT `a'b`, ? # don't"),
            (Mysql, "SELECT 'a' 'b''c'", "SELECT ? ?"),
        ] {
            let found = normalised(text, dialect);
            assert!(!found.contains("secret"), "{text}: {found}");
            assert_eq!(found, shown, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let line = one_line(&"µ \n".repeat(900));
        assert_eq!(line.chars().count(), TEXT_CHARACTERS);
        assert!(line.starts_with("µ µ"));
    }
}
