//! Writes the rows of a plan to files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use blockstone_subset::{Locators, Plan, Rows, Transform};
use blockstone_sys::held::HeldDir;

use super::draw::wins;
use super::rows::{IN_ORDER, Layout, Locator, any_of, each_row, field};
use super::values::{Form, Kind, characters};
use super::{MariadbSource, quoted};
use crate::sql::error::SqlError;
use crate::subset::manifest::{DataFile, file_error};
use crate::subset::source::{Expected, Exported, make_data};

/// Rows per query.
const BATCH: usize = 5000;
/// Rows of a table to read for an estimate of all.
const TRIED: usize = 20_000;
const TRIED_BY_KEY: usize = 2_000;
const BUFFER_BYTES: usize = 1 << 18;
/// If more than this share of a table's rows is needed, the whole table is read instead of rows by
/// key.
const SHARE_BY_KEY: f64 = 0.2;

/// Writes the rows of `plan` to the data directory in `dir`.
pub fn export(
    source: &mut MariadbSource<'_>,
    plan: &Plan,
    dir: &HeldDir,
    transform: Option<&dyn Transform>,
) -> Result<Exported, SqlError> {
    let data = make_data(dir)?;
    let mut files = Vec::new();
    for (table, planned) in plan.tables.iter().enumerate() {
        let transform = transform.filter(|it| it.applies(table));
        let mut written = Written::new(source, table, Some(&data), transform)?;
        match &planned.rows {
            Rows::All => written.whole(source, None, "")?,
            Rows::Winning(_, lot) => {
                let only = format!(" WHERE {}", wins(source, table, *lot));
                written.whole(source, None, &only)?;
            }
            Rows::At(rows) if rows.is_empty() => {}
            Rows::At(rows) => {
                if planned.share() > SHARE_BY_KEY || !written.by_key(source, rows)? {
                    written.whole(source, Some(rows), "")?;
                }
            }
        }
        files.push(written.finish(planned.rows())?);
    }
    Ok(Exported { files, large_objects: None, readers: 1 })
}

/// Estimates the cost of writing the rows of `plan` from a few rows of each table, which are read
/// and discarded. Returns `None` if a table is read by keys that have to be read first.
pub fn expect(source: &mut MariadbSource<'_>, plan: &Plan) -> Result<Option<Expected>, SqlError> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for (table, planned) in plan.tables.iter().enumerate().filter(|(_, it)| it.rows() > 0) {
        let name = source.catalogue.tables[table].name.clone();
        source.told(&format!("a few rows of {name}"), 0)?;
        let mut tried = Written::new(source, table, None, None)?;
        let began = Instant::now();
        let by_key = match &planned.rows {
            Rows::At(rows) if planned.share() <= SHARE_BY_KEY => {
                let layout = Layout::of_identity(source, table);
                if matches!(layout.locator, Locator::Hash(_)) {
                    return Ok(None);
                }
                let before = rows.len().saturating_sub(TRIED_BY_KEY as u64) / 2;
                let mut few = Locators::default();
                for row in rows.iter().skip(before as usize).take(TRIED_BY_KEY) {
                    few.insert(row);
                }
                tried.by_key(source, &few)?
            }
            _ => false,
        };
        if !by_key {
            tried.whole(source, None, &format!(" LIMIT {TRIED}"))?;
        }
        let each = 1.0 / tried.entry.rows.max(1) as f64;
        let read = if by_key { planned.rows() } else { planned.source_rows };
        seconds += read as f64 * began.elapsed().as_secs_f64() * each;
        bytes += planned.rows() as f64 * tried.entry.bytes as f64 * each;
    }
    Ok(Some(Expected { bytes: bytes as u64, seconds }))
}

/// Returns the positions of the columns to write.
fn written(source: &MariadbSource<'_>, table: usize) -> impl Iterator<Item = usize> {
    let columns = source.catalogue.tables[table].columns.iter().enumerate();
    columns.filter(|(_, column)| !column.generated).map(|(at, _)| at)
}

fn forms(source: &MariadbSource<'_>, table: usize) -> Vec<Form> {
    written(source, table).map(|at| source.known.tables[table].kinds[at].form()).collect()
}

