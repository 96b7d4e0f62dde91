//! Cost to PostgreSQL of a block that Blockstone asks for, compared with one that pgio asks for,
//! and the cost of asking: our process compared with the server's sessions that it keeps busy.
//!
//! **Whose is what.** pgio is Kevin Closson's "SLOB for PostgreSQL", version 1.0 of 2019, Apache
//! License 2.0, <https://github.com/therealkevinc/pgio>. *Its own* are:
//!
//! - the query, word for word: `SELECT sum(scratch) FROM … WHERE mykey BETWEEN … AND …`, a text
//!   assembled with the keys in it and run by `EXECUTE … INTO` in PL/pgSQL (`pgio.sql`);
//! - the loop around it: until its time is up, in one transaction, it draws a first key from 1 to
//!   the scale minus the work unit with a PL/pgSQL function of its own (`pgio_get_rand.sql`), and
//!   times each select;
//! - the work unit of 255 (`pgio.conf`), which visits 256 rows because `BETWEEN` includes both
//!   ends;
//! - the tables (`setup.sh`): `mykey` and `scratch` bigint, `filler` char(1024) full of X, fill
//!   factor 10 and so one row per block, a non-unique index on `mykey`, rows in the order of
//!   `scratch`, which is random;
//! - sessions of psql, with the server's settings as they are;
//! - the counter: `blks_read` of `pg_stat_database`.
//!
//! *Ours* are the text of the functions and of the loading, without updates, quotas and session
//! totals; the number of schemas and sessions; `VACUUM (FREEZE, ANALYZE)` and a checkpoint after
//! loading, as in our own target (pgio leaves hint bits to its first run and the plan to chance, so
//! this is in its favour); a scan of all rows and a warm-up call before the one that counts; the
//! processor time of its sessions.
//!
//! **How it is compared.** One private PostgreSQL 15 server is started. Both sides have the same
//! number of schemas, sessions and blocks, more than shared buffers hold, so that blocks are read,
//! from the page cache. Our side is the released program; its blocks and the processor time of its
//! sessions are its own figures for its window, at whose edges all sessions are working. The server
//! counts a transaction's blocks when the transaction ends, so pgio's window is one call in all
//! sessions, with both edges in the silence around it; both counts therefore cover the same work.
//! pgio's plan is the server's choice, a bitmap heap scan with prefetch; a column shows the same
//! without prefetch, for which there is no goal.
//!
//! Our process is observed from outside: the processor time of its threads, over the window.

mod psql;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use blockstone_base::Bytes;
use blockstone_sys::account;
use blockstone_testkit::{PostgresServer, build};
use jiff::Timestamp;
use serde_json::Value;

use self::psql::Psql;
use super::{Extent, Options, median};
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::line;

/// Minimum ratio of our blocks per CPU-second to pgio's.
const RATIO_GOAL: f64 = 1.0;
/// Maximum processor time of our process, as a share of that of the server's sessions.
const CLIENT_RATIO_GOAL: f64 = 0.1;

/// Schemas of each side, with one session each.
const SCHEMAS: u64 = 2;
/// Rows, and so blocks, that a select visits.
const WORK_UNIT: u64 = 256;
const BLOCK_BYTES: u64 = 8192;
/// Default of both the server and our program.
const SHARED_BUFFERS: Bytes = Bytes::mib(128);
/// Size of one of our schemas when shared buffers hold all of them.
const SMALL_SCHEMA: Bytes = Bytes::mib(24);
/// With a larger share of the blocks read from the disk, the run does not test processor time.
const DISK_RATIO_MAX: f64 = 0.01;

/// Attempts per side before a failure is an error.
const ATTEMPTS: u32 = 3;
/// Interval at which our process is sampled.
const LOOK: Duration = Duration::from_millis(20);

