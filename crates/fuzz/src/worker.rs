//! The process that feeds one target.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use blockstone_fuzz::check::{Fault, Limits, feed};
use blockstone_fuzz::mutate::Corpus;
use blockstone_fuzz::shrink::shrunk;
use blockstone_fuzz::{Target, find};
use clap::Args;

/// Number of kinds of findings of one target after which its run ends.
const KINDS_MAX: usize = 12;
const SHRINKING_TRIES: usize = 20_000;
const SHRINKING_MAX: Duration = Duration::from_secs(20);

#[derive(Args)]
pub struct Work {
    target: String,
    seed: u64,
    from: u64,
    to: u64,
    seconds: u64,
    cpu_ms: u64,
    /// Receives a [`Progress`] before each input
    progress: PathBuf,
    save: PathBuf,
}

#[derive(Args)]
pub struct Once {
    target: String,
    file: PathBuf,
    #[arg(long, default_value_t = 1000)]
    cpu_ms: u64,
}

/// Progress of a worker, kept in a file that outlives the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of the input that is being fed.
    pub number: u64,
    pub done: u64,
    pub accepted: u64,
    pub peak_bytes: u64,
    pub slowest_us: u64,
}

impl Progress {
    const BYTES: usize = 5 * 8;

    pub fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
        let mut word = || words.next()?.ok();
        Some(Self {
            number: word()?,
            done: word()?,
            accepted: word()?,
            peak_bytes: word()?,
            slowest_us: word()?,
        })
    }

    fn write(self, file: &File) -> Result<()> {
        let words = [self.number, self.done, self.accepted, self.peak_bytes, self.slowest_us];
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        file.write_all_at(&bytes, 0).context("write the progress")
    }

    /// Adds the progress of a later worker.
    pub fn and(self, later: Self) -> Self {
        Self {
            number: later.number,
            done: self.done + later.done,
            accepted: self.accepted + later.accepted,
            peak_bytes: self.peak_bytes.max(later.peak_bytes),
            slowest_us: self.slowest_us.max(later.slowest_us),
        }
    }
}

fn limits(target: &Target, cpu_ms: u64) -> Limits {
    Limits { heap_bytes: target.heap_mib << 20, cpu: Duration::from_millis(cpu_ms) }
}

fn known(name: &str) -> Result<&'static Target> {
    find(name).with_context(|| format!("there is no target {name}"))
}

pub fn work(work: &Work) -> Result<()> {
    let target = known(&work.target)?;
    let limits = limits(target, work.cpu_ms);
    let corpus = Corpus::new((target.seeds)());
    let progress_file = File::create(&work.progress).context("create the progress")?;
    let (mut progress, mut kinds) = (Progress::default(), BTreeSet::new());
    let (start, most) = (Instant::now(), Duration::from_secs(work.seconds));
    for number in work.from..work.to {
        if start.elapsed() > most || kinds.len() == KINDS_MAX {
            break;
        }
        progress.number = number;
        progress.write(&progress_file)?;
        let input = corpus.input(work.seed, number);
        progress.done += 1;
        match feed(target, &input, limits) {
            Ok(taken) => {
                progress.accepted += u64::from(taken.accepted);
                progress.peak_bytes = progress.peak_bytes.max(taken.peak_bytes);
                progress.slowest_us = progress.slowest_us.max(taken.cpu.as_micros() as u64);
            }
            Err(fault) if kinds.insert(fault.kind()) => {
                let small = small(target, &input, &fault, limits);
                let path = save(&work.save, target.name, &fault.kind(), &small)?;
                println!(
                    "{} [input {number}: {}]",
                    fault.line().replace('\n', " "),
                    path.display()
                );
            }
            Err(_) => {}
        }
    }
    progress.number = work.to;
    progress.write(&progress_file)
}

/// Returns the smallest input found with a fault of the same kind.
fn small(target: &Target, input: &[u8], fault: &Fault, limits: Limits) -> Vec<u8> {
    let start = Instant::now();
    shrunk(input, SHRINKING_TRIES, |candidate| {
        start.elapsed() < SHRINKING_MAX
            && feed(target, candidate, limits).is_err_and(|other| other.kind() == fault.kind())
    })
}

/// Saves an input that is a finding.
pub fn save(dir: &Path, target: &str, kind: &str, input: &[u8]) -> Result<PathBuf> {
    let name: String =
        kind.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = dir.join(format!("{target}-{name}"));
    fs::write(&path, input).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// Feeds a file; returns whether it is not a finding.
pub fn once(once: &Once) -> Result<bool> {
    let target = known(&once.target)?;
    let input = fs::read(&once.file).with_context(|| format!("read {}", once.file.display()))?;
    match feed(target, &input, limits(target, once.cpu_ms)) {
        Ok(taken) => {
            let word = if taken.accepted { "accepted" } else { "refused" };
            println!("{word}: {} bytes of memory, {:?}", taken.peak_bytes, taken.cpu);
            Ok(true)
        }
        Err(fault) => {
            println!("{}", fault.line());
            Ok(false)
        }
    }
}
