//! The built binary, run as a user runs it: bad input, lies, known devices, interruptions, scripts.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![allow(clippy::print_stdout, reason = "a test's output is shown when it fails")]

mod attacks;
mod bad_input;
mod buffered;
mod bulk_write;
mod check;
mod claim;
mod copy;
mod demo;
mod destroy;
mod direct;
mod expect;
mod flash;
mod grid;
mod help;
mod interruptions;
mod known_devices;
mod lies;
mod limits;
mod made;
mod memory;
mod merge;
mod mixes;
mod noise;
mod offload;
mod oltp;
mod page_figures;
mod parts;
mod preconditioning;
mod reduce;
mod redundancy;
mod run;
mod run_report;
mod runs;
mod scripts;
mod size;
mod stores;
mod subset;
mod subset_mariadb;
mod targets;
mod threads;
mod trace;
mod turn;
mod watch;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{Ran, ScratchDir, blockstone_binary, run};
use serde_json::Value;
use turn::Turn;

/// A directory to measure and another for recordings, on a disk, and the turn of the test.
struct Place {
    scratch: ScratchDir,
    _turn: Turn,
}

/// Verbs that create or look up recordings.
const FINDS_RUNS: [&str; 14] = [
    "calibrate",
    "run",
    "noise",
    "flash",
    "copy",
    "size",
    "trace",
    "demo",
    "watch",
    "report",
    "compare",
    "merge",
    "runs",
    "config",
];

impl Place {
    /// For a test that measures: [`Turn::alone`].
    fn new() -> Self {
        Self::during(Turn::alone())
    }

    /// For a test of throttled devices: [`Turn::throttled`].
    fn throttled() -> Self {
        Self::during(Turn::throttled())
    }

    /// For a test whose outcome is the same on a busy machine: [`Turn::beside`].
    fn beside() -> Self {
        Self::during(Turn::beside())
    }

    fn during(turn: Turn) -> Self {
        let scratch = ScratchDir::on_disk().unwrap();
        for name in ["data", "runs"] {
            std::fs::create_dir(scratch.path().join(name)).unwrap();
        }
        Self { scratch, _turn: turn }
    }

    /// The directory under test.
    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// Directory of recordings.
    fn runs(&self) -> PathBuf {
        self.scratch.path().join("runs")
    }

    /// A path under the directory under test.
    fn file(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }

    /// `blockstone VERB` with recordings in this place.
    fn command(&self, verb: &str) -> Command {
        self.within(Command::new(blockstone_binary()), verb)
    }

    /// Adds the verb and its options to a command that was prepared to run the binary, for example
    /// under a cap.
    fn within(&self, mut command: Command, verb: &str) -> Command {
        command.arg(verb);
        if FINDS_RUNS.contains(&verb) {
            command.arg("--runs-dir").arg(self.runs());
        }
        command
    }

    /// The shortest calibration, with `--json`.
    fn calibrate(&self, arguments: &[&str], path: &Path) -> Ran {
        run(self.command("calibrate").args(["--brief", "--json"]).args(arguments).arg(path))
    }

    /// Starts `command` without output and waits until `far` accepts the manifest of its recording.
    fn start(&self, command: &mut Command, far: impl Fn(&Value) -> bool) -> Child {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_mins(1);
        while !self.manifest().as_ref().is_some_and(&far) {
            assert!(Instant::now() < patience, "not far enough: {:?}", self.manifest());
            std::thread::sleep(Duration::from_millis(50));
        }
        child
    }

    /// The manifest of the newest recording.
    fn manifest(&self) -> Option<Value> {
        let run = names(&self.runs()).pop()?;
        let text = std::fs::read_to_string(self.runs().join(run).join("manifest.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Names in the directory under test.
    fn left_in_data(&self) -> Vec<String> {
        names(&self.data())
    }
}

/// Copies the program. A separate process does this: programs that other tests start meanwhile
/// inherit open descriptors of this one, and a file that is open for writing cannot be executed.
fn copy_binary(to: &Path) {
    let copied = run(Command::new("cp").arg(blockstone_binary()).arg(to));
    assert_eq!(copied.code, Some(0), "{copied:#?}");
}

/// Sends `child` the signal `name`, for example `INT`.
fn signal(child: &Child, name: &str) {
    let ran = run(Command::new("kill").args(["-s", name]).arg(child.id().to_string()));
    assert_eq!(ran.code, Some(0));
}

/// Number of phases in a manifest.
fn phases(manifest: &Value) -> usize {
    manifest["phases"].as_array().map_or(0, Vec::len)
}

/// Names in `dir`, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Expects that it ran to its end. Whether its figures may be trusted depends on what else the
/// machine did meanwhile.
#[track_caller]
fn completed(ran: &Ran) {
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
}

/// The value of a measured figure, and the object that has its bounds: within `condemned` if a
/// verdict condemned it.
#[track_caller]
fn measured(figure: &Value) -> (f64, &Value) {
    let figure = figure.get("condemned").unwrap_or(figure);
    (figure["value"].as_f64().unwrap_or_else(|| panic!("not measured: {figure:#}")), figure)
}

/// Checks a `--json` document against the output of `blockstone schema` for the name it declares.
fn keeps_to_its_schema(document: &Value) {
    let name = document["schema"].as_str().and_then(|name| name.strip_prefix("blockstone."));
    let (name, _) = name.unwrap().split_once('/').unwrap();
    let schema = run(Command::new(blockstone_binary()).args(["schema", name])).json();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<_> = schema.iter_errors(document).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(document["version"] == 1 || !has_null(document), "{document:#}");
}

/// Whether it contains a null: from version 2 on, a missing value carries its reason instead.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(parts) => parts.iter().any(has_null),
        Value::Object(parts) => parts.values().any(has_null),
        _ => false,
    }
}

/// The rules that failed in a `--json` document.
fn failed_rules(document: &Value) -> Vec<String> {
    let verdicts = document["verdicts"].as_array().unwrap();
    verdicts
        .iter()
        .filter(|verdict| verdict["outcome"] == "fail")
        .map(|verdict| verdict["rule"].as_str().unwrap().to_owned())
        .collect()
}
