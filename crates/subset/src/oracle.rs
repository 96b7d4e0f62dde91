//! Parameter files for Oracle's Data Pump that keep the foreign keys of an export valid.
//!
//! SAMPLE takes a share of each table on its own, and ALTER TABLE … ADD FOREIGN KEY then fails with
//! ORA-02298. Here a script for SQL*Plus puts the ROWIDs of the wanted rows into list tables and
//! adds all rows that they reference, and QUERY exports the rows in the lists. The keys come from a
//! file written by a query; the files have not been tested with Oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use blockstone_base::csv::{self, Dialect};
use blockstone_base::hint::Hint;

/// How much of a file is read.
pub const FILE_MAX: usize = 64 << 20;
/// Maximum length of a name in Oracle, in bytes.
const NAME_MAX: usize = 128;
/// Buckets of `ORA_HASH`: a resolution of 1 in a million.
const PARTS: f64 = 1_000_000.0;

const UNTESTED: &str = "Made by blockstone from the catalogue alone; not tested with Oracle.";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
pub enum OracleError {
    #[error("{file}, line {line}: {why}")]
    #[hint("{hint}")]
    Line { file: String, line: usize, why: String, hint: &'static str },
    #[error("{file}: {why}")]
    #[hint("{hint}")]
    File { file: String, why: String, hint: &'static str },
}

const EXPORT_HINT: &str = "write it with the query that `blockstone subset oracle --query` prints";

/// Returns the query for SQL*Plus 12.2 or later, whose output is spooled to the file that
/// [`Catalogue::read`] takes.
pub fn catalogue_query(owners: &[&str]) -> String {
    let owners: Vec<String> = owners.iter().map(|owner| literal(owner)).collect();
    let owners = owners.join(", ");
    format!(
        "SET MARKUP CSV ON QUOTE ON\nSET FEEDBACK OFF PAGESIZE 50000 LINESIZE 32767\n\
         SELECT c.owner, c.table_name, c.constraint_name, c.constraint_type, c.r_owner,\n\
         \x20      c.r_constraint_name, k.position, k.column_name\n\
         FROM all_constraints c\n\
         JOIN all_cons_columns k\n\
         \x20 ON k.owner = c.owner AND k.constraint_name = c.constraint_name\n\
         WHERE c.constraint_type IN ('P', 'U', 'R') AND c.owner IN ({owners})\n\
         UNION ALL\n\
         SELECT owner, table_name, NULL, NULL, NULL, NULL, NULL, NULL\n\
         FROM all_tables\n\
         WHERE owner IN ({owners}) AND temporary = 'N' AND nested = 'NO' AND iot_name IS NULL;\n\
         EXIT\n"
    )
}

/// Owner and name.
type Name = (String, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Constraint {
    kind: String,
    table: Name,
    references: Option<Name>,
    columns: BTreeMap<u32, String>,
}

impl Constraint {
    fn columns(&self) -> Vec<&str> {
        self.columns.values().map(String::as_str).collect()
    }
}

/// Tables and keys of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    tables: Vec<Name>,
    constraints: BTreeMap<Name, Constraint>,
}

const COLUMNS: [&str; 8] = [
    "OWNER",
    "TABLE_NAME",
    "CONSTRAINT_NAME",
    "CONSTRAINT_TYPE",
    "R_OWNER",
    "R_CONSTRAINT_NAME",
    "POSITION",
    "COLUMN_NAME",
];

impl Catalogue {
    /// Parses the output of the query, `text`, as read from the file named `file`.
    pub fn read(text: &str, file: &str) -> Result<Self, OracleError> {
        let mut records = records(text, file)?.into_iter();
        let refuse = |line: usize, why: String| OracleError::Line {
            file: file.to_owned(),
            line,
            why,
            hint: EXPORT_HINT,
        };
        let (line, head) = records.next().ok_or_else(|| refuse(1, "it is empty".to_owned()))?;
        let place = |name: &str| head.iter().position(|field| field.eq_ignore_ascii_case(name));
        let places: Option<Vec<usize>> = COLUMNS.iter().map(|name| place(name)).collect();
        let Some(places) = places else {
            return Err(refuse(line, format!("the columns are not {}", COLUMNS.join(", "))));
        };
        let (mut read, mut tables) = (Self::default(), BTreeSet::new());
        // SQL*Plus repeats the column names on each page.
        for (line, record) in records.filter(|(_, record)| *record != head) {
            let fields: Option<Vec<&str>> =
                places.iter().map(|place| record.get(*place).map(String::as_str)).collect();
            let Some([owner, table, name, kind, r_owner, r_name, position, column]) =
                fields.as_deref().and_then(|fields| <[&str; 8]>::try_from(fields).ok())
            else {
                return Err(refuse(line, "a field is missing".to_owned()));
            };
            let names = [owner, table, name, r_owner, r_name, column];
            if let Some(bad) = names.iter().find(|name| !is_name(name)) {
                return Err(refuse(line, format!("{bad:?} is not a name of Oracle")));
            }
            let table: Name = (owner.to_owned(), table.to_owned());
            if table.0.is_empty() || table.1.is_empty() {
                return Err(refuse(line, "it names no table".to_owned()));
            }
            tables.insert(table.clone());
            if name.is_empty() {
                continue;
            }
            let position: u32 = position
                .trim()
                .parse()
                .map_err(|_| refuse(line, format!("{position:?} is not a position")))?;
            let constraint = read.constraints.entry((owner.to_owned(), name.to_owned()));
            let constraint = constraint.or_insert_with(|| Constraint {
                kind: kind.to_owned(),
                table,
                references: (kind == "R").then(|| (r_owner.to_owned(), r_name.to_owned())),
                columns: BTreeMap::new(),
            });
            if column.is_empty() || constraint.columns.insert(position, column.to_owned()).is_some()
            {
                return Err(refuse(line, format!("{name} has position {position} twice")));
            }
        }
        read.tables = tables.into_iter().collect();
        read.check(file)?;
        Ok(read)
    }

    /// Checks that each foreign key references a key of the export with as many columns.
    fn check(&self, file: &str) -> Result<(), OracleError> {
        for ((owner, name), key) in &self.constraints {
            let Some(references) = &key.references else { continue };
            let why = match self.constraints.get(references) {
                None => format!(
                    "{owner}.{name} references {}.{}, which is not in it",
                    references.0, references.1
                ),
                Some(other) if other.columns.len() != key.columns.len() => {
                    format!("{owner}.{name} has another number of columns than what it references")
                }
                Some(_) => continue,
            };
            let hint = "name the owners of all tables that are referenced in the query";
            return Err(OracleError::File { file: file.to_owned(), why, hint });
        }
        Ok(())
    }

    fn primary(&self, table: &Name) -> Vec<&str> {
        let mut all = self.constraints.values();
        let primary = all.find(|key| key.kind == "P" && key.table == *table);
        primary.map(Constraint::columns).unwrap_or_default()
    }

    fn list(&self, table: &Name) -> String {
        let number = self.tables.iter().position(|known| known == table).unwrap_or_default() + 1;
        format!("BLOCKSTONE_LIST_{number}")
    }
}

/// The rows that are wanted, before those that they reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A share of each table, by the hash of its primary key: 2 % includes all rows of 1 %.
    Percent { percent: f64, seed: u32 },
    /// Rows by their primary keys.
    Keys(Vec<RowKey>),
}

/// A row by its primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKey {
    table: Name,
    values: Vec<String>,
}

