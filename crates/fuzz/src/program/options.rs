//! Options that no one combines, drawn from the declarations of the command line: each with a value
//! that fits, one at a limit, or one that makes no sense.
//!
//! Everything named is in a directory made for it: no device, no server, no file of another user. A
//! command that would measure for long is interrupted. Afterwards the directory must hold what it
//! held before.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use blockstone_base::rng::Rng;
use blockstone_cli::Purpose;
use clap::{Arg, ArgAction, Command};

use super::runner::{Fault, RUNS, Start};
use super::{Outcome, Wanted, each};
use crate::mutate::ODD_NUMBERS;
use crate::targets::{flash, imports, reduce, workload};

/// Name that the program may write to; everything else must stay as it was.
const OUT: &str = "out";

const SIZES: &[&str] =
    &["1M", "4K", "8K", "64M", "16K", "0", "1", "8Q", "900T", "16E", "-1", "1.5G"];
const TIMES: &[&str] =
    &["1s", "100ms", "0s", "5s", "200ms", "0", "20", "1us", "99999d", "-1s", "1h"];
const READ: &[&str] = &[
    "data",
    "file",
    ".",
    "empty",
    "link",
    "pipe",
    "missing",
    "recording",
    "trace",
    "conf",
    "log",
    "model.toml",
    "pages",
    "/dev/null",
    "/dev/zero",
    "",
    "data/../file",
    "last",
    "recording@1s..2s",
];
const WRITTEN: &[&str] = &["out/a", "out/b", "out", "out/c/d", "out/a/b", "/dev/null/x", ""];
const TARGETS: &[&str] = &[
    "instance",
    "null",
    "sqlite:data",
    "sqlite:missing",
    "postgres://nobody@127.0.0.1:1/none",
    "mysql://nobody@127.0.0.1:1",
    "mariadb://u:p@127.0.0.1:1",
    "postgres://",
    "run:last",
    "x",
    "",
];
const PAIRS: &[&str] = &[
    "event=x",
    "a=b",
    "a=(",
    "=",
    "update=0,20",
    "sessions=1,8",
    "policy=greedy,fifo",
    "raw=1G,2G",
    "synchronous=OFF",
    "a=data",
    "a=data,file",
    "redo:2",
    "10ms..20ms/2",
    "8M@16M/3",
    "1m@2000",
    "uniform",
    "zipf=0.99",
    "oltp",
    "greedy",
    "d=5",
    "generic",
    "vdo",
    "lz4",
    "zstd:99",
];
const ADDRESSES: &[&str] = &["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "127.0.0.1", "x:1"];

/// A command without subcommands, and its words.
struct Leaf {
    words: Vec<String>,
    command: Command,
}

fn leaves(words: &[String], command: &Command, found: &mut Vec<Leaf>) {
    let mut is_leaf = true;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        is_leaf = false;
        let words = [words, &[below.get_name().to_owned()]].concat();
        leaves(&words, below, found);
    }
    if is_leaf {
        found.push(Leaf { words: words.to_vec(), command: command.clone() });
    }
}

/// Tries the verbs of these names, or all verbs, each with as many combinations as are wanted.
pub fn run(names: &[String], wanted: &Wanted) -> Vec<Outcome> {
    let mut declarations = blockstone_cli::declarations();
    // Adds the options of all verbs to each verb.
    declarations.build();
    let mut all = Vec::new();
    leaves(&[], &declarations, &mut all);
    all.retain(|leaf| names.is_empty() || names.contains(&leaf.words[0]));
    each(&all, wanted.jobs, |leaf| leaf.run(wanted))
}

impl Leaf {
    fn run(&self, wanted: &Wanted) -> Outcome {
        let (place, beside) =
            [(); 2].map(|()| tempfile::tempdir().expect("temporary files can be made")).into();
        prepare(place.path());
        let binary = &wanted.binary;
        let start = Start { binary, dir: place.path(), beside: beside.path(), measures: true };
        let mut outcome = Outcome { class: self.words.join(" "), ..Outcome::default() };
        for number in 0..wanted.inputs {
            let words = self.combination(&mut Rng::new(wanted.seed, number));
            let before = held(place.path());
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let ended = start.run(&arguments).expect("the program can be started");
            outcome.add(&ended);
            let may_leave = ["--keep", "--generate"].iter().any(|word| arguments.contains(word));
            let mut after = held(place.path());
            // The output is the last path named.
            if let Some(target) = arguments.last().filter(|_| self.writes_to_last()) {
                let is_meant = |name: &String| Path::new(name).starts_with(target);
                after.retain(|name, _| !is_meant(name));
                let kept = before.iter().filter(|(name, _)| is_meant(name));
                after.extend(kept.map(|(name, content)| (name.clone(), content.clone())));
            }
            let left = after != before && !may_leave;
            let left = left.then(|| Fault::Odd(differences(&before, &after)));
            if let Some(fault) = ended.fault().or(left) {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                outcome.find(&fault, &format!("blockstone {}", words.join(" ")));
            }
            prepare(place.path());
        }
        outcome
    }

    /// Returns whether it writes to the last of its arguments.
    fn writes_to_last(&self) -> bool {
        let last = self.command.get_arguments().filter(|arg| arg.is_positional()).last();
        last.and_then(Purpose::of).is_some_and(|it| matches!(it, Purpose::Copy | Purpose::Output))
    }