fn entry(source: &MariadbSource<'_>, table: usize) -> DataFile {
    let columns = written(source, table);
    let columns = columns.map(|at| source.catalogue.tables[table].columns[at].name.clone());
    let forms = forms(source, table);
    let those = |form: Form| (0..forms.len()).filter(|&at| forms[at] == form).collect();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let name = &source.known.tables[table].name;
    let plain: String =
        name.chars().take(100).map(|it| if is_plain(it) { it } else { '_' }).collect();
    DataFile {
        schema: source.server.database.clone(),
        name: name.clone(),
        columns: columns.collect(),
        hex: those(Form::Hex),
        bits: those(Form::Bits),
        file: format!("{:05}.{plain}.txt", table + 1),
        rows: 0,
        bytes: 0,
    }
}

/// The output file of a table.
struct Written<'a> {
    table: usize,
    name: String,
    entry: DataFile,
    path: PathBuf,
    /// `None` if nothing is written.
    output: Option<BufWriter<File>>,
    transform: Option<&'a dyn Transform>,
    forms: Vec<Form>,
    fields: Vec<u8>,
    changed: Vec<u8>,
}

impl<'a> Written<'a> {
    fn new(
        source: &MariadbSource<'_>,
        table: usize,
        data: Option<&HeldDir>,
        transform: Option<&'a dyn Transform>,
    ) -> Result<Self, SqlError> {
        let entry = entry(source, table);
        let name = Path::new(&entry.file);
        let path = data.map_or_else(PathBuf::new, |data| data.path().join(name));
        let file = data.map(|data| data.create_new(name)).transpose();
        let file = file.map_err(|error| file_error(&path, error))?;
        Ok(Self {
            table,
            name: source.catalogue.tables[table].name.clone(),
            entry,
            path,
            output: file.map(|file| BufWriter::with_capacity(BUFFER_BYTES, file)),
            transform,
            forms: forms(source, table),
            fields: Vec::new(),
            changed: Vec::new(),
        })
    }

    fn selected(&self, source: &MariadbSource<'_>) -> Vec<String> {
        let table = &source.catalogue.tables[self.table];
        let columns = written(source, self.table).map(|at| {
            if table.nulled.contains(&at) {
                return "NULL".to_owned();
            }
            let name = &table.columns[at].name;
            source.known.tables[self.table].kinds[at].written(&format!("t.{}", quoted(name)))
        });
        columns.collect()
    }

    fn from(&self, source: &MariadbSource<'_>) -> String {
        format!("{} t", quoted(&source.known.tables[self.table].name))
    }

    fn query(
        &mut self,
        source: &mut MariadbSource<'_>,
        query: &str,
        (layout, rows): (&Layout, Option<&Locators>),
    ) -> Result<(), SqlError> {
        let what = format!("read the rows of {}", self.name);
        let skipped = if rows.is_some() { layout.columns.len() } else { 0 };
        each_row(source, query, (&what, "rows", None), &mut |answer, ordinal| {
            if let Some(rows) = rows {
                let locator = layout.locator(|at| field(&answer, at), ordinal);
                if !locator.is_some_and(|locator| rows.contains(locator)) {
                    return Ok(());
                }
            }
            self.append(&answer, skipped)
        })
    }

    /// Scans the table with `more` as the rest of the query, and writes the rows in `rows`.
    fn whole(
        &mut self,
        source: &mut MariadbSource<'_>,
        rows: Option<&Locators>,
        more: &str,
    ) -> Result<(), SqlError> {
        let layout = Layout::of_identity(source, self.table);
        let mut columns = self.selected(source);
        if rows.is_some() {
            columns.splice(0..0, layout.columns.iter().cloned());
        }
        let from = self.from(source);
        let query = format!("SELECT {} FROM {from}{IN_ORDER}{more}", columns.join(", "));
        self.query(source, &query, (&layout, rows))
    }

    /// Queries the rows by their identifying columns; returns false if that is not possible.
    fn by_key(
        &mut self,
        source: &mut MariadbSource<'_>,
        rows: &Locators,
    ) -> Result<bool, SqlError> {
        let layout = Layout::of_identity(source, self.table);
        let values: Vec<Vec<String>> = match &layout.locator {
            Locator::Ordinal => return Ok(false),
            Locator::Number(_) => {
                let name = &source.catalogue.tables[self.table].columns;
                let column = source.catalogue.tables[self.table].identity[0];
                let unsigned = name[column].type_name.contains("unsigned");
                let number = |row: u64| {
                    let text =
                        if unsigned { row.to_string() } else { row.cast_signed().to_string() };
                    vec![text]
                };
                rows.iter().map(number).collect()
            }
            Locator::Packed(packed, _) => rows.iter().map(|row| packed.unpack(row)).collect(),
            Locator::Hash(_) => match self.identities(source, &layout, rows)? {
                Some(values) => values,
                None => return Ok(false),
            },
        };
        let identity = source.catalogue.tables[self.table].identity.iter();
        let names = identity.map(|&at| {
            format!("t.{}", quoted(&source.catalogue.tables[self.table].columns[at].name))
        });
        let names: Vec<String> = names.collect();
        let (select, from) = (self.selected(source).join(", "), self.from(source));
        let order = names.join(", ");
        for batch in values.chunks(BATCH) {
            let any = any_of(&names, batch);
            let query = format!("SELECT {select} FROM {from} WHERE {any} ORDER BY {order}");
            self.query(source, &query, (&layout, None))?;
        }
        Ok(true)
    }

