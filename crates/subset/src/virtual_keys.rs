//! Keys that the database does not declare, from a TOML file.
//!
//! ```toml
//! [[key]]
//! table = "public.comments"
//! columns = ["subject_id"]
//! references = "public.posts"
//! referenced = ["id"]
//! when = { column = "subject_type", is = "Post" }
//! ```
//!
//! With `when`, the key holds for rows in which that column has that value: several keys of one
//! column can then reference different tables.

use serde::Deserialize;
use toml::Spanned;

use crate::catalogue::{Catalogue, CatalogueError, ForeignKey, Table, When};
use crate::line::line_of;
use crate::mask::Kind;

/// Largest file that is read, in bytes.
pub const FILE_MAX: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    key: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    table: Spanned<String>,
    columns: Vec<Spanned<String>>,
    references: Spanned<String>,
    referenced: Vec<Spanned<String>>,
    when: Option<EntryWhen>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryWhen {
    column: Spanned<String>,
    is: String,
}

/// The file, for error messages.
struct KeyFile<'a> {
    name: &'a str,
    text: &'a str,
}

impl KeyFile<'_> {
    fn at(&self, start: usize) -> String {
        format!("{}, line {}", self.name, line_of(self.text, start))
    }

    fn refuse(&self, start: usize, why: String, hint: &'static str) -> CatalogueError {
        let what = self.name.to_owned();
        CatalogueError::VirtualKey { what, line: line_of(self.text, start), why, hint }
    }
}

/// Adds the keys of `text`, a file called `name`.
pub fn add(catalogue: &mut Catalogue, text: &str, name: &str) -> Result<(), CatalogueError> {
    let keys = read(catalogue, text, name)?;
    catalogue.keys.extend(keys);
    Ok(())
}

