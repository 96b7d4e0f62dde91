//! Parses the output of `SHOW CREATE …` without trusting names and comments in it.

/// A foreign key in a table's declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub columns: Vec<String>,
    /// The referenced database, if it is not the table's own.
    pub database: Option<String>,
    pub references: String,
    pub referenced: Vec<String>,
}

/// A table's parsed statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The statement as it is.
    pub whole: String,
    /// The statement without foreign keys.
    pub bare: String,
    /// The removed definitions, as written.
    pub taken: Vec<String>,
    pub keys: Vec<Declared>,
    /// Columns of the primary key and of unique keys, the primary key first.
    pub unique: Vec<Vec<String>>,
}

/// Quotes a name for SQL, whatever its characters.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns the end of the quoted text at the start of `text`; its whole length if it is not
/// terminated.
fn quoted_end(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, found)) = chars.next() {
        if found == '\\' && quote != '`' {
            chars.next();
        } else if found == quote {
            match chars.peek() {
                Some(&(_, next)) if next == quote => {
                    chars.next();
                }
                _ => return at + quote.len_utf8(),
            }
        }
    }
    text.len()
}

/// Splits SQL into pieces: a quoted text is one piece, and so is any other character.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let first = rest.chars().next()?;
        let length = match first {
            '\'' | '"' | '`' => quoted_end(rest, first),
            other => other.len_utf8(),
        };
        let piece = (at, &rest[..length]);
        at += length;
        Some(piece)
    })
}

/// Reads words and names.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn space(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn has(&mut self, word: &str) -> bool {
        self.space();
        let found = self.0.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
        if found {
            self.0 = &self.0[word.len()..];
        }
        found
    }

    fn name(&mut self) -> Option<String> {
        self.quoted('`')
    }

    /// Reads a name quoted as with `ANSI_QUOTES`, or in backquotes.
    fn any_name(&mut self) -> Option<String> {
        self.name().or_else(|| self.quoted('"'))
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        self.space();
        if !self.0.starts_with(quote) {
            return None;
        }
        let end = quoted_end(self.0, quote);
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        let name = name.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(name.replace(&format!("{quote}{quote}"), &quote.to_string()))
    }

    /// Reads a user after `DEFINER=`: the name, and the host unless it is a role.
    fn definer(&mut self) -> Option<Account> {
        let name = self.any_name()?;
        let host = if self.has("@") { Some(self.any_name()?) } else { None };
        Some((name, host))
    }

    /// Reads names in parentheses, and skips the lengths of prefixes.
    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        if !self.has("(") {
            return None;
        }
        loop {
            names.push(self.name()?);
            if self.has("(") {
                let end = self.0.find(')')?;
                self.0 = &self.0[end + 1..];
            }
            let _ = self.has("ASC") || self.has("DESC");
            if self.has(")") {
                return Some(names);
            }
            if !self.has(",") {
                return None;
            }
        }
    }
}

fn foreign(item: &str) -> Option<Declared> {
    let mut reader = Reader(item);
    let name = if reader.has("CONSTRAINT") { reader.name()? } else { String::new() };
    if !reader.has("FOREIGN") || !reader.has("KEY") {
        return None;
    }
    let columns = reader.names()?;
    if !reader.has("REFERENCES") {
        return None;
    }
    let first = reader.name()?;
    let (database, references) =
        if reader.has(".") { (Some(first), reader.name()?) } else { (None, first) };
    Some(Declared { name, columns, database, references, referenced: reader.names()? })
}

fn unique(item: &str) -> Option<Vec<String>> {
    let mut reader = Reader(item);
    if reader.has("PRIMARY") {
        return reader.has("KEY").then(|| reader.names()).flatten();
    }
    if !reader.has("UNIQUE") || !reader.has("KEY") {
        return None;
    }
    reader.name()?;
    reader.names()
}

/// Parses a statement; `None` if it does not create a table.
pub fn parse(statement: &str) -> Option<Parsed> {
    let (mut depth, mut open, mut close) = (0_usize, None, None);
    let mut ends = Vec::new();
    for (at, piece) in pieces(statement) {
        match piece {
            "(" => {
                depth += 1;
                open.get_or_insert(at);
            }
            ")" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    close = Some(at);
                    break;
                }
            }
            "," if depth == 1 => ends.push(at),
            _ => {}
        }
    }
    let (open, close) = (open?, close?);
    ends.push(close);
    let mut parsed = Parsed { whole: statement.to_owned(), ..Parsed::default() };
    let mut kept = Vec::new();
    let mut begin = open + 1;
    for end in ends {
        let item = statement.get(begin..end)?.trim();
        begin = end + 1;
        if let Some(key) = foreign(item) {
            parsed.taken.push(item.to_owned());
            parsed.keys.push(key);
            continue;
        }
        parsed.unique.extend(unique(item));
        kept.push(item);
    }
    let (head, tail) = (&statement[..open], &statement[close + 1..]);
    parsed.bare = format!("{head}(\n  {}\n){tail}", kept.join(",\n  "));
    Some(parsed)
}

