//! A command that runs to its end, or until a signal ends it.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::iosize::findings::Charged;
use blockstone_measure::Observer;
use blockstone_sys::account;
use blockstone_sys::child::{Child, Program, Signal};

use super::counter::Counter;
use crate::CheckError;

const LOOK: Duration = Duration::from_millis(2);
/// Time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Result of a command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub exit: Option<i32>,
    pub cpu_ns: u64,
    pub charged: Option<Charged>,
    pub left_processes: u64,
}

/// Returns a command with the input of this process, whose output goes to this process's standard
/// error.
pub fn of(words: &[OsString]) -> Program {
    let (program, arguments) =
        words.split_first().map_or((OsStr::new(""), &[][..]), |(it, rest)| (it.as_os_str(), rest));
    let mut program = Program::typed(program);
    program.args(arguments).stderr(Stdio::inherit());
    // A background process group that reads from a terminal is stopped.
    if !std::io::stdin().is_terminal() {
        program.stdin(Stdio::inherit());
    }
    if let Ok(errors) = std::io::stderr().as_fd().try_clone_to_owned() {
        program.stdout(errors);
    }
    program
}

/// Runs the command in its own process group and has everything counted that it and its children
/// do.
pub fn run(
    mut program: Program,
    counter: &mut Counter,
    limit: Option<Duration>,
    observer: &mut dyn Observer,
) -> Result<Ran, CheckError> {
    let name = program.name().to_string_lossy().into_owned();
    program.group();
    let own = std::process::id();
    // A child is counted if its parent is when it is created.
    counter.want(own);
    let child = program.spawn();
    counter.forget(own);
    let child = child.map_err(|source| CheckError::Command { program: name.clone(), source })?;
    let lost = |source| CheckError::Lost { program: name.clone(), source };
    let waited = wait(&child, limit, observer);
    if waited.is_err() {
        // Nothing is left behind, whatever happened.
        let _ = child.signal_group(Signal::KILL);
    }
    let charged = account::account(Path::new("/"), child.id(), None).and_then(|it| it.io);
    let left_processes = counter.living().map_or(0, |living| living.len() as u64);
    let ended = child.wait();
    waited.map_err(&lost)?;
    let ended = ended.map_err(lost)?;
    let signal = ended.status.signal().map(|signal| 128 + signal);
    Ok(Ran {
        exit: ended.status.code().or(signal),
        cpu_ns: ended.cpu.cpu_ns(),
        charged: charged.map(of_account),
        left_processes,
    })
}

/// Returns when the command has ended, which a signal to this process makes it do.
fn wait(
    child: &Child,
    limit: Option<Duration>,
    observer: &mut dyn Observer,
) -> std::io::Result<()> {
    let began = Instant::now();
    while !child.has_ended()? {
        let late = limit.is_some_and(|limit| began.elapsed() > limit);
        if late || observer.interrupted().is_some() {
            child.signal_group(Signal::TERM)?;
            let asked = Instant::now();
            while !child.has_ended()? && asked.elapsed() < GRACE {
                thread::sleep(LOOK);
            }
            // This includes processes that outlive their parent or ignore the first signal.
            return child.signal_group(Signal::KILL);
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

pub fn of_account(io: account::Io) -> Charged {
    Charged {
        read_calls: io.read_calls,
        read_bytes: io.requested_read_bytes,
        write_calls: io.write_calls,
        write_bytes: io.requested_write_bytes,
        fetched_bytes: io.read_bytes,
    }
}