fn read(catalogue: &Catalogue, text: &str, name: &str) -> Result<Vec<ForeignKey>, CatalogueError> {
    const FORM: &str = "a key has table, columns, references, referenced and perhaps when";
    let place = KeyFile { name, text };
    if text.len() > FILE_MAX {
        return Err(place.refuse(0, "the file has more than 1 MiB".to_owned(), FORM));
    }
    let file: File = toml::from_str(text).map_err(|error| {
        let why = error.message().lines().next().unwrap_or_default().to_owned();
        place.refuse(error.span().map_or(0, |span| span.start), why, FORM)
    })?;
    let mut keys: Vec<ForeignKey> = Vec::with_capacity(file.key.len());
    for entry in file.key {
        let start = entry.span().start;
        let key = resolve(catalogue, &place, start, entry.into_inner())?;
        let known = catalogue.keys.iter().find(|known| is_same(known, &key));
        if let Some(known) = known {
            let why = format!("the database declares this key as {}", known.name);
            return Err(place.refuse(start, why, "remove it from the file"));
        }
        if keys.iter().any(|known| is_same(known, &key) && known.when == key.when) {
            return Err(place.refuse(
                start,
                "this key is in the file twice".to_owned(),
                "remove it",
            ));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn is_same(one: &ForeignKey, other: &ForeignKey) -> bool {
    let pairs = |key: &ForeignKey| {
        let mut pairs: Vec<(usize, usize)> =
            key.columns.iter().copied().zip(key.referenced.iter().copied()).collect();
        pairs.sort_unstable();
        (key.table, key.references, pairs)
    };
    pairs(one) == pairs(other)
}

fn resolve(
    catalogue: &Catalogue,
    place: &KeyFile,
    start: usize,
    entry: Entry,
) -> Result<ForeignKey, CatalogueError> {
    let table_of = |name: &Spanned<String>| {
        let at = catalogue.find(name.get_ref(), &place.at(name.span().start))?;
        catalogue.tables.get(at).map(|table| (at, table)).ok_or_else(|| CatalogueError::Broken {
            why: format!("{} is not in the catalogue", name.get_ref()),
        })
    };
    let (table, child) = table_of(&entry.table)?;
    let (parent_table, parent) = table_of(&entry.references)?;
    let columns = columns_of(child, place, &entry.columns)?;
    let referenced = columns_of(parent, place, &entry.referenced)?;
    if columns.is_empty() || columns.len() != referenced.len() {
        let (one, other) = (columns.len(), referenced.len());
        let why = format!("columns names {one} columns and referenced {other}");
        return Err(place.refuse(start, why, "name as many, and at least one"));
    }
    let is_set = |columns: &[usize], of: &[usize]| {
        columns.len() == of.len() && columns.iter().all(|column| of.contains(column))
    };
    let mut unique = parent.unique.iter().chain([&parent.identity]);
    if !unique.any(|unique| is_set(&referenced, unique)) {
        let why = format!("the referenced columns of {} are not unique", parent.name);
        return Err(place.refuse(start, why, "reference a primary key or a unique key"));
    }
    for (column, other) in columns.iter().zip(&referenced) {
        let (one, two) = (&child.columns[*column], &parent.columns[*other]);
        if !is_comparable(Kind::of(&one.type_name), Kind::of(&two.type_name)) {
            let types =
                format!("{} is {} and {} {}", one.name, one.type_name, two.name, two.type_name);
            return Err(place.refuse(start, types, "both ends of a key need the same type"));
        }
    }
    let when = entry.when.map(|when| {
        let column = columns_of(child, place, std::slice::from_ref(&when.column))?;
        Ok(When { column: column.first().copied().unwrap_or_default(), is: when.is })
    });
    let name = entry.name.unwrap_or_else(|| format!("virtual_{}", line_of(place.text, start)));
    Ok(ForeignKey {
        name,
        table,
        columns,
        references: parent_table,
        referenced,
        is_virtual: true,
        when: when.transpose()?,
        ..ForeignKey::default()
    })
}

/// Whether values can be compared. For types unknown to masking, the server decides.
fn is_comparable(one: Kind, other: Kind) -> bool {
    let is_number = |kind| matches!(kind, Kind::Integer { .. } | Kind::Numeric);
    let is_other = [one, other].contains(&Kind::Other);
    is_other || is_number(one) && is_number(other) || one.joined(other).is_some()
}

fn columns_of(
    table: &Table,
    place: &KeyFile,
    names: &[Spanned<String>],
) -> Result<Vec<usize>, CatalogueError> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let start = name.span().start;
        let known = table.columns.iter().position(|column| column.name == *name.get_ref());
        let column = known.ok_or_else(|| {
            let names: Vec<&str> = table.columns.iter().map(|at| at.name.as_str()).collect();
            CatalogueError::NoColumn {
                what: place.at(start),
                table: table.name.clone(),
                name: name.get_ref().clone(),
                columns: names.join(", "),
            }
        })?;
        if columns.contains(&column) {
            let why = format!("{} is named twice", name.get_ref());
            return Err(place.refuse(start, why, "name each column once"));
        }
        columns.push(column);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;
    use crate::catalogue::Column;

    fn catalogue() -> Catalogue {
        let table = |name: &str, columns: &[(&str, &str)]| Table {
            name: name.into(),
            columns: columns
                .iter()
                .map(|(name, kind)| Column {
                    name: (*name).into(),
                    type_name: (*kind).into(),
                    ..Column::default()
                })
                .collect(),
            identity: vec![0],
            ..Table::default()
        };
        let comments = [
            ("id", "integer"),
            ("subject_id", "bigint"),
            ("subject_type", "text"),
            ("post", "integer"),
        ];
        let declared = ForeignKey {
            name: "comments_post_fkey".into(),
            table: 0,
            columns: vec![3],
            references: 1,
            referenced: vec![0],
            ..ForeignKey::default()
        };
        Catalogue {
            tables: vec![
                table("public.comments", &comments),
                table("public.posts", &[("id", "integer"), ("title", "text")]),
                table("public.photos", &[("id", "integer")]),
            ],
            keys: vec![declared],
        }
    }

    const POLYMORPHIC: &str = "# Comments of two kinds.
[[key]]
table = \"comments\"
columns = [\"subject_id\"]
references = \"posts\"
referenced = [\"id\"]
when = { column = \"subject_type\", is = \"Post\" }

[[key]]
name = \"photo\"
table = \"public.comments\"
columns = [\"subject_id\"]
references = \"public.photos\"
referenced = [\"id\"]
when = { column = \"subject_type\", is = \"Photo\" }
";

    #[test]
    fn a_column_may_reference_two_tables() {
        let keys = read(&catalogue(), POLYMORPHIC, "keys.toml").unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!((keys[0].name.as_str(), keys[0].references), ("virtual_2", 1));
        assert_eq!(keys[1].when, Some(When { column: 2, is: "Photo".into() }));
        assert!(keys.iter().all(|key| key.is_virtual && !key.is_valid));
        let mut catalogue = catalogue();
        assert_eq!(add(&mut catalogue, "", "keys.toml"), Ok(()));
        add(&mut catalogue, POLYMORPHIC, "keys.toml").unwrap();
        assert_eq!((catalogue.keys.len(), catalogue.check()), (3, Ok(())));
    }

    #[test]
    fn errors_name_the_line() {
        let edit = |from: &str, to: &str| POLYMORPHIC.replacen(from, to, 1);
        let cases = [
            (edit("\"comments\"", "\"remarks\""), "keys.toml, line 3: there is no table remarks"),
            (
                edit("[\"subject_id\"]", "[\"subject\"]"),
                "keys.toml, line 4: public.comments has no",
            ),
            (edit("[\"id\"]", "[\"title\"]"), "keys.toml, line 2: the referenced columns"),
            (edit("[\"id\"]", "[]"), "keys.toml, line 2: columns names 1 columns and referenced 0"),
            (
                edit("[\"subject_id\"]", "[\"subject_type\"]"),
                "line 2: subject_type is text and id int",
            ),
            (edit("[\"subject_id\"]", "[\"id\", \"id\"]"), "line 4: id is named twice"),
            (edit("subject_type", "kind"), "line 7: public.comments has no column kind"),
            (edit("[\"subject_id\"]", "[\"post\"]"), "declares this key as comments_post_fkey"),
            (POLYMORPHIC.repeat(2), "line 17: this key is in the file twice"),
            (edit("references", "refers"), "keys.toml, line 5: unknown field"),
            ("[[key]]\ntable = 3".into(), "keys.toml, line 2"),
            ("x".repeat(FILE_MAX + 1), "more than 1 MiB"),
        ];
        for (text, said) in cases {
            let error = read(&catalogue(), &text, "keys.toml").unwrap_err().told();
            assert!(error.contains(said), "{said}: {error}");
            assert_eq!(error.lines().count(), 2, "{error}");
        }
    }
}