const COLUMNS: &[Column] = &[
    column("blocks_per_cpu_s", "ours\nblocks/CPU-s", 0),
    column("pgio_blocks_per_cpu_s", "pgio\nblocks/CPU-s", 0),
    column("ratio", "\nratio", 3),
    column("pgio_no_prefetch_blocks_per_cpu_s", "pgio, no\nprefetch", 0),
    column("client_ratio", "client ÷ server,\npage cache", 4),
    column("buffered_client_ratio", "client ÷ server,\nshared buffers", 4),
];

/// Our rewrite of what pgio's own functions do for a select; only the query is unchanged.
const FUNCTIONS: &str = include_str!("pgio/functions.sql");

/// Blocks read, and the processor time that the sessions spent on them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    blocks: f64,
    cpu_ns: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Ours {
    work: Work,
    client_cpu_ns: f64,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    ours: Work,
    pgio: Work,
    without_prefetch: Work,
    client_ratio: f64,
    buffered_client_ratio: f64,
}

impl Work {
    fn blocks_per_cpu_s(&self) -> f64 {
        self.blocks / (self.cpu_ns / 1e9)
    }
}

impl Ours {
    fn client_ratio(&self) -> f64 {
        self.client_cpu_ns / self.work.cpu_ns
    }
}

impl Round {
    fn ratio(&self) -> f64 {
        self.ours.blocks_per_cpu_s() / self.pgio.blocks_per_cpu_s()
    }

    fn values(&self) -> Vec<f64> {
        let [ours, pgio, without] =
            [self.ours, self.pgio, self.without_prefetch].map(|work| work.blocks_per_cpu_s());
        vec![ours, pgio, self.ratio(), without, self.client_ratio, self.buffered_client_ratio]
    }
}

pub fn run(options: &Options) -> Result<Results> {
    let Extent { seconds, rounds, size } = options.extent();
    ensure!(
        size.get() >= 2 * SHARED_BUFFERS.get(),
        "compare with {size} in all: most of it would be in shared buffers, {SHARED_BUFFERS}\n\
         hint: give --size 1G"
    );
    let binary = build(&["--release", "--package", "blockstone", "--bin", "blockstone"])?;
    let shared_buffers = format!("shared_buffers={}kB", SHARED_BUFFERS.get() / 1024);
    let server = PostgresServer::start(15, &[&shared_buffers])?;
    let scale = size.get() / SCHEMAS / BLOCK_BYTES;
    let pgio = Pgio::load(&server, scale)?;
    eprintln!(
        "{SCHEMAS} schemas of {scale} blocks and as many sessions on each side, {WORK_UNIT} rows \
         a select, {seconds} s each; shared buffers of {SHARED_BUFFERS}\npgio: {}",
        pgio.plan()?
    );
    let client = Client { server: &server, binary, seconds };
    let mut done = Vec::new();
    for number in 1..=rounds {
        let ours = || attempt("ours", || client.run(scale, true));
        let of_pgio = |prefetch: &str| attempt("pgio", || pgio.run(seconds, prefetch));
        let both = || Ok::<_, anyhow::Error>([of_pgio("")?, of_pgio("0")?]);
        let (ours, [pgio, without_prefetch]) = if number % 2 == 1 {
            (ours()?, both()?)
        } else {
            // The sides take turns to go first in a round.
            let both = both()?;
            (ours()?, both)
        };
        let small = SMALL_SCHEMA.get() / BLOCK_BYTES;
        let buffered = attempt("ours in shared buffers", || client.run(small, false))?;
        done.push(Round {
            ours: ours.work,
            pgio,
            without_prefetch,
            client_ratio: ours.client_ratio(),
            buffered_client_ratio: buffered.client_ratio(),
        });
        eprintln!("round {number} of {rounds} done");
    }
    conclude(&done)
}

/// Measures a side, retrying if that fails, for example because the page cache was dropped.
fn attempt<T>(side: &str, measure: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match measure() {
            Ok(measured) => return Ok(measured),
            Err(error) => eprintln!("{side}: {error:#}; retrying once"),
        }
    }
    measure().with_context(|| format!("measure {side}"))
}

