//! PostgreSQL 13 and later as a source and a destination of subsets. The source is only read, in
//! one snapshot.

mod catalogue;
pub mod copied;
mod dump;
mod expected;
mod export;
mod large;
mod load;
mod rights;
mod rows;
mod script;
mod trust;
mod types;

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::postgres::Client;
use blockstone_subset::{Catalogue, CatalogueError, Plan, Row, Scan, Source, Transform};
use blockstone_sys::held::HeldDir;

use crate::postgres::VERSION_MIN;
use crate::postgres::address::Address;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::sql::host::ServerAddress;
use crate::subset::manifest::Sequence;
use crate::subset::source::{Expected, Exported, SubsetSource, Tell, named, no_thread};
use catalogue::Known;
use dump::Dumping;
pub use load::{load, write_script};
use trust::Relations;

/// Values are compared as text, which must not depend on the server's settings. The planner
/// evaluates no expressions of CHECK constraints.
const SETTINGS: &str = "
    SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET row_security = off; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres';
    SET TimeZone = 'UTC'; SET extra_float_digits = 3; SET bytea_output = 'hex'; SET jit = off;
    SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0;
    SET constraint_exclusion = off; SET enable_seqscan = on;
    SET parallel_tuple_cost = 0.001";
/// Rows that sequential scans of this transaction have read from these relations.
const RETURNED: &str = "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::bigint, \
    current_setting('track_counts')::bool FROM unnest($1::oid[]) oid";
/// Objects that do not come with the rows, by the first column of `left_out.sql`.
const LEFT_OUT: &str = include_str!("../../sql/subset/postgres/left_out.sql");
const LEFT_OUT_WORDS: [(&str, &str); 6] = [
    ("foreign", "Foreign tables, whose rows are on other servers, come without rows"),
    ("extension", "Tables of extensions come with the rows that CREATE EXTENSION makes"),
    ("key", "Keys to tables of extensions are not followed"),
    ("view", "Materialised views are empty until they are refreshed"),
    ("trigger", "Event triggers are not taken"),
    ("mapping", "User mappings of foreign servers are not taken"),
];
const NO_CODE: &str = "a superuser's extension may have such a type; or drop the key";
const SAME_TYPE: &str = "give both columns the same type of the server, or drop the key";
/// Partitions counted by one statement.
const COUNTED_PARTS: usize = 500;
/// Rows then come in any order.
const PARALLEL: &str = "RESET max_parallel_workers_per_gather";
const NOT_PARALLEL: &str = "SET max_parallel_workers_per_gather = 0";
const LOOK: Duration = Duration::from_millis(10);
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// A database as seen by one snapshot.
pub struct PostgresSource<'a> {
    address: Address,
    link: Client,
    /// The snapshot's name for other connections; `None` if the server exports no snapshot.
    snapshot: Option<String>,
    release: String,
    version: u32,
    known: Known,
    catalogue: Catalogue,
    conditions: Vec<Option<String>>,
    /// Notes on what does not come with the rows.
    left_out: Vec<String>,
    counting: Option<Counting>,
    /// The rows of a table that was just read whole.
    counted: Option<(usize, u64)>,
    /// The last connection used for counting or for rows by key.
    spare: Option<Client>,
    /// The schema, while it is dumped.
    dumping: Option<Dumping>,
    tell: &'a mut Tell<'a>,
}

/// Parses an address that begins with `postgres:`.
fn parse(address: &str) -> Result<Address, SqlError> {
    let (_, rest) = address.split_once(':').unwrap_or((address, ""));
    Address::parse(rest)
}

fn connect(address: &Address) -> Result<(Client, u32, String), SqlError> {
    address.within_limit(|| admitted(address))
}

/// Opens and sets up a connection; returns it with the server's major version and release.
fn admitted(address: &Address) -> Result<(Client, u32, String), SqlError> {
    let mut link = address.connect()?;
    link.batch_execute(SETTINGS).during("set up the session")?;
    let ask = "SELECT current_setting('server_version_num')::int, \
               current_setting('server_version')";
    let row = link.query_one(ask, &[]).during("query its version")?;
    let version = u32::try_from(value::<i32>(&row, 0)?).unwrap_or(0) / 10_000;
    let release: String = value(&row, 1)?;
    if version < VERSION_MIN {
        let hint = format!("PostgreSQL {VERSION_MIN} and later are supported");
        let why = format!("it is version {release}");
        return Err(SqlError::unsuitable(&address.name, why, hint));
    }
    Ok((link, version, release))
}

