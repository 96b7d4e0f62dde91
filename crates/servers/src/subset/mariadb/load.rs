//! Loads a subset into a database. DDL statements commit implicitly, so everything is loaded and
//! verified in a staging database, and moved to the destination by one statement.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_sys::held::HeldDir;
use blockstone_sys::thread::scoped;
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfile, LocalInfileHandler};

use parking_lot::Mutex;

use super::rights::Rights;
use super::{Server, failed, quoted, staging, statements, values};
use crate::mariadb::{answer, comment};
use crate::sql::error::{During, SqlError};
use crate::sql::{SAMPLE, with};
use crate::subset::manifest::{
    AFTER, BEFORE, CODE, DATA, DataFile, KeyEntry, Manifest, SCRIPT, open_data, read_schema,
    write_file,
};
use crate::subset::source::{KeyProof, Loaded, Step, Tell, no_thread};

/// Maximum length of a comment on a database.
const COMMENT_CHARS: usize = 1024;
const ORPHANS: &str = include_str!("../../../sql/subset/mariadb/orphans.sql");
const BUFFER_BYTES: usize = 1 << 16;
const CLEAN_UP_AFTER: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(3)];
const LOOK: Duration = Duration::from_millis(20);
/// The rows are those of the source, in any order, even if they violate rules for new rows; but a
/// value that does not fit is an error.
const SETTINGS: &str = "SET SESSION foreign_key_checks = 0, unique_checks = 0, \
    sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'";
const MARIADB_SETTINGS: &str = "SET SESSION check_constraint_checks = 0, innodb_strict_mode = 0";
/// Statements that drop everything in the destination after tables were moved there.
const DROPS: &str = "SELECT concat('DROP TRIGGER `', replace(TRIGGER_NAME, '`', '``'), '`')
    FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()
    UNION ALL SELECT concat('DROP ', ROUTINE_TYPE, ' `', replace(ROUTINE_NAME, '`', '``'), '`')
    FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
    UNION ALL SELECT concat('DROP VIEW `', replace(TABLE_NAME, '`', '``'), '`')
    FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()
    UNION ALL SELECT concat('DROP TABLE `', replace(TABLE_NAME, '`', '``'), '`')
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
        AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')";

/// Loads the subset in `dir` into the database at `address`.
pub fn load(
    dir: &HeldDir,
    manifest: &Manifest,
    address: &str,
    tell: &mut Tell<'_>,
) -> Result<Loaded, SqlError> {
    let mut server = Server::open(address)?;
    staging::make(&mut server)?;
    let rights = Rights::default();
    let mut loading = Loading { server, dir, manifest, tell, rights };
    match loading.load() {
        Ok(loaded) => Ok(loaded),
        Err(error) => {
            // The connection may be in the middle of a file.
            drop(loading.server);
            Err(match clean_up(address) {
                Ok(()) => error,
                Err(left) => left_over(&error, &left),
            })
        }
    }
}

/// Removes what was loaded. A server with a full disk needs a moment to free space.
fn clean_up(address: &str) -> Result<(), SqlError> {
    let mut removed = Ok(());
    for wait in CLEAN_UP_AFTER {
        thread::sleep(wait);
        removed = Server::open(address).and_then(|mut it| staging::remove(&mut it));
        if removed.is_ok() {
            break;
        }
    }
    removed
}

/// Returns the error of a load whose data could not be removed.
fn left_over(error: &SqlError, left: &SqlError) -> SqlError {
    let first = |error: &SqlError| error.to_string().lines().next().unwrap_or_default().to_owned();
    SqlError::Statement {
        what: "load a subset".to_owned(),
        why: format!("{}; {}", first(error), first(left)),
        hint: "the next load into this database removes what is left over".to_owned(),
    }
}

struct Loading<'a, 'b> {
    server: Server,
    dir: &'a HeldDir,
    manifest: &'a Manifest,
    tell: &'a mut Tell<'b>,
    rights: Rights,
}

impl Loading<'_, '_> {
    fn told(&mut self, text: &str, rows: u64) -> Result<(), SqlError> {
        if (self.tell)(text, rows, None) { Ok(()) } else { Err(SqlError::Interrupted) }
    }