impl Catalogue {
    /// Reads a list of keys: a line has owner, table and the values of its primary key.
    pub fn read_keys(&self, text: &str, file: &str) -> Result<Vec<RowKey>, OracleError> {
        let mut keys = Vec::new();
        for (line, record) in records(text, file)? {
            let refuse = |why: String| OracleError::Line {
                file: file.to_owned(),
                line,
                why,
                hint: "a line is OWNER,TABLE and the values of the primary key",
            };
            let mut fields = record.into_iter();
            let table: Name = fields.next().zip(fields.next()).unwrap_or_default();
            let values: Vec<String> = fields.collect();
            if !self.tables.contains(&table) {
                return Err(refuse(format!("there is no table {}.{}", table.0, table.1)));
            }
            let columns = self.primary(&table).len();
            if columns == 0 || columns != values.len() {
                let found = values.len();
                return Err(refuse(format!(
                    "it has {found} values for {columns} columns of a key"
                )));
            }
            keys.push(RowKey { table, values });
        }
        Ok(keys)
    }
}

/// Contents of the generated files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// For SQL*Plus, before the export: creates and fills the lists.
    pub lists: String,
    /// For `expdp PARFILE=`.
    pub export: String,
    /// For SQL*Plus, after the export: drops the lists.
    pub drop: String,
}

/// Generates the files for `lister`, the user whose schema holds the lists.
pub fn files(catalogue: &Catalogue, wanted: &Wanted, lister: &str) -> Result<Files, OracleError> {
    if !is_plain(lister) {
        return Err(OracleError::File {
            file: lister.to_owned(),
            why: "the schema for the lists has a name that needs quotes".to_owned(),
            hint: "name a schema of capital letters, digits and underscores",
        });
    }
    let mut lists = format!(
        "-- {UNTESTED}\n-- Run it with SQL*Plus as {lister} while nobody changes the tables.\n\
         WHENEVER SQLERROR EXIT FAILURE ROLLBACK\n"
    );
    let mut drop = format!("-- {UNTESTED}\n");
    let mut export = format!(
        "# {UNTESTED}\n# Run lists.sql before and drop.sql after it.\n\
         DIRECTORY=DATA_PUMP_DIR\nDUMPFILE=subset_%U.dmp\nLOGFILE=subset.log\n"
    );
    let names: Vec<String> = catalogue.tables.iter().map(parameter).collect();
    let _ = writeln!(export, "TABLES={}", names.join(","));
    for (table, name) in catalogue.tables.iter().zip(&names) {
        let list = catalogue.list(table);
        let _ = writeln!(lists, "CREATE TABLE {list} (rid UROWID(4000) NOT NULL);");
        let _ = writeln!(drop, "DROP TABLE {list} PURGE;");
        let query = format!("WHERE rowid IN (SELECT rid FROM {lister}.{list})");
        let _ = writeln!(export, "QUERY={name}:\"{query}\"");
    }
    match wanted {
        Wanted::Percent { percent, seed } => {
            for table in &catalogue.tables {
                lists.push_str(&share(catalogue, table, *percent, *seed));
            }
        }
        Wanted::Keys(keys) => keys.iter().for_each(|key| lists.push_str(&row(catalogue, key))),
    }
    lists.push_str(&closure(catalogue));
    Ok(Files { lists, export, drop })
}