impl<'a> PostgresSource<'a> {
    /// Connects, takes a snapshot, and reads the catalogue of tables and keys.
    pub fn open(address: &str, tell: &'a mut Tell<'a>) -> Result<Self, SqlError> {
        let address = parse(address)?;
        let (mut link, version, release) = connect(&address)?;
        trust::read_tables_only(&mut link)?;
        let relations = Relations::list(&mut link, &address.name)?;
        relations.begin(&mut link)?;
        let exported = link.query_one("SELECT pg_export_snapshot()", &[]);
        let snapshot = match exported {
            Ok(row) => Some(value::<String>(&row, 0)?),
            Err(error) if error.as_db_error().is_some() => {
                link.batch_execute("ROLLBACK").during("begin a snapshot")?;
                relations.begin(&mut link)?;
                None
            }
            Err(error) => Err(SqlError::statement("export a snapshot", &error))?,
        };
        let (known, catalogue) = catalogue::read(&mut link, &address.name)?;
        relations.check(&mut link, &known.relations)?;
        let conditions = vec![None; catalogue.tables.len()];
        let left_out = left_out(&mut link)?;
        Ok(Self {
            address,
            link,
            snapshot,
            release,
            version,
            known,
            catalogue,
            conditions,
            left_out,
            counting: None,
            counted: None,
            spare: None,
            dumping: None,
            tell,
        })
    }

