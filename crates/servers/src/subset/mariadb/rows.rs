//! Reads key columns of all rows of a table, or of those with certain values.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use blockstone_subset::{Row, Scan, ScanKey};
use mysql::Value;
use mysql::prelude::Queryable;

use super::columns::{column_name, compared, whole};
use super::draw::{draw, drawn, wins};
use super::packed::Packed;
use super::values::{Kind, condition};
use super::{MariadbSource, failed, quoted};
use crate::sql::error::SqlError;
use crate::subset::key_values::{KeyValues, fields};

/// Rows between two reports of progress.
const TELL_ROWS: u64 = 1 << 16;
/// Values per statement.
const BATCH: usize = 5000;

/// Means of finding a row again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locator {
    /// The single column that identifies it.
    Number(usize),
    /// The columns that identify it, packed.
    Packed(Packed, Vec<usize>),
    /// A hash of these columns. Rows with equal hashes are detected when rows are counted.
    Hash(Vec<usize>),
    /// Its position in the order of the table, if nothing identifies it.
    Ordinal,
}

/// The selected columns, each once, and the positions of each key's columns among them.
pub struct Layout {
    pub columns: Vec<String>,
    /// Columns that are whole numbers.
    integers: HashSet<usize>,
    keys: Vec<Vec<usize>>,
    pub locator: Locator,
    drawn: Option<usize>,
    condition: Option<usize>,
    /// Condition for rows to be passed on; `None` passes all.
    only: Option<String>,
}

impl Layout {
    /// Selects the columns that identify rows of a table.
    pub fn of_identity(source: &MariadbSource<'_>, table: usize) -> Self {
        Self::new(source, &Scan { table, ..Scan::default() })
    }

    fn new(source: &MariadbSource<'_>, scan: &Scan) -> Self {
        let mut layout = Self {
            columns: Vec::new(),
            integers: HashSet::new(),
            keys: Vec::new(),
            locator: Locator::Ordinal,
            drawn: None,
            condition: None,
            only: None,
        };
        let known = &source.known.tables[scan.table];
        let identity = &source.catalogue.tables[scan.table].identity;
        let places = identity.iter().map(|&column| {
            layout.place(compared(source, scan.table, column, &known.kinds[column]))
        });
        let places: Vec<usize> = places.collect();
        if known.has_number(identity) {
            layout.locator = Locator::Number(places[0]);
        } else if let Some(packed) = &known.packed {
            layout.locator = Locator::Packed(packed.clone(), places);
        } else if !places.is_empty() {
            layout.locator = Locator::Hash(places);
        }
        for key in &scan.keys {
            let places = layout.of_key(source, scan.table, key);
            layout.keys.push(places);
        }
        // Ordinals require counting all rows.
        let is_filtered = scan.seeds_only && layout.locator != Locator::Ordinal;
        if let Some(condition) = source.conditions[scan.table].as_ref().filter(|_| scan.filtered) {
            // The line break keeps a trailing comment from hiding what follows.
            let condition = format!("(({condition}\n) IS TRUE)");
            layout.only = is_filtered.then(|| condition.clone());
            layout.condition = Some(layout.place(condition));
        }
        if let Some(lot) = scan.lot {
            layout.only = is_filtered.then(|| wins(source, scan.table, lot));
            layout.drawn = Some(layout.place(draw(source, scan.table, lot)));
        }
        if layout.columns.is_empty() {
            layout.columns.push("1".to_owned());
        }
        layout
    }

    fn of_key(&mut self, source: &MariadbSource<'_>, table: usize, key: &ScanKey) -> Vec<usize> {
        if key.columns.is_empty() {
            return vec![self.place(whole(source, table))];
        }
        let when = key.when.as_ref();
        let when = when.map(|it| condition(&column_name(source, table, it.column), &it.is));
        let columns = key.columns.iter().zip(&key.like.1).map(|(&column, &like)| {
            let like = &source.known.tables[key.like.0].kinds[like];
            let value = compared(source, table, column, like);
            let column = match &when {
                Some(when) => format!("CASE WHEN {when} THEN {value} END"),
                None => value,
            };
            (column, *like == Kind::Integer)
        });
        let place = |(column, is_integer)| {
            let place = self.place(column);
            if is_integer {
                self.integers.insert(place);
            }
            place
        };
        columns.map(place).collect()
    }