fn share(catalogue: &Catalogue, table: &Name, percent: f64, seed: u32) -> String {
    let columns: Vec<String> =
        catalogue.primary(table).into_iter().map(|name| format!("t.{}", quoted(name))).collect();
    // Without a key, a row is identified by its ROWID.
    let key = if columns.is_empty() { "t.rowid".to_owned() } else { columns.join(" || '|' || ") };
    let below = (percent.clamp(0.0, 100.0) / 100.0 * PARTS).round() as u32;
    format!(
        "INSERT INTO {} SELECT t.rowid FROM {} t WHERE ORA_HASH({key}, {}, {seed}) < {below};\n",
        catalogue.list(table),
        qualified(table),
        PARTS as u32 - 1,
    )
}

fn row(catalogue: &Catalogue, key: &RowKey) -> String {
    let columns = catalogue.primary(&key.table);
    let equal: Vec<String> = columns
        .iter()
        .zip(&key.values)
        .map(|(column, value)| format!("t.{} = {}", quoted(column), literal(value)))
        .collect();
    let (list, table) = (catalogue.list(&key.table), qualified(&key.table));
    format!(
        "INSERT INTO {list} SELECT t.rowid FROM {table} t WHERE {}\n\
         \x20 AND NOT EXISTS (SELECT 1 FROM {list} x WHERE x.rid = t.rowid);\n",
        equal.join(" AND ")
    )
}

/// Returns a block that adds referenced rows until none is missing.
fn closure(catalogue: &Catalogue) -> String {
    let mut text = "DECLARE\n  added NUMBER;\nBEGIN\n  LOOP\n    added := 0;\n".to_owned();
    for ((_, name), key) in &catalogue.constraints {
        let other = key.references.as_ref().and_then(|name| catalogue.constraints.get(name));
        let Some(other) = other else { continue };
        let equal: Vec<String> = key
            .columns()
            .iter()
            .zip(other.columns())
            .map(|(own, other)| format!("c.{} = p.{}", quoted(own), quoted(other)))
            .collect();
        let (child, parent) = (catalogue.list(&key.table), catalogue.list(&other.table));
        let _ = write!(
            text,
            "    -- {name}\n    INSERT INTO {parent} SELECT p.rowid FROM {} p\n\
             \x20     WHERE EXISTS (SELECT 1 FROM {} c JOIN {child} l ON l.rid = c.rowid\n\
             \x20       WHERE {})\n\
             \x20     AND NOT EXISTS (SELECT 1 FROM {parent} x WHERE x.rid = p.rowid);\n\
             \x20   added := added + SQL%ROWCOUNT;\n",
            qualified(&other.table),
            qualified(&key.table),
            equal.join(" AND "),
        );
    }
    text.push_str("    EXIT WHEN added = 0;\n  END LOOP;\n  COMMIT;\nEND;\n/\nEXIT\n");
    text
}

/// Records, each with its first line.
fn records(text: &str, file: &str) -> Result<Vec<(usize, Vec<String>)>, OracleError> {
    let refuse = |line: usize, why: &str| OracleError::Line {
        file: file.to_owned(),
        line,
        why: why.to_owned(),
        hint: EXPORT_HINT,
    };
    if text.len() > FILE_MAX {
        return Err(refuse(1, "the file has more than 64 MiB"));
    }
    let records = csv::records(text, Dialect::Strict).map_err(|(line, why)| refuse(line, why))?;
    let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    Ok(records.map(|(line, record)| (line, fields(&record))).collect())
}

/// Whether a name is valid. Oracle does not allow double quotes in names, so that a quoted name
/// cannot end early.
fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX && !name.chars().any(|at| at == '"' || at.is_control())
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let is_part = |at: u8| at.is_ascii_uppercase() || at.is_ascii_digit() || b"_$#".contains(&at);
    name.len() <= NAME_MAX
        && name.bytes().next().is_some_and(|at| at.is_ascii_uppercase())
        && name.bytes().all(is_part)
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn qualified((owner, table): &Name) -> String {
    format!("{}.{}", quoted(owner), quoted(table))
}

/// Formats a table for a parameter file, with quotes only for names that need them.
fn parameter((owner, table): &Name) -> String {
    let part = |name: &String| if is_plain(name) { name.clone() } else { quoted(name) };
    format!("{}.{}", part(owner), part(table))
}

#[cfg(test)]
mod tests;
