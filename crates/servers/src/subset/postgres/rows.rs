//! Reads key columns of all rows of a table, or of those with certain values.

use std::io::BufReader;
use std::panic::resume_unwind;

use blockstone_subset::{Lot, Row, Scan};
use postgres::error::SqlState;
use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Row as Answer};

use super::copied::Tuples;
use super::types::{ColumnType, Kind};
use super::{PostgresSource, qualified, quoted};
use crate::sql::error::{During, SqlError};
use crate::subset::key_values::{KeyValues, fields};
use crate::subset::source::no_thread;

/// The planner's estimates for a join with a list ignore that its values are few and sorted.
const BY_INDEX: &str = "SET enable_hashjoin = off; SET enable_mergejoin = off";
const AS_BEFORE: &str = "RESET enable_hashjoin; RESET enable_mergejoin";

/// Rows between two reports of progress.
const TELL_ROWS: u64 = 1 << 16;
const BUFFER_BYTES: usize = 1 << 18;
/// From this number on, two connections look up values, each one half.
const SHARED_VALUES: usize = 2_000;

/// Returns the condition that the column, of type `own`, equals a value of the list, in a form that
/// can use an index if possible.
fn matches(column: &str, own: &ColumnType, like: &ColumnType, given: &str) -> String {
    match like.kind() {
        Kind::Integer => format!("{column} = {given}"),
        Kind::Uuid | Kind::Numeric => format!("{column} = {given}::{}", like.name),
        Kind::Text if like.name != "character" && own.is_own() => {
            format!("{column} = {given}::{}", like.name)
        }
        _ => format!("{} = {given}", like.compared(column, own)),
    }
}

/// Returns the condition that the column, as text, equals `is`.
pub fn condition(column: &str, own: &ColumnType, is: &str) -> String {
    format!("{} = {}", own.text(column), literal(is))
}

/// The text of a whole row of `t`.
const WHOLE: &str = "pg_catalog.textin(pg_catalog.record_out(t.*))";

/// Returns text as SQL, whatever the server's settings.
pub fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Returns the number that a row draws, computed by the hash functions of partitioning, which are
/// the same in all versions. Text is hashed by its bytes, whatever its collation. A row without
/// identifying columns is hashed column by column.
fn draw(source: &PostgresSource<'_>, table: usize, lot: Lot) -> String {
    let seed = format!("'{}'::bigint", lot.seed.cast_signed());
    let known = &source.catalogue.tables[table];
    let types = &source.known.tables[table].types;
    let name = |column: usize| format!("t.{}", quoted(&known.columns[column].name));
    if !known.identity.is_empty() {
        let columns = known.identity.iter();
        return columns.fold(seed, |drawn, &column| types[column].drawn(&name(column), &drawn));
    }
    if types.iter().any(|its| !its.has_text()) {
        return format!("hashtextextended({WHOLE} COLLATE \"C\", {seed})");
    }
    (0..types.len()).filter(|&column| !known.columns[column].generated).fold(
        seed,
        |drawn, column| {
            let hash = types[column].drawn(&name(column), "0");
            format!("hashint8extended(coalesce({hash}, 0), {drawn})")
        },
    )
}

/// Drawn numbers are signed in the server; flipping the sign bit keeps their order.
const SIGN: u64 = 1 << 63;

/// Returns the condition that a row wins.
pub fn wins(source: &PostgresSource<'_>, table: usize, lot: Lot) -> String {
    match lot.below {
        None => "true".to_owned(),
        Some(below) => {
            format!("{} < '{}'::bigint", draw(source, table, lot), (below ^ SIGN).cast_signed())
        }
    }
}

/// The selected columns, each once, and the positions of each key's columns among them.
pub struct Layout {
    columns: Vec<String>,
    keys: Vec<Vec<usize>>,
    drawn: Option<usize>,
    condition: Option<usize>,
    /// Condition for rows to be passed on; `None` passes all.
    only: Option<String>,
}

