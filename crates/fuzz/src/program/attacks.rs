//! Attacks on every path of every command, by the owner of the directory that the path is in: links
//! to files, directories and devices of root, pipes, hard links to root's files, and names that
//! change while the program runs.
//!
//! Commands and paths come from the declarations of the command line, and each path declares its
//! purpose ([`Purpose`]), so a new verb or argument is attacked without being named here. [`ways`]
//! has the arguments of those that need more than a path. Each command is first run without an
//! attack and must end well, which shows that the attacked path is one that is reached.
//!
//! Afterwards the files of root and the device must be as they were, none of their contents may be
//! where the attacker can read it, and the program must have ended as it should.

mod device;
mod fixtures;
mod plant;
mod ways;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_cli::Purpose;
use blockstone_testkit::{Attacker, Played, STRANGER, ScratchDir, Victims, leaked};
use clap::{Arg, Command};
use serde::Serialize;

use super::runner::{Ended, Fault, Start};
use super::{Wanted, each};
use device::Device;
use plant::{Attack, Owner, Planted, Scene};
use ways::{Honest, Reach, WAYS, Way};

const CAN: &str = "temporary files can be made";
/// Command on which a test attacks the options of all verbs: the code behind them exists once.
const COMMON_OF: &str = "claim";
/// Stands for the process ID in a name that the program makes.
const PID: &str = "{pid}";

/// Extent of the attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Everything that can be planted, in one directory, and the races on what is measured.
    Short,
    /// All attacks, in all directories.
    Whole,
}

/// Results of one command.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Attacked {
    pub class: String,
    /// Paths of the command that are reached.
    pub paths: u64,
    /// Runs under an attack.
    pub cells: u64,
    /// Cells after which a file or device of root had changed.
    pub touched: u64,
    /// Cells after which the attacker could read root's data.
    pub disclosed: u64,
    /// Cells in which the program opened a file that only the attacker could have put in its path.
    pub opened: u64,
    pub panics: u64,
    pub aborts: u64,
    pub hangs: u64,
    /// Another exit code, an error without a hint, or a path that an honest run does not reach.
    pub odd: u64,
    pub seconds: f64,
    pub findings: Vec<String>,
}

impl Attacked {
    pub const HEADING: &str = "class                paths   cells  touched  disclosed   opened   \
                               panics   aborts    hangs      odd  seconds";

    pub fn is_clean(&self) -> bool {
        let bad = [self.touched, self.disclosed, self.opened, self.panics, self.aborts, self.hangs];
        bad.iter().sum::<u64>() + self.odd == 0
    }

    fn find(&mut self, seen: &AttackEffect, how: &str) {
        let bad = match seen {
            AttackEffect::Touched(_) => &mut self.touched,
            AttackEffect::Disclosed(_) => &mut self.disclosed,
            AttackEffect::Opened => &mut self.opened,
            AttackEffect::Ended(Fault::Panic(_)) => &mut self.panics,
            AttackEffect::Ended(Fault::Abort(_)) => &mut self.aborts,
            AttackEffect::Ended(Fault::Hang) => &mut self.hangs,
            AttackEffect::Ended(Fault::Odd(_)) => &mut self.odd,
        };
        *bad += 1;
        self.findings.push(format!("{seen} [{how}]"));
    }
}

impl fmt::Display for Attacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<20} {:>5} {:>7} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8.1}",
            self.class,
            self.paths,
            self.cells,
            self.touched,
            self.disclosed,
            self.opened,
            self.panics,
            self.aborts,
            self.hangs,
            self.odd,
            self.seconds,
        )?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// An attack on a path.
#[derive(Clone, Copy)]
struct Cell {
    attack: Attack,
    owner: Owner,
    tried: u32,
}

/// Effect of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AttackEffect {
    Touched(String),
    Disclosed(String),
    Opened,
    Ended(Fault),
}

impl AttackEffect {
    /// Returns whether nothing changed except that there are new names.
    fn is_of_new_names(&self) -> bool {
        let is_new = |what: &str| what.ends_with(" was made");
        matches!(self, Self::Touched(changes) if changes.split(", ").all(is_new))
    }
}

impl fmt::Display for AttackEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Touched(what) => write!(f, "touched: {what}"),
            Self::Disclosed(what) => write!(f, "disclosed: {what}"),
            Self::Opened => f.write_str("opened what it was led to"),
            Self::Ended(fault) => fault.fmt(f),
        }
    }
}