    fn load(&mut self) -> Result<Loaded, SqlError> {
        let mut steps = Vec::new();
        let mut began = Instant::now();
        let mut ended = |step: Step| {
            steps.push((step, began.elapsed().as_secs_f64()));
            began = Instant::now();
        };
        self.told("tables", 0)?;
        let own = if self.server.is_mariadb { MARIADB_SETTINGS } else { "DO 0" };
        for settings in [SETTINGS, own] {
            self.server.link.query_drop(settings).during("set up the session")?;
        }
        self.run(BEFORE)?;
        ended(Step::Tables);
        self.rows()?;
        ended(Step::Rows);
        self.told("keys", 0)?;
        self.run(AFTER)?;
        ended(Step::Keys);
        let (keys, rows) = self.prove()?;
        ended(Step::Proof);
        self.told("tables become visible", 0)?;
        self.publish()?;
        staging::remove(&mut self.server)?;
        ended(Step::Commit);
        let notes = self.rights.notes(&mut self.server)?;
        Ok(Loaded {
            destination: self.server.address.name.clone(),
            product: self.server.product(),
            keys,
            rows,
            steps,
            notes,
        })
    }

    /// Returns the statements in a file.
    fn statements(&self, file: &str) -> Result<Vec<String>, SqlError> {
        read_schema(self.dir, file, |text| {
            statements::split(&text).ok_or_else(|| io::Error::other("it has no statements"))
        })
    }

