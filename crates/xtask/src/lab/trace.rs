//! Checks that `trace` finds in a log what the run that caused it counted: PostgreSQL with
//! `auto_explain` and MariaDB with its slow log, each in the window of a run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};

/// Maximum relative difference between the two.
const TOLERANCE: f64 = 0.03;

const COLUMNS: &[Column] = &[
    column("executions", "executions", 0),
    column("reads", "blocks read\nan execution", 2),
    column("read_us", "storage read\nµs an execution", 1),
];

/// A private server, and how it logs every statement to a file.
struct Server {
    target: &'static str,
    option: &'static str,
    settings: &'static [&'static str],
    /// Returns the settings that name the file.
    file: fn(&Path) -> Vec<String>,
    cut: fn(&str, &Window) -> String,
    run_reads: fn(&Value) -> Result<Figures>,
}

const SERVERS: &[Server] = &[
    Server {
        target: "postgres:scratch",
        option: "--pg-conf",
        settings: &[
            "session_preload_libraries=auto_explain",
            "auto_explain.log_min_duration=0",
            "auto_explain.log_analyze=on",
            "auto_explain.log_buffers=on",
            "auto_explain.log_format=json",
            "track_io_timing=on",
            "logging_collector=on",
            "log_timezone=UTC",
            "log_line_prefix=%m [%p] ",
            "log_file_mode=0644",
            "log_rotation_size=0",
        ],
        file: |dir| {
            vec![format!("log_directory={}", dir.display()), "log_filename=server.log".to_owned()]
        },
        cut: cut_plans,
        run_reads: of_session,
    },
    Server {
        target: "mariadb:scratch",
        option: "--mariadb-conf",
        settings: &[
            "slow_query_log=ON",
            "long_query_time=0",
            "log_slow_verbosity=innodb",
            "log_output=FILE",
        ],
        file: |dir| vec![format!("slow_query_log_file={}/server.log", dir.display())],
        cut: cut_entries,
        run_reads: of_server,
    },
];

/// Reads of one execution; the time is unknown if the server counts none.
struct Figures {
    executions: f64,
    reads: f64,
    read_us: Option<f64>,
}

struct Window {
    from: Timestamp,
    to: Timestamp,
}

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    for server in SERVERS {
        product.begin(&format!("a run on {}", server.target))?;
        let dir = product.scratch().join(server.option.trim_start_matches('-'));
        fs::create_dir(&dir)?;
        // Servers that are started by root switch to a user of their own.
        fs::set_permissions(&dir, Permissions::from_mode(0o777))?;
        let ran = run_on(&product, server, &dir, lab.options.seconds)?;
        let log = fs::read(dir.join("server.log")).context("read the server's log")?;
        let part = dir.join("window.log");
        let text = String::from_utf8_lossy(&log);
        fs::write(&part, (server.cut)(&text, &Window::of(&ran)?))?;
        let mut command = Command::new(product.binary());
        let trace = product.document(command.args(["trace", "--json"]).arg(&part))?;
        let (ours, theirs) = (of_trace(&trace)?, (server.run_reads)(&ran)?);
        let name = server.target;
        goals.push(near(format!("{name}: blocks read, trace ÷ run"), ours.reads / theirs.reads));
        if let (Some(ours), Some(theirs)) = (ours.read_us, theirs.read_us) {
            goals.push(near(format!("{name}: storage read, trace ÷ run"), ours / theirs));
        }
        points.push(ours.point(format!("{name}: trace")));
        points.push(theirs.point(format!("{name}: run")));
    }
    Ok(Results { columns: COLUMNS, points, goals })
}

fn near(what: String, ratio: f64) -> Goal {
    Goal::near(what, ratio, 1.0, TOLERANCE)
}

fn run_on(product: &Product<'_>, server: &Server, dir: &Path, seconds: u32) -> Result<Value> {
    let mut command = Command::new(product.binary());
    command.args(["run", "--json", "--for", &format!("{seconds}s"), "--cache", "16M"]);
    command.args(["--scale", "64M", "--schemas", "1", "--threads", "2", "--update-pct", "10"]);
    command.args(["--target", server.target, "--runs-dir"]).arg(product.runs_dir());
    for setting in server.settings.iter().map(ToString::to_string).chain((server.file)(dir)) {
        command.args([server.option, &setting]);
    }
    product.document(command.arg(dir))
}

