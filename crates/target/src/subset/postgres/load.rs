//! A subset into a database: bare tables, rows that are frozen at once, then keys, which the server
//! checks row by row. All is one transaction: whatever ends it early leaves nothing behind.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Instant;

use crate::postgres::Client;
use postgres::error::SqlState;

use super::rows::{condition, io_error, literal};
use super::{connect, large, parse, qualified, quoted};
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::sql::{SAMPLE, with};
use crate::subset::manifest::{
    AFTER, BEFORE, DATA, DataFile, KeyEntry, Manifest, SCRIPT, TableEntry, read_schema,
};
use crate::subset::source::{KeyProof, Loaded, Step, Tell};

const ORPHANS: &str = include_str!("../../../sql/subset/postgres/orphans.sql");
/// The schema was made with an empty search path. Types of extensions have operators of their own.
const FIND_OPERATORS: &str = "SELECT pg_catalog.set_config('search_path', \
    (SELECT string_agg(quote_ident(nspname), ', ') FROM pg_catalog.pg_namespace \
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'), true)";
/// What is told while rows are loaded.
const ROWS: &str = "rows";
const BUFFER_BYTES: usize = 1 << 18;

/// Loads the subset in `dir` into the database at `address`.
pub fn load(
    dir: &Path,
    manifest: &Manifest,
    address: &str,
    tell: &mut Tell<'_>,
) -> Result<Loaded, SqlError> {
    let address = parse(address)?;
    let (link, _, release) = connect(&address)?;
    let mut loading = Loading { link, dir, manifest, tell };
    let mut steps = Vec::new();
    let mut began = Instant::now();
    let mut ended = |step: Step| {
        steps.push((step, began.elapsed().as_secs_f64()));
        began = Instant::now();
    };
    loading.told("tables", 0)?;
    loading.begin(&address.name)?;
    ended(Step::Tables);
    loading.rows()?;
    ended(Step::Rows);
    loading.told("indexes and keys", 0)?;
    loading.run(AFTER)?;
    ended(Step::Keys);
    let (keys, rows) = loading.prove()?;
    ended(Step::Proof);
    loading.mark()?;
    loading.link.batch_execute("COMMIT").during("commit the subset")?;
    ended(Step::Commit);
    Ok(Loaded {
        destination: address.name.clone(),
        product: format!("PostgreSQL {release}"),
        keys,
        rows,
        steps,
    })
}

struct Loading<'a, 'b> {
    link: Client,
    dir: &'a Path,
    manifest: &'a Manifest,
    tell: &'a mut Tell<'b>,
}

impl Loading<'_, '_> {
    fn told(&mut self, text: &str, rows: u64) -> Result<(), SqlError> {
        let of = (text == ROWS).then(|| self.manifest.rows());
        if (self.tell)(text, rows, of) { Ok(()) } else { Err(SqlError::Interrupted) }
    }

    fn begin(&mut self, server: &str) -> Result<(), SqlError> {
        let exists = "SELECT to_regclass($1) IS NOT NULL";
        for table in &self.manifest.tables {
            let name = qualified(&table.schema, &table.name);
            let row = self.link.query_one(exists, &[&name]).during("look for tables")?;
            if value::<bool>(&row, 0)? {
                return Err(SqlError::unsuitable(
                    server,
                    format!("it has a table {name} already"),
                    "name an empty database: CREATE DATABASE …",
                ));
            }
        }
        let begin = "BEGIN; SET LOCAL maintenance_work_mem = '256MB'";
        self.link.batch_execute(begin).during("begin the load")?;
        self.run(BEFORE)
    }

    /// Has the statements of a file done.
    fn run(&mut self, file: &str) -> Result<(), SqlError> {
        let text = read_schema(self.dir, file, Ok)?;
        self.link.batch_execute(&text).map_err(|error| statement(&format!("run {file}"), &error))
    }