    fn place(&mut self, column: String) -> usize {
        let known = self.columns.iter().position(|known| *known == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }

    /// Returns the locator of a row, the `ordinal`th of the table.
    pub fn locator<'f>(
        &self,
        field: impl Fn(usize) -> Option<&'f [u8]>,
        ordinal: u64,
    ) -> Option<u64> {
        match &self.locator {
            Locator::Ordinal => Some(ordinal),
            Locator::Number(at) => {
                let text = std::str::from_utf8(field(*at)?).ok()?;
                let signed = text.parse::<i64>().ok().map(i64::cast_unsigned);
                signed.or_else(|| text.parse().ok())
            }
            Locator::Packed(packed, places) => packed.pack(places.iter().map(|&at| field(at))),
            Locator::Hash(places) => {
                let mut hasher = DefaultHasher::new();
                for &at in places {
                    let value = field(at)?;
                    hasher.write_usize(value.len());
                    hasher.write(value);
                }
                // Above all ordinals.
                Some(hasher.finish() | 1 << 63)
            }
        }
    }

    /// Appends a field in the form used in keys.
    fn append(&self, answer: &mysql::Row, at: usize, out: &mut Vec<u8>) -> Option<()> {
        let text = field(answer, at)?;
        match self.integers.contains(&at).then(|| number(text)).flatten() {
            Some(number) => out.extend(number.to_be_bytes()),
            None => out.extend(text),
        }
        Some(())
    }

    /// Returns the table. If rows are identified by their order, it is that of the table itself.
    fn from(&self, source: &MariadbSource<'_>, table: usize) -> String {
        let order = if self.locator == Locator::Ordinal { IN_ORDER } else { "" };
        format!("{} t{order}", quoted(&source.known.tables[table].name))
    }
}

/// Reads a table in row order, not by a covering index.
pub const IN_ORDER: &str = " USE INDEX ()";

