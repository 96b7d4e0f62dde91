//! Sizes in which programs request I/O, and in which the device gets it.
//!
//! The size of calls says nothing about the size of requests: read-ahead and write-back merge what
//! goes through the page cache, and the block layer splits requests that are larger than the device
//! accepts. So both are counted inside the kernel, exactly, for each file.

mod classify;
mod command;
pub(crate) mod counter;
mod direct_cost;
pub mod findings;
mod flows;
mod quick;
mod saving;
mod tools;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::iosize::findings::{Charged, Direction, Flow, IosizeFindings};
use blockstone_base::Capability;
use blockstone_measure::Observer;
use blockstone_sys::{account, process};

use crate::{CheckError, direct};
use counter::Counter;

pub use direct_cost::LARGE_BYTES;
pub use quick::of_path;
pub use tools::{Dumped, of_tools};

/// Interval at which the request to end is polled.
const LOOK: Duration = Duration::from_millis(100);
/// Name for all files together.
const ALL_FILES: &str = "all files";

/// Runs a command to its end, and counts what it and its children request. Fails if it cannot be
/// run; its exit status is a finding. `id` names a scratch file beside the file that it wrote most.
pub fn of_command(
    words: &[OsString],
    id: u64,
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let words_shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let mut counter = Counter::start();
    observer.phase("command");
    let began = Instant::now();
    let ran = command::run(command::of(words), &mut counter, None, observer)?;
    let observed_s = began.elapsed().as_secs_f64();
    counter.write_back(observer);
    let mut findings = findings(&words_shown.join(" "), &mut counter, observer);
    // Its programs in the kernel take time in every call.
    drop(counter);
    findings.exit = ran.exit;
    findings.charged = ran.charged;
    findings.cpu_ns = Some(ran.cpu_ns);
    findings.left_processes = ran.left_processes;
    findings.observed_s = observed_s;
    if findings.signal.is_none() {
        findings.saving = saving::measured(&findings);
        predict(&mut findings, id, observer);
    }
    Ok(findings)
}

/// Predicts what its calls on the file that it read most, and on the one that it wrote most, would
/// take past the page cache.
fn predict(findings: &mut IosizeFindings, id: u64, observer: &mut dyn Observer) {
    let main = |direction| {
        let flows = findings.flows.iter().filter(|flow| flow.direction == direction);
        let copied = |flow: &&Flow| flow.transfers.iter().map(|it| it.bytes).sum::<u64>();
        flows.max_by_key(copied).filter(|flow| copied(flow) >= LARGE_BYTES)
    };
    let (read, written) = (main(Direction::Read), main(Direction::Write));
    let path = |flow: Option<&Flow>| flow.map(|flow| PathBuf::from(&flow.path));
    let place = direct_cost::Place { read: path(read), written: path(written), id };
    let flows: Vec<Flow> = read.into_iter().chain(written).cloned().collect();
    direct_cost::predict(findings, &flows, &place, observer);
}

/// Counts for some time what a process and its children request. Fails if there is no such process.
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
    counter.follow(root, &|| direct::family(root, pid));
    let charged = || account::account(root, pid, None)?.io.map(command::of_account);
    // If it has children, this is not all of the processor time of what is counted.
    let is_alone = || direct::family(root, pid).len() == 1;
    let cpu_ns = || process::cpu_ns(pid).ok().filter(|_| is_alone());
    let (before, before_ns) = (charged(), cpu_ns());
    let began = Instant::now();
    observer.phase("process");
    let mut ended = false;
    while !ended && began.elapsed() < duration && observer.interrupted().is_none() {
        thread::sleep(LOOK.min(duration.saturating_sub(began.elapsed())));
        ended = match counter.living() {
            Some(living) => living.is_empty(),
            None => account::process(root, pid).is_none(),
        };
    }
    let observed_s = began.elapsed().as_secs_f64();
    let after_ns = cpu_ns();
    let mut findings = findings(&format!("process {pid}"), &mut counter, observer);
    findings.charged = before.zip(charged()).map(|(before, after)| since(&after, &before));
    findings.cpu_ns = after_ns.zip(before_ns).map(|(after, before)| after.saturating_sub(before));
    findings.observed_s = observed_s;
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

/// Returns what was counted so far.
fn findings(subject: &str, counter: &mut Counter, observer: &mut dyn Observer) -> IosizeFindings {
    let sizes = counter.sizes();
    let names = counter.names(&sizes);
    IosizeFindings {
        kernel: counter.capability(),
        total: flows::of_all(&sizes, ALL_FILES),
        flows: flows::by_place(&sizes, &names),
        blind: counter.blind(),
        dropped: counter.dropped(),
        signal: observer.interrupted().map(str::to_owned),
        ..nothing(subject)
    }
}

/// Returns findings without any I/O.
fn nothing(subject: &str) -> IosizeFindings {
    IosizeFindings {
        subject: subject.to_owned(),
        kernel: Capability::Full,
        total: Vec::new(),
        flows: Vec::new(),
        tools: Vec::new(),
        absent: Vec::new(),
        direct_costs: Vec::new(),
        direct_unmeasured: Vec::new(),
        charged: None,
        cpu_ns: None,
        exit: None,
        left_processes: 0,
        observed_s: 0.0,
        saving: None,
        blind: Vec::new(),
        dropped: 0,
        signal: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{ChildStdin, Command, Stdio};

    use crate::iosize::findings::{Direction, Flow, Size};
    use blockstone_testkit::{ScratchDir, require};

    use super::*;

    /// Lets a process that waits for a line continue as soon as it is observed.
    struct Go(ChildStdin);

    impl Observer for Go {
        fn phase(&mut self, _label: &str) {
            self.0.write_all(b"go\n").unwrap();
        }
    }

    #[test]
    fn a_process_that_runs_is_followed_with_its_children_until_they_end() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("known");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "(read go; dd bs=8K count=101 if=\"$0\" of=/dev/null); true"]).arg(&path);
        let mut shell = shell.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let has_child = || direct::family(Path::new("/"), shell.id()).len() == 2;
        assert!((0..1000).any(|_| {
            thread::sleep(Duration::from_millis(2));
            has_child()
        }));
        let mut observer = Go(shell.stdin.take().unwrap());
        let minute = Duration::from_mins(1);
        let findings = of_process(shell.id(), minute, &mut observer).unwrap();
        assert!(shell.wait().unwrap().success());
        let read = |flow: &&Flow| flow.direction == Direction::Read;
        let flow = findings.flows.iter().filter(read).find(|flow| flow.path.ends_with("known"));
        let [calls] = &flow.unwrap().calls[..] else { panic!("{flow:?}") };
        assert_eq!((calls.kind, calls.calls, calls.bytes), ("read", 101, 101 * 8192));
        assert_eq!(calls.sizes, [Size { size_bytes: 8192, count: 101 }]);
        assert!(findings.observed_s < 60.0, "it ends with the last of them");
        assert_eq!((findings.dropped, findings.signal), (0, None));
    }
}
