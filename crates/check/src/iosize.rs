//! In which sizes programs ask for I/O, and in which sizes the device gets it.
//!
//! A size of calls says nothing of the size of requests: read-ahead and write-back merge what goes
//! through the page cache, and the block layer splits what is larger than the device takes. So both
//! are counted inside the kernel, exactly, for each file.

mod classify;
mod command;
mod counter;
mod flows;
mod quick;
mod saving;
mod tools;

use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::iosize::{Charged, IosizeFindings};
use blockstone_measure::Observer;
use blockstone_sys::{account, process};

use crate::CheckError;
use counter::Counter;

pub use quick::of_path;
pub use tools::of_tools;

/// Time between two looks at whether the end was asked for.
const LOOK: Duration = Duration::from_millis(100);
/// What all files together are called.
const ALL_FILES: &str = "all files";

/// Runs a command to its end, and counts what it and its children ask for. Fails when it cannot be
/// run; how it ends is a finding.
pub fn of_command(
    words: &[OsString],
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let words_shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let mut counter = Counter::start();
    observer.phase("command");
    let began = Instant::now();
    let ran = command::run(command::of(words), &mut counter, None, observer)?;
    let observed_s = began.elapsed().as_secs_f64();
    counter.write_back(observer);
    let mut findings = findings(words_shown.join(" "), &mut counter, observer);
    findings.exit = ran.exit;
    findings.charged = ran.charged;
    findings.cpu_ns = Some(ran.cpu_ns);
    findings.left_processes = ran.left_processes;
    findings.observed_s = observed_s;
    if findings.signal.is_none() {
        findings.saving = saving::measured(&findings);
    }
    Ok(findings)
}

/// Counts for some time what a process and its children ask for. Fails when there is no such
/// process.
pub fn of_process(
    pid: u32,
    duration: Duration,
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let root = Path::new("/");
    if account::process(root, pid).is_none() {
        return Err(CheckError::NoProcess { pid });
    }
    let mut counter = Counter::start();
    for member in crate::direct::family(root, pid) {
        counter.want(member);
    }
    observer.phase("process");
    let charged = || account::account(root, pid, None)?.io.map(command::of_account);
    let (before, cpu_ns) = (charged(), process::cpu_ns(pid).ok());
    let began = Instant::now();
    while began.elapsed() < duration && observer.interrupted().is_none() {
        thread::sleep(LOOK.min(duration.saturating_sub(began.elapsed())));
    }
    let after_ns = process::cpu_ns(pid).ok();
    let mut findings = findings(format!("process {pid}"), &mut counter, observer);
    findings.charged = before.zip(charged()).map(|(before, after)| since(&after, &before));
    findings.cpu_ns = after_ns.zip(cpu_ns).map(|(after, before)| after.saturating_sub(before));
    findings.observed_s = began.elapsed().as_secs_f64();
    Ok(findings)
}

fn since(after: &Charged, before: &Charged) -> Charged {
    Charged {
        read_calls: after.read_calls.saturating_sub(before.read_calls),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        write_calls: after.write_calls.saturating_sub(before.write_calls),
        write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
        fetched_bytes: after.fetched_bytes.saturating_sub(before.fetched_bytes),
    }
}

/// What was counted until now.
fn findings(subject: String, counter: &mut Counter, observer: &mut dyn Observer) -> IosizeFindings {
    let sizes = counter.sizes();
    let names = counter.names(&sizes);
    IosizeFindings {
        subject,
        kernel: counter.capability(),
        total: flows::of_all(&sizes, ALL_FILES),
        flows: flows::by_place(&sizes, &names),
        tools: Vec::new(),
        charged: None,
        cpu_ns: None,
        exit: None,
        left_processes: 0,
        observed_s: 0.0,
        saving: None,
        blind: counter.blind(),
        dropped: counter.dropped(),
        signal: observer.interrupted().map(str::to_owned),
    }
}