/// A command that can be run without a subcommand, with its paths.
struct Leaf {
    words: Vec<String>,
    reaches: Vec<Reach>,
    /// Options that all verbs have; a command may refuse those that mean nothing to it.
    common: Vec<String>,
    /// Arguments whose paths are measured.
    scratch: Vec<String>,
    measures: bool,
    plain: Vec<String>,
}

/// Makes the fixtures of all commands in an existing directory.
pub fn lay_fixtures(dir: &Path) {
    fixtures::make(dir);
}

/// Tries the verbs of these names, or all verbs, and calls `done` with each finished command.
pub fn run(
    names: &[String],
    depth: Depth,
    wanted: &Wanted,
    done: &(dyn Fn(&Attacked) + Sync),
) -> Vec<Attacked> {
    let devices = Mutex::new(Vec::new());
    let mut all = commands();
    all.retain(|leaf| names.is_empty() || names.contains(&leaf.words[0]));
    each(&all, wanted.jobs, |leaf| {
        let mut pool = devices.lock().unwrap_or_else(PoisonError::into_inner);
        let device = pool.pop();
        drop(pool);
        let device = device.unwrap_or_else(Device::make);
        let attacked = leaf.run(&device, depth, wanted);
        devices.lock().unwrap_or_else(PoisonError::into_inner).push(device);
        done(&attacked);
        attacked
    })
}

/// Returns every command of the declarations that does something on its own.
fn commands() -> Vec<Leaf> {
    let mut declarations = blockstone_cli::declarations();
    declarations.build();
    let mut all = Vec::new();
    gather(&[], &declarations, &mut all);
    all
}

fn gather(words: &[String], command: &Command, all: &mut Vec<Leaf>) {
    let below = || command.get_subcommands().filter(|below| below.get_name() != "help");
    if !command.is_subcommand_required_set() {
        all.push(Leaf::new(words.to_vec(), command));
    }
    for command in below() {
        gather(&[words, &[command.get_name().to_owned()]].concat(), command, all);
    }
}

impl Leaf {
    fn new(words: Vec<String>, command: &Command) -> Self {
        let name = words.join(" ");
        let way = WAYS.iter().find(|way| way.of == name);
        let paths: Vec<(&Arg, Purpose)> = command
            .get_arguments()
            .filter_map(|arg| Some((arg, Purpose::of(arg)?)))
            .filter(|(_, purpose)| *purpose != Purpose::Program)
            .collect();
        let words_of = |way: &Way| way.plain.iter().map(|word| (*word).to_owned()).collect();
        let required = paths.iter().filter(|(arg, _)| arg.is_positional() && arg.is_required_set());
        let plain: Vec<String> = way.map_or_else(
            || required.map(|(_, purpose)| honest(*purpose).name().to_owned()).collect(),
            words_of,
        );
        let mut reaches: Vec<Reach> = way.map_or(&[][..], |way| way.paths).to_vec();
        let (mut common, mut scratch) = (Vec::new(), Vec::new());
        for (arg, purpose) in paths {
            let id = arg.get_id().as_str();
            if purpose == Purpose::Scratch {
                scratch.push(id.to_owned());
            }
            if arg.is_global_set() {
                common.push(id.to_owned());
            }
            if !reaches.iter().any(|reach| reach.argument == id) {
                reaches.push(derived(arg, purpose));
            }
        }
        let measures = way.is_some_and(|way| way.measures);
        Self { words, reaches, common, scratch, measures, plain }
    }

    fn run(&self, device: &Device, depth: Depth, wanted: &Wanted) -> Attacked {
        let started = Instant::now();
        let scratch = ScratchDir::on_disk().expect(CAN);
        let place = Directories::make(self, scratch.path(), device, wanted);
        let mut attacked = Attacked { class: self.words.join(" "), ..Attacked::default() };
        let is_brief = depth == Depth::Short && self.words != [COMMON_OF];
        for reach in self.reaches.iter().filter(|reach| !is_brief || !self.is_common(reach)) {
            let (made, unreached) = place.in_peace(self, reach);
            if let Some(what) = unreached {
                if !self.is_common(reach) {
                    let line = self.line(reach, Path::new("PATH"));
                    attacked.find(&AttackEffect::Ended(Fault::Odd(what)), &shown(&line));
                }
                continue;
            }
            attacked.paths += 1;
            for (owner, attack) in self.cells(reach, depth) {
                attacked.cells += 1;
                for tried in 0..attack.tries(depth == Depth::Short) {
                    let cell = Cell { attack, owner, tried };
                    let (all, line) = place.attack(self, reach, cell, &made);
                    for seen in &all {
                        let how = format!("{} in {}: {line}", attack.name(), owner.name());
                        attacked.find(seen, &how);
                    }
                    if !all.is_empty() {
                        break;
                    }
                }
            }
        }
        attacked.seconds = started.elapsed().as_secs_f64();
        attacked
    }

