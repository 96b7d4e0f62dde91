//! The process that starts and watches workers.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use blockstone_fuzz::Target;
use blockstone_fuzz::check::Fault;
use blockstone_fuzz::mutate::Corpus;
use blockstone_fuzz::shrink::shrunk;
use tempfile::TempDir;

use super::options::Options;
use super::worker::{Progress, save};

/// An input that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// Number of aborts of one target after which its run ends.
const ABORTS_MAX: usize = 8;
/// Maximum number of processes started to shrink the input of an abort.
const SHRINKING_TRIES: usize = 400;

pub const HEADING: &str =
    "target             inputs  accepted   seconds    peak bytes   slowest ms  findings";

pub struct Outcome {
    name: &'static str,
    progress: Progress,
    elapsed: Duration,
    pub findings: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { done, accepted, peak_bytes, slowest_us, .. } = self.progress;
        let share = 100.0 * accepted as f64 / done.max(1) as f64;
        let (seconds, slowest_ms) = (self.elapsed.as_secs_f64(), slowest_us as f64 / 1000.0);
        write!(
            f,
            "{:<14} {done:>10} {share:>8.1}% {seconds:>9.1} {peak_bytes:>13} {slowest_ms:>12.1} \
             {:>9}",
            self.name,
            self.findings.len()
        )?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n    {finding}"))
    }
}

/// Runs a target to the end of its inputs or its time.
pub fn target(target: &'static Target, options: &Options) -> Result<Outcome> {
    let scratch = scratch()?;
    let (start, mut from) = (Instant::now(), 0);
    let (mut progress, mut findings, mut aborts) = (Progress::default(), Vec::new(), 0);
    loop {
        let left = options.seconds.saturating_sub(start.elapsed().as_secs());
        if left == 0 || from >= options.inputs || aborts == ABORTS_MAX {
            break;
        }
        let files = Files::new(scratch.path());
        let ended = run(target, options, (from, left), &files)?;
        let now = Progress::read(&files.progress).context("a worker left no progress")?;
        progress = progress.and(now);
        let said = fs::read_to_string(&files.said).unwrap_or_default();
        findings.extend(said.lines().map(str::to_owned));
        let Some(how) = ended else { break };
        aborts += 1;
        let how = format!("{how} {}", last_words(&files.errors));
        findings.push(aborted(target, options, now.number, &how, scratch.path())?);
        from = now.number + 1;
    }
    Ok(Outcome { name: target.name, progress, elapsed: start.elapsed(), findings })
}

/// Returns a directory for the files of workers, in memory if possible.
fn scratch() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("blockstone-fuzz")
        .tempdir_in(parent)
        .context("make a directory")
}

struct Files {
    dir: PathBuf,
    progress: PathBuf,
    said: PathBuf,
    errors: PathBuf,
}

impl Files {
    fn new(dir: &Path) -> Self {
        let of = |name: &str| dir.join(name);
        Self { dir: of(""), progress: of("progress"), said: of("said"), errors: of("errors") }
    }
}

/// Runs one worker; returns how it ended, if that is a finding.
fn run(
    target: &Target,
    options: &Options,
    (from, seconds): (u64, u64),
    files: &Files,
) -> Result<Option<String>> {
    let numbers = [options.seed, from, options.inputs, seconds, options.cpu_ms];
    let mut worker = itself(&files.dir)?;
    worker.args(["work", target.name]).args(numbers.map(|number| number.to_string()));
    worker.arg(&files.progress).arg(&options.save);
    worker.stdout(File::create(&files.said)?).stderr(File::create(&files.errors)?);
    let mut worker = worker.spawn().context("start a worker")?;
    Ok(watch(&mut worker, || Progress::read(&files.progress))?.err())
}

/// Waits for a process, and kills one that no longer moves. Returns its status, or why its end is a
/// finding.
fn watch<T: PartialEq>(
    child: &mut Child,
    look: impl Fn() -> T,
) -> Result<Result<ExitStatus, String>> {
    let (mut last, mut since) = (look(), Instant::now());
    loop {
        if let Some(status) = child.try_wait().context("wait for a worker")? {
            return Ok(match status.signal() {
                Some(signal) => Err(format!("ended by signal {signal}:")),
                None => Ok(status),
            });
        }
        let now = look();
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > HANG {
            child.kill().and_then(|()| child.wait()).context("end a worker")?;
            return Ok(Err(format!("hung for {} s:", HANG.as_secs())));
        }
        thread::sleep(POLL);
    }
}

/// Returns a command that runs this program again, with its temporary files in `dir`.
fn itself(dir: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.env("TMPDIR", dir).stdin(Stdio::null());
    Ok(command)
}

/// Returns the last line that a process wrote before it ended.
fn last_words(errors: &Path) -> String {
    let text = fs::read(errors).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no words").to_owned()
}

/// Shrinks the input of an abort and saves it.
fn aborted(
    target: &Target,
    options: &Options,
    number: u64,
    how: &str,
    dir: &Path,
) -> Result<String> {
    let input = Corpus::new((target.seeds)()).input(options.seed, number);
    let file = dir.join("candidate");
    let aborts = |candidate: &[u8]| {
        let status = fs::write(&file, candidate).map_err(Into::into).and_then(|()| {
            let mut once = itself(dir)?;
            once.args(["once", target.name]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
            let mut once = once.spawn().context("start a worker")?;
            watch(&mut once, || ())
        });
        matches!(status, Ok(Err(_)))
    };
    // Each try of a hang takes as long as the hang.
    let tries = if how.starts_with("hung") { 0 } else { SHRINKING_TRIES };
    let small = shrunk(&input, tries, aborts);
    let fault = Fault::Abort { how: how.to_owned() };
    let path = save(&options.save, target.name, &format!("{}-{number}", fault.kind()), &small)?;
    Ok(format!("{} [input {number}: {}]", fault.line(), path.display()))
}