fn conclude(rounds: &[Round]) -> Result<Results> {
    let middle = |part: fn(&Round) -> f64| median(rounds.iter().map(part).collect());
    let goals = vec![
        Goal::at_least("blocks a CPU-second: ours ÷ pgio", middle(Round::ratio)?, RATIO_GOAL),
        Goal::at_most(
            "CPU of client ÷ server, from the page cache",
            middle(|round| round.client_ratio)?,
            CLIENT_RATIO_GOAL,
        ),
        Goal::at_most(
            "CPU of client ÷ server, from shared buffers",
            middle(|round| round.buffered_client_ratio)?,
            CLIENT_RATIO_GOAL,
        ),
    ];
    let point = |(number, round): (u32, &Round)| Point {
        name: format!("round {number}"),
        values: round.values(),
    };
    Ok(Results { columns: COLUMNS, points: (1..).zip(rounds).map(point).collect(), goals })
}

/// pgio's side, with its tables loaded.
struct Pgio<'a> {
    server: &'a PostgresServer,
    scale: u64,
}

/// Counters at an edge of pgio's window.
#[derive(Clone, Copy, Debug)]
struct Edge {
    read: u64,
    visited: u64,
    cpu_ns: u64,
    disk_bytes: u64,
}

impl<'a> Pgio<'a> {
    fn load(server: &'a PostgresServer, scale: u64) -> Result<Self> {
        let mut link = Psql::connect(server, "")?;
        link.ask(FUNCTIONS)?;
        link.ask(&format!(
            "CREATE TABLE pgio_base AS SELECT mykey::bigint,
                (random() * 1000000000)::bigint AS scratch, repeat('X', 1024)::char(1024) AS filler
            FROM generate_series(1, {scale}) AS mykey ORDER BY scratch"
        ))?;
        for schema in 1..=SCHEMAS {
            link.ask(&format!(
                "CREATE TABLE pgio{schema} (mykey bigint, scratch bigint, filler char(1024))
                    WITH (fillfactor = 10);
                CREATE INDEX ON pgio{schema} (mykey);
                INSERT INTO pgio{schema} SELECT * FROM pgio_base;
                VACUUM (FREEZE, ANALYZE) pgio{schema}"
            ))?;
            let bytes = link.ask(&format!("SELECT pg_relation_size('pgio{schema}')"))?;
            ensure!(
                bytes == (scale * BLOCK_BYTES).to_string(),
                "pgio{schema} has {bytes} bytes, not a block for each of {scale} rows"
            );
        }
        link.ask("DROP TABLE pgio_base; CHECKPOINT")?;
        Ok(Self { server, scale })
    }

    fn plan(&self) -> Result<String> {
        let mut link = Psql::connect(self.server, "")?;
        let ask = format!(
            "EXPLAIN (COSTS OFF) SELECT sum(scratch) FROM pgio1 WHERE mykey BETWEEN 1 AND \
             {WORK_UNIT}"
        );
        let plan = link.ask(&ask)?;
        Ok(plan.lines().map(str::trim).collect::<Vec<_>>().join(" "))
    }