    /// Returns the words of the command, up to six options, and most of the arguments that it
    /// wants.
    fn combination(&self, rng: &mut Rng) -> Vec<String> {
        let mut words = self.words.clone();
        // With one value that makes no sense, nothing beyond the command line is reached.
        let is_odd = rng.below(2) == 0;
        // Colours are escape sequences that a terminal obeys, and the only ones that are ever
        // printed.
        let hidden = ["help", "version", "color"];
        let is_tried = |arg: &&Arg| !hidden.contains(&arg.get_id().as_str());
        let all: Vec<&Arg> = self.command.get_arguments().filter(is_tried).collect();
        let options: Vec<&&Arg> = all.iter().filter(|arg| !arg.is_positional()).collect();
        let required = options.iter().filter(|arg| arg.is_required_set());
        let mut chosen: Vec<&Arg> = required.map(|arg| **arg).collect();
        for _ in 0..rng.below(7) {
            chosen.push(options[rng.below(options.len() as u64) as usize]);
        }
        for arg in chosen {
            let Some(long) = arg.get_long() else { continue };
            words.push(format!("--{long}"));
            if arg.get_action().takes_values() && !is_optional(arg) {
                words.push(value(arg, is_odd, rng));
            }
        }
        for arg in all.iter().filter(|arg| arg.is_positional()) {
            let most = if matches!(arg.get_action(), ArgAction::Append) { 3 } else { 2 };
            let least = u64::from(arg.is_required_set());
            for _ in 0..rng.below(most).max(least) {
                words.push(value(arg, is_odd, rng));
            }
        }
        words
    }
}

fn is_optional(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.min_values() == 0)
}

fn pick(rng: &mut Rng, of: &[&str]) -> String {
    of[rng.below(of.len() as u64) as usize].to_owned()
}

/// Returns a value according to its name in the help; if `is_odd`, maybe one that does not fit.
fn value(arg: &Arg, is_odd: bool, rng: &mut Rng) -> String {
    let possible = arg.get_possible_values();
    if !(possible.is_empty() || is_odd && rng.below(8) == 0) {
        let names: Vec<&str> =
            possible.iter().map(clap::builder::PossibleValue::get_name).collect();
        return pick(rng, &names);
    }
    let id = arg.get_id().as_str();
    let written = ["out", "record", "save", "html", "runs_dir"];
    let name = arg.get_value_names().map_or("", |names| names[0].as_str());
    let fitting = match name {
        // `man` writes to its argument.
        "DIR" if written.contains(&id) || arg.is_positional() => WRITTEN,
        "FILE" if written.contains(&id) => WRITTEN,
        "TARGET" | "URL" => TARGETS,
        "ADDRESS:PORT" => ADDRESSES,
        _ if name.contains("TIME") || name.contains("WHEN") => TIMES,
        _ if name.contains("SIZE") || name.contains("BYTES") => SIZES,
        _ if name.contains("FILE") || name.contains("DIR") || name.contains("PATH") => READ,
        _ if ["RUN", "A", "B", "DEVICE"].contains(&name) => READ,
        _ if name.contains('=') || name.contains('/') => PAIRS,
        _ => &[][..],
    };
    // A path is always one of those known to be harmless.
    let harmless = [WRITTEN, READ, TARGETS, ADDRESSES].contains(&fitting);
    match rng.below(8) {
        _ if harmless => pick(rng, fitting),
        _ if !is_odd && fitting.is_empty() => pick(rng, &["1", "2", "8", "16", "50"]),
        _ if !is_odd => pick(rng, &fitting[..fitting.len().min(5)]),
        0 => pick(rng, PAIRS),
        1 => pick(rng, SIZES),
        2 => pick(rng, ODD_NUMBERS),
        _ if fitting.is_empty() => pick(rng, &["1", "2", "8", "16", "50", "99", "100", "x"]),
        _ => pick(rng, fitting),
    }
}

/// Makes the files that the values name, and removes what the program was allowed to write.
///
/// # Panics
/// If files cannot be made in `dir`.
pub fn prepare(dir: &Path) {
    let all = "temporary files can be made";
    for name in [OUT, RUNS] {
        let _ = fs::remove_dir_all(dir.join(name));
    }
    fs::create_dir(dir.join(OUT)).expect(all);
    if dir.join("data").exists() {
        return;
    }
    fs::create_dir(dir.join("data")).expect(all);
    let recording =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../blockstone/tests/fixtures/recording-1/watch");
    super::copy(Path::new(recording), &dir.join("recording"));
    let files = [
        ("file", vec![7; 1 << 20]),
        ("empty", Vec::new()),
        ("trace", flash::traces().swap_remove(0)),
        ("log", flash::logs().swap_remove(0)),
        ("conf", workload::confs().swap_remove(0)),
        ("collectl", imports::collectl().swap_remove(0)),
        ("model.toml", reduce::models().swap_remove(0)),
        ("pages", reduce::pages().swap_remove(0)),
    ];
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).expect(all);
    }
    symlink("file", dir.join("link")).expect(all);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = dir.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect(all);
}

/// Returns everything below `dir` except what may be written to, as path and content.
fn held(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut held = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).expect("temporary files can be read").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            let kind = entry.file_type().expect("temporary files can be read");
            if name == OUT || name == RUNS {
                continue;
            }
            let content = if kind.is_file() { fs::read(&path) } else { Ok(Vec::new()) };
            held.insert(name, content.unwrap_or_default());
            if kind.is_dir() {
                left.push(path);
            }
        }
    }
    held
}

fn differences(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> String {
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|n| format!("-{n}"));
    let new = after.keys().filter(|name| !before.contains_key(*name)).map(|n| format!("+{n}"));
    let other =
        before.iter().filter(|(name, content)| after.get(*name).is_some_and(|now| now != *content));
    let all: Vec<String> =
        gone.chain(new).chain(other.map(|(name, _)| format!("~{name}"))).collect();
    format!("changed the directory: {}", all.join(" "))
}