impl Layout {
    pub fn new(source: &PostgresSource<'_>, scan: &Scan) -> Self {
        let columns = vec!["t.ctid".to_owned()];
        let mut layout =
            Self { columns, keys: Vec::new(), drawn: None, condition: None, only: None };
        for key in &scan.keys {
            let places = if key.columns.is_empty() {
                vec![layout.place(format!("sha256(convert_to({WHOLE}, 'UTF8'))"))]
            } else {
                let name = |column: usize| {
                    let table = &source.catalogue.tables[scan.table];
                    format!("t.{}", quoted(&table.columns[column].name))
                };
                let types = &source.known.tables[scan.table].types;
                let when = key.when.as_ref();
                let when = when.map(|it| condition(&name(it.column), &types[it.column], &it.is));
                let compared = key.columns.iter().zip(&key.like.1).map(|(&column, like)| {
                    let like = &source.known.tables[key.like.0].types[*like];
                    let value = like.compared(&name(column), &types[column]);
                    match &when {
                        Some(when) => format!("CASE WHEN {when} THEN {value} END"),
                        None => value,
                    }
                });
                compared.map(|column| layout.place(column)).collect()
            };
            layout.keys.push(places);
        }
        if let Some(condition) = source.conditions[scan.table].as_ref().filter(|_| scan.filtered) {
            let condition = matching(source, scan.table, condition);
            layout.only = scan.seeds_only.then(|| condition.clone());
            layout.condition = Some(layout.place(condition));
        }
        if let Some(lot) = scan.lot {
            layout.only = scan.seeds_only.then(|| wins(source, scan.table, lot));
            layout.drawn = Some(layout.place(draw(source, scan.table, lot)));
        }
        layout
    }

    fn place(&mut self, column: String) -> usize {
        let known = self.columns.iter().position(|known| *known == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }
}

/// Returns the user's own condition. Columns whose types belong to other users are replaced by
/// their text, so that comparisons use no cast of such a type.
fn matching(source: &PostgresSource<'_>, table: usize, condition: &str) -> String {
    // The line break keeps a trailing comment from hiding what follows.
    let condition = format!("(({condition}\n) IS TRUE)");
    let types = &source.known.tables[table].types;
    if types.iter().all(ColumnType::is_trusted) {
        return condition;
    }
    let columns = source.catalogue.tables[table].columns.iter().zip(types);
    let columns = columns.map(|(column, its)| {
        let (own, name) = (format!("t.{}", quoted(&column.name)), quoted(&column.name));
        if its.is_trusted() { own } else { format!("{} AS {name}", its.text(&own)) }
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!("(SELECT {condition} FROM (SELECT {columns}) t)")
}

fn from(source: &PostgresSource<'_>, table: usize, part: usize) -> String {
    let part = &source.known.tables[table].parts[part];
    format!("ONLY {} t", qualified(&part.schema, &part.name))
}

pub fn scan_text(
    source: &PostgresSource<'_>,
    layout: &Layout,
    (table, part): (usize, usize),
) -> String {
    let (columns, from) = (layout.columns.join(", "), from(source, table, part));
    let only = layout.only.as_ref().map_or_else(String::new, |only| format!(" WHERE {only}"));
    format!("COPY (SELECT {columns} FROM {from}{only}) TO STDOUT (FORMAT binary)")
}

/// Bits of a row's place in its block, and bits of that and the block in its part. Adjacent rows
/// have adjacent numbers.
const PLACE_BITS: u32 = 14;
pub const PART_BITS: u32 = 32 + PLACE_BITS;

/// Returns the place of a row in its part.
pub fn place(block: u64, place: u64) -> u64 {
    block << PLACE_BITS | place
}

/// Returns the block, and the place in it.
pub fn ctid(locator: u64) -> (u64, u64) {
    (locator >> PLACE_BITS & 0xffff_ffff, locator & ((1 << PLACE_BITS) - 1))
}

/// Returns the locator of a row: partition, block, and place in the block.
fn locator(part: usize, ctid: Option<&[u8]>) -> Option<u64> {
    let ctid: [u8; 6] = ctid?.try_into().ok()?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
    let (block, offset) = (number(&ctid[..4]), number(&ctid[4..]));
    (offset >> PLACE_BITS == 0).then(|| (part as u64) << PART_BITS | place(block, offset))
}

/// Passes on a row with the given fields; the first is its place.
fn hand_over<'f>(
    values: &mut KeyValues,
    layout: &Layout,
    locator: u64,
    field: impl Fn(usize) -> Option<&'f [u8]>,
    each: &mut dyn FnMut(Row<'_>),
) {
    let matches = layout.condition.and_then(&field).is_some_and(|value| value == [1]);
    let drawn = layout.drawn.and_then(&field).and_then(|it| it.try_into().ok());
    let drawn = drawn.map(|drawn| u64::from_be_bytes(drawn) ^ SIGN);
    let keys = &values.of(&layout.keys, |at, out| field(at).map(|value| out.extend(value)));
    each(Row { locator, keys, drawn, matches });
}

pub fn io_error(what: &str, error: &std::io::Error) -> SqlError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
        Some(inner) => SqlError::statement(what, inner),
        None => SqlError::Statement {
            what: what.to_owned(),
            why: error.to_string(),
            hint: "see the server's log".to_owned(),
        },
    }
}

/// Explains why the server returns nothing, with a suitable hint.
fn refused(what: &str, filtered: bool, error: &postgres::Error) -> SqlError {
    let code = error.code().map_or("", SqlState::code);
    match SqlError::statement(what, error) {
        SqlError::Statement { what, why, .. } if code == "42501" => SqlError::Statement {
            what,
            why,
            hint: "name the owner of the table, or a user with BYPASSRLS".to_owned(),
        },
        SqlError::Statement { what, why, .. } if filtered && code.starts_with("42") => {
            SqlError::Statement { what, why, hint: "check the condition of --where".to_owned() }
        }
        other => other,
    }
}

pub fn scan(
    link: &mut Client,
    query: &str,
    name: &str,
    (layout, part): (&Layout, usize),
    tell: &mut dyn FnMut(u64) -> bool,
    each: &mut dyn FnMut(Row<'_>),
) -> Result<(), SqlError> {
    let what = format!("read the keys of {name}");
    let failed = |error: std::io::Error| io_error(&what, &error);
    let reader =
        link.copy_out(query).map_err(|error| refused(&what, layout.condition.is_some(), &error))?;
    let mut tuples = Tuples::new(BufReader::with_capacity(BUFFER_BYTES, reader)).map_err(failed)?;
    let mut keys = KeyValues::default();
    let mut untold = 0;
    while tuples.read().map_err(failed)? {
        let Some(locator) = locator(part, tuples.field(0)) else { continue };
        hand_over(&mut keys, layout, locator, |at| tuples.field(at), each);
        untold += 1;
        if untold == TELL_ROWS {
            if !tell(untold) {
                return Err(SqlError::Interrupted);
            }
            untold = 0;
        }
    }
    tell(untold);
    Ok(())
}

/// The bytes of a field of any type.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn raw(answer: &Answer, at: usize) -> Option<&[u8]> {
    answer.try_get::<_, Option<Raw<'_>>>(at).ok().flatten().map(|raw| raw.0)
}

/// Values of one column of a key, as a parameter.
#[derive(Debug)]
enum List {
    Integers(Vec<i64>),
    Texts(Vec<String>),
}

impl List {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            _ => Self::Texts(Vec::new()),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Integers(_) => "bigint[]",
            Self::Texts(_) => "text[]",
        }
    }

    fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Integers(list) => list,
            Self::Texts(list) => list,
        }
    }

    /// Splits off the values from `at` on.
    fn split_off(&mut self, at: usize) -> Self {
        match self {
            Self::Integers(list) => Self::Integers(list.split_off(at)),
            Self::Texts(list) => Self::Texts(list.split_off(at)),
        }
    }
}