    /// Marks the database as a sample in its comment. An existing comment is kept, and a database
    /// that this user does not own is left as it is.
    fn mark(&mut self) -> Result<(), SqlError> {
        const ASK: &str = "SELECT current_database()::text, \
            pg_has_role(datdba, 'USAGE') AND shobj_description(oid, 'pg_database') IS NULL \
            FROM pg_database WHERE datname = current_database()";
        let row = self.link.query_one(ASK, &[]).during("query who owns the database")?;
        if value::<bool>(&row, 1)? {
            let database = quoted(&value::<String>(&row, 0)?);
            let comment = literal(&format!("{SAMPLE}{}", self.manifest.words()));
            let text = format!("COMMENT ON DATABASE {database} IS {comment}");
            self.link.batch_execute(&text).during("comment on the database")?;
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<(), SqlError> {
        let manifest = self.manifest;
        let mut rows = 0;
        for file in &manifest.files {
            self.told(ROWS, rows)?;
            let loaded = self.copy(&file.file, &copy_text("COPY", file, "STDIN"), rows)?;
            if loaded != file.rows {
                return Err(SqlError::Statement {
                    what: format!("load {DATA}/{}", file.file),
                    why: format!("it has {loaded} rows, not {}", file.rows),
                    hint: "write the subset again".to_owned(),
                });
            }
            rows += loaded;
        }
        self.large_objects()?;
        for sequence in &manifest.sequences {
            let name = qualified(&sequence.schema, &sequence.name);
            let ask = "SELECT setval($1::text::regclass, $2, $3)";
            self.link
                .query(ask, &[&name, &sequence.last_value, &sequence.is_called])
                .during("set a sequence")?;
        }
        Ok(())
    }

    fn large_objects(&mut self) -> Result<(), SqlError> {
        let Some(objects) = &self.manifest.large_objects else { return Ok(()) };
        self.link.batch_execute(large::TABLE).during("make a table of large objects")?;
        self.copy(&objects.file, &format!("COPY {} STDIN", large::COPIED), 0)?;
        let made = self.link.batch_execute(large::MAKE);
        made.map_err(|error| statement("make the large objects", &error))
    }

    /// Sends a file of data to the server; rows of it.
    fn copy(&mut self, file: &str, query: &str, before: u64) -> Result<u64, SqlError> {
        let path = self.dir.join(DATA).join(file);
        let what = format!("load {DATA}/{file}");
        let input = File::open(&path).map_err(|source| SqlError::File {
            what: "read",
            path: path.clone(),
            source,
            hint: "write the subset again",
        })?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
        let mut writer = self.link.copy_in(query).during(&what)?;
        let (mut rows, mut told) = (0, 0_u64);
        loop {
            let piece = input.fill_buf().map_err(|error| io_error(&what, &error))?;
            if piece.is_empty() {
                break;
            }
            let length = piece.len();
            rows += piece.iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
            writer.write_all(piece).map_err(|error| io_error(&what, &error))?;
            input.consume(length);
            told += length as u64;
            if told > 16 << 20 {
                told = 0;
                if !(self.tell)(ROWS, before + rows, Some(self.manifest.rows())) {
                    return Err(SqlError::Interrupted);
                }
            }
        }
        writer.finish().map_err(|error| statement(&what, &error))
    }

    /// Counts what the server has checked: orphans of each key, and the rows of each table.
    fn prove(&mut self) -> Result<(Vec<KeyProof>, Vec<u64>), SqlError> {
        let manifest = self.manifest;
        self.link.batch_execute(FIND_OPERATORS).during("find the operators of types")?;
        let mut keys = Vec::new();
        for key in &manifest.keys {
            self.told(&format!("orphans of {}", key.name), 0)?;
            let row = self.link.query_one(&orphans_text(manifest, key), &[]);
            let row = row.during(&format!("count orphans of {}", key.name))?;
            let orphans = value::<i64>(&row, 0)? as u64;
            keys.push(KeyProof::new(key, orphans)?);
        }
        let mut rows = Vec::new();
        for table in &manifest.tables {
            let ask = format!("SELECT count(*) FROM {}", relation(table));
            let row = self.link.query_one(&ask, &[]).during("count rows")?;
            let counted = value::<i64>(&row, 0)? as u64;
            if counted != table.rows {
                return Err(SqlError::Statement {
                    what: format!("load {}", qualified(&table.schema, &table.name)),
                    why: format!("it has {counted} rows, {} were planned", table.rows),
                    hint: "nothing was loaded; write the subset again".to_owned(),
                });
            }
            rows.push(counted);
        }
        Ok((keys, rows))
    }
}

fn statement(what: &str, error: &postgres::Error) -> SqlError {
    let failed = SqlError::statement(what, error);
    let full = error.code() == Some(&SqlState::DISK_FULL);
    let failed = match failed {
        SqlError::Statement { what, why, .. } if full => SqlError::Statement {
            what,
            why,
            hint: "nothing was loaded; free some space on the server".to_owned(),
        },
        other => other,
    };
    match (failed, error.as_db_error().and_then(|error| error.detail())) {
        (SqlError::Statement { what, why, hint }, Some(detail)) => {
            SqlError::Statement { what, why: format!("{why}: {detail}"), hint }
        }
        (failed, _) => failed,
    }
}

fn relation(table: &TableEntry) -> String {
    let only = if table.partitioned { "" } else { "ONLY " };
    format!("{only}{}", qualified(&table.schema, &table.name))
}

fn orphans_text(manifest: &Manifest, key: &KeyEntry) -> String {
    let child = relation(&manifest.tables[key.table]);
    let parent = relation(&manifest.tables[key.references]);
    let present = key.columns.iter().map(|name| format!("c.{} IS NOT NULL", quoted(name)));
    let equal = key.columns.iter().zip(&key.referenced);
    let equal = equal.map(|(own, other)| format!("p.{} = c.{}", quoted(other), quoted(own)));
    let when = key.when.as_ref();
    let when = when.map(|(name, is)| condition(&format!("c.{}", quoted(name)), is));
    let present = present.chain(when).collect::<Vec<_>>().join(" AND ");
    let equal = equal.collect::<Vec<_>>().join(" AND ");
    // Names may contain what stands for others.
    with(
        ORPHANS,
        &[("present", &present), ("equal", &equal), ("parent", &parent), ("child", &child)],
    )
}

fn copy_text(word: &str, file: &DataFile, from: &str) -> String {
    let columns: Vec<String> = file.columns.iter().map(|name| quoted(name)).collect();
    let columns =
        if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("{word} {}{columns} FROM {from} (FREEZE)", qualified(&file.schema, &file.name))
}

/// The same load as a script for psql, to be run in the directory.
pub fn write_script(dir: &Path, manifest: &Manifest) -> Result<(), SqlError> {
    let mut text = format!(
        "-- psql --no-psqlrc --file={SCRIPT} postgres://…, here, into an empty database\n\
         \\set ON_ERROR_STOP on\nBEGIN;\n\\i {BEFORE}\n"
    );
    for file in &manifest.files {
        let copy = copy_text("\\copy", file, &format!("'{DATA}/{}'", file.file));
        // A name with a line break would end the command.
        text.extend([copy.replace('\n', " "), "\n".to_owned()]);
    }
    if let Some(objects) = &manifest.large_objects {
        let (table, copied, make) = (large::TABLE, large::COPIED, large::MAKE);
        let copy = format!("\\copy {copied} '{DATA}/{}'", objects.file);
        text.extend([format!("{table};\n{copy}\n{make};\n")]);
    }
    for sequence in &manifest.sequences {
        let name = qualified(&sequence.schema, &sequence.name).replace('\'', "''");
        let (last, is_called) = (sequence.last_value, sequence.is_called);
        text.extend([format!("SELECT pg_catalog.setval('{name}', {last}, {is_called});\n")]);
    }
    text.extend([format!("\\i {AFTER}\nCOMMIT;\n")]);
    let path = dir.join(SCRIPT);
    std::fs::write(&path, text).map_err(|source| SqlError::File {
        what: "write",
        path,
        source,
        hint: "free some space, or name a directory on another file system",
    })
}