    /// Returns the identifying values of these rows, as SQL and in order; `None` if they cannot be
    /// expressed.
    fn identities(
        &self,
        source: &mut MariadbSource<'_>,
        layout: &Layout,
        rows: &Locators,
    ) -> Result<Option<Vec<Vec<String>>>, SqlError> {
        let table = &source.catalogue.tables[self.table];
        let identity = table.identity.iter();
        let columns: Vec<(String, Kind)> = identity
            .map(|&at| {
                let name = format!("t.{}", quoted(&table.columns[at].name));
                (name, source.known.tables[self.table].kinds[at].clone())
            })
            .collect();
        let readable = columns.iter().map(|(name, kind)| match kind {
            Kind::Text { .. } => format!("CONVERT({name} USING utf8mb4)"),
            kind => kind.compared(name, kind),
        });
        let select: Vec<String> = layout.columns.iter().cloned().chain(readable).collect();
        let from = self.from(source);
        let query = format!("SELECT {} FROM {from}", select.join(", "));
        let what = format!("read the keys of {}", self.name);
        let (mut all, mut is_known) = (Vec::with_capacity(rows.len() as usize), true);
        each_row(source, &query, (&what, "keys of rows", None), &mut |answer, ordinal| {
            let locator = layout.locator(|at| field(&answer, at), ordinal);
            if !locator.is_some_and(|locator| rows.contains(locator)) {
                return Ok(());
            }
            let value = |(at, (_, kind)): (usize, &(String, Kind))| {
                let value = field(&answer, layout.columns.len() + at)?;
                match kind {
                    Kind::Text { .. } => Some(characters(value)),
                    kind => kind.literal_of(value),
                }
            };
            match columns.iter().enumerate().map(value).collect::<Option<Vec<String>>>() {
                Some(values) => all.push(values),
                None => is_known = false,
            }
            Ok(())
        })?;
        all.sort_unstable();
        Ok(is_known.then_some(all))
    }

    fn append(&mut self, answer: &mysql::Row, skipped: usize) -> Result<(), SqlError> {
        self.fields.clear();
        for (at, form) in self.forms.iter().enumerate() {
            if at > 0 {
                self.fields.push(b'\t');
            }
            match (field(answer, skipped + at), form) {
                (None, _) => self.fields.extend(b"\\N"),
                (Some(value), Form::Text) => escape(value, &mut self.fields),
                (Some(value), Form::Hex | Form::Bits) => self.fields.extend(value),
            }
        }
        let line = match self.transform {
            None => &mut self.fields,
            Some(transform) => {
                self.changed.clear();
                let done = transform.line(self.table, &self.fields, &mut self.changed);
                done.map_err(|error| SqlError::Statement {
                    what: format!("mask the rows of {}", self.name),
                    why: error.to_string(),
                    hint: "mask this column with null, or with values in a file".to_owned(),
                })?;
                &mut self.changed
            }
        };
        line.push(b'\n');
        if let Some(output) = &mut self.output {
            output.write_all(line).map_err(|error| file_error(&self.path, error))?;
        }
        self.entry.rows += 1;
        self.entry.bytes += line.len() as u64;
        Ok(())
    }

    fn finish(self, planned: u64) -> Result<DataFile, SqlError> {
        if self.entry.rows != planned {
            return Err(SqlError::Statement {
                what: format!("read the rows of {}", self.name),
                why: format!("{} came, {planned} were planned", self.entry.rows),
                hint: "a table without transactions may have changed; take the subset again"
                    .to_owned(),
            });
        }
        let failed = |error| file_error(&self.path, error);
        if let Some(output) = self.output {
            let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
            file.sync_data().map_err(failed)?;
        }
        Ok(self.entry)
    }
}

/// Appends a value as a field of LOAD DATA, which is also valid for COPY.
fn escape(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            plain => out.push(plain),
        }
    }
}
