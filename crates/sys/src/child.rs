//! Child processes: which program, with which environment, as which user, and how they end.
//!
//! A program is named by an absolute path or looked up in the directories of the system's own
//! programs, never in `PATH` and never in the working directory. It gets an environment of a few
//! variables, no input, and a working directory that is held by its descriptor, and it ends with
//! the thread that started it. No shell is involved. Only [`Program::typed`], for a command line
//! that is measured, finds the program and passes the environment as a shell would.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Started, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::process::{self, Ended};

/// Directories of the system's programs, in the order in which they are searched.
const DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Variables of this process's environment that a program inherits.
const KEPT: [&str; 2] = ["HOME", "TZ"];
/// Polling interval: how long the end of a child, or a request to stop, may go unnoticed.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// Returns the first of `names` in the machine's user list. The list is read as a file: in a static
/// program the C library cannot ask the name service.
pub fn user(root: &Path, names: &[&str]) -> Option<User> {
    let list = std::fs::read_to_string(root.join("etc/passwd")).ok()?;
    let entry = |wanted: &&str| {
        let line = list.lines().find(|line| line.split(':').next() == Some(wanted))?;
        let mut fields = line.split(':').skip(2);
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(User { name: (*wanted).to_owned(), uid, gid })
    };
    names.iter().find_map(entry)
}

/// Returns the name of a user, as the machine's user list has it.
pub fn name_of(root: &Path, uid: u32) -> Option<String> {
    let list = std::fs::read_to_string(root.join("etc/passwd")).ok()?;
    let is_it = |line: &&str| line.split(':').nth(2).is_some_and(|field| field.parse() == Ok(uid));
    Some(list.lines().find(is_it)?.split(':').next()?.to_owned())
}

/// Returns the user whose rights this process has.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program that is about to be started.
#[derive(Debug)]
pub struct Program {
    command: Command,
    user: Option<User>,
    end: Signal,
    dir: Option<OwnedFd>,
    passed: Vec<OwnedFd>,
}

impl Program {
    /// Finds the system's program of this name. Fails with `NotFound`, or when users other than
    /// root and this one can replace it.
    pub fn find(name: &str) -> io::Result<Self> {
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, format!("{name} is not installed"));
        let path = DIRECTORIES.iter().map(|dir| Path::new(dir).join(name));
        let path = path.into_iter().find(|path| is_executable(path)).ok_or_else(missing)?;
        let found = std::fs::metadata(&path)?;
        if !crate::path::is_trusted(found.uid()) || found.mode() & 0o002 != 0 {
            let why = format!("other users may replace {}", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Self::at(&path)
    }

    /// Uses the program at an absolute path. Fails with `InvalidInput` for a relative one.
    pub fn at(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            let why = format!("{} is not an absolute path", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut program = Self::of(Command::new(path));
        program.command.env_clear().env("PATH", DIRECTORIES.join(":")).env("LC_ALL", "C");
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                program.command.env(name, value);
            }
        }
        Ok(program)
    }

    /// Uses the program that a user typed on the command line to have it measured: looked up as a
    /// shell would, with the whole environment.
    pub fn typed(name: &OsStr) -> Self {
        Self::of(Command::new(name))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { command, user: None, end: Signal::KILL, dir: None, passed: Vec::new() }
    }

