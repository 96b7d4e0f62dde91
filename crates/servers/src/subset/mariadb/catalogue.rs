//! The catalogue of a database's tables and keys.

use std::collections::HashMap;

use blockstone_subset::{Catalogue, Column, ForeignKey, Table};
use mysql::prelude::Queryable;

use super::ddl::{self, Declared, Parsed};
use super::packed::Packed;
use super::rows::IN_ORDER;
use super::values::Kind;
use super::{Server, failed, quoted};
use crate::mariadb::{DENIED, answer};
use crate::sql::error::{During, SqlError};
use crate::subset::source::named;

const TABLES: &str = include_str!("../../../sql/subset/mariadb/tables.sql");
const COLUMNS: &str = include_str!("../../../sql/subset/mariadb/columns.sql");
const PRIVILEGES: &str = include_str!("../../../sql/subset/mariadb/privileges.sql");
/// Storage engines that provide a consistent snapshot.
const TRANSACTIONAL: [&str; 3] = ["InnoDB", "RocksDB", "TokuDB"];
/// Storage engines whose rows are in other tables, files or servers: loading would write there.
const ELSEWHERE: [&str; 7] =
    ["CONNECT", "FEDERATED", "MRG_MyISAM", "OQGRAPH", "S3", "SPHINX", "SPIDER"];
const LEFT_OUT: &str = "Users, privileges and events are not taken.";
const HISTORY: &str =
    "Of system-versioned tables no history is taken: it begins with the load, and so do their rows";
const PACKAGES: &str = "SELECT ROUTINE_NAME FROM information_schema.ROUTINES
    WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'PACKAGE' ORDER BY ROUTINE_NAME";

/// Table properties that only this server's statements need, by position in the catalogue.
pub struct Known {
    pub tables: Vec<KnownTable>,
}

pub struct KnownTable {
    pub name: String,
    pub partitioned: bool,
    /// Kind of each column.
    pub kinds: Vec<Kind>,
    /// Columns whose default is the next value of a sequence, with that default.
    pub defaults: Vec<(String, String)>,
    pub parsed: Parsed,
    /// How the columns that identify a row are packed into one number.
    pub packed: Option<Packed>,
}

impl KnownTable {
    /// Whether a single whole number identifies a row.
    pub fn has_number(&self, identity: &[usize]) -> bool {
        matches!(identity, [only] if self.kinds.get(*only) == Some(&Kind::Integer))
    }
}

type TableRow = (String, String, Option<u64>, Option<u64>, bool, bool);
type ColumnRow = (
    String,
    String,
    String,
    String,
    bool,
    Option<bool>,
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<String>,
);

/// Reads the catalogue, with notes for the reader of a report.
pub fn read(server: &mut Server) -> Result<(Known, Catalogue, Vec<String>), SqlError> {
    let tables: Vec<TableRow> = answer::rows(&mut server.link, TABLES).during("list the tables")?;
    let is_elsewhere =
        |engine: &str| ELSEWHERE.iter().any(|known| known.eq_ignore_ascii_case(engine));
    let (elsewhere, tables): (Vec<TableRow>, Vec<TableRow>) =
        tables.into_iter().partition(|row| is_elsewhere(&row.1));
    hold(server, tables.iter().map(|row| row.0.as_str()))?;
    let (mut known, mut catalogue) = (Known { tables: Vec::new() }, Catalogue::default());
    let (mut unsafe_tables, mut versioned) = (Vec::new(), Vec::new());
    for (name, engine, rows, bytes, partitioned, is_versioned) in tables {
        if is_versioned {
            versioned.push(name.clone());
        }
        if !TRANSACTIONAL.contains(&engine.as_str()) {
            unsafe_tables.push(format!("{name} ({engine})"));
        }
        catalogue.tables.push(Table {
            name: format!("{}.{name}", server.database),
            estimated_rows: rows,
            bytes,
            ..Table::default()
        });
        let parsed = statement(server, &name)?;
        let (kinds, defaults) = (Vec::new(), Vec::new());
        let packed = None;
        known.tables.push(KnownTable { name, partitioned, kinds, defaults, parsed, packed });
    }
    read_columns(server, &mut known, &mut catalogue)?;
    read_unique(&known, &mut catalogue);
    for (known, table) in known.tables.iter_mut().zip(&catalogue.tables) {
        let column = |&at: &usize| {
            let column = &table.columns[at];
            (column.name.clone(), known.kinds[at].clone(), column.type_name.clone())
        };
        let columns: Vec<_> = table.identity.iter().map(column).collect();
        known.packed = Packed::find(server, &known.name, &columns)?;
    }
    read_keys(server, &known, &mut catalogue)?;
    let elsewhere: Vec<String> =
        elsewhere.iter().map(|row| format!("{} ({})", row.0, row.1)).collect();
    let packages: Vec<String> =
        answer::rows(&mut server.link, PACKAGES).during("list the packages")?;
    let mut notes = vec![LEFT_OUT.to_owned()];
    notes.extend(named("Tables whose rows are elsewhere are not taken", &elsewhere));
    notes.extend(named("Packages are not taken", &packages));
    notes.extend(named(HISTORY, &versioned));
    if !unsafe_tables.is_empty() {
        notes.push(format!(
            "Warning: the snapshot does not cover tables without transactions, which may have \
             changed while they were read: {}.",
            unsafe_tables.join(", ")
        ));
    }
    notes.extend(unseen(server)?.map(str::to_owned));
    Ok((known, catalogue, notes))
}