    fn run(&mut self, file: &str) -> Result<(), SqlError> {
        let grant = staging::grant(&self.server);
        for statement in self.statements(file)? {
            let done = self.server.link.query_drop(&statement);
            done.map_err(failed(&format!("run {file}"), &grant))?;
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<(), SqlError> {
        let manifest = self.manifest;
        let mut rows = 0;
        for file in &manifest.files {
            self.told("rows", rows)?;
            self.file(file, rows)?;
            rows += file.rows;
        }
        for sequence in &manifest.sequences {
            let (name, value) = (quoted(&sequence.name), sequence.last_value);
            let called = u8::from(sequence.is_called);
            let set = format!("DO SETVAL({name}, {value}, {called})");
            self.server.link.query_drop(set).during("set a sequence")?;
        }
        Ok(())
    }

    fn file(&mut self, file: &DataFile, before: u64) -> Result<(), SqlError> {
        const OFF: [u16; 3] = [1148, 3948, 4166];
        let what = format!("load {DATA}/{}", file.file);
        let reading = Arc::new(Reading::default());
        let input = open_data(self.dir, &file.file)?;
        *reading.file.lock() = Some(input);
        let handler = Arc::clone(&reading);
        let handler = LocalInfileHandler::new(move |_: &[u8], out: &mut _| handler.send(out));
        let link = &mut self.server.link;
        link.set_local_infile_handler(Some(handler));
        let of = self.manifest.rows();
        let (text, tell) = (load_text(file, "LOAD DATA LOCAL INFILE 'rows'"), &mut self.tell);
        let sent = thread::scope(|scope| {
            let (over, ends) = mpsc::channel::<()>();
            let sent = scoped(scope, "load", move || {
                // Dropped when the thread ends, however it ends.
                let _over = over;
                send(link, &text)
            })?;
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let rows = before + reading.lines.load(Ordering::Relaxed);
                if !tell("rows", rows, Some(of)) {
                    reading.ended.store(true, Ordering::Relaxed);
                }
            }
            Ok(sent.join())
        });
        let sent = sent.map_err(|error| no_thread(&error))?;
        if reading.ended.load(Ordering::Relaxed) {
            return Err(SqlError::Interrupted);
        }
        let sent = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.server.link.set_local_infile_handler(None);
        let grant = staging::grant(&self.server);
        let (rows, warning) = match sent {
            Err(mysql::Error::MySqlError(said)) if OFF.contains(&said.code) => {
                let why = "it does not accept LOAD DATA LOCAL";
                let hint = "SET GLOBAL local_infile = 1, while the subset is loaded";
                return Err(SqlError::unsuitable(&self.server.address.name, why, hint));
            }
            sent => sent.map_err(failed(&what, &grant))?,
        };
        let why = match warning {
            Some(warning) => warning,
            None if rows != file.rows => format!("it has {rows} rows, not {}", file.rows),
            None => return Ok(()),
        };
        Err(SqlError::Statement { what, why, hint: "write the subset again".to_owned() })
    }

    /// Counts the orphans of each key and the rows of each table, because no server has checked the
    /// keys.
    fn prove(&mut self) -> Result<(Vec<KeyProof>, Vec<u64>), SqlError> {
        let manifest = self.manifest;
        let mut keys = Vec::new();
        for key in &manifest.keys {
            self.told(&format!("orphans of {}", key.name), 0)?;
            let ask = orphans_text(manifest, key);
            let orphans: Option<u64> = answer::first(&mut self.server.link, &ask)
                .during(&format!("count orphans of {}", key.name))?;
            keys.push(KeyProof::new(key, orphans.unwrap_or_default())?);
        }
        let mut rows = Vec::new();
        for table in &manifest.tables {
            let ask = format!("SELECT count(*) FROM {}", quoted(&table.name));
            let counted: Option<u64> =
                answer::first(&mut self.server.link, &ask).during("count rows")?;
            let counted = counted.unwrap_or_default();
            if counted != table.rows {
                return Err(SqlError::Statement {
                    what: format!("load {}", quoted(&table.name)),
                    why: format!("it has {counted} rows, {} were planned", table.rows),
                    hint: "nothing was loaded; write the subset again".to_owned(),
                });
            }
            rows.push(counted);
        }
        Ok((keys, rows))
    }

    /// Moves all tables to the destination, and creates there what cannot be moved.
    fn publish(&mut self) -> Result<(), SqlError> {
        let (from, to) =
            (quoted(&staging::name(&self.server.database)), quoted(&self.server.database));
        let tables = self.manifest.tables.iter().map(|table| &table.name);
        let names = tables.chain(self.manifest.sequences.iter().map(|sequence| &sequence.name));
        let moved = names.map(|name| format!("{from}.{0} TO {to}.{0}", quoted(name)));
        let moved = moved.collect::<Vec<_>>().join(", ");
        let mut all = vec![format!("USE {to}")];
        if !moved.is_empty() {
            all.push(format!("RENAME TABLE {moved}"));
        }
        let code = self.statements(CODE)?;
        all.extend(self.rights.allowed(&mut self.server, code)?);
        all.extend(self.mark(&to)?);
        let done = staging::run(&mut self.server, &all.join(";\n"), "make the tables visible");
        done.inspect_err(|_| {
            // Objects that cannot be removed are still visible to the next load.
            let _ = self.take_back();
        })
    }

    /// Returns the statement that marks the database as a sample in its comment. An existing
    /// comment is kept; MySQL has none.
    fn mark(&mut self, database: &str) -> Result<Option<String>, SqlError> {
        if !self.server.is_mariadb {
            return Ok(None);
        }
        let comment = comment(&mut self.server.link, &self.server.database)?;
        let is_free = comment.is_none_or(|comment| comment.is_empty());
        let words = format!("{SAMPLE}{}", self.manifest.words());
        let words: String = words.chars().take(COMMENT_CHARS).collect();
        let words = words.replace('\\', "\\\\").replace('\'', "''");
        Ok(is_free.then(|| format!("ALTER DATABASE {database} COMMENT = '{words}'")))
    }

    /// Empties the destination, which was empty before.
    fn take_back(&mut self) -> Result<(), SqlError> {
        const WHAT: &str = "empty the destination";
        let link = &mut self.server.link;
        link.query_drop(format!("USE {}", quoted(&self.server.database))).during(WHAT)?;
        let drops: Vec<String> = answer::rows(link, DROPS).during(WHAT)?;
        staging::run(&mut self.server, &drops.join(";\n"), WHAT)
    }
}

/// State shared by the reader of a file and its observers.
#[derive(Default)]
struct Reading {
    /// Present until it is sent.
    file: Mutex<Option<File>>,
    ended: AtomicBool,
    lines: AtomicU64,
}

impl Reading {
    /// Sends the file, whatever file name the server requests.
    fn send(&self, out: &mut LocalInfile<'_>) -> io::Result<()> {
        let sent = || io::Error::other("the server asks for it twice");
        let mut file = self.file.lock().take().ok_or_else(sent)?;
        let mut bytes = vec![0; BUFFER_BYTES];
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let read = file.read(&mut bytes)?;
            if read == 0 {
                return Ok(());
            }
            out.write_all(&bytes[..read])?;
            let lines: u64 = bytes[..read].iter().map(|&byte| u64::from(byte == b'\n')).sum();
            self.lines.fetch_add(lines, Ordering::Relaxed);
        }
    }
}

