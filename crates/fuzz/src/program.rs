//! The built program, started as a user starts it with something that it does not expect: a damaged
//! file ([`files`]), options that no one combines ([`options`]), or paths in a directory of another
//! user who attacks it ([`attacks`]). Its end, its output and its memory use are checked.
//!
//! Within the fuzzer's process a parser is tried a million times; here everything that reads a file
//! is tried with it, up to the exit code, some thousands of times.

pub mod attacks;
pub mod files;
pub mod options;
mod runner;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub use runner::MEMORY_BYTES_MAX;
use runner::{Ended, Fault};
use serde::Serialize;

/// Maximum number of findings kept per class; the others are only counted.
const FINDINGS_MAX: usize = 20;

/// Parameters of a test of a class.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub binary: PathBuf,
    pub inputs: u64,
    pub seed: u64,
    /// Classes that run at the same time.
    pub jobs: usize,
    /// Receives the files that are findings.
    pub save: Option<PathBuf>,
}

/// Results of a class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    pub class: String,
    /// Number of times that the program was started.
    pub starts: u64,
    /// Exit code 0.
    pub done: u64,
    /// Exit code 2, with an error and a hint.
    pub refused: u64,
    /// Exit codes 3 and 4: not trustworthy, or a capability is missing.
    pub judged: u64,
    /// Exit code 130: a measurement that had to be interrupted.
    pub interrupted: u64,
    pub panics: u64,
    pub aborts: u64,
    pub hangs: u64,
    /// Ended as it should, but printed what it should not, or left something behind.
    pub odd: u64,
    pub memory_peak_mib: f64,
    pub slowest_s: f64,
    /// First finding of each kind.
    pub findings: Vec<String>,
}

impl Outcome {
    pub const HEADING: &str = "class                 starts     done  refused   judged  stopped   \
                               panics   aborts    hangs      odd  peak MiB  slowest s";

    pub fn is_clean(&self) -> bool {
        self.panics + self.aborts + self.hangs + self.odd == 0
    }

    fn add(&mut self, ended: &Ended) {
        self.starts += 1;
        let peak_mib = ended.memory_peak_bytes as f64 / f64::from(1 << 20);
        self.memory_peak_mib = self.memory_peak_mib.max(peak_mib);
        self.slowest_s = self.slowest_s.max(ended.took.as_secs_f64());
        match ended.code {
            Some(0) => self.done += 1,
            Some(2) => self.refused += 1,
            Some(3 | 4) => self.judged += 1,
            Some(130) => self.interrupted += 1,
            _ => {}
        }
    }

    /// Counts a finding; returns whether it is the first of its kind.
    fn find(&mut self, fault: &Fault, how: &str) -> bool {
        match fault {
            Fault::Panic(_) => self.panics += 1,
            Fault::Abort(_) => self.aborts += 1,
            Fault::Hang => self.hangs += 1,
            Fault::Odd(_) => self.odd += 1,
        }
        let kind = fault.to_string();
        let is_new = !self.findings.iter().any(|finding| finding.starts_with(&kind));
        if is_new && self.findings.len() < FINDINGS_MAX {
            self.findings.push(format!("{kind} [{how}]"));
        }
        is_new
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<20} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9.0} {:>10.1}",
            self.class,
            self.starts,
            self.done,
            self.refused,
            self.judged,
            self.interrupted,
            self.panics,
            self.aborts,
            self.hangs,
            self.odd,
            self.memory_peak_mib,
            self.slowest_s,
        )?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// Calls `one` with each of `all`, several at a time; returns the outcomes in the order of `all`.
fn each<T: Sync, O: Send>(all: &[T], jobs: usize, one: impl Fn(&T) -> O + Sync) -> Vec<O> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, all.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Relaxed);
                    let Some(of) = all.get(place) else { return };
                    let outcome = one(of);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes.push((place, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Copies a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("temporary files can be made");
    for entry in std::fs::read_dir(from).expect("the fixtures can be read").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("temporary files can be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn wanted(inputs: u64) -> Wanted {
        let binary = blockstone_testkit::blockstone_binary().to_owned();
        Wanted { binary, inputs, seed: 7, jobs: 2, save: None }
    }

    #[test]
    fn damaged_files_of_every_kind_are_refused_or_read() {
        let outcomes = files::run(&[], &wanted(26));
        assert!(outcomes.len() >= 26);
        for outcome in outcomes {
            assert!(outcome.is_clean() && outcome.refused > 0, "{outcome}");
        }
    }

    #[test]
    fn options_that_nobody_puts_together_are_refused_or_obeyed() {
        for outcome in options::run(&[], &wanted(4)) {
            assert!(outcome.is_clean(), "{outcome}");
        }
    }

    #[test]
    fn a_program_that_ends_badly_is_found() {
        let binary = PathBuf::from("/bin/false");
        let outcomes = files::run(&["model".to_owned()], &Wanted { binary, ..wanted(5) });
        let [outcome] = &outcomes[..] else { panic!("one class was asked for") };
        assert_eq!((outcome.starts, outcome.odd), (5, 5), "{outcome}");
        assert_eq!(outcome.findings.len(), 1, "one of a kind: {outcome}");
    }

    #[test]
    fn whoever_owns_the_directory_of_a_path_reaches_nothing_of_root() {
        blockstone_testkit::require!(Root, Loop);
        // Some wait for what they measure.
        let jobs = Wanted { jobs: 3, ..wanted(1) };
        let all = attacks::run(&[], attacks::Depth::Short, &jobs, &|_| ());
        let bad: Vec<String> =
            all.iter().filter(|it| !it.is_clean()).map(ToString::to_string).collect();
        assert!(bad.is_empty(), "{}\n{}", attacks::Attacked::HEADING, bad.join("\n"));
        let cells: u64 = all.iter().map(|it| it.cells).sum();
        assert!(cells > 900, "{cells} cells");
    }

    #[test]
    fn a_program_that_follows_links_is_found() {
        blockstone_testkit::require!(Root, Loop);
        let dir = tempfile::tempdir().unwrap();
        let binary = dir.path().join("writes");
        let script = "#!/bin/sh\nfor last; do :; done\necho page > \"$last\"\n";
        std::fs::write(&binary, script).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let all = attacks::run(
            &["claim".to_owned()],
            attacks::Depth::Short,
            &Wanted { binary, ..wanted(1) },
            &|_| (),
        );
        let [claim] = &all[..] else { panic!("one verb was asked for") };
        assert!(claim.touched > 3 && claim.disclosed > 0, "{claim}");
    }
}
