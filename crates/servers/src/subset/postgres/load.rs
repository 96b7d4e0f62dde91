//! Loads a subset into a database: tables without keys, then rows, frozen as they are loaded, then
//! keys, which the server checks row by row. All is one transaction, so an early end leaves nothing
//! behind.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::time::Instant;

use blockstone_sys::held::HeldDir;
use postgres::error::SqlState;

use super::catalogue::COLUMNS;
use super::rights::{self, Rights};
use super::rows::{condition, io_error, literal};
use super::types::{ColumnType, Kind};
use super::{connect, large, parse, qualified, quoted, script};
use crate::postgres::Client;
use crate::postgres::views::value;
use crate::sql::error::{During, SqlError};
use crate::sql::{SAMPLE, with};
use crate::subset::manifest::{
    AFTER, BEFORE, DATA, DataFile, KeyEntry, Manifest, SCRIPT, TableEntry, open_data, read_schema,
    write_file,
};
use crate::subset::source::{KeyProof, Loaded, Step, Tell};

const ORPHANS: &str = include_str!("../../../sql/subset/postgres/orphans.sql");
/// The files clear the search path, and may set it to anything.
const OWN_NAMES_ONLY: &str = "SET search_path = pg_catalog, pg_temp";
const VALIDATED: &str = "SELECT convalidated FROM pg_constraint \
    WHERE contype = 'f' AND conparentid = 0 AND conname = $1 AND conrelid = to_regclass($2)";
const FORCED: &str = "SELECT name FROM unnest($1::text[]) name \
    JOIN pg_class c ON c.oid = to_regclass(name) \
    WHERE c.relforcerowsecurity AND row_security_active(c.oid)";
/// Progress text while rows are loaded.
const ROWS: &str = "rows";
const BUFFER_BYTES: usize = 1 << 18;

/// Loads the subset in `dir` into the database at `address`.
pub fn load(
    dir: &HeldDir,
    manifest: &Manifest,
    address: &str,
    tell: &mut Tell<'_>,
) -> Result<Loaded, SqlError> {
    let address = parse(address)?;
    let (mut link, _, release) = connect(&address)?;
    let rights = Rights::look(&mut link)?;
    let mut loading = Loading { link, dir, manifest, tell, rights };
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
        notes: loading.rights.notes(),
    })
}

struct Loading<'a, 'b> {
    link: Client,
    dir: &'a HeldDir,
    manifest: &'a Manifest,
    tell: &'a mut Tell<'b>,
    rights: Rights,
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

    /// Executes the statements in a file.
    fn run(&mut self, file: &str) -> Result<(), SqlError> {
        let text = read_schema(self.dir, file, |text| Ok(script::for_server(&text)))?;
        let done = self.link.batch_execute(&text);
        done.map_err(|error| statement(&format!("run {file}"), &error))?;
        self.link.batch_execute(OWN_NAMES_ONLY).during("set up the session")?;
        self.rights.take(&mut self.link)
    }

    /// Marks the database as a sample in its comment. An existing comment is kept, and a database
    /// that this user does not own is left unchanged.
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