/// Returns the values of a key, as one list for each of its columns.
fn lists(values: &[Box<[u8]>], kinds: &[Kind]) -> (Vec<List>, usize) {
    let mut lists: Vec<List> = kinds.iter().map(|&kind| List::new(kind)).collect();
    let mut count = 0;
    for value in values {
        let all: Option<Vec<&[u8]>> = fields(value).collect();
        let Some(all) = all.filter(|all| all.len() == kinds.len()) else { continue };
        let is_valid = |(field, kind): (&&[u8], &Kind)| match kind {
            Kind::Integer => field.len() == size_of::<i64>(),
            Kind::Uuid => field.len() == size_of::<u128>(),
            _ => std::str::from_utf8(field).is_ok(),
        };
        if !all.iter().zip(kinds).all(is_valid) {
            continue;
        }
        count += 1;
        for ((list, field), kind) in lists.iter_mut().zip(all).zip(kinds) {
            let number = |bytes: &[u8]| bytes.iter().fold(0, |all, &it| all << 8 | u128::from(it));
            match list {
                List::Integers(list) => list.push((number(field) as u64).cast_signed()),
                List::Texts(list) if *kind == Kind::Uuid => {
                    list.push(format!("{:032x}", number(field)));
                }
                List::Texts(list) => list.push(String::from_utf8_lossy(field).into_owned()),
            }
        }
    }
    (lists, count)
}

/// A query for the rows that have one of some values.
struct ByKey {
    text: String,
    /// Whether to find each row by an index.
    has_index: bool,
    lists: Vec<List>,
    what: String,
}

impl ByKey {
    fn ask(&self, link: &mut Client) -> Result<Vec<Answer>, SqlError> {
        let parameters: Vec<_> = self.lists.iter().map(List::parameter).collect();
        if self.has_index {
            link.batch_execute(BY_INDEX).during(&self.what)?;
        }
        let answers = link.query(&self.text, &parameters).during(&self.what)?;
        if self.has_index {
            link.batch_execute(AS_BEFORE).during(&self.what)?;
        }
        Ok(answers)
    }