    fn is_common(&self, reach: &Reach) -> bool {
        self.common.iter().any(|name| name == reach.argument)
    }

    /// Returns the attacks on a path. A short test makes everything that can be planted in a
    /// directory of the attacker, and races only in a directory in which files are made. For
    /// commands that measure, which take seconds, it leaves out attacks that only lead to another
    /// directory; its caller leaves out options that other commands share.
    fn cells(&self, reach: &Reach, depth: Depth) -> Vec<(Owner, Attack)> {
        let is_short = depth == Depth::Short;
        let is_place = matches!(reach.honest, Honest::Within(_));
        let is_tried = |owner: Owner, attack: Attack| {
            let needs_root = matches!(attack, Attack::Device | Attack::Null);
            let is_short_one = (owner == Owner::Stranger || needs_root)
                && (is_place || !attack.is_race())
                && (!self.measures || !attack.directs() || attack.is_race());
            attack.applies(reach.honest, owner) && (!is_short || is_short_one)
        };
        let all =
            Owner::ALL.iter().flat_map(|&owner| Attack::ALL.iter().map(move |&at| (owner, at)));
        all.filter(|&(owner, attack)| is_tried(owner, attack)).collect()
    }

    /// Returns the command line with `path` in place of the attacked one.
    fn line(&self, reach: &Reach, path: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = self.words.iter().map(OsString::from).collect();
        if reach.with.is_empty() {
            line.extend(self.plain.iter().map(OsString::from));
            line.push(format!("--{}", reach.argument.replace('_', "-")).into());
            line.push(path.into());
        }
        for word in reach.with {
            let (before, after) = word.split_once("{}").unwrap_or((word, ""));
            let mut whole = OsString::from(before);
            if word.contains("{}") {
                whole.push(path);
            }
            whole.push(after);
            line.push(whole);
        }
        line
    }
}

/// Returns how a path is reached if no way names it.
fn derived(arg: &Arg, purpose: Purpose) -> Reach {
    let argument: &'static str = String::leak(arg.get_id().as_str().to_owned());
    let with: &[&str] = if arg.is_positional() { &["{}"] } else { &[] };
    Reach { argument, honest: honest(purpose), with, ends: "" }
}

fn honest(purpose: Purpose) -> Honest {
    match purpose {
        Purpose::Input | Purpose::Program | Purpose::Copy => Honest::Read("file"),
        Purpose::Output => Honest::NewFile("page"),
        Purpose::Directory => Honest::NewDirectory("made"),
        Purpose::Scratch => Honest::Within("data"),
        Purpose::Device => Honest::Device,
    }
}

fn shown(line: &[OsString]) -> String {
    let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
    format!("blockstone {}", words.join(" "))
}

/// Directories and device with which a command is run.
struct Directories<'a> {
    /// The command's own directory, which is not attacked.
    safe: PathBuf,
    /// The attacked directory, which holds the path.
    theirs: PathBuf,
    victims: PathBuf,
    /// Directory for the command's output.
    beside: PathBuf,
    device: &'a Device,
    wanted: &'a Wanted,
}

impl<'a> Directories<'a> {
    fn make(leaf: &Leaf, dir: &Path, device: &'a Device, wanted: &'a Wanted) -> Self {
        let [safe, theirs, victims, beside] =
            ["safe", "theirs", "victims", "beside"].map(|name| dir.join(name));
        for made in [&safe, &beside] {
            fs::create_dir(made).expect(CAN);
        }
        let place = Self { safe, theirs, victims, beside, device, wanted };
        fixtures::make(&place.safe);
        let tree: Vec<OsString> =
            ["copy", "--manifest", "manifest.jsonl", "tree", "out/tree"].map(OsString::from).into();
        if leaf.words.first().is_some_and(|word| word == "copy") {
            let _ = place.start(&tree, |_| {});
            fixtures::clear(&place.safe);
        }
        place
    }