    /// Sends a data file to the server; returns the number of rows.
    fn copy(&mut self, file: &str, query: &str, before: u64) -> Result<u64, SqlError> {
        let what = format!("load {DATA}/{file}");
        let input = open_data(self.dir, file)?;
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

    /// Counts what the server has checked: the orphans of each key and the rows of each table. If
    /// row-level security is forced on their owner, it is not meanwhile.
    fn prove(&mut self) -> Result<(Vec<KeyProof>, Vec<u64>), SqlError> {
        let forced = self.forced()?;
        self.force(&forced, "NO FORCE")?;
        let proved = self.proved()?;
        self.force(&forced, "FORCE")?;
        Ok(proved)
    }

    /// Returns the tables whose rows may be hidden from this user, though it owns them.
    fn forced(&mut self) -> Result<Vec<String>, SqlError> {
        let names = self.manifest.tables.iter().map(|it| qualified(&it.schema, &it.name));
        let names: Vec<String> = names.collect();
        let found = self.link.query(FORCED, &[&names]).during("look for row-level security")?;
        found.iter().map(|row| value(row, 0)).collect()
    }

    fn force(&mut self, tables: &[String], how: &str) -> Result<(), SqlError> {
        for table in tables {
            let text = format!("ALTER TABLE {table} {how} ROW LEVEL SECURITY");
            self.link.batch_execute(&text).during("set row-level security")?;
        }
        Ok(())
    }

    fn proved(&mut self) -> Result<(Vec<KeyProof>, Vec<u64>), SqlError> {
        let manifest = self.manifest;
        let types = self.types()?;
        let mut keys = Vec::new();
        for key in &manifest.keys {
            self.told(&format!("orphans of {}", key.name), 0)?;
            let orphans = self.orphans(key, &types)?;
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

/// Types of columns, by the position of their table in the manifest and their name.
type Types = HashMap<(usize, String), ColumnType>;

impl Loading<'_, '_> {
    fn types(&mut self) -> Result<Types, SqlError> {
        let mut places: HashMap<u32, usize> = HashMap::new();
        for (at, table) in self.manifest.tables.iter().enumerate() {
            let name = qualified(&table.schema, &table.name);
            let row = self.link.query_one("SELECT to_regclass($1)::oid", &[&name]);
            let row = row.during("look for tables")?;
            places.extend(value::<Option<u32>>(&row, 0)?.map(|oid| (oid, at)));
        }
        let oids: Vec<u32> = places.keys().copied().collect();
        let mut types = Types::new();
        for row in self.link.query(COLUMNS, &[&oids]).during("list the columns")? {
            if let Some(&at) = places.get(&value(&row, 0)?) {
                types.insert((at, value(&row, 2)?), ColumnType::of(&row)?);
            }
        }
        Ok(types)
    }

    /// Counts the orphans of a key with the server's own operators. For user-defined types, whose
    /// code would run, the server's own check of the key is trusted.
    fn orphans(&mut self, key: &KeyEntry, types: &Types) -> Result<u64, SqlError> {
        let manifest = self.manifest;
        let what = format!("count orphans of {}", key.name);
        let refused = |why: &str| SqlError::Statement {
            what: what.clone(),
            why: why.to_owned(),
            hint: "nothing was loaded; drop the key, or its type, in the source".to_owned(),
        };
        let (mut equal, mut is_simple) = (Vec::new(), true);
        for (own, other) in key.columns.iter().zip(&key.referenced) {
            let found = types.get(&(key.table, own.clone()));
            let found = found.zip(types.get(&(key.references, other.clone())));
            let (its, like) = found.ok_or_else(|| refused("it has columns that are not there"))?;
            let (c, p) = (format!("c.{}", quoted(own)), format!("p.{}", quoted(other)));
            equal.push(if its.is_own() && like.is_own() {
                Some(format!("{p} = {}", like.converted(&c, its)))
            } else {
                is_simple &= ![Kind::Other, Kind::Hashed].contains(&like.kind());
                let same = || format!("{} = {}", like.compared(&p, like), like.compared(&c, its));
                like.refusal(its).is_none().then(same)
            });
        }
        if !is_simple {
            let table = &manifest.tables[key.table];
            let table = qualified(&table.schema, &table.name);
            let row = self.link.query_opt(VALIDATED, &[&key.name, &table]).during(&what)?;
            if row.map(|row| value::<bool>(&row, 0)).transpose()? == Some(true) {
                return Ok(0);
            }
        }
        let equal: Option<Vec<String>> = equal.into_iter().collect();
        let equal = equal.ok_or_else(|| refused("its columns have types with code of users"))?;
        let when = match &key.when {
            None => None,
            Some((name, is)) => {
                let its = types.get(&(key.table, name.clone())).filter(|its| its.has_text());
                let its = its.ok_or_else(|| refused("its condition has a type of users"))?;
                Some(condition(&format!("c.{}", quoted(name)), its, is))
            }
        };
        let text = orphans_text(manifest, key, &equal.join(" AND "), when);
        let row = self.link.query_one(&text, &[]).during(&what)?;
        Ok(value::<i64>(&row, 0)? as u64)
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

fn orphans_text(manifest: &Manifest, key: &KeyEntry, equal: &str, when: Option<String>) -> String {
    let child = relation(&manifest.tables[key.table]);
    let parent = relation(&manifest.tables[key.references]);
    let present = key.columns.iter().map(|name| format!("c.{} IS NOT NULL", quoted(name)));
    let present = present.chain(when).collect::<Vec<_>>().join(" AND ");
    // Names may contain placeholders.
    with(
        ORPHANS,
        &[("present", &present), ("equal", equal), ("parent", &parent), ("child", &child)],
    )
}

fn copy_text(word: &str, file: &DataFile, from: &str) -> String {
    let columns: Vec<String> = file.columns.iter().map(|name| quoted(name)).collect();
    let columns =
        if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("{word} {}{columns} FROM {from} (FREEZE)", qualified(&file.schema, &file.name))
}

/// Writes a script that loads the same with psql, run in the directory.
pub fn write_script(dir: &HeldDir, manifest: &Manifest) -> Result<(), SqlError> {
    let invokers = rights::SCRIPT;
    let mut text = format!(
        "-- psql --no-psqlrc --file={SCRIPT} postgres://…, here, into an empty database\n\
         \\set ON_ERROR_STOP on\nBEGIN;\n\\i {BEFORE}\n{invokers}"
    );
    for file in &manifest.files {
        let copy = copy_text("\\copy", file, &format!("'{DATA}/{}'", file.file));
        // A line break in a name would end the command.
        text.extend([copy.replace('\n', " "), "\n".to_owned()]);
    }
    if let Some(objects) = &manifest.large_objects {
        let (table, copied, make) = (large::TABLE, large::COPIED, large::MAKE);
        let copy = format!("\\copy {copied} '{DATA}/{}'", objects.file);
        text.extend([format!("{table};\n{copy}\n{make};\n")]);
    }
    for sequence in &manifest.sequences {
        // Under any settings that earlier files made, no character of the name ends the literal.
        let name = literal(&qualified(&sequence.schema, &sequence.name));
        let (last, is_called) = (sequence.last_value, sequence.is_called);
        text.extend([format!("SELECT pg_catalog.setval({name}, {last}, {is_called});\n")]);
    }
    text.extend([format!("\\i {AFTER}\n{invokers}COMMIT;\n")]);
    write_file(dir, SCRIPT, &text)
}