    /// Whether other connections can read the same snapshot.
    pub fn is_parallel(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Returns another connection to the same snapshot, if the server exports it.
    fn other_link(&mut self) -> Result<Option<Client>, SqlError> {
        match (self.spare.take(), &self.snapshot) {
            (Some(link), _) => Ok(Some(link)),
            (None, Some(snapshot)) => export::open(&self.address, Some(snapshot)).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Counts the rows on another connection while they are read, so that both find the same pages
    /// in the server's cache.
    fn start_counting(&mut self, table: usize) -> Result<(), SqlError> {
        let Some(snapshot) = self.snapshot.clone() else { return Ok(()) };
        let (address, texts, spare) =
            (self.address.clone(), self.count_texts(table), self.spare.take());
        let count = move || {
            let mut link = match spare {
                Some(link) => link,
                None => export::open(&address, Some(&snapshot))?,
            };
            link.batch_execute(PARALLEL).during("set up the session")?;
            let rows = counted(&mut link, &texts)?;
            Ok((link, rows))
        };
        let thread =
            blockstone_sys::thread::spawn("count", count).map_err(|error| no_thread(&error))?;
        self.counting = Some((table, thread));
        Ok(())
    }

    /// Checks that values of these columns of a table can be compared without code of users.
    fn check_text(&self, table: usize, columns: &[usize]) -> Result<(), SqlError> {
        let types = &self.known.tables[table].types;
        match columns.iter().find(|&&column| !types[column].has_text()) {
            None => Ok(()),
            Some(&column) => {
                let why = "has a type with code of users";
                Err(self.refused(table, column, why, NO_CODE))
            }
        }
    }

    fn refused(&self, table: usize, column: usize, why: &str, hint: &str) -> SqlError {
        let of = &self.catalogue.tables[table];
        SqlError::unsuitable(
            &self.address.name,
            format!(
                "the column {} of {}, by which rows are found, {why} ({})",
                of.columns[column].name, of.name, self.known.tables[table].types[column].name
            ),
            hint,
        )
    }

    /// Returns the rows that this transaction has read sequentially from a table; `None` if the
    /// server does not count them.
    fn returned(&mut self, table: usize) -> Result<Option<u64>, SqlError> {
        let parts = &self.known.tables[table].parts;
        if parts.iter().any(|part| !part.is_heap) {
            return Ok(None);
        }
        let oids: Vec<u32> = parts.iter().map(|part| part.oid).collect();
        let row = self.link.query_one(RETURNED, &[&oids]).during("look at the rows read")?;
        let is_counted: bool = value(&row, 1)?;
        Ok(Some(value::<i64>(&row, 0)?.cast_unsigned()).filter(|_| is_counted))
    }

    /// Whether a scan reads each row of its table in sequence, and little else takes time.
    fn is_plain(&self, scan: &Scan) -> bool {
        let identity = &self.catalogue.tables[scan.table].identity;
        let types = &self.known.tables[scan.table].types;
        scan.lot.is_some()
            && !identity.is_empty()
            && identity.iter().all(|&column| types[column].is_drawn_fast())
    }

    /// Returns statements whose answers add up to the rows of a table; none for a partitioned one
    /// without partitions.
    fn count_texts(&self, table: usize) -> Vec<String> {
        let part = |part: &catalogue::TableRelation| {
            format!("(SELECT count(*) FROM ONLY {})", qualified(&part.schema, &part.name))
        };
        let sum = |parts: &[catalogue::TableRelation]| {
            format!("SELECT {}", parts.iter().map(part).collect::<Vec<_>>().join(" + "))
        };
        self.known.tables[table].parts.chunks(COUNTED_PARTS).map(sum).collect()
    }

    fn told(&mut self, text: &str, rows: u64) -> Result<(), SqlError> {
        if (self.tell)(text, rows, None) { Ok(()) } else { Err(SqlError::Interrupted) }
    }
}

impl SubsetSource for PostgresSource<'_> {
    fn name(&self) -> &str {
        &self.address.name
    }

    fn product(&self) -> String {
        format!("PostgreSQL {}", self.release)
    }

    fn names(&self, table: usize) -> (&str, &str, bool) {
        let known = &self.known.tables[table];
        (&known.schema, &known.name, known.partitioned)
    }

    fn add_keys(&mut self, text: &str, what: &str) -> Result<(), CatalogueError> {
        blockstone_subset::virtual_keys::add(&mut self.catalogue, text, what)
    }

    fn set_condition(&mut self, table: usize, condition: &str) {
        if let Some(place) = self.conditions.get_mut(table) {
            *place = Some(condition.to_owned());
        }
    }

    fn set_null(&mut self, table: usize, columns: &[usize]) {
        if let Some(table) = self.catalogue.tables.get_mut(table) {
            table.nulled.extend(columns);
        }
    }

    fn prove(&self) -> Result<(), SqlError> {
        for (table, known) in self.catalogue.tables.iter().enumerate() {
            self.check_text(table, &known.identity)?;
            if self.conditions[table].is_some() {
                let types = self.known.tables[table].types.iter().enumerate();
                let others = types.filter(|(_, its)| !its.is_trusted()).map(|(at, _)| at);
                self.check_text(table, &others.collect::<Vec<_>>())?;
            }
        }
        for key in &self.catalogue.keys {
            self.check_text(key.table, &key.columns)?;
            self.check_text(key.references, &key.referenced)?;
            if let Some(when) = &key.when {
                self.check_text(key.table, &[when.column])?;
            }
            for (&own, &other) in key.columns.iter().zip(&key.referenced) {
                let like = &self.known.tables[key.references].types[other];
                if let Some(why) = like.refusal(&self.known.tables[key.table].types[own]) {
                    return Err(self.refused(key.table, own, &why, SAME_TYPE));
                }
            }
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let never = "Owners, privileges, publications and subscriptions are not taken.";
        [never.to_owned()].into_iter().chain(self.left_out.iter().cloned()).collect()
    }

    fn start_dump(&mut self) -> Result<(), SqlError> {
        Self::start_dump(self)
    }

    fn dump_schema(&mut self, dir: &HeldDir) -> Result<(), SqlError> {
        Self::dump_schema(self, dir)
    }

    fn sequences(&mut self) -> Result<Vec<Sequence>, SqlError> {
        Self::sequences(self)
    }

    fn expect(&mut self, plan: &Plan, readers: usize) -> Result<Option<Expected>, SqlError> {
        Self::expect(self, plan, readers).map(Some)
    }

    fn export(
        &mut self,
        plan: &Plan,
        dir: &HeldDir,
        readers: usize,
        transform: Option<&dyn Transform>,
    ) -> Result<Exported, SqlError> {
        Self::export(self, plan, dir, readers, transform)
    }
}

/// A table, and a thread that counts its rows on another connection to the same snapshot.
type Counting = (usize, JoinHandle<Result<(Client, u64), SqlError>>);

fn counted(link: &mut Client, texts: &[String]) -> Result<u64, SqlError> {
    let mut rows = 0_u64;
    for text in texts {
        let row = link.query_one(text, &[]).during("count the rows of a table")?;
        rows = rows.saturating_add(value::<i64>(&row, 0)?.cast_unsigned());
    }
    Ok(rows)
}

/// Returns notes on what does not come with the rows.
fn left_out(link: &mut Client) -> Result<Vec<String>, SqlError> {
    let mut names: HashMap<String, Vec<String>> = HashMap::new();
    for row in link.query(LEFT_OUT, &[]).during("look for what is left out")? {
        names.entry(value(&row, 0)?).or_default().push(value(&row, 1)?);
    }
    let note = |(kind, words): (&str, &str)| named(words, names.get(kind)?);
    Ok(LEFT_OUT_WORDS.into_iter().filter_map(note).collect())
}

impl Source for PostgresSource<'_> {
    type Error = SqlError;

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn draws(&self) -> bool {
        true
    }

    fn count(&mut self, table: usize) -> Result<u64, SqlError> {
        let text = format!("rows of {} counted", self.catalogue.tables[table].name);
        if let Some((_, rows)) = self.counted.take().filter(|(counted, _)| *counted == table) {
            return Ok(rows);
        }
        if let Some((counted, thread)) = self.counting.take() {
            while !thread.is_finished() {
                thread::sleep(LOOK);
                self.told(&text, 0)?;
            }
            let (link, rows) = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            self.spare = Some(link);
            if counted == table {
                return Ok(rows);
            }
        }
        self.told(&text, 0)?;
        let counts = self.count_texts(table);
        self.link.batch_execute(PARALLEL).during("set up the session")?;
        let rows = counted(&mut self.link, &counts)?;
        self.link.batch_execute(NOT_PARALLEL).during("set up the session")?;
        Ok(rows)
    }

    fn scan(&mut self, scan: &Scan, each: &mut dyn FnMut(Row<'_>)) -> Result<(), SqlError> {
        let name = self.catalogue.tables[scan.table].name.clone();
        let text = format!("keys of {name}");
        self.told(&text, 0)?;
        // The server counts the rows of a scan by a single process as it reads them.
        let is_plain = scan.seeds_only && self.is_plain(scan);
        let before = if is_plain { self.returned(scan.table)? } else { None };
        let is_shared = scan.seeds_only && before.is_none();
        if is_shared {
            self.start_counting(scan.table)?;
            self.link.batch_execute(PARALLEL).during("set up the session")?;
        }
        let mut rows = 0;
        let of = self.catalogue.tables[scan.table].estimated_rows.filter(|_| !scan.seeds_only);
        let layout = rows::Layout::new(self, scan);
        for part in 0..self.known.tables[scan.table].parts.len() {
            let query = rows::scan_text(self, &layout, (scan.table, part));
            let mut tell = |more: u64| {
                rows += more;
                (self.tell)(&text, rows, of)
            };
            rows::scan(&mut self.link, &query, &name, (&layout, part), &mut tell, each)?;
        }
        if is_shared {
            self.link.batch_execute(NOT_PARALLEL).during("set up the session")?;
        } else if let Some(before) = before {
            let read = self.returned(scan.table)?.and_then(|after| after.checked_sub(before));
            self.counted = read.filter(|read| *read >= rows).map(|read| (scan.table, read));
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        scan: &Scan,
        by: usize,
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), SqlError> {
        let name = self.catalogue.tables[scan.table].name.clone();
        self.told(&format!("rows of {name} by key"), values.len() as u64)?;
        for part in 0..self.known.tables[scan.table].parts.len() {
            rows::fetch(self, scan, by, values, part, each)?;
        }
        Ok(())
    }
}

/// Quotes a name for SQL, whatever its characters.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(name))
}