    fn start(&self, line: &[OsString], begun: impl FnOnce(u32)) -> Ended {
        let (binary, dir, beside) = (&self.wanted.binary, &self.safe, &self.beside);
        let start = Start { binary, dir, beside, measures: true };
        start.attacked(line, begun).expect("the program can be started")
    }

    /// Recreates the directory that holds the attacked path.
    fn begin(&self) {
        for dir in [&self.theirs, &self.victims] {
            fixtures::remove(dir);
        }
        fixtures::clear(&self.safe);
        fs::create_dir(&self.theirs).expect(CAN);
    }

    fn fixture(&self, reach: &Reach) -> Option<PathBuf> {
        match reach.honest {
            Honest::Read(name) | Honest::Tree(name) | Honest::Within(name) => {
                Some(self.safe.join(name))
            }
            _ => None,
        }
    }

    /// Runs the line without an attack; returns what it makes at the path and below it, and the
    /// reason if it did not end as it should.
    fn in_peace(&self, leaf: &Leaf, reach: &Reach) -> (Vec<PathBuf>, Option<String>) {
        self.begin();
        let path = match reach.honest {
            Honest::Device => self.device.path().to_owned(),
            _ => self.theirs.join(reach.honest.name()),
        };
        if let Some(fixture) = self.fixture(reach) {
            fixtures::lay(&fixture, &path);
        }
        let before = fixtures::below(&path);
        let (mut pid, is_over) = (0, AtomicBool::new(false));
        let (ended, mut made) = thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(&path, &is_over));
            let ended = self.start(&leaf.line(reach, &path), |number| pid = number);
            is_over.store(true, Relaxed);
            (ended, watcher.join().unwrap_or_default())
        });
        made.retain(|name| !before.contains(name));
        let pid = pid.to_string();
        let general = |name: &PathBuf| PathBuf::from(name.to_string_lossy().replace(&pid, PID));
        let made = made.iter().map(general).collect();
        let is_refused = ended.code == Some(2);
        let is_fault = ended.fault().is_some_and(|fault| !is_fine(&fault, &ended));
        let is_well = !is_fault && (!is_refused || !reach.ends.is_empty());
        let why = || {
            let first = ended.stderr.lines().find(|line| line.starts_with("error"));
            let first = first.unwrap_or("without an error");
            format!("in peace it ends with {:?}: {first}", ended.code)
        };
        (made, (!is_well).then(why))
    }

    /// Attacks the path; returns the effects and the command line.
    fn attack(
        &self,
        leaf: &Leaf,
        reach: &Reach,
        cell: Cell,
        made: &[PathBuf],
    ) -> (Vec<AttackEffect>, String) {
        self.begin();
        let Cell { attack, owner, tried } = cell;
        let name = reach.honest.name();
        let is_dir = matches!(reach.honest, Honest::Within(_) | Honest::NewDirectory(_));
        let inner = if is_dir { format!("{name}/") } else { name.to_owned() };
        let victims = Victims::make(&self.victims, &[&inner]).expect(CAN);
        let fixture = self.fixture(reach);
        let scene = Scene {
            theirs: &self.theirs,
            victims: &victims,
            device: self.device.path(),
            fixture: fixture.as_deref(),
            name,
            made,
            tried,
        };
        let Planted { path, play } = scene.plant(attack, reach.honest, owner);
        let attacker = play.map(|play| Attacker::start(play).expect("threads can be started"));
        let line = leaf.line(reach, &path);
        let late = |pid| {
            if attack == Attack::LinksWithin {
                link_late(&path, made, pid, &victims.file());
            }
        };
        let ended = self.start(&line, late);
        let played = attacker.map(|attacker| attacker.end().expect("the attacker can play"));
        let is_led = is_led(attack, reach.honest, owner);
        let mut seen = self.judge(&ended, &victims, played.as_ref(), is_led);
        if leaf.scratch.iter().any(|name| name == reach.argument) && attack.directs() {
            seen.retain(|seen| !seen.is_of_new_names());
        }
        (seen, shown(&leaf.line(reach, Path::new(&self.named(&path)))))
    }

    /// Returns a path below this place, relative to it.
    fn named(&self, path: &Path) -> String {
        let dir = self.safe.parent().unwrap_or(&self.safe);
        path.strip_prefix(dir).unwrap_or(path).display().to_string()
    }

    fn judge(
        &self,
        ended: &Ended,
        victims: &Victims,
        played: Option<&Played>,
        is_led: bool,
    ) -> Vec<AttackEffect> {
        let mut seen = Vec::new();
        let fault = ended.fault().filter(|fault| !is_fine(fault, ended));
        seen.extend(fault.map(AttackEffect::Ended));
        if is_led && victims.was_opened() {
            seen.push(AttackEffect::Opened);
        }
        let mut changes = victims.changes().expect("victims can be read");
        if self.device.was_written() {
            changes.push("content of the block device".to_owned());
        }
        if !changes.is_empty() {
            seen.push(AttackEffect::Touched(changes.join(", ")));
        }
        for dir in [self.theirs.clone(), self.safe.join("out"), self.safe.join("data")] {
            if let Some(file) = leaked(&dir).expect("all can be read") {
                seen.push(AttackEffect::Disclosed(format!("{} holds it", self.named(&file))));
            }
        }
        if let Some(received) = played.map(|played| played.received.len()).filter(|&n| n > 0) {
            seen.push(AttackEffect::Disclosed(format!("{received} bytes were written to a pipe")));
        }
        seen
    }
}