/// Returns the number of rows loaded, and the first warning that stands for an error.
fn send(link: &mut Conn, text: &str) -> Result<(u64, Option<String>), mysql::Error> {
    link.query_drop(text)?;
    let rows = link.affected_rows();
    if link.warnings() == 0 {
        return Ok((rows, None));
    }
    let first: Option<(String, u32, String)> = answer::first(link, "SHOW WARNINGS LIMIT 1")?;
    Ok((rows, first.map(|(_, code, text)| format!("{text} (error {code})"))))
}

/// Returns the statement that loads a file, given its first words.
fn load_text(file: &DataFile, first: &str) -> String {
    let (mut columns, mut set) = (Vec::new(), Vec::new());
    for (at, name) in file.columns.iter().enumerate() {
        let (name, variable) = (quoted(name), format!("@v{at}"));
        if file.hex.contains(&at) {
            set.push(format!("{name} = UNHEX({variable})"));
        } else if file.bits.contains(&at) {
            set.push(format!("{name} = CAST({variable} AS UNSIGNED)"));
        } else {
            columns.push(name);
            continue;
        }
        columns.push(variable);
    }
    let set = if set.is_empty() { String::new() } else { format!(" SET {}", set.join(", ")) };
    format!(
        "{first} INTO TABLE {} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' \
         LINES TERMINATED BY '\\n' ({}){set}",
        quoted(&file.name),
        columns.join(", ")
    )
}

fn orphans_text(manifest: &Manifest, key: &KeyEntry) -> String {
    let child = quoted(&manifest.tables[key.table].name);
    let parent = quoted(&manifest.tables[key.references].name);
    let present = key.columns.iter().map(|name| format!("c.{} IS NOT NULL", quoted(name)));
    let equal = key.columns.iter().zip(&key.referenced);
    let equal = equal.map(|(own, other)| format!("p.{} = c.{}", quoted(other), quoted(own)));
    let when = key.when.as_ref();
    let when = when.map(|(name, is)| values::condition(&format!("c.{}", quoted(name)), is));
    let present = present.chain(when).collect::<Vec<_>>().join(" AND ");
    let equal = equal.collect::<Vec<_>>().join(" AND ");
    // Names may contain placeholders.
    with(
        ORPHANS,
        &[("present", &present), ("equal", &equal), ("parent", &parent), ("child", &child)],
    )
}

/// Makes the client refuse commands that access files and programs from there on, unless it runs
/// with `--binary-mode`, which disables such commands anyway. An old client fails with an error.
const SANDBOX: &str = "/*!999999\\- enable the sandbox mode */";

/// Writes a script that loads the same with the client, run in the directory. A malicious server
/// could have ended a literal early, so that a client command follows it.
pub fn write_script(dir: &HeldDir, manifest: &Manifest) -> Result<(), SqlError> {
    let [before, after, code] = [BEFORE, AFTER, CODE].map(|file| read_schema(dir, file, Ok));
    let mut text = format!(
        "{SANDBOX}\n-- mariadb --binary-mode --local-infile=1 DATABASE < {SCRIPT}, here, into an \
         empty database\n\
         SET NAMES utf8mb4;\nSET SESSION time_zone = '+00:00';\n{SETTINGS};\n{}",
        before?
    );
    for file in &manifest.files {
        let load = load_text(file, &format!("LOAD DATA LOCAL INFILE '{DATA}/{}'", file.file));
        text.extend([load, ";\n".to_owned()]);
    }
    for sequence in &manifest.sequences {
        let (name, called) = (quoted(&sequence.name), u8::from(sequence.is_called));
        text.extend([format!("DO SETVAL({name}, {}, {called});\n", sequence.last_value)]);
    }
    text.extend([after?, code?]);
    write_file(dir, SCRIPT, &text)
}
