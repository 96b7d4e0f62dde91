//! Statement text → a text that is the same for all statements that differ only in their values.

/// Bytes of a text that are kept for display: too little to exhaust memory.
const SHOWN_BYTES: usize = 2048;

/// Bytes of a normalised text that are compared: a list of columns may fill kilobytes before
/// statements differ.
const COMPARED_BYTES: usize = 64 << 10;

/// SQL dialect: quotes, comments and words differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    MySql,
    Oracle,
    Postgres,
}

/// Returns the text in lower case, without comments, with `?` for each literal and `?+` for a list
/// of them. Hints are kept: they choose the plan.
pub fn normalised(sql: &str, dialect: Dialect) -> String {
    let mut scan =
        Scan { sql: sql.as_bytes(), at: 0, dialect, out: String::new(), open: Vec::new() };
    while scan.at < scan.sql.len() && scan.out.len() < COMPARED_BYTES {
        scan.step();
    }
    scan.out.truncate(scan.out.trim_end_matches([' ', ';']).len());
    scan.out
}

/// Returns the start of a text that is shown.
pub fn shown(sql: &str) -> String {
    let end = sql.floor_char_boundary(SHOWN_BYTES);
    sql[..end].trim_end_matches([' ', ';', '\n']).to_owned()
}

/// Returns the id of a statement: the hash of its normalised text.
pub fn id(normalised: &str) -> String {
    format!("{:016x}", hash(normalised))
}

pub fn hash(normalised: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(normalised.as_bytes())
}

struct Scan<'a> {
    sql: &'a [u8],
    at: usize,
    dialect: Dialect,
    out: String,
    /// Positions of the open parentheses.
    open: Vec<usize>,
}