    /// Splits off the values from `at` on.
    fn split_off(&mut self, at: usize) -> Self {
        Self {
            text: self.text.clone(),
            has_index: self.has_index,
            lists: self.lists.iter_mut().map(|list| list.split_off(at)).collect(),
            what: self.what.clone(),
        }
    }
}

/// Reads the rows of one part of a table whose key has one of `values`. Many values are shared with
/// another connection.
pub fn fetch(
    source: &mut PostgresSource<'_>,
    scan: &Scan,
    by: usize,
    values: &[Box<[u8]>],
    part: usize,
    each: &mut dyn FnMut(Row<'_>),
) -> Result<(), SqlError> {
    let Some(key) = scan.keys.get(by) else { return Ok(()) };
    let table = &source.catalogue.tables[scan.table];
    let likes = key.like.1.iter().map(|&like| &source.known.tables[key.like.0].types[like]);
    let likes: Vec<&ColumnType> = likes.collect();
    let kinds: Vec<Kind> = likes.iter().map(|like| like.kind()).collect();
    let (lists, count) = lists(values, &kinds);
    let given = lists.iter().enumerate();
    let given = given.map(|(at, list)| format!("${}::{}", at + 1, list.type_name()));
    let given = given.collect::<Vec<_>>().join(", ");
    let names: Vec<String> = (1..=lists.len()).map(|at| format!("v{at}")).collect();
    let types = &source.known.tables[scan.table].types;
    let equal = key.columns.iter().zip(&likes).zip(&names).map(|((&column, like), name)| {
        let place = format!("t.{}", quoted(&table.columns[column].name));
        matches(&place, &types[column], like, &format!("w.{name}"))
    });
    let equal = equal.collect::<Vec<_>>().join(" AND ");
    let is_same = |unique: &Vec<usize>| unique.iter().all(|column| key.columns.contains(column));
    let layout = Layout::new(source, scan);
    let text = format!(
        "SELECT {} FROM unnest({given}) AS w({}) JOIN {} ON {equal}",
        layout.columns.join(", "),
        names.join(", "),
        from(source, scan.table, part),
    );
    let mut own = ByKey {
        text,
        has_index: table.unique.iter().any(is_same),
        lists,
        what: format!("read rows of {} by key", table.name),
    };
    let mut other = None;
    if own.has_index
        && count >= SHARED_VALUES
        && let Some(mut link) = source.other_link()?
    {
        let half = own.split_off(count / 2);
        let ask = move || half.ask(&mut link).map(|answers| (link, answers));
        let thread = blockstone_sys::thread::spawn("rows by key", ask);
        other = Some(thread.map_err(|error| no_thread(&error))?);
    }
    let mut keys = KeyValues::default();
    let mut hand_over_all = |answers: Vec<Answer>| {
        for answer in answers {
            let Some(locator) = locator(part, raw(&answer, 0)) else { continue };
            hand_over(&mut keys, &layout, locator, |at| raw(&answer, at), each);
        }
    };
    let asked = own.ask(&mut source.link);
    let other = other.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    hand_over_all(asked?);
    if let Some(other) = other {
        let (link, answers) = other?;
        source.spare = Some(link);
        hand_over_all(answers);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_of_the_types_of_their_columns() {
        let mut bytes = Vec::new();
        for field in [&(-7_i64).to_be_bytes()[..], &[0xab; 16], b"a'"] {
            bytes.extend((field.len() as u32).to_be_bytes());
            bytes.extend(field);
        }
        let broken = bytes[..bytes.len() - 1].into();
        let kinds = [Kind::Integer, Kind::Uuid, Kind::Text];
        let (mut all, count) = lists(&[bytes.clone().into(), broken, bytes.into()], &kinds);
        assert_eq!(count, 2);
        let rest: Vec<List> = all.iter_mut().map(|list| list.split_off(1)).collect();
        for lists in [all, rest] {
            let [List::Integers(numbers), List::Texts(ids), List::Texts(texts)] = &lists[..] else {
                panic!("{lists:?}")
            };
            assert_eq!((numbers[..].to_vec(), &texts[0][..]), (vec![-7], "a'"));
            assert_eq!(ids[0], "ab".repeat(16));
        }
    }

    #[test]
    fn a_value_cannot_leave_its_literal() {
        assert_eq!(literal("Po'st\\"), "E'Po''st\\\\'");
    }
}