/// Returns notes on objects that this user may not see and that would be missing without notice.
fn unseen(server: &mut Server) -> Result<impl Iterator<Item = &'static str> + use<>, SqlError> {
    let known: Option<(u64, u64, u64)> =
        answer::first(&mut server.link, PRIVILEGES).during("look for privileges")?;
    let (tables, triggers, routines) = known.unwrap_or_default();
    let notes = [
        (tables, "This user may read single tables only: others are not seen, and not taken."),
        (triggers, "Without the privilege TRIGGER triggers are not seen, and not taken."),
        (routines, "Without the privilege EXECUTE routines are not seen, and not taken."),
    ];
    Ok(notes.into_iter().filter(|(granted, _)| *granted == 0).map(|(_, note)| note))
}

/// Prevents changes to the tables until everything is read, by using each in the transaction. A
/// table that has become a view meanwhile has no indexes to ignore, and is refused before any code
/// in it runs.
fn hold<'n>(server: &mut Server, names: impl Iterator<Item = &'n str>) -> Result<(), SqlError> {
    let mut refused = Vec::new();
    for name in names {
        let used =
            server.link.query_drop(format!("SELECT * FROM {}{IN_ORDER} LIMIT 0", quoted(name)));
        match used {
            Err(mysql::Error::MySqlError(said))
                if DENIED.contains(&said.code) || said.code == 1143 =>
            {
                refused.push(quoted(name));
            }
            used => used.map_err(failed(&format!("read {}", quoted(name)), ""))?,
        }
    }
    let Some(first) = refused.first() else { return Ok(()) };
    let more = match refused.len() {
        1 => String::new(),
        2 => " and one more table".to_owned(),
        count => format!(" and {} more tables", count - 1),
    };
    Err(SqlError::unsuitable(
        &server.address.name,
        format!("this user may not read {first}{more}"),
        format!("GRANT SELECT ON {}.{first} TO this user", quoted(&server.database)),
    ))
}

fn statement(server: &mut Server, name: &str) -> Result<Parsed, SqlError> {
    let what = format!("read the definition of {}", quoted(name));
    let ask = format!("SHOW CREATE TABLE {}", quoted(name));
    let found: Option<(String, String)> = answer::first(&mut server.link, &ask)
        .map_err(failed(&what, "GRANT SELECT ON the table"))?;
    let text = found.map(|(_, text)| text).unwrap_or_default();
    ddl::parse(&text).ok_or_else(|| SqlError::Statement {
        what,
        why: "it is not understood".to_owned(),
        hint: "please report it, with the version of the server".to_owned(),
    })
}

fn read_columns(
    server: &mut Server,
    known: &mut Known,
    catalogue: &mut Catalogue,
) -> Result<(), SqlError> {
    let places: HashMap<String, usize> =
        known.tables.iter().enumerate().map(|(at, table)| (table.name.clone(), at)).collect();
    let columns: Vec<ColumnRow> =
        answer::rows(&mut server.link, COLUMNS).during("list the columns")?;
    for (table, name, column_type, data_type, nullable, generated, charset, collation, scale, by) in
        columns
    {
        let Some(&at) = places.get(&table) else { continue };
        let kind = Kind::new(&data_type, &column_type, charset, collation, scale);
        known.tables[at].kinds.push(kind);
        if let Some(default) = by.filter(|text| text.contains("nextval(")) {
            let default = ddl::without_database(&default, &server.database);
            known.tables[at].defaults.push((name.clone(), default));
        }
        let generated = generated == Some(true);
        let type_name = column_type;
        catalogue.tables[at].columns.push(Column { name, type_name, nullable, generated });
    }
    Ok(())
}

