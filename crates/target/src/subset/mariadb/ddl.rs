//! What `SHOW CREATE …` answers, taken apart without trusting names and comments in it.

/// A foreign key as a table declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub columns: Vec<String>,
    /// Where that is not the table's own.
    pub database: Option<String>,
    pub references: String,
    pub referenced: Vec<String>,
}

/// A table's statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The statement without foreign keys.
    pub bare: String,
    /// The definitions that were taken out, as they were written.
    pub taken: Vec<String>,
    pub keys: Vec<Declared>,
    /// Columns of the primary key and of unique keys, the primary key first.
    pub unique: Vec<Vec<String>>,
}

/// A name as SQL has it, whatever its characters.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The end of what is quoted at the beginning of `text`; its whole length where it has no end.
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

/// Pieces of SQL: what is quoted is one, any other character is one.
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
        self.space();
        if !self.0.starts_with('`') {
            return None;
        }
        let end = quoted_end(self.0, '`');
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        Some(name.replace("``", "`"))
    }

    /// Names in parentheses; the lengths of prefixes are skipped.
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

/// None where it is no statement that creates a table.
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
    let mut parsed = Parsed::default();
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

/// Without the name of this database before names in it.
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

/// Without who defined it.
pub fn without_definer(text: &str) -> String {
    const WORD: &str = "DEFINER=";
    // It stands before the name of what is created, which is the next that is quoted.
    let first = pieces(text).find(|(_, piece)| piece.len() > 1 && piece.starts_with('`'));
    let Some((quote, _)) = first else { return text.to_owned() };
    if !text[..quote].ends_with(WORD) {
        return text.to_owned();
    }
    let mut reader = Reader(&text[quote..]);
    let _ = reader.name();
    if reader.0.starts_with('@') {
        reader.0 = &reader.0[1..];
        let _ = reader.name();
    }
    format!("{}{}", &text[..quote - WORD.len()], reader.0.trim_start())
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
        ] {
            assert_eq!(without_definer(text), plain);
        }
    }
}