/// Removes the name of this database in front of other names.
pub fn without_database(text: &str, database: &str) -> String {
    let wanted = quoted(database);
    let all: Vec<&str> = pieces(text).map(|(_, piece)| piece).collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&piece) = all.get(at) {
        let is_first = at == 0 || all[at - 1] != ".";
        if is_first && piece == wanted && all.get(at + 1) == Some(&".") {
            at += 2;
            continue;
        }
        kept.push_str(piece);
        at += 1;
    }
    kept
}

/// A user with its host, or a role.
pub type Account = (String, Option<String>);

/// Removes the definer.
pub fn without_definer(text: &str) -> String {
    const WORD: &str = "DEFINER=";
    let head = head(text);
    if !head.ends_with(WORD) {
        return text.to_owned();
    }
    let mut reader = Reader(&text[head.len()..]);
    let _ = reader.definer();
    format!("{}{}", &head[..head.len() - WORD.len()], reader.0.trim_start())
}

/// Returns the text before the first name, which is that of the definer or of the created object.
fn head(text: &str) -> &str {
    let is_name = |piece: &str| piece.len() > 1 && piece.starts_with(['`', '"']);
    let first = pieces(text).find(|(_, piece)| is_name(piece));
    first.map_or(text, |(quote, _)| &text[..quote])
}

/// Returns the name of a trigger and its definer, whose rights it has; `None` if `text` creates no
/// trigger.
pub fn trigger(text: &str) -> Option<(String, Option<Account>)> {
    let mut reader = Reader(text);
    if !reader.has("CREATE") {
        return None;
    }
    let _ = reader.has("OR") && reader.has("REPLACE");
    let definer = if reader.has("DEFINER") && reader.has("=") { reader.definer() } else { None };
    if !reader.has("TRIGGER") {
        return None;
    }
    let _ = reader.has("IF") && reader.has("NOT") && reader.has("EXISTS");
    let name = reader
        .any_name()
        .unwrap_or_else(|| reader.0.split_whitespace().next().unwrap_or_default().to_owned());
    Some((name, definer))
}

