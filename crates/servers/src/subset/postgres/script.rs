//! Converts the output of `pg_dump` for psql and for the server.
//!
//! psql executes a backslash command wherever the server's text ends a literal early, so a
//! malicious server could make it run programs. Between `\restrict KEY` and `\unrestrict KEY` it
//! executes none, and the server does not know the key.

use std::io;

use blockstone_sys::secret;

/// A setting of newer programs, for servers that do not know it.
const NEW_SETTING: &str = "SET transaction_timeout = 0;";
/// Statements on the database rather than its tables. Only a superuser may make an event trigger,
/// which fires during the rest of the load; a user mapping has the password of another server.
const LEFT_OUT: [&str; 4] = [
    "CREATE EVENT TRIGGER ",
    "ALTER EVENT TRIGGER ",
    "COMMENT ON EVENT TRIGGER ",
    "CREATE USER MAPPING ",
];

/// Returns the text for psql with backslash commands disabled. Needs psql of August 2025 or later.
pub fn for_psql(text: &str) -> io::Result<String> {
    let key = format!("{:032x}", u128::from_be_bytes(secret::random()?));
    Ok(format!("\\restrict {key}\n{}\\unrestrict {key}\n", for_server(text)))
}

/// Returns the statements alone: without lines that only psql understands, those that servers
/// before 17 refuse, and statements that are [left out](LEFT_OUT), if such a line is outside
/// literals, bodies and comments.
pub fn for_server(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut state, mut is_left_out) = (State::Plain, false);
    for line in text.split_inclusive('\n') {
        let is_plain = state == State::Plain;
        state = state.after(line.as_bytes());
        let end = line.trim_end();
        let is_meta = end.starts_with("\\restrict ") || end.starts_with("\\unrestrict ");
        is_left_out |= is_plain && LEFT_OUT.iter().any(|begin| line.starts_with(begin));
        if !is_left_out && !(is_plain && (is_meta || end == NEW_SETTING)) {
            kept.push_str(line);
        }
        is_left_out &= state != State::Plain || !end.ends_with(';');
    }
    kept
}

/// State of the lexer at a position in SQL, with `standard_conforming_strings = on`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// In a literal; whether a backslash escapes the next character.
    Literal(bool),
    Name,
    /// In a body, with the tag that ends it.
    Body(Vec<u8>),
    /// In comments nested this deep.
    Comment(u32),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Returns the dollar-quote tag at the start of `rest`.
fn tag(rest: &[u8]) -> Option<&[u8]> {
    let end = 1 + rest.get(1..)?.iter().position(|&byte| byte == b'$' || !is_word(byte))?;
    let is_tag = rest[end] == b'$' && !rest[1].is_ascii_digit();
    is_tag.then(|| &rest[..=end])
}

impl State {
    /// Returns the state at the end of a line that begins in this state.
    fn after(self, line: &[u8]) -> Self {
        let (mut state, mut at) = (self, 0);
        while at < line.len() {
            let rest = &line[at..];
            let (next, length) = match state {
                Self::Plain if rest.starts_with(b"--") => return Self::Plain,
                Self::Plain => Self::begin(&line[..at], rest),
                Self::Literal(true) if rest[0] == b'\\' => (Self::Literal(true), 2),
                Self::Literal(_) if rest[0] == b'\'' => (Self::Plain, 1),
                Self::Name if rest[0] == b'"' => (Self::Plain, 1),
                Self::Body(tag) if rest.starts_with(&tag) => (Self::Plain, tag.len()),
                Self::Comment(depth) if rest.starts_with(b"/*") => (Self::Comment(depth + 1), 2),
                Self::Comment(1) if rest.starts_with(b"*/") => (Self::Plain, 2),
                Self::Comment(depth) if rest.starts_with(b"*/") => (Self::Comment(depth - 1), 2),
                inner => (inner, 1),
            };
            (state, at) = (next, at + length);
        }
        state
    }

    /// Returns the state that begins with `rest`, after `before` in the same line, and the length
    /// of its opening.
    fn begin(before: &[u8], rest: &[u8]) -> (Self, usize) {
        let follows_word = before.last().is_some_and(|&byte| is_word(byte));
        match rest[0] {
            b'\'' => {
                let (last, word) = (before.last(), before.len().checked_sub(2));
                let is_prefix = matches!(last, Some(b'e' | b'E'));
                let is_alone = word.is_none_or(|at| !is_word(before[at]));
                (Self::Literal(is_prefix && is_alone), 1)
            }
            b'"' => (Self::Name, 1),
            b'$' if !follows_word => match tag(rest) {
                Some(tag) => (Self::Body(tag.to_vec()), tag.len()),
                None => (Self::Plain, 1),
            },
            b'/' if rest.starts_with(b"/*") => (Self::Comment(1), 2),
            _ => (Self::Plain, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $_$ SELECT '\n\
        \\restrict in a body\nSET transaction_timeout = 0;\n' $_$;\n\
        ALTER TABLE t ALTER a SET DEFAULT 'it''s\n\\unrestrict in a literal\n', \
        ALTER b SET DEFAULT E'\\'\n\\restrict in another\n';\n\
        CREATE TABLE \"a\n\\restrict name\n$$\" (a$b$ int); /* /* ' */\n\\restrict comment\n */\n\
        -- it's $$ a comment\n";

    #[test]
    fn only_lines_outside_of_literals_and_bodies_are_left_out() {
        let head = "--\n-- PostgreSQL database dump\n--\n\n";
        let begin = format!("{head}\\restrict x\n{NEW_SETTING}\n");
        let text = format!("{begin}{BODY}SELECT $1, 1;\n{NEW_SETTING}\n\\unrestrict x\n");
        assert_eq!(for_server(&text), format!("{head}{BODY}SELECT $1, 1;\n"));
    }

    #[test]
    fn statements_on_the_database_are_left_out() {
        let text = "CREATE USER MAPPING FOR \"a\n;\" SERVER s OPTIONS (\n    \
                    password 'x;\ny;'\n);\nSELECT 1;\n\
                    CREATE EVENT TRIGGER t ON ddl_command_start\n   EXECUTE FUNCTION f();\n\n\
                    ALTER EVENT TRIGGER t DISABLE;\nSELECT '\nCREATE USER MAPPING ';\n\
                    COMMENT ON EVENT TRIGGER t IS 'it''s\n';\nSELECT 2;\n";
        let left = "SELECT 1;\n\nSELECT '\nCREATE USER MAPPING ';\nSELECT 2;\n";
        assert_eq!(for_server(text), left);
    }

    #[test]
    fn psql_obeys_no_backslash_in_its_file() {
        let text = for_psql("\\restrict x\nSELECT 1;\n\\! id\n\\unrestrict x\n").unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let key = lines[0].strip_prefix("\\restrict ").unwrap();
        assert!(key.len() == 32 && key != "x");
        assert_eq!(lines[1..], ["SELECT 1;", "\\! id", &format!("\\unrestrict {key}")]);
        assert_ne!(text, for_psql("").unwrap());
    }
}