    /// Runs pgio's selects for `seconds` in fresh sessions that prefetch this many blocks, or the
    /// server's default number if it is empty.
    fn run(&self, seconds: u32, prefetch: &str) -> Result<Work> {
        let options = match prefetch {
            "" => String::new(),
            blocks => format!("-c effective_io_concurrency={blocks}"),
        };
        let mut control = Psql::connect(self.server, "")?;
        let mut sessions = Vec::new();
        for _ in 0..SCHEMAS {
            sessions.push(Psql::connect(self.server, &options)?);
        }
        for schema in 1..=SCHEMAS {
            // The page cache may have dropped the table meanwhile.
            control.ask(&format!("SELECT count(filler) FROM pgio{schema}"))?;
        }
        self.call(&mut sessions, seconds.div_ceil(2))?;
        let before = edge(&mut control, &sessions)?;
        let selects = self.call(&mut sessions, seconds)?;
        let after = edge(&mut control, &sessions)?;
        let blocks = after.read - before.read;
        ensure!(
            after.visited - before.visited >= selects * WORK_UNIT,
            "the server counted {} blocks for {selects} selects of {WORK_UNIT}",
            after.visited - before.visited
        );
        from_memory(after.disk_bytes - before.disk_bytes, blocks)?;
        Ok(Work { blocks: blocks as f64, cpu_ns: (after.cpu_ns - before.cpu_ns) as f64 })
    }

    /// Runs one transaction in each session, all at the same time, and returns the number of
    /// selects.
    fn call(&self, sessions: &mut [Psql], seconds: u32) -> Result<u64> {
        let (scale, work_unit) = (self.scale, WORK_UNIT - 1);
        for (schema, session) in (1..).zip(sessions.iter_mut()) {
            session.send(&format!(
                "SELECT selects('pgio{schema}', {seconds}, {scale}, {work_unit});
                SELECT pg_stat_force_next_flush()"
            ))?;
        }
        let count = |session: &mut Psql| {
            session.answer()?.parse::<u64>().context("read the number of selects")
        };
        sessions.iter_mut().map(count).sum()
    }
}

fn edge(control: &mut Psql, sessions: &[Psql]) -> Result<Edge> {
    let counts = control.ask(
        "SELECT blks_read, blks_read + blks_hit FROM pg_stat_database
        WHERE datname = current_database()",
    )?;
    let (read, visited) = counts.split_once('|').context("read the server's counts")?;
    let mut edge =
        Edge { read: read.parse()?, visited: visited.parse()?, cpu_ns: 0, disk_bytes: 0 };
    for session in sessions {
        let (cpu_ns, disk_bytes) = session.account()?;
        edge.cpu_ns += cpu_ns;
        edge.disk_bytes += disk_bytes;
    }
    Ok(edge)
}

fn from_memory(disk_bytes: u64, blocks: u64) -> Result<()> {
    ensure!(blocks > 0, "compare blocks read: there were none");
    let ratio = disk_bytes as f64 / (blocks * BLOCK_BYTES) as f64;
    ensure!(
        ratio <= DISK_RATIO_MAX,
        "compare processor time: {:.0} % of the blocks came from the disk, not the page cache\n\
         hint: give a smaller --size, or run it where more memory is free",
        ratio * 100.0
    );
    Ok(())
}

struct Client<'a> {
    server: &'a PostgresServer,
    binary: PathBuf,
    seconds: u32,
}

impl Client<'_> {
    /// Runs our program on schemas of `scale` blocks. `reads` says whether blocks are read or are
    /// all found in shared buffers.
    fn run(&self, scale: u64, reads: bool) -> Result<Ours> {
        let dir = self.server.dir();
        let [recording, answer, said] = ["recording", "answer", "said"].map(|name| dir.join(name));
        // A failed run may have left one behind.
        let _ = fs::remove_dir_all(&recording);
        let mut command = Command::new(&self.binary);
        command.args(["run", "--json", "--quiet", "--update-pct", "0", "--target"]);
        command.arg(self.server.socket_address()).arg("--out").arg(&recording);
        for (option, value) in [
            ("--schemas", SCHEMAS),
            ("--sessions", SCHEMAS),
            ("--scale", scale),
            ("--work-unit", WORK_UNIT),
        ] {
            command.arg(option).arg(value.to_string());
        }
        command.arg("--for").arg(format!("{}s", self.seconds)).stdin(Stdio::null());
        command.stdout(File::create(&answer)?).stderr(File::create(&said)?);
        let child = command.spawn().with_context(|| format!("start {}", line(&command)))?;
        let (code, looks) = watch(child)?;
        let said = fs::read_to_string(said)?;
        // Here, exit code 3 says that a memory test is not a test of a disk.
        ensure!(matches!(code, Some(0 | 1 | 3)), "`{}` failed: {}", line(&command), said.trim());
        let document = serde_json::from_slice(&fs::read(answer)?).context("read its answer")?;
        let manifest = fs::read(recording.join("manifest.json")).context("read its manifest")?;
        let manifest = serde_json::from_slice(&manifest).context("read its manifest")?;
        fs::remove_dir_all(&recording).context("remove the recording")?;
        let (work, disk_bytes) = figures(&document)?;
        if reads {
            from_memory(disk_bytes, work.blocks as u64)?;
        }
        let window = window(&manifest).context("find the window in its manifest")?;
        let client_cpu_ns = spent(&looks, window).context("look at our process in its window")?;
        Ok(Ours { work, client_cpu_ns })
    }
}