    pub fn name(&self) -> &OsStr {
        self.command.get_program()
    }

    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(argument);
        self
    }

    pub fn args<S: AsRef<OsStr>>(&mut self, all: impl IntoIterator<Item = S>) -> &mut Self {
        self.command.args(all);
        self
    }

    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(key, value);
        self
    }

    /// Sets its working directory, whatever takes that directory's name meanwhile. Fails when this
    /// process has too many descriptors.
    pub fn dir(&mut self, dir: impl AsFd) -> io::Result<&mut Self> {
        self.dir = Some(dir.as_fd().try_clone_to_owned()?);
        Ok(self)
    }

    /// Passes an open file to it, and returns the path under which it can open the file again.
    pub fn pass(&mut self, file: impl AsFd) -> io::Result<PathBuf> {
        let file = file.as_fd().try_clone_to_owned()?;
        let path = crate::path::of_descriptor(&file);
        self.passed.push(file);
        Ok(path)
    }

    /// Runs it as this user, without supplementary groups. Only the superuser may do this.
    pub fn user(&mut self, user: Option<&User>) -> &mut Self {
        self.user = user.cloned();
        self
    }

    /// Sets the signal that it gets when the thread that starts it ends, for whatever reason.
    pub fn end(&mut self, signal: Signal) -> &mut Self {
        self.end = signal;
        self
    }

    /// Makes it the leader of a new process group, for [`Child::signal_group`].
    pub fn group(&mut self) -> &mut Self {
        self.command.process_group(0);
        self
    }

    pub fn stdin(&mut self, file: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(file);
        self
    }

    pub fn stdout(&mut self, file: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(file);
        self
    }

    pub fn stderr(&mut self, file: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(file);
        self
    }

    /// Starts it. Fails when it does not exist, or when no more processes can be created.
    pub fn spawn(mut self) -> io::Result<Child> {
        if let Some(user) = &self.user {
            // As the superuser, the standard library also drops supplementary groups.
            self.command.uid(user.uid).gid(user.gid);
        }
        let (dir, passed) = (self.dir.take(), std::mem::take(&mut self.passed));
        let (end, parent) = (self.end, rustix::process::getpid());
        let prepare = move || {
            if let Some(dir) = &dir {
                rustix::process::fchdir(dir)?;
            }
            for file in &passed {
                fcntl_setfd(file, FdFlags::empty())?;
            }
            rustix::process::set_parent_process_death_signal(Some(end))?;
            // The parent may have ended before that call.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(io::ErrorKind::Other.into())
            }
        };
        // SAFETY: between fork and exec only async-signal-safe calls are made: system calls, and
        // no allocation, because an `ErrorKind` becomes an error without one.
        unsafe { self.command.pre_exec(prepare) };
        let child = self.command.spawn()?;
        let id = Pid::from_child(&child);
        // It has not been waited for yet, so its ID cannot have been reused.
        let handle = pidfd_open(id, PidfdFlags::empty()).ok();
        Ok(Child { started: Some(child), id, handle })
    }

    /// Runs it to its end and returns its output. It is killed when it takes longer than `time`
    /// (`TimedOut`), writes more than `bytes` to one of its outputs (`FileTooLarge`), or when
    /// `go_on`, which is called every 20 ms, returns false (`Interrupted`).
    pub fn output(
        mut self,
        time: Duration,
        bytes: Bytes,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Output> {
        self.stdout(Stdio::piped()).stderr(Stdio::piped());
        let until = Instant::now() + time;
        let mut child = self.spawn()?;
        let mut pipes = [
            Pipe::of(child.take_stdout().map(OwnedFd::from), bytes)?,
            Pipe::of(child.take_stderr().map(OwnedFd::from), bytes)?,
        ];
        // Processes that it leaves behind may hold the pipes after its end: they are not waited
        // for.
        while !child.has_ended()? {
            if Instant::now() >= until {
                let why = format!("it takes longer than {} s", time.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            if !go_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            wait_for(&child, &pipes)?;
            for pipe in &mut pipes {
                pipe.drain()?;
            }
        }
        for pipe in &mut pipes {
            pipe.drain()?;
        }
        let ended = child.wait()?;
        let [stdout, stderr] = pipes.map(|pipe| pipe.read);
        Ok(Output { ended, stdout, stderr })
    }
}

/// Output of a program that has ended.
#[derive(Debug)]
pub struct Output {
    pub ended: Ended,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    pub fn status(&self) -> ExitStatus {
        self.ended.status
    }
}

/// Returns when there is something to read, when the child has ended, or after a moment.
fn wait_for(child: &Child, pipes: &[Pipe]) -> io::Result<()> {
    let mut on: Vec<PollFd> = pipes
        .iter()
        .filter_map(|pipe| pipe.file.as_ref())
        .map(|file| PollFd::new(file, PollFlags::IN))
        .collect();
    if let Some(handle) = &child.handle {
        on.push(PollFd::new(handle, PollFlags::IN));
    }
    let at_most = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    match poll(&mut on, Some(&at_most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One output of a child.
struct Pipe {
    /// `None` after the end of the output.
    file: Option<File>,
    read: Vec<u8>,
    at_most: Bytes,
}

impl Pipe {
    fn of(pipe: Option<OwnedFd>, at_most: Bytes) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(Self { file: pipe.map(File::from), read: Vec::new(), at_most })
    }

    /// Reads what is available.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        while let Some(file) = &mut self.file {
            match file.read(&mut buffer) {
                Ok(0) => self.file = None,
                Ok(read) => self.read.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.read.len() as u64 > self.at_most.get() {
                let why = format!("it writes more than {}", self.at_most);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
        }
        Ok(())
    }
}

/// A started program. It is killed and waited for when this is dropped.
#[derive(Debug)]
pub struct Child {
    /// `None` once it has been waited for.
    started: Option<Started>,
    id: Pid,
    /// `None` before Linux 5.3.
    handle: Option<OwnedFd>,
}

impl Child {
    pub fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get() as u32
    }

    /// Returns whether it has ended. What the kernel charged to it can still be read.
    pub fn has_ended(&self) -> io::Result<bool> {
        self.started.as_ref().map_or(Ok(true), process::has_ended)
    }

    /// Sends a signal; it is not an error if the process has already ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let sent = match (&self.handle, &self.started) {
            (Some(handle), _) => pidfd_send_signal(handle, signal),
            (None, Some(_)) => rustix::process::kill_process(self.id, signal),
            (None, None) => Ok(()),
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to every process of the group that it leads.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        self.started.as_ref().map_or(Ok(()), |child| process::signal_group(child, signal))
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> io::Result<Ended> {
        match self.started.take() {
            Some(child) => process::wait(child),
            None => Err(Errno::CHILD.into()),
        }
    }

    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.started.as_mut()?.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.started.as_mut()?.stderr.take()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(mut child) = self.started.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Makes the program that `command` will start run as `user`, and receive `signal` when the thread
/// that starts it ends, for whatever reason.
pub fn confine(command: &mut Command, user: Option<&User>, signal: Signal) {
    if let Some(user) = user {
        // As the superuser, the standard library also drops supplementary groups.
        command.uid(user.uid).gid(user.gid);
    }
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have ended before that call.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::Other.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe calls are made: two system calls, and
    // no allocation, because an `ErrorKind` becomes an error without one.
    unsafe { command.pre_exec(prepare) };
}

/// Sends `signal` to process `pid`; it is not an error if the process has already ended.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(pid as i32) else { return Ok(()) };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_in_their_list() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let list = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";
        std::fs::write(dir.path().join("etc/passwd"), list).unwrap();
        let found = user(dir.path(), &["postgres", "nobody"]).unwrap();
        assert_eq!((found.name.as_str(), found.uid, found.gid), ("nobody", 65534, 65533));
        assert_eq!(user(dir.path(), &["postgres"]), None);
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let child = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            confine(command.arg("30"), None, Signal::KILL);
            command.spawn().unwrap()
        });
        let mut child = child.join().unwrap();
        assert!(!child.wait().unwrap().success());
    }

    fn said(program: Program) -> String {
        let output = program.output(Duration::from_secs(10), Bytes(1 << 16), &mut || true);
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    #[test]
    fn a_program_of_the_system_gets_few_variables_and_a_directory_that_is_held() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("name"), "").unwrap();
        let held = crate::held::HeldDir::hold(&dir).unwrap();
        std::fs::rename(&dir, root.path().join("moved")).unwrap();
        std::fs::create_dir(&dir).unwrap();
        let mut ls = Program::find("ls").unwrap();
        ls.dir(&held).unwrap();
        assert_eq!(said(ls), "name\n");

        let mut env = Program::find("env").unwrap();
        env.env("PGPASSWORD", "secret");
        let text = said(env);
        let mut names: Vec<&str> = text.lines().filter_map(|it| it.split('=').next()).collect();
        names.retain(|name| !KEPT.contains(name));
        names.sort_unstable();
        assert_eq!(names, ["LC_ALL", "PATH", "PGPASSWORD"]);
    }

    #[test]
    fn a_file_is_passed_under_a_path() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "passed").unwrap();
        let mut cat = Program::find("cat").unwrap();
        let file = File::open(root.path().join("a")).unwrap();
        std::fs::remove_file(root.path().join("a")).unwrap();
        let path = cat.pass(&file).unwrap();
        cat.arg(path);
        assert_eq!(said(cat), "passed");
    }

    #[test]
    fn a_program_is_not_taken_from_the_working_directory_or_the_path() {
        let kind = |name| Program::find(name).unwrap_err().kind();
        assert_eq!(kind("no-such-program"), io::ErrorKind::NotFound);
        let kind = |path| Program::at(Path::new(path)).unwrap_err().kind();
        assert_eq!(kind("ls"), io::ErrorKind::InvalidInput);
        assert_eq!(kind("./ls"), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_takes_too_long_or_writes_too_much_is_ended() {
        let output = |name: &str, argument, time, bytes, go_on| {
            let mut program = Program::find(name).unwrap();
            program.arg(argument);
            program.output(time, Bytes(bytes), &mut || go_on).unwrap_err().kind()
        };
        let long = Duration::from_mins(1);
        let short = Duration::from_millis(50);
        assert_eq!(output("sleep", "60", short, 10, true), io::ErrorKind::TimedOut);
        assert_eq!(output("sleep", "60", long, 10, false), io::ErrorKind::Interrupted);
        assert_eq!(output("yes", "x", long, 1 << 16, true), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_child_is_signalled_by_its_handle_and_ends_with_its_value() {
        let mut sleep = Program::find("sleep").unwrap();
        sleep.arg("60");
        let child = sleep.spawn().unwrap();
        assert!(!child.has_ended().unwrap());
        child.signal(Signal::TERM).unwrap();
        assert!(!child.wait().unwrap().status.success());
        let mut sleep = Program::find("sleep").unwrap();
        sleep.arg("60");
        let child = sleep.spawn().unwrap();
        let id = child.id();
        drop(child);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