impl Window {
    fn of(run: &Value) -> Result<Self> {
        let path = run["recording"]["path"].as_str().context("find the recording")?;
        let manifest = fs::read_to_string(Path::new(path).join("manifest.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        let began: Timestamp =
            manifest["started_at"].as_str().context("find the beginning")?.parse()?;
        let phases = manifest["phases"].as_array().context("find the phases")?;
        let phase = phases.iter().find(|phase| phase["label"] == "run").context("find the run")?;
        let edge = |key: &str| -> Result<Timestamp> {
            let ns = phase[key].as_i64().with_context(|| format!("find {key}"))?;
            Ok(began + jiff::SignedDuration::from_nanos(ns))
        };
        Ok(Self { from: edge("window_start_ns")?, to: edge("window_end_ns")? })
    }
}

/// Returns the messages of the window.
fn cut_plans(log: &str, window: &Window) -> String {
    let text = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string();
    let (from, to) = (text(window.from), text(window.to));
    let mut kept = String::new();
    let mut keeps = false;
    for line in log.lines() {
        if let Some(time) = line.get(..from.len()).filter(|_| !line.starts_with('\t')) {
            keeps = (from.as_str()..=to.as_str()).contains(&time);
        }
        if keeps {
            kept.extend([line, "\n"]);
        }
    }
    kept
}

/// Returns the entries of the whole seconds in the window.
fn cut_entries(log: &str, window: &Window) -> String {
    let whole = window.from.as_second() + 1..window.to.as_second();
    let mut kept = String::new();
    for entry in log.split("# User@Host: ").skip(1) {
        let stamp = entry.split_once("SET timestamp=").and_then(|(_, rest)| rest.split_once(';'));
        if stamp.and_then(|(stamp, _)| stamp.parse().ok()).is_some_and(|at| whole.contains(&at)) {
            kept.extend(["# User@Host: ", entry]);
        }
    }
    kept
}

/// Returns the figures for the statements that the run's sessions execute.
fn of_trace(trace: &Value) -> Result<Figures> {
    let table = |name: &str| trace["tables"][name].as_array();
    let statements = table("statements").context("find the statements")?;
    let own = |statement: &&Value| {
        let text = statement["text"].as_str().unwrap_or_default();
        let verb = text.starts_with("select count") || text.starts_with("update");
        verb && text.contains("rows_0")
    };
    let own: Vec<&Value> = statements.iter().filter(own).collect();
    let sum = |of: &dyn Fn(&Value) -> f64| own.iter().map(|statement| of(statement)).sum::<f64>();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let executions = sum(&|statement| number(&statement["executions"]));
    let read_ns = sum(&|statement| {
        let components = table("components").into_iter().flatten();
        components
            .filter(|it| it["statement"] == statement["id"] && it["component"] == "storage read")
            .map(|it| number(&it["time_ns"]))
            .sum()
    });
    Ok(Figures {
        executions,
        reads: sum(&|statement| number(&statement["physical_reads"])) / executions,
        read_us: Some(read_ns / 1e3 / executions),
    })
}

/// Returns what PostgreSQL counted for sessions.
fn of_session(run: &Value) -> Result<Figures> {
    let (executions, reads) = (executions(run)?, role(run, "session")?);
    // PostgreSQL 16 and later time the reads of sessions separately.
    let mean_ns = reads["read_service_ns_mean"].as_f64();
    let reads = reads["read_ios"].as_f64().context("find the reads")? / executions;
    Ok(Figures { executions, reads, read_us: mean_ns.map(|mean_ns| reads * mean_ns / 1e3) })
}

/// Returns what `InnoDB` counted; it has no time of reads.
fn of_server(run: &Value) -> Result<Figures> {
    let executions = executions(run)?;
    let reads = role(run, "server")?["read_ios"].as_f64().context("find the reads")?;
    Ok(Figures { executions, reads: reads / executions, read_us: None })
}

fn role<'a>(run: &'a Value, name: &str) -> Result<&'a Value> {
    let mut roles = run["tables"]["io-roles"].as_array().context("find the roles")?.iter();
    roles.find(|role| role["role"] == name).with_context(|| format!("find the role {name}"))
}

/// Returns the number of statements in the window.
fn executions(run: &Value) -> Result<f64> {
    let rows = run["tables"]["load-profile"].as_array().context("find the load profile")?;
    let row = rows.iter().find(|row| row["statistic"] == "Executes").context("find executes")?;
    row["per_s"]["samples"].as_f64().context("find their number")
}

impl Figures {
    fn point(&self, name: String) -> Point {
        let values = vec![self.executions, self.reads, self.read_us.unwrap_or(f64::NAN)];
        Point { name, values }
    }
}