impl Scan<'_> {
    fn step(&mut self) {
        let byte = self.sql[self.at];
        match byte {
            b'-' if self.follows(b"--") => self.line(),
            b'#' if self.dialect == Dialect::MySql => self.line(),
            b'/' if self.follows(b"/*") => self.comment(),
            b'\'' => self.string(byte),
            b'"' if self.dialect == Dialect::MySql => self.string(byte),
            b'"' | b'`' => self.identifier(byte),
            b'$' if self.dialect == Dialect::Postgres => self.dollar(),
            b'0'..=b'9' => self.number(),
            _ if byte.is_ascii_whitespace() => {
                self.at += 1;
                self.space();
            }
            b'(' => {
                self.open.push(self.out.len());
                self.out.push('(');
                self.at += 1;
            }
            b')' => self.close(),
            b'$' | b'#' | b':' if self.dialect == Dialect::Oracle => self.word(),
            _ if is_word(byte) => self.word(),
            _ => {
                self.out.push(char::from(byte));
                self.at += 1;
            }
        }
    }

    fn follows(&self, text: &[u8]) -> bool {
        self.sql[self.at..].starts_with(text)
    }

    fn space(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with([' ', '(']) {
            self.out.push(' ');
        }
    }

    /// Skips a comment up to the end of the line.
    fn line(&mut self) {
        let rest = &self.sql[self.at..];
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if rest.starts_with(b"--+") && self.dialect == Dialect::Oracle {
            // The line ending terminates the hint, so it is kept.
            let length = rest.len().min(length + 1);
            self.push(length);
        } else {
            self.at += length;
        }
    }

    fn comment(&mut self) {
        let rest = &self.sql[self.at..];
        let length = memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4);
        if rest.starts_with(b"/*+") && self.dialect != Dialect::Postgres {
            self.push(length);
        } else {
            self.at += length;
            self.space();
        }
    }

    /// Copies some bytes as they are.
    fn push(&mut self, length: usize) {
        let taken = &self.sql[self.at..self.at + length];
        self.out.push_str(&String::from_utf8_lossy(taken));
        self.at += length;
    }

    /// Reads a literal from its opening to its closing quote; a doubled quote is part of it.
    fn string(&mut self, quote: u8) {
        let mut escapes = self.dialect == Dialect::MySql;
        if !escapes && let Some(before) = self.out.strip_suffix('e') {
            escapes = !before.bytes().next_back().is_some_and(is_word);
            if escapes {
                self.out.pop();
            }
        }
        self.at += 1;
        while let Some(&byte) = self.sql.get(self.at) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.sql.get(self.at) != Some(&quote) {
                    break;
                }
                self.at += 1;
            }
        }
        self.at = self.at.min(self.sql.len());
        self.literal();
    }

    fn identifier(&mut self, quote: u8) {
        let rest = &self.sql[self.at + 1..];
        let end = memchr::memchr(quote, rest).map_or(rest.len(), |end| end + 1);
        if self.is_password(true) {
            self.at += 1 + end;
            self.literal();
        } else {
            self.push(1 + end);
        }
    }

    /// Returns whether a password follows. Oracle accepts one without quotes, or in the quotes of a
    /// name; an unquoted word after `password` may also be something else.
    fn is_password(&self, is_quoted: bool) -> bool {
        if self.dialect != Dialect::Oracle {
            return false;
        }
        let before = self.out.trim_end();
        let ends = |end: &str| {
            let rest = before.strip_suffix(end).map(|rest| rest.bytes().next_back());
            rest.is_some_and(|last| !last.is_some_and(is_word))
        };
        // One statement may set the passwords of several users.
        let of_list = |end: &str| {
            let rest = before.strip_suffix(',').map(str::trim_end);
            rest.is_some_and(|rest| rest.ends_with(end))
        };
        ends("identified by")
            || ends("identified by values")
            || of_list("identified by ?")
            || of_list("identified by ?+")
            || (ends("replace") && before.contains("identified by ?"))
            || (is_quoted && ends("password"))
    }

    /// Reads a parameter `$1`, or a literal between two equal tags such as `$$` or `$body$`.
    fn dollar(&mut self) {
        let rest = &self.sql[self.at + 1..];
        let tag = rest.iter().take_while(|byte| is_word(**byte)).count();
        if rest.first().is_some_and(u8::is_ascii_digit) {
            self.at += 1 + tag;
            return self.literal();
        }
        if rest.get(tag) != Some(&b'$') {
            self.out.push('$');
            self.at += 1;
            return;
        }
        let quote = &self.sql[self.at..self.at + tag + 2];
        let body = &self.sql[self.at + quote.len()..];
        let end = memchr::memmem::find(body, quote).map_or(body.len(), |end| end + quote.len());
        self.at += quote.len() + end;
        self.literal();
    }

    fn number(&mut self) {
        while let Some(&byte) = self.sql.get(self.at) {
            let exponent = matches!(byte, b'+' | b'-')
                && matches!(self.sql[self.at - 1], b'e' | b'E')
                && self.sql.get(self.at + 1).is_some_and(u8::is_ascii_digit);
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent) {
                break;
            }
            self.at += 1;
        }
        self.literal();
    }

    fn word(&mut self) {
        let rest = &self.sql[self.at..];
        let of_word = |byte: &u8| {
            is_word(*byte) || self.dialect == Dialect::Oracle && matches!(byte, b'$' | b'#' | b':')
        };
        let length = rest.iter().position(|byte| !of_word(byte)).unwrap_or(rest.len());
        let word = String::from_utf8_lossy(&rest[..length]).to_lowercase();
        let quote = rest.get(length) == Some(&b'\'');
        // `identified by values` is followed by a hash in quotes.
        let is_password = word != "values" && self.is_password(false);
        let is_first = self.out.is_empty();
        self.at += length;
        match word.as_str() {
            _ if is_password && !quote => self.literal(),
            // A SQL*Plus command, with user and password.
            "connect" | "conn" if is_first && self.dialect == Dialect::Oracle => {
                self.out.push_str(&word);
                self.at = self.sql.len();
                self.space();
                self.literal();
            }
            "q" | "nq" if quote && self.dialect == Dialect::Oracle => self.delimited(),
            // The type prefix of a literal, such as x'0f', is part of it.
            "x" | "b" | "n" if quote => {}
            _ => self.out.push_str(&word),
        }
    }

    /// Reads what follows the `q` of `q'[it's]'`: it ends with the delimiter and a quote.
    fn delimited(&mut self) {
        let rest = &self.sql[self.at + 1..];
        let ends = match rest.first() {
            Some(b'[') => *b"]'",
            Some(b'(') => *b")'",
            Some(b'{') => *b"}'",
            Some(b'<') => *b">'",
            Some(&other) => [other, b'\''],
            None => *b"''",
        };
        let end = rest.get(1..).and_then(|body| memchr::memmem::find(body, &ends));
        self.at += end.map_or(1 + rest.len(), |end| end + 4);
        self.literal();
    }

    /// Writes a literal; after another one and a comma it only turns that into a list.
    fn literal(&mut self) {
        let before = self.out.trim_end().strip_suffix(',').map(str::trim_end);
        let list = before.and_then(|text| text.strip_suffix("?+").or(text.strip_suffix('?')));
        match list.map(str::len) {
            Some(length) => {
                self.out.truncate(length);
                self.out.push_str("?+");
            }
            None => self.out.push('?'),
        }
    }

    /// Closes a list, and drops it if it equals the one before.
    fn close(&mut self) {
        self.at += 1;
        self.out.truncate(self.out.trim_end().len());
        if self.out.ends_with("in (?") || self.out.ends_with("in(?") {
            self.out.push('+');
        }
        self.out.push(')');
        let Some(open) = self.open.pop().filter(|open| *open < self.out.len()) else { return };
        let group = &self.out[open..];
        let before = self.out[..open].trim_end().strip_suffix(',').map(str::trim_end);
        if let Some(before) = before
            && before.ends_with(group)
        {
            let length = before.len();
            self.out.truncate(length);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_marks_and_nothing_else_does() {
        let mysql = |sql| normalised(sql, Dialect::MySql);
        assert_eq!(
            mysql("SELECT  a1 FROM\tt2 WHERE x=-1.5e+3 -- c\n;"),
            "select a1 from t2 where x=-?"
        );
        assert_eq!(mysql(r#"select 'a\'b', "c""d" from `T 1`"#), "select ?+ from `T 1`");
        assert_eq!(mysql("select * from t where a in (1)"), "select * from t where a in (?+)");
        assert_eq!(
            mysql("select * from t where a in ( 1 , 2,3 )"),
            "select * from t where a in (?+)"
        );
        assert_eq!(
            mysql("INSERT INTO t VALUES (1,'a'),(2,'b'), (3,'c')"),
            "insert into t values (?+)"
        );
        assert_eq!(mysql("insert t values (1,now()),(2,now())"), "insert t values (?,now())");
        assert_eq!(mysql("/* who */ select x'0f' # end"), "select ?");
        let postgres = |sql| normalised(sql, Dialect::Postgres);
        assert_eq!(postgres(r"select 'a\', $1, $q$it's$q$ from t"), "select ?+ from t");
        assert_eq!(postgres(r"select E'a\'b' from t"), "select ? from t");
        assert_eq!(postgres(r#"select a #> '{b}' from "T""#), r#"select a #> ? from "T""#);
        let oracle = |sql| normalised(sql, Dialect::Oracle);
        assert_eq!(oracle("SELECT x#, :1, :B2 FROM v$a1 -- c\n"), "select x#, :1, :b2 from v$a1");
        assert_eq!(oracle("select /*+ Full(t) */ /* c */ 1"), "select /*+ Full(t) */ ?");
        assert_eq!(
            oracle("select --+ Full\n 1.5e3 from \"a 'b\" ;"),
            "select --+ Full\n ? from \"a 'b\""
        );
        assert_eq!(
            oracle("where b = 'it''s' or c = q'[it's]' or d = nQ'!x'!'"),
            "where b = ? or c = ? or d = ?"
        );
    }

    #[test]
    fn passwords_of_oracle_become_marks_however_they_are_written() {
        for (sql, shown) in [
            ("ALTER USER x IDENTIFIED BY \"Secret\"", "alter user x identified by ?"),
            ("alter user x identified  by\n\"Secret", "alter user x identified by ?"),
            ("alter user x identified by Secret#1", "alter user x identified by ?"),
            ("alter user x identified by 1Secret", "alter user x identified by ?"),
            ("alter user x identified by values 'S:Secret'", "alter user x identified by values ?"),
            (
                "alter user \"X\" identified by \"Secret\" replace \"Secret2\" account lock",
                "alter user \"X\" identified by ? replace ? account lock",
            ),
            (
                "alter user x identified by Secret replace Secret2",
                "alter user x identified by ? replace ?",
            ),
            (
                "grant connect to a, b identified by Secret1, \"Secret2\", Secret3",
                "grant connect to a, b identified by ?+",
            ),
            (
                "create database link l connect to a identified by Secret using 'db'",
                "create database link l connect to a identified by ? using ?",
            ),
            (
                "administer key management set keystore open identified by \"Secret\"",
                "administer key management set keystore open identified by ?",
            ),
            (
                "alter database dictionary password \"Secret\"",
                "alter database dictionary password ?",
            ),
            ("CONNECT scott/Secret@db as sysdba", "connect ?"),
            ("conn /@\"Secret\"", "conn ?"),
            ("select a from t connect by prior a = b", "select a from t connect by prior a = b"),
            ("select replace(a, b), password from t", "select replace(a, b), password from t"),
            ("select unidentified by1 from t", "select unidentified by1 from t"),
        ] {
            let found = normalised(sql, Dialect::Oracle);
            assert_eq!(found, shown, "{sql}");
            assert!(!found.to_lowercase().contains("secret"), "{found}");
        }
    }

    #[test]
    fn long_texts_that_differ_at_their_end_are_two_statements() {
        let columns = "column_name, ".repeat(1_000);
        let of =
            |column| normalised(&format!("select {columns}1 where {column} = 2"), Dialect::MySql);
        assert_ne!(id(&of("a")), id(&of("b")));
        assert_eq!(shown(&of("a")), shown(&of("b")));
    }

    #[test]
    fn what_does_not_end_ends_with_the_text() {
        for sql in [
            "'", "'\\", "\"", "`a", "$a$b", "$", "/*", "/*+", "/*/", "--", "--+", "1e", "((", ")",
            "x'", "q'", "q'[", "q''", ":",
        ] {
            for dialect in [Dialect::MySql, Dialect::Oracle, Dialect::Postgres] {
                let _ = normalised(sql, dialect);
            }
        }
        let long = format!("insert into t values {}", "(f(1)),".repeat(100_000));
        assert!(normalised(&long, Dialect::MySql).len() < COMPARED_BYTES + 64);
        assert_eq!(shown("é").len(), 2);
    }
}