/// Changes a statement that creates a routine or a view so that its object has the rights of its
/// callers, whoever creates it. Returns any other statement unchanged, and `None` if it cannot be
/// parsed.
pub fn as_invoker(text: &str) -> Option<String> {
    const INVOKER: &str = "    SQL SECURITY INVOKER\n";
    const DEFINER: &str = "SQL SECURITY DEFINER VIEW ";
    let head = head(text);
    let words: Vec<String> = head.split_whitespace().map(str::to_ascii_uppercase).collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    if !has("CREATE") || has("TABLE") || has("TRIGGER") || has("SEQUENCE") {
        return Some(text.to_owned());
    }
    if has("VIEW") {
        let is_invoker = head.contains("SQL SECURITY INVOKER VIEW ");
        let changed = match head.strip_suffix(DEFINER) {
            Some(before) => format!("{before}SQL SECURITY INVOKER VIEW "),
            None => head.replacen("VIEW ", "SQL SECURITY INVOKER VIEW ", 1),
        };
        let rest = &text[head.len()..];
        return Some(if is_invoker { text.to_owned() } else { format!("{changed}{rest}") });
    }
    if !has("FUNCTION") && !has("PROCEDURE") {
        return Some(text.to_owned());
    }
    // After the parameters and the type, each property is on a separate line.
    let (mut depth, mut has_parameters) = (0_usize, false);
    for (at, piece) in pieces(text) {
        match piece {
            "(" => depth += 1,
            ")" => {
                depth = depth.checked_sub(1)?;
                has_parameters |= depth == 0;
            }
            "\n" if depth == 0 && has_parameters => {
                let (before, after) = text.split_at(at + 1);
                let own = if after.starts_with(INVOKER) { "" } else { INVOKER };
                return Some(format!("{before}{own}{after}"));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE `a``b` (
  `id` int(11) NOT NULL COMMENT 'it''s ),\\' CONSTRAINT `x` FOREIGN KEY (`a`)',
  `x,(` varchar(3) DEFAULT ')' CHECK (`x,(` <> ','),
  PRIMARY KEY (`id`,`x,(` DESC),
  UNIQUE KEY `u` (`x,(`(2)),
  KEY `k` (`id`),
  CONSTRAINT `f``k` FOREIGN KEY (`id`, `x,(`) REFERENCES `p` (`a`, `b`) ON DELETE CASCADE,
  CONSTRAINT `g` FOREIGN KEY (`id`) REFERENCES `o`.`p` (`a`),
  CONSTRAINT `c` CHECK (`id` > 0)
) ENGINE=InnoDB COMMENT='a, (b' PARTITION BY HASH (`id`)";

    #[test]
    fn foreign_keys_are_taken_out_of_a_table() {
        let parsed = parse(TABLE).unwrap();
        assert_eq!(parsed.taken.len(), 2);
        assert!(parsed.taken[0].ends_with("ON DELETE CASCADE"));
        assert_eq!(
            parsed.keys[0],
            Declared {
                name: "f`k".to_owned(),
                columns: vec!["id".to_owned(), "x,(".to_owned()],
                database: None,
                references: "p".to_owned(),
                referenced: vec!["a".to_owned(), "b".to_owned()],
            }
        );
        assert_eq!(parsed.keys[1].database.as_deref(), Some("o"));
        assert_eq!(parsed.unique, [vec!["id", "x,("], vec!["x,("]]);
        assert!(!parsed.bare.contains("CONSTRAINT `f") && parsed.bare.contains("CONSTRAINT `c`"));
        assert!(parsed.bare.contains("COMMENT 'it''s ),\\' CONSTRAINT `x`"));
        assert!(parsed.bare.ends_with("PARTITION BY HASH (`id`)"));
        assert_eq!(parse(&parsed.bare).unwrap().bare, parsed.bare);
    }

    #[test]
    fn a_broken_statement_is_refused() {
        for text in ["", "CREATE TABLE `a", "CREATE TABLE `a` (`b", "CREATE TABLE `a` (')", ")"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_database_and_the_definer_are_left_out() {
        let text = "select `s`.`t`.`s`,'`s`.`x`' from `s`.`t` where `a`.`s` = `s`.`f`(1)";
        let plain = "select `t`.`s`,'`s`.`x`' from `t` where `a`.`s` = `f`(1)";
        assert_eq!(without_database(text, "s"), plain);
        for (text, plain) in [
            ("CREATE DEFINER=`a`@`%` TRIGGER `t`", "CREATE TRIGGER `t`"),
            ("CREATE DEFINER=`role` FUNCTION `t`()", "CREATE FUNCTION `t`()"),
            ("CREATE TRIGGER `t` SET @DEFINER=`a`", "CREATE TRIGGER `t` SET @DEFINER=`a`"),
            ("CREATE DEFINER=\"a\"@\"b\" FUNCTION \"t\"()", "CREATE FUNCTION \"t\"()"),
        ] {
            assert_eq!(without_definer(text), plain);
        }
    }

    #[test]
    fn what_is_created_has_the_rights_of_its_callers() {
        for (text, changed) in [
            (
                "CREATE PROCEDURE `p)`(a enum('x\n', ')'))\n    COMMENT 'c'\nBEGIN (\n) END",
                "CREATE PROCEDURE `p)`(a enum('x\n', ')'))\n    SQL SECURITY INVOKER\n    \
                 COMMENT 'c'\nBEGIN (\n) END",
            ),
            (
                "CREATE FUNCTION \"f\"() RETURNS enum('a\nb')\nreturn 1",
                "CREATE FUNCTION \"f\"() RETURNS enum('a\nb')\n    SQL SECURITY INVOKER\nreturn 1",
            ),
            (
                "CREATE ALGORITHM=MERGE SQL SECURITY DEFINER VIEW `v` AS select 'VIEW '",
                "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW `v` AS select 'VIEW '",
            ),
            ("CREATE VIEW `v` AS select 1", "CREATE SQL SECURITY INVOKER VIEW `v` AS select 1"),
            ("ALTER TABLE `procedure` ADD a int", "ALTER TABLE `procedure` ADD a int"),
            ("SET sql_mode = ''", "SET sql_mode = ''"),
        ] {
            assert_eq!(as_invoker(text).as_deref(), Some(changed));
            assert_eq!(as_invoker(changed).as_deref(), Some(changed), "once is enough");
        }
        for odd in ["CREATE PROCEDURE `p`", "CREATE FUNCTION `f`() return 1"] {
            assert_eq!(as_invoker(odd), None);
        }
    }

    #[test]
    fn a_trigger_is_known_with_its_definer() {
        let account = |name: &str, host: &str| Some((name.to_owned(), Some(host.to_owned())));
        for (text, name, definer) in [
            ("CREATE DEFINER=`a`@`%` trigger tr before", "tr", account("a", "%")),
            ("CREATE DEFINER=\"a\"@\"%\" TRIGGER \"t\"", "t", account("a", "%")),
            ("CREATE DEFINER=`r` TRIGGER IF NOT EXISTS `t`", "t", Some(("r".to_owned(), None))),
            ("CREATE TRIGGER `t` BEFORE", "t", None),
        ] {
            assert_eq!(trigger(text), Some((name.to_owned(), definer)), "{text}");
        }
        assert_eq!(trigger("CREATE DEFINER=`a`@`b` FUNCTION `trigger`()"), None);
    }
}
