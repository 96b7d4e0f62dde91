//! Writes the rows of a plan to files, with several readers of one snapshot.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::postgres::Client;
use blockstone_subset::{Locators, Plan, Rows, Transform};
use blockstone_sys::held::HeldDir;
use blockstone_sys::thread::scoped;
use parking_lot::Mutex;

use super::rows::{self, PART_BITS, ctid, io_error, wins};
use super::{BEGIN, PostgresSource, SETTINGS, qualified, quoted, trust};
use crate::postgres::address::Address;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::sql::host::ServerAddress;
use crate::subset::manifest::{DataFile, Sequence, file_error};
use crate::subset::source::{Exported, make_data, no_thread};

const SEQUENCES: &str = include_str!("../../../sql/subset/postgres/sequences.sql");
/// Rows per query.
const BATCH: usize = 10_000;
/// If more than this share of a table's rows is needed, the whole table is read.
const SHARE_BY_PLACE: f64 = 0.12;
const BUFFER_BYTES: usize = 1 << 18;
const LOOK: Duration = Duration::from_millis(5);

/// Rows of one table or partition to write.
pub struct Job<'a> {
    pub table: usize,
    pub relation: String,
    entry: DataFile,
    /// The columns of the entry, in SQL.
    columns: Vec<String>,
    pub rows: Wanted<'a>,
}

impl Job<'_> {
    /// Returns the query for all rows.
    pub fn select(&self) -> String {
        format!("SELECT {} FROM ONLY {} t", self.columns.join(", "), self.relation)
    }

    /// The same, with the place of each row before its columns.
    pub fn select_with_places(&self) -> String {
        let columns = ["t.ctid"].into_iter().chain(self.columns.iter().map(String::as_str));
        let columns = columns.collect::<Vec<_>>().join(", ");
        format!("SELECT {columns} FROM ONLY {} t", self.relation)
    }
}

pub enum Wanted<'a> {
    All,
    /// Rows that satisfy this condition.
    Where(String),
    /// Rows of a part, fetched individually by place.
    Few(&'a Locators, usize),
    /// Rows of a part, filtered while all are read.
    Many(&'a Locators, usize),
}

/// State shared by the readers.
struct Shared<'a> {
    /// The data directory.
    dir: &'a HeldDir,
    transform: Option<&'a dyn Transform>,
    jobs: &'a [Job<'a>],
    /// Positions of the jobs, those that take longest first.
    order: Vec<usize>,
    next: AtomicUsize,
    rows: AtomicU64,
    ended: AtomicBool,
    done: Mutex<Vec<(usize, DataFile)>>,
    failed: Mutex<Option<SqlError>>,
}

impl Shared<'_> {
    /// Processes one job after the other.
    fn work(&self, link: &mut Client) -> Result<(), SqlError> {
        while !self.ended.load(Ordering::Relaxed) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&at) = self.order.get(next) else { break };
            let Some(job) = self.jobs.get(at) else { break };
            let entry = write(link, job, self)?;
            self.done.lock().push((at, entry));
        }
        Ok(())
    }

    /// Keeps the first error, which stops all readers.
    fn keep(&self, done: Result<(), SqlError>) {
        if let Err(error) = done {
            self.ended.store(true, Ordering::Relaxed);
            self.failed.lock().get_or_insert(error);
        }
    }
}