/// Wall-clock time in nanoseconds, and the processor time of all threads up to then.
type Look = (i128, f64);

/// Samples a process until it ends; returns its exit code and the samples.
fn watch(mut child: Child) -> Result<(Option<i32>, Vec<Look>)> {
    let (root, pid) = (Path::new("/"), child.id());
    let mut looks = Vec::new();
    loop {
        if let Some(status) = child.try_wait().context("wait for our program")? {
            return Ok((status.code(), looks));
        }
        let threads = account::threads(root, pid).into_iter();
        let accounts = threads.filter_map(|(thread, _)| account::account(root, pid, Some(thread)));
        let cpu_ns: u64 = accounts.filter_map(|account| account.cpu_ns).sum();
        looks.push((Timestamp::now().as_nanosecond(), cpu_ns as f64));
        sleep(LOOK);
    }
}

/// Returns blocks and processor time of the sessions in the window, and bytes read from the disk.
fn figures(document: &Value) -> Result<(Work, u64)> {
    let stop = document["stop"].as_str().unwrap_or("nothing");
    ensure!(stop == "time limit", "find a whole window in its answer: {stop} ended it");
    let of = |list: &str, key: &str, name: &str| {
        let mut rows = document["tables"][list].as_array().into_iter().flatten();
        rows.find(|row| row[key] == name).cloned().unwrap_or_default()
    };
    let figure = |value: &Value, what: &str| {
        value.as_f64().with_context(|| format!("find {what} in its answer: it is {value}"))
    };
    let (session, ledger) = (of("io-roles", "role", "session"), of("ledger", "what", "reads"));
    let blocks = figure(&session["read_ios"], "the blocks that sessions read")?;
    let cpu_ns = figure(&document["session_cpu_ns"], "the CPU time of sessions")?;
    let disk_bytes = figure(&ledger["process"], "the bytes that the disk gave")?;
    Ok((Work { blocks, cpu_ns }, disk_bytes as u64))
}

/// Returns the start and end of the window of selects, in wall-clock time.
fn window(manifest: &Value) -> Option<[i128; 2]> {
    let started: Timestamp = manifest["started_at"].as_str()?.parse().ok()?;
    let phase = manifest["phases"].as_array()?.iter().find(|phase| phase["group"] == "workload")?;
    let edge = |name: &str| Some(started.as_nanosecond() + i128::from(phase[name].as_u64()?));
    Some([edge("window_start_ns")?, edge("window_end_ns")?])
}