/// Returns whether a fault is acceptable here: a judgement, a copy that names each file that it
/// could not copy, with a hint, or an end by the interrupt, which a shell shows as 130.
fn is_fine(fault: &Fault, ended: &Ended) -> bool {
    let count = |word: &str| ended.stderr.lines().filter(|line| line.starts_with(word)).count();
    let errors = count("error: ");
    let is_told = ended.code == Some(2) && errors > 0 && count("hint: ") >= errors;
    match fault {
        Fault::Odd(_) => ended.code == Some(1) || is_told,
        Fault::Abort(how) => how.starts_with("signal: 2 "),
        _ => false,
    }
}

/// Returns whether the attack leads to a file that root neither named nor linked to.
fn is_led(attack: Attack, honest: Honest, owner: Owner) -> bool {
    let is_foreign = attack == Attack::LinksWithin && !matches!(honest, Honest::Tree(_));
    owner != Owner::Root && (is_foreign || attack.is_race() && !honest.is_read())
}

/// Returns the names that appear below `dir` until `is_over` is set.
fn watch(dir: &Path, is_over: &AtomicBool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    loop {
        let is_last = is_over.load(Relaxed);
        for name in fixtures::below(dir) {
            if !found.contains(&name) && found.len() < 200 {
                found.push(name);
            }
        }
        if is_last {
            return found;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Plants links whose names contain the process ID, which all users may read.
fn link_late(dir: &Path, made: &[PathBuf], pid: u32, victim: &Path) {
    let names = made
        .iter()
        .filter(|name| name.as_os_str() != OsStr::new(""))
        .map(|name| name.to_string_lossy());
    for name in names.filter(|name| name.contains(PID) && !name.contains('/')) {
        let path = dir.join(name.replace(PID, &pid.to_string()));
        // The program may have been faster.
        if symlink(victim, &path).is_ok() {
            let _ = lchown(&path, Some(STRANGER), Some(STRANGER));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_names_a_command_and_paths_of_it() {
        let mut declarations = blockstone_cli::declarations();
        declarations.build();
        for way in WAYS {
            let below = |command, word| Command::find_subcommand(command, word);
            let command = way.of.split(' ').try_fold(&declarations, below);
            let command = command.unwrap_or_else(|| panic!("there is no command {}", way.of));
            for reach in way.paths {
                let mut args = command.get_arguments();
                let arg = args.find(|arg| arg.get_id().as_str() == reach.argument);
                let purpose = arg.and_then(Purpose::of);
                assert!(purpose.is_some(), "{} has no path {}", way.of, reach.argument);
                let has_place = reach.with.iter().any(|word| word.contains("{}"));
                assert!(has_place, "{} does not reach {}", way.of, reach.argument);
            }
        }
    }

    #[test]
    fn every_path_of_every_command_is_reached_in_some_way() {
        let commands = commands();
        assert!(commands.len() > 30);
        let reaches: usize = commands.iter().map(|leaf| leaf.reaches.len()).sum();
        assert!(reaches > 100, "{reaches}");
        let html = |leaf: &Leaf| leaf.reaches.iter().any(|reach| reach.argument == "html");
        assert!(commands.iter().all(html));
    }
}