impl PostgresSource<'_> {
    pub fn jobs<'p>(&self, plan: &'p Plan) -> Vec<Job<'p>> {
        let mut jobs = Vec::new();
        for (table, known) in self.known.tables.iter().enumerate() {
            let of = &self.catalogue.tables[table];
            let written = of.columns.iter().enumerate().filter(|(_, column)| !column.generated);
            let columns: Vec<String> = written.clone().map(|(_, it)| it.name.clone()).collect();
            let selected = written.map(|(at, column)| {
                let name = format!("t.{}", quoted(&column.name));
                if of.nulled.contains(&at) { "NULL".to_owned() } else { name }
            });
            let selected: Vec<String> = selected.collect();
            for (at, part) in known.parts.iter().enumerate() {
                let rows = match &plan.tables[table].rows {
                    Rows::All => Wanted::All,
                    Rows::Winning(_, lot) => Wanted::Where(wins(self, table, *lot)),
                    Rows::At(rows) => {
                        let all = plan.tables[table].source_rows as f64;
                        let is_few = (rows.len() as f64) < all * SHARE_BY_PLACE;
                        let has_none = rows.range(places(at)).next().is_none();
                        if is_few || has_none {
                            Wanted::Few(rows, at)
                        } else {
                            Wanted::Many(rows, at)
                        }
                    }
                };
                let is_plain = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
                let name = format!("{}.{}", part.schema, part.name);
                let name: String =
                    name.chars().take(100).map(|it| if is_plain(it) { it } else { '_' }).collect();
                jobs.push(Job {
                    table,
                    relation: qualified(&part.schema, &part.name),
                    entry: DataFile {
                        schema: part.schema.clone(),
                        name: part.name.clone(),
                        columns: columns.clone(),
                        hex: Vec::new(),
                        bits: Vec::new(),
                        file: format!("{:05}.{name}.copy", jobs.len() + 1),
                        rows: 0,
                        bytes: 0,
                    },
                    columns: selected.clone(),
                    rows,
                });
            }
        }
        jobs
    }

    /// Writes the rows of `plan` to the data directory in `dir`.
    pub fn export(
        &mut self,
        plan: &Plan,
        dir: &HeldDir,
        readers: usize,
        transform: Option<&dyn Transform>,
    ) -> Result<Exported, SqlError> {
        let data = make_data(dir)?;
        let jobs = self.jobs(plan);
        let readers = if self.is_parallel() { readers.clamp(1, jobs.len().max(1)) } else { 1 };
        let shared = Shared {
            dir: &data,
            transform,
            jobs: &jobs,
            order: order(&jobs, plan),
            next: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            done: Mutex::new(Vec::new()),
            failed: Mutex::new(None),
        };
        let (address, snapshot) = (&self.address, self.snapshot.as_deref());
        let (link, tell) = (&mut self.link, &mut self.tell);
        thread::scope(|scope| {
            let other =
                || shared.keep(open(address, snapshot).and_then(|mut it| shared.work(&mut it)));
            let own = scoped(scope, "reader", || shared.keep(shared.work(link)));
            let others = (1..readers).map(|_| scoped(scope, "reader", other));
            let mut threads = Vec::with_capacity(readers);
            for thread in [own].into_iter().chain(others) {
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => shared.keep(Err(no_thread(&error))),
                }
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                thread::sleep(LOOK);
                if !tell("rows", shared.rows.load(Ordering::Relaxed), Some(plan.rows())) {
                    shared.keep(Err(SqlError::Interrupted));
                }
            }
        });
        if let Some(error) = shared.failed.into_inner() {
            return Err(error);
        }
        let mut files = shared.done.into_inner();
        files.sort_by_key(|(at, _)| *at);
        self.check(plan, &jobs, &files)?;
        let files: Vec<(usize, DataFile)> =
            files.into_iter().map(|(at, file)| (jobs[at].table, file)).collect();
        let large_objects = self.large_objects(&data, &files)?;
        let files = files.into_iter().map(|(_, file)| file).collect();
        Ok(Exported { files, large_objects, readers })
    }

    /// Checks that all rows of the plan were written.
    fn check(
        &self,
        plan: &Plan,
        jobs: &[Job<'_>],
        files: &[(usize, DataFile)],
    ) -> Result<(), SqlError> {
        for (table, planned) in plan.tables.iter().enumerate() {
            let own = files.iter().filter(|(at, _)| jobs[*at].table == table);
            let rows: u64 = own.map(|(_, file)| file.rows).sum();
            if rows != planned.rows() {
                return Err(SqlError::Statement {
                    what: format!("read the rows of {}", self.catalogue.tables[table].name),
                    why: format!("{rows} came, {} were planned", planned.rows()),
                    hint: "please report it, with the schema of the table".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Returns the current values of the sequences.
    pub fn sequences(&mut self) -> Result<Vec<Sequence>, SqlError> {
        let mut all = Vec::new();
        for row in self.link.query(SEQUENCES, &[]).during("list the sequences")? {
            let (schema, name): (String, String) = (value(&row, 0)?, value(&row, 1)?);
            let relation = qualified(&schema, &name);
            if !value::<bool>(&row, 2)? {
                return Err(SqlError::unsuitable(
                    &self.address.name,
                    format!("this user may not read the sequence {relation}"),
                    format!("GRANT SELECT ON SEQUENCE {relation} TO this user"),
                ));
            }
            self.hold_sequence(value(&row, 3)?, &relation)?;
            let ask = format!("SELECT last_value, is_called FROM {relation}");
            let row = self.link.query_one(&ask, &[]).during("read a sequence")?;
            let (last_value, is_called) = (value(&row, 0)?, value(&row, 1)?);
            all.push(Sequence { schema, name, last_value, is_called });
        }
        Ok(all)
    }
}

impl PostgresSource<'_> {
    /// Locks this sequence until the end of the transaction, and checks that the name still refers
    /// to it.
    fn hold_sequence(&mut self, oid: u32, relation: &str) -> Result<(), SqlError> {
        const LOCK: &str = "SELECT pg_sequence_last_value($1::oid) WHERE NOT pg_is_in_recovery()";
        const LOOK: &str = "SELECT to_regclass($1)::oid = $2";
        self.link.query_opt(LOCK, &[&oid]).during("lock a sequence")?;
        let row = self.link.query_one(LOOK, &[&relation, &oid]).during("look for a sequence")?;
        if value::<Option<bool>>(&row, 0)? == Some(true) {
            return Ok(());
        }
        let why = format!("{relation} was changed meanwhile");
        Err(SqlError::unsuitable(&self.address.name, why, "take the subset again"))
    }
}

/// Returns the positions of jobs by the rows that they read, most first.
fn order(jobs: &[Job<'_>], plan: &Plan) -> Vec<usize> {
    let rows = |job: &Job<'_>| match &job.rows {
        Wanted::Few(rows, part) => rows.range(places(*part)).count() as u64,
        Wanted::All | Wanted::Where(_) | Wanted::Many(..) => plan.tables[job.table].source_rows,
    };
    let mut order: Vec<(u64, usize)> = jobs.iter().map(rows).zip(0..).collect();
    order.sort_by_key(|&(rows, at)| (std::cmp::Reverse(rows), at));
    order.into_iter().map(|(_, at)| at).collect()
}

/// Opens another connection to the same snapshot.
pub fn open(address: &Address, snapshot: Option<&str>) -> Result<Client, SqlError> {
    let mut link = address.connect()?;
    link.batch_execute(SETTINGS).during("set up the session")?;
    trust::read_tables_only(&mut link)?;
    let snapshot = snapshot.unwrap_or_default().replace('\'', "''");
    let begin = format!("{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'");
    link.batch_execute(&begin).during("read the same snapshot")?;
    Ok(link)
}

fn write(link: &mut Client, job: &Job<'_>, shared: &Shared<'_>) -> Result<DataFile, SqlError> {
    let path = shared.dir.path().join(&job.entry.file);
    let file = shared.dir.create_new(Path::new(&job.entry.file));
    let file = file.map_err(|error| file_error(&path, error))?;
    let output = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut written = Written { job, shared, path, output, rows: 0, bytes: 0 };
    match &job.rows {
        Wanted::All => written.copy(link, &copy(&job.select()))?,
        Wanted::Where(condition) => {
            written.copy(link, &copy(&format!("{} WHERE {condition}", job.select())))?;
        }
        Wanted::Many(..) => written.copy(link, &copy(&job.select_with_places()))?,
        Wanted::Few(rows, part) => {
            let mut all = rows.range(places(*part));
            loop {
                let batch: Vec<u64> = all.by_ref().take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                let query = format!("{} WHERE {}", job.select(), is_at(&batch));
                written.copy(link, &copy(&query))?;
            }
        }
    }
    written.finish()
}

pub fn copy(select: &str) -> String {
    format!("COPY ({select}) TO STDOUT")
}

/// Returns the condition that a row is at one of these places.
pub fn is_at(places: &[u64]) -> String {
    let place = |row: &u64| {
        let (block, place) = ctid(*row);
        format!("\"({block},{place})\"")
    };
    let places = places.iter().map(place).collect::<Vec<_>>().join(",");
    format!("t.ctid = ANY ('{{{places}}}'::tid[])")
}

/// Splits `(block,place)` off a line; the rest is the row's own fields.
fn split_place(line: &[u8]) -> Option<(u64, &[u8])> {
    let end = line.iter().position(|&byte| byte == b')')?;
    let text = std::str::from_utf8(line.get(1..end)?).ok()?;
    let (block, place) = text.split_once(',')?;
    let place = rows::place(block.parse().ok()?, place.parse().ok()?);
    let rest = &line[end + 1..];
    Some((place, rest.strip_prefix(b"\t").unwrap_or(rest)))
}

/// Returns the range of places of a part.
pub fn places(part: usize) -> Range<u64> {
    let begin = |part: usize| (part as u64) << PART_BITS;
    begin(part)..begin(part + 1)
}

/// The output file of a job.
struct Written<'a> {
    job: &'a Job<'a>,
    shared: &'a Shared<'a>,
    path: PathBuf,
    output: BufWriter<File>,
    rows: u64,
    bytes: u64,
}

impl Written<'_> {
    /// Appends the server's answer to a query.
    fn copy(&mut self, link: &mut Client, query: &str) -> Result<(), SqlError> {
        let what = format!("read the rows of {}", self.job.relation);
        let failed = |error: io::Error| io_error(&what, &error);
        let reader = link.copy_out(query).during(&what)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        let transform = self.shared.transform.filter(|it| it.applies(self.job.table));
        let among = match self.job.rows {
            Wanted::Many(rows, part) => Some((rows, places(part).start)),
            _ => None,
        };
        let (mut row, mut changed) = (Vec::new(), Vec::new());
        loop {
            if self.shared.ended.load(Ordering::Relaxed) {
                return Err(SqlError::Interrupted);
            }
            let piece = reader.fill_buf().map_err(failed)?;
            if piece.is_empty() {
                return Ok(());
            }
            if among.is_none() && transform.is_none() {
                let length = piece.len();
                self.append(piece)?;
                reader.consume(length);
                continue;
            }
            row.clear();
            reader.read_until(b'\n', &mut row).map_err(failed)?;
            let mut fields = row.strip_suffix(b"\n").unwrap_or(&row);
            if let Some((rows, begin)) = among {
                let (place, rest) = split_place(fields)
                    .ok_or_else(|| failed(io::Error::other("a row has no place")))?;
                if !rows.contains(begin | place) {
                    continue;
                }
                fields = rest;
            }
            changed.clear();
            match transform {
                None => changed.extend_from_slice(fields),
                Some(transform) => self.mask(transform, fields, &mut changed)?,
            }
            changed.push(b'\n');
            self.append(&changed)?;
        }
    }

    fn mask(
        &self,
        transform: &dyn Transform,
        fields: &[u8],
        changed: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        transform.line(self.job.table, fields, changed).map_err(|error| SqlError::Statement {
            what: format!("mask the rows of {}", self.job.relation),
            why: error.to_string(),
            hint: "mask this column with null, or with values in a file".to_owned(),
        })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        let rows: u64 = bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum();
        self.output.write_all(bytes).map_err(|error| file_error(&self.path, error))?;
        self.rows += rows;
        self.bytes += bytes.len() as u64;
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(())
    }

    fn finish(self) -> Result<DataFile, SqlError> {
        let failed = |error| file_error(&self.path, error);
        let file = self.output.into_inner().map_err(|error| failed(error.into_error()))?;
        if self.rows > 0 {
            file.sync_data().map_err(failed)?;
        }
        Ok(DataFile { rows: self.rows, bytes: self.bytes, ..self.job.entry.clone() })
    }
}
