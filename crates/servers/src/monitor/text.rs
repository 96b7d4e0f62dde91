//! Texts of statements: reduced to one line, truncated, and given an identity if the server has
//! none for them.

/// The longest text that is reported, in characters.
pub const TEXT_CHARACTERS: usize = 200;

/// A server's syntax of literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A backslash is an escape in `E'…'` only; `$tag$…$tag$` is a string too.
    Postgres,
    /// A backslash is always an escape; `"…"` is a string, and `#` begins a comment.
    Mysql,
}

/// Returns `text` with `?` for each number and each string, on one line, not truncated. An
/// unterminated quote is a string to the end of the text. Comments are kept.
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
        // Adjacent strings are one string.
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

/// Returns the length of the comment at the start of `text`.
fn comment(text: &str, dialect: Dialect) -> Option<usize> {
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    let to_line_end = text.starts_with("--") || dialect == Dialect::Mysql && text.starts_with('#');
    to_line_end.then(|| text.find('\n').unwrap_or(text.len()))
}

/// Returns the length of the quoted name at the start of `text`.
fn name(text: &str, dialect: Dialect) -> Option<usize> {
    let quote = if dialect == Dialect::Postgres { '"' } else { '`' };
    text.starts_with(quote).then(|| quoted(text, quote, false))
}

/// Returns the length of the string at the start of `text`; `before` is the text in front of it.
fn string(text: &str, before: &str, in_word: bool, dialect: Dialect) -> Option<usize> {
    let quote = text.chars().next()?;
    match (quote, dialect) {
        ('\'', Dialect::Postgres) => {
            // `E` as a word, not at the end of one.
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

/// Returns the length of the text in quotes, up to the next `quote`. A doubled quote ends one
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

/// Returns an identity of a normalised text: FNV-1a, as `x` and sixteen hexadecimal digits.
pub fn identity(normalised: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("x{:016x}", normalised.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use blockstone_base::text::one_line;

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
        let line = one_line(&"µ \n".repeat(900), TEXT_CHARACTERS);
        assert_eq!(line.chars().count(), TEXT_CHARACTERS);
        assert!(line.starts_with("µ µ"));
    }
}