/// Returns positions of columns by name, ignoring case.
fn positions(table: &Table, names: &[String]) -> Option<Vec<usize>> {
    let position = |name: &String| {
        table.columns.iter().position(|column| {
            column.name == *name || column.name.to_lowercase() == name.to_lowercase()
        })
    };
    names.iter().map(position).collect()
}

fn read_unique(known: &Known, catalogue: &mut Catalogue) {
    for (table, known) in catalogue.tables.iter_mut().zip(&known.tables) {
        for names in &known.parsed.unique {
            let Some(columns) = positions(table, names) else { continue };
            let is_whole = columns.iter().all(|&column| !table.columns[column].nullable);
            if table.identity.is_empty() && is_whole {
                table.identity.clone_from(&columns);
            }
            table.unique.push(columns);
        }
    }
}

fn read_keys(server: &Server, known: &Known, catalogue: &mut Catalogue) -> Result<(), SqlError> {
    for table in 0..known.tables.len() {
        for key in &known.tables[table].parsed.keys {
            let other = parent(server, known, table, key)?;
            let columns = positions(&catalogue.tables[table], &key.columns);
            let sides = columns.zip(positions(&catalogue.tables[other], &key.referenced));
            let Some((columns, referenced)) = sides else {
                return Err(SqlError::unsuitable(
                    &server.address.name,
                    format!("the key {} references columns that are not there", key.name),
                    "drop the key, or create what it references",
                ));
            };
            check_numbered(server, catalogue, (table, &columns), (other, &referenced), &key.name)?;
            catalogue.keys.push(ForeignKey {
                name: key.name.clone(),
                table,
                columns,
                references: other,
                referenced,
                // With foreign_key_checks = 0, rows of any content may have been written.
                is_valid: false,
                ..ForeignKey::default()
            });
        }
    }
    Ok(())
}

/// Refuses a key between enumerations with different words: the server compares their numbers, and
/// the same number stands for different words.
fn check_numbered(
    server: &Server,
    catalogue: &Catalogue,
    (table, columns): (usize, &[usize]),
    (other, referenced): (usize, &[usize]),
    key: &str,
) -> Result<(), SqlError> {
    let is_numbered = |name: &str| name.starts_with("enum(") || name.starts_with("set(");
    for (&column, &referenced) in columns.iter().zip(referenced) {
        let own = &catalogue.tables[table].columns[column];
        let like = &catalogue.tables[other].columns[referenced];
        if is_numbered(&own.type_name) && own.type_name != like.type_name {
            return Err(SqlError::unsuitable(
                &server.address.name,
                format!(
                    "the key {key} compares the numbers of words that {}.{} and {}.{} number \
                     differently",
                    catalogue.tables[table].name, own.name, catalogue.tables[other].name, like.name
                ),
                "give both columns the same type, or drop the key",
            ));
        }
    }
    Ok(())
}

fn parent(server: &Server, known: &Known, table: usize, key: &Declared) -> Result<usize, SqlError> {
    let name = &key.references;
    let of = quoted(&known.tables[table].name);
    if let Some(other) = key.database.as_ref().filter(|it| **it != server.database) {
        return Err(SqlError::unsuitable(
            &server.address.name,
            format!(
                "the key {} of {of} references a table of database {}",
                key.name,
                quoted(other)
            ),
            "subsets of one database are supported; drop the key, or move the table",
        ));
    }
    let exact = known.tables.iter().position(|known| known.name == *name);
    let folded = || {
        let lower = name.to_lowercase();
        known.tables.iter().position(|known| known.name.to_lowercase() == lower)
    };
    exact.or_else(folded).ok_or_else(|| {
        let grant = format!("{}.{}", quoted(&server.database), quoted(name));
        SqlError::unsuitable(
            &server.address.name,
            format!(
                "the key {} of {of} references {}, which this user may not read or which is \
                     not there",
                key.name,
                quoted(name)
            ),
            format!("GRANT SELECT ON {grant} TO this user, or drop the key"),
        )
    })
}
