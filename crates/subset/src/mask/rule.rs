//! Rules for masking columns: from `--mask` and from files.

use serde::Deserialize;
use toml::Spanned;

use super::MaskError;
use super::fake::Fake;
use crate::line::line_of;

/// Largest file that is read, in bytes.
const FILE_MAX: usize = 1 << 20;

/// Replacement of values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Method {
    Hash,
    /// Kind of value to invent; `None`: by the column's name.
    Fake(Option<Fake>),
    /// One of these values.
    Values(Vec<String>),
    Null,
}

impl Method {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Fake(_) => "fake",
            Self::Values(_) => "values",
            Self::Null => "null",
        }
    }
}

/// A column, with as much of its table's name as was given: `column`, `table.column` or
/// `schema.table.column`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pattern {
    parts: Vec<String>,
}

impl Pattern {
    /// Parses names separated by dots; a name in double quotes is taken literally.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        let mut characters = text.chars().peekable();
        while let Some(at) = characters.next() {
            let part = parts.last_mut()?;
            match at {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    part.push('"');
                }
                '"' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                other => part.push(other),
            }
        }
        let is_whole = !quoted && parts.len() <= 3 && parts.iter().all(|part| !part.is_empty());
        is_whole.then_some(Self { parts })
    }

    pub fn matches(&self, schema: &str, table: &str, column: &str) -> bool {
        let whole = [schema, table, column];
        self.parts.iter().rev().zip(whole.iter().rev()).all(|(part, name)| part == name)
    }
}

/// A rule, and its origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    pub pattern: Pattern,
    pub method: Method,
    /// The origin: `--mask person.email=hash`, `masks.toml:3`.
    pub given: String,
}

/// One value of `--mask`; a file that it names is not read yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Given {
    Rule(Rule),
    /// A file with rules.
    File(String),
    /// A file with the method for this column.
    ColumnFile(Pattern, String),
}