/// Parses a number; `None` if it does not fit.
fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns a field of an answer; `None` if it is NULL.
pub fn field(answer: &mysql::Row, at: usize) -> Option<&[u8]> {
    match answer.as_ref(at) {
        Some(Value::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

/// Calls `each` with each row of an answer and the number of rows before it.
pub fn each_row(
    source: &mut MariadbSource<'_>,
    query: &str,
    (what, text, of): (&str, &str, Option<u64>),
    each: &mut dyn FnMut(mysql::Row, u64) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let grant = "GRANT SELECT on all tables of the database TO this user";
    let failed = failed(what, grant);
    let cancel = source.server.cancel();
    let mut rows = 0;
    let result = source.server.link.query_iter(query).map_err(&failed)?;
    for answer in result {
        let mut done = each(answer.map_err(&failed)?, rows);
        rows += 1;
        if rows % TELL_ROWS == 0 && !(source.tell)(text, rows, of) {
            done = Err(SqlError::Interrupted);
        }
        if done.is_err() {
            cancel();
            return done;
        }
    }
    Ok(())
}

pub fn scan(
    source: &mut MariadbSource<'_>,
    scan: &Scan,
    text: &str,
    each: &mut dyn FnMut(Row<'_>),
) -> Result<(), SqlError> {
    let layout = Layout::new(source, scan);
    let (columns, from) = (layout.columns.join(", "), layout.from(source, scan.table));
    let only = layout.only.as_ref().map_or_else(String::new, |only| format!(" WHERE {only}"));
    let query = format!("SELECT {columns} FROM {from}{only}");
    read(source, &layout, scan, &query, text, each)
}

/// Reads the rows of a query.
fn read(
    source: &mut MariadbSource<'_>,
    layout: &Layout,
    scan: &Scan,
    query: &str,
    text: &str,
    each: &mut dyn FnMut(Row<'_>),
) -> Result<(), SqlError> {
    let what = format!("read the keys of {}", source.catalogue.tables[scan.table].name);
    let mut keys = KeyValues::default();
    let of = source.catalogue.tables[scan.table].estimated_rows.filter(|_| !scan.seeds_only);
    let done = each_row(source, query, (&what, text, of), &mut |answer, ordinal| {
        if let Some(locator) = layout.locator(|at| field(&answer, at), ordinal) {
            let matches = layout.condition.and_then(|at| field(&answer, at)) == Some(b"1");
            let keys = keys.of(&layout.keys, |at, out| layout.append(&answer, at, out));
            let drawn = layout.drawn.and_then(|at| drawn(field(&answer, at)?));
            each(Row { locator, keys: &keys, drawn, matches });
        }
        Ok(())
    });
    match done {
        Err(SqlError::Statement { what, why, .. })
            if layout.condition.is_some() && why.contains("SQLSTATE 42") =>
        {
            let hint = "check the condition of --where".to_owned();
            Err(SqlError::Statement { what, why, hint })
        }
        done => done,
    }
}

pub fn count(source: &mut MariadbSource<'_>, table: usize) -> Result<u64, SqlError> {
    let what = format!("count the rows of {}", source.catalogue.tables[table].name);
    let query = format!("SELECT count(*) FROM {}", quoted(&source.known.tables[table].name));
    let mut rows = None;
    each_row(source, &query, (&what, "rows", None), &mut |answer, _| {
        rows = field(&answer, 0).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        Ok(())
    })?;
    Ok(rows.unwrap_or(0))
}

/// Returns the fields of a key's value as SQL; `None` if one cannot be expressed.
fn literals(value: &[u8], kinds: &[&Kind]) -> Option<Vec<String>> {
    let literals = fields(value).zip(kinds).map(|(field, kind)| kind.literal(field?));
    let all: Vec<String> = literals.collect::<Option<_>>()?;
    (all.len() == kinds.len()).then_some(all)
}

/// Returns the condition that columns have one of these values.
pub fn any_of(columns: &[String], values: &[Vec<String>]) -> String {
    let one = |values: &[String]| match values {
        [only] => only.clone(),
        several => format!("({})", several.join(",")),
    };
    let values = values.iter().map(|values| one(values)).collect::<Vec<_>>().join(",");
    format!("{} IN ({values})", one(columns))
}

/// Reads the rows whose key has one of `values`.
pub fn fetch(
    source: &mut MariadbSource<'_>,
    scan: &Scan,
    by: usize,
    values: &[Box<[u8]>],
    text: &str,
    each: &mut dyn FnMut(Row<'_>),
) -> Result<(), SqlError> {
    let Some(key) = scan.keys.get(by) else { return Ok(()) };
    let layout = Layout::new(source, scan);
    let kinds = &source.known.tables[scan.table].kinds;
    let kinds: Vec<&Kind> = key.columns.iter().map(|&column| &kinds[column]).collect();
    let asked: Option<Vec<Vec<String>>> =
        values.iter().map(|value| literals(value, &kinds)).collect();
    let is_own = key.like == (scan.table, key.columns.clone()) && key.when.is_none();
    let asked = asked.filter(|_| is_own && layout.locator != Locator::Ordinal);
    let Some(asked) = asked else {
        let wanted: HashSet<&[u8]> = values.iter().map(AsRef::as_ref).collect();
        return self::scan(source, scan, text, &mut |row| {
            if row.keys.get(by).copied().flatten().is_some_and(|key| wanted.contains(key)) {
                each(row);
            }
        });
    };
    let columns: Vec<String> =
        key.columns.iter().map(|&column| column_name(source, scan.table, column)).collect();
    let from = layout.from(source, scan.table);
    for batch in asked.chunks(BATCH) {
        let (select, any) = (layout.columns.join(", "), any_of(&columns, batch));
        let query = format!("SELECT {select} FROM {from} WHERE {any}");
        read(source, &layout, scan, &query, text, each)?;
    }
    Ok(())
}