/// Returns the processor time between two instants, interpolated linearly between samples.
fn spent(looks: &[Look], [begin, end]: [i128; 2]) -> Option<f64> {
    let at = |instant: i128| {
        let after = looks.iter().position(|(when, _)| *when >= instant)?;
        let ((from, before), (to, then)) = (looks[after.checked_sub(1)?], looks[after]);
        Some(before + (then - before) * (instant - from) as f64 / (to - from) as f64)
    };
    Some(at(end)? - at(begin)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_figures_of_a_run_are_found_where_its_window_is_whole() {
        let mut document = json!({
            "stop": "time limit",
            "session_cpu_ns": 2_000_000_000,
            "tables": {
                "io-roles": [{"role": "x"}, {"role": "session", "read_ios": 600}],
                "ledger": [{"what": "reads", "process": 8192}],
            },
        });
        let (work, disk_bytes) = figures(&document).unwrap();
        assert!((work.blocks_per_cpu_s() - 300.0).abs() < 1e-9);
        assert_eq!(disk_bytes, 8192);
        document["stop"] = json!("interrupted");
        let said = |document: &Value| figures(document).unwrap_err().to_string();
        assert!(said(&document).contains("interrupted ended it"), "{}", said(&document));
        document["stop"] = json!("time limit");
        document["session_cpu_ns"] = Value::Null;
        assert!(said(&document).contains("CPU time of sessions in its answer: it is null"));
        assert!(figures(&json!({})).is_err());
    }

    #[test]
    fn a_process_is_charged_for_its_window_only() {
        let manifest = json!({
            "started_at": "2026-11-22T23:59:59.5Z",
            "phases": [
                {"group": "load", "window_start_ns": 1, "window_end_ns": 2},
                {"group": "workload", "window_start_ns": 5, "window_end_ns": 25},
            ],
        });
        let [begin, end] = window(&manifest).unwrap();
        assert_eq!((begin % 1_000_000_000, end - begin), (500_000_005, 20));
        let origin = begin - 5;
        let looks = [(0, 100.0), (10, 120.0), (20, 150.0), (30, 250.0)];
        let looks = looks.map(|(when, cpu_ns)| (origin + when, cpu_ns));
        // From 110 at 5, through 150 at 20, to 200 at 25.
        assert!((spent(&looks, [begin, end]).unwrap() - 90.0).abs() < 1e-9);
        assert_eq!(spent(&looks[..3], [begin, end]), None, "no sample at its end");
        assert_eq!(window(&json!({"started_at": "soon"})), None);
    }

    #[test]
    fn a_side_is_tried_again_but_not_for_ever() {
        let tries = std::cell::Cell::new(0);
        let fails = |times: u32| {
            tries.set(0);
            attempt("x", || {
                tries.set(tries.get() + 1);
                ensure!(tries.get() > times, "no");
                Ok(tries.get())
            })
        };
        assert_eq!(fails(2).unwrap(), 3);
        assert!(fails(ATTEMPTS).is_err());
        assert_eq!(tries.get(), ATTEMPTS);
    }

    #[test]
    fn the_disk_must_not_take_part() {
        assert!(from_memory(BLOCK_BYTES, 1_000).is_ok());
        let error = from_memory(BLOCK_BYTES * 20, 1_000).unwrap_err().to_string();
        assert!(error.contains("2 % of the blocks came from the disk"), "{error}");
        assert!(from_memory(0, 0).is_err());
    }

    #[test]
    fn the_middle_round_is_held_against_the_goals() {
        let round = |ours: f64, client_ratio: f64| {
            let [ours, pgio] = [ours, 100.0].map(|blocks| Work { blocks, cpu_ns: 1e9 });
            let (without_prefetch, buffered_client_ratio) = (pgio, 0.2);
            Round { ours, pgio, without_prefetch, client_ratio, buffered_client_ratio }
        };
        let rounds = [round(90.0, 0.05), round(110.0, 0.2), round(120.0, 0.01)];
        let results = conclude(&rounds).unwrap();
        let met: Vec<bool> = results.goals.iter().map(Goal::is_met).collect();
        assert_eq!(met, [true, true, false]);
        assert!(results.points.iter().all(|point| point.values.len() == COLUMNS.len()));
        assert!(conclude(&[]).is_err());
    }
}