/// Parses `COLUMN=hash|fake|null|FILE.toml` or `FILE.toml`.
pub fn parse(text: &str) -> Result<Given, MaskError> {
    let refuse = |why: &str| MaskError::rule(format!("--mask {text}"), why);
    let is_file = |name: &str| name.to_ascii_lowercase().ends_with(".toml");
    let Some((column, method)) = text.rsplit_once('=') else {
        return if is_file(text) {
            Ok(Given::File(text.to_owned()))
        } else {
            Err(refuse("write COLUMN=hash, COLUMN=fake, COLUMN=null or FILE.toml"))
        };
    };
    let pattern = Pattern::parse(column)
        .ok_or_else(|| refuse("the column is not column, table.column or schema.table.column"))?;
    let method = match method {
        "hash" => Method::Hash,
        "fake" => Method::Fake(None),
        "null" => Method::Null,
        file if is_file(file) => return Ok(Given::ColumnFile(pattern, file.to_owned())),
        _ => return Err(refuse("the methods are hash, fake, null and FILE.toml")),
    };
    Ok(Given::Rule(Rule { pattern, method, given: format!("--mask {text}") }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    mask: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    column: Option<String>,
    method: Option<Name>,
    kind: Option<Fake>,
    values: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Hash,
    Fake,
    Null,
}

impl Entry {
    fn method(&self) -> Result<Method, &'static str> {
        match (self.method, self.kind, &self.values) {
            (Some(Name::Hash), None, None) => Ok(Method::Hash),
            (Some(Name::Null), None, None) => Ok(Method::Null),
            (Some(Name::Fake) | None, kind @ Some(_), None) => Ok(Method::Fake(kind)),
            (Some(Name::Fake), None, None) => Ok(Method::Fake(None)),
            (Some(Name::Fake) | None, None, Some(values)) if !values.is_empty() => {
                Ok(Method::Values(values.clone()))
            }
            (_, None, Some(_)) => Err("values need at least one value and the method fake"),
            (None, None, None) => Err("it has no method: hash, fake or null"),
            _ => Err("kind and values exclude each other, and need the method fake"),
        }
    }
}

/// Reads the rules of a file: `[[mask]]` with `column` and `method`, and `kind` or `values` for
/// `fake`.
pub fn file(name: &str, text: &str) -> Result<Vec<Rule>, MaskError> {
    let file: File = read(name, text)?;
    let rules = file.mask.into_iter().map(|entry| {
        let given = format!("{name}:{}", line_of(text, entry.span().start));
        let entry = entry.into_inner();
        let column = entry.column.as_deref();
        let column = column.ok_or_else(|| MaskError::rule(given.clone(), "it names no column"))?;
        let pattern = Pattern::parse(column).ok_or_else(|| {
            let why = "the column is not column, table.column or schema.table.column";
            MaskError::rule(given.clone(), why)
        })?;
        let method = entry.method().map_err(|why| MaskError::rule(given.clone(), why))?;
        Ok(Rule { pattern, method, given })
    });
    rules.collect()
}

/// Reads the rule of a file for a single column: `method`, `kind` and `values` without a table.
pub fn column_file(pattern: Pattern, name: &str, text: &str) -> Result<Rule, MaskError> {
    let entry: Entry = read(name, text)?;
    if entry.column.is_some() {
        return Err(MaskError::rule(name.to_owned(), "--mask names the column already"));
    }
    let method = entry.method().map_err(|why| MaskError::rule(name.to_owned(), why))?;
    Ok(Rule { pattern, method, given: name.to_owned() })
}

fn read<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, MaskError> {
    if text.len() > FILE_MAX {
        return Err(MaskError::rule(name.to_owned(), "it has more than 1 MiB"));
    }
    toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        let why = error.message().lines().next().unwrap_or_default();
        MaskError::rule(format!("{name}:{line}"), why)
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    fn refused(result: Result<impl std::fmt::Debug, MaskError>) -> String {
        result.unwrap_err().told()
    }

    #[test]
    fn patterns_match_from_the_end() {
        let pattern = Pattern::parse("person.email").unwrap();
        assert!(pattern.matches("public", "person", "email"));
        assert!(!pattern.matches("public", "staff", "email"));
        let quoted = Pattern::parse("\"a.b\".\"c\"\"d\"").unwrap();
        assert!(quoted.matches("x", "a.b", "c\"d"));
        for bad in ["", ".", "a.", "a.b.c.d", "\"a"] {
            assert_eq!(Pattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn options_are_read() {
        let Given::Rule(rule) = parse("email=fake").unwrap() else { unreachable!() };
        assert_eq!(rule.method, Method::Fake(None));
        assert_eq!(parse("m.toml").unwrap(), Given::File("m.toml".into()));
        assert!(matches!(parse("email=m.toml").unwrap(), Given::ColumnFile(..)));
        assert!(refused(parse("email")).contains("write COLUMN=hash"));
        assert!(refused(parse("email=md5")).contains("the methods are"));
    }

    #[test]
    fn files_are_read_and_errors_name_the_line() {
        let text = "[[mask]]\ncolumn = \"a.b\"\nmethod = \"hash\"\n\n[[mask]]\ncolumn = \"c\"\n\
                    kind = \"first-name\"\n[[mask]]\ncolumn = \"d\"\nvalues = [\"x\"]\n";
        let rules = file("m.toml", text).unwrap();
        assert_eq!(rules.len(), 3);
        assert_eq!(rules[1].method, Method::Fake(Some(Fake::FirstName)));
        assert_eq!(rules[1].given, "m.toml:5");
        let cases = [
            ("[[mask]]\ncolumn = \"a\"\nmethod = \"md5\"", "m.toml:3"),
            ("\n[[mask]]\ncolumn = \"a\"\n", "m.toml:2: it has no method"),
            ("[[mask]]\nmethod = \"null\"", "m.toml:1: it names no column"),
            ("[[mask]]\ncolumn = \"a\"\nvalues = []", "at least one value"),
            ("[[mask]]\ncolumn = \"a\"\nmethod = \"null\"\nkind = \"name\"", "exclude"),
            ("[[masks]]\n", "m.toml:1"),
            ("= 3", "m.toml:1"),
        ];
        for (text, said) in cases {
            let error = refused(file("m.toml", text));
            let (what, hint) = error.split_once('\n').unwrap_or_default();
            assert!(what.contains(said) && hint.starts_with("hint: "), "{error}");
        }
        let pattern = Pattern::parse("a").unwrap();
        let rule = column_file(pattern, "m.toml", "kind = \"phone\"").unwrap();
        assert_eq!(rule.method, Method::Fake(Some(Fake::Phone)));
    }
}
