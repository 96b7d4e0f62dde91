//! Kernel accounting of a process or thread, of this program or another: processor time, run queue
//! and I/O, each value only if this user may read it.

use std::path::Path;
use std::{fs, io};

use crate::proc::{numbers, numbers_after, under};

/// Counters since the process or thread started. A value is `None` if the kernel does not keep it
/// or this user may not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Processor time in nanoseconds: of the thread, or of the process's first thread.
    pub cpu_ns: Option<u64>,
    /// Nanoseconds ready to run but waiting for a processor, of the same thread.
    pub run_queue_ns: Option<u64>,
    /// I/O of the thread, or of the process including the children that it has waited for.
    pub io: Option<Io>,
}

/// Counters from the `io` file of a process or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes returned by read system calls, from the page cache or not.
    pub requested_read_bytes: u64,
    /// Bytes passed to write system calls.
    pub requested_write_bytes: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes that had to be fetched from storage.
    pub read_bytes: u64,
    /// Bytes that go to storage, now or later.
    pub write_bytes: u64,
}

/// A process on this machine other than this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// Command line, arguments separated by spaces; the program's name if there is none.
    pub title: String,
}

pub fn current_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Returns the account of process `pid`, or of its thread `thread`; `None` if it has ended.
pub fn account(root: &Path, pid: u32, thread: Option<u32>) -> Option<Account> {
    let dir = match thread {
        None => format!("/proc/{pid}"),
        Some(thread) => format!("/proc/{pid}/task/{thread}"),
    };
    let dir = under(root, dir);
    let schedstat = read_of_living(&dir, "schedstat").ok()?;
    let mut times = schedstat.as_deref().map(numbers).into_iter().flatten();
    let (cpu_ns, run_queue_ns) = (times.next(), times.next());
    // The process may end between the two reads.
    let io = read_of_living(&dir, "io").ok()?.and_then(|text| io_of(&text));
    Some(Account { cpu_ns, run_queue_ns, io })
}

struct Ended;

/// Reads a file of a process or thread; `None` if this user or this kernel does not have it.
fn read_of_living(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, Ended> {
    const ESRCH: i32 = 3;
    match fs::read(dir.join(name)) {
        Ok(text) => Ok(Some(text)),
        // The directory of a thread that is just ending may still exist.
        Err(error) if error.raw_os_error() == Some(ESRCH) => Err(Ended),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.exists() => Err(Ended),
        Err(_) => Ok(None),
    }
}

fn io_of(text: &[u8]) -> Option<Io> {
    let value = |key| numbers_after(text, key)?.next();
    Some(Io {
        requested_read_bytes: value("rchar")?,
        requested_write_bytes: value("wchar")?,
        read_calls: value("syscr")?,
        write_calls: value("syscw")?,
        read_bytes: value("read_bytes")?,
        write_bytes: value("write_bytes")?,
    })
}

/// Returns process `pid`; `None` if it does not exist, or no longer exists.
pub fn process(root: &Path, pid: u32) -> Option<Process> {
    let dir = under(root, format!("/proc/{pid}"));
    let stat = fs::read_to_string(dir.join("stat")).ok()?;
    // The name is in parentheses and may contain any character; what follows the last one is fixed.
    let (head, tail) = stat.rsplit_once(')')?;
    let parent = tail.split_whitespace().nth(1)?.parse().ok()?;
    let command = fs::read(dir.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let title = match command.trim() {
        "" => head.split_once('(').map_or("", |(_, name)| name).to_owned(),
        command => command.to_owned(),
    };
    Some(Process { pid, parent, title })
}

pub fn all(root: &Path) -> Vec<u32> {
    ids(&under(root, "/proc"))
}

/// Returns all running processes that `parent` started.
pub fn children(root: &Path, parent: u32) -> Vec<Process> {
    let processes = all(root).into_iter().filter_map(|pid| process(root, pid));
    processes.filter(|process| process.parent == parent).collect()
}

/// Returns the threads of process `pid`, with their names.
pub fn threads(root: &Path, pid: u32) -> Vec<(u32, String)> {
    let named = |thread: u32| Some((thread, thread_name(root, pid, thread)?));
    thread_ids(root, pid).into_iter().filter_map(named).collect()
}

/// Returns the IDs of the threads of process `pid`; empty if it has ended.
pub fn thread_ids(root: &Path, pid: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let tasks = under(root, format!("/proc/{pid}/task"));
    // A directory has two links of its own and one for each subdirectory.
    match fs::metadata(&tasks) {
        Ok(one) if one.nlink() == 3 => vec![pid],
        _ => ids(&tasks),
    }
}

/// Returns a thread's name; `None` if it has ended.
pub fn thread_name(root: &Path, pid: u32, thread: u32) -> Option<String> {
    let name = under(root, format!("/proc/{pid}/task/{thread}/comm"));
    Some(fs::read_to_string(name).ok()?.trim_end().to_owned())
}

/// Code mapped into a process's memory: an executable file or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub start: u64,
    pub end: u64,
    /// File name without the directory, or `[vdso]` and the like; `anonymous` for generated code.
    pub module: String,
}

/// Returns the code of process `pid` by address; `None` if it has ended or this user may not see
/// it.
pub fn code(root: &Path, pid: u32) -> Option<Vec<Code>> {
    let maps = fs::read(under(root, format!("/proc/{pid}/maps"))).ok()?;
    Some(String::from_utf8_lossy(&maps).lines().filter_map(code_of).collect())
}

/// Parses `start-end perms offset device inode`, many spaces, and the path.
fn code_of(line: &str) -> Option<Code> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let path = words.nth(3).unwrap_or_default().trim();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let module = match path.rsplit('/').next().unwrap_or(path) {
        "" => "anonymous",
        name => name,
    };
    let address = |text| u64::from_str_radix(text, 16).ok();
    let code = Code { start: address(start)?, end: address(end)?, module: module.to_owned() };
    is_code.then_some(code)
}

/// Returns the processes whose working directory is `dir` or below it.
pub fn working_in(root: &Path, dir: &Path) -> Vec<u32> {
    let inside = |pid: &u32| {
        let link = under(root, format!("/proc/{pid}/cwd"));
        fs::read_link(link).is_ok_and(|cwd| cwd.starts_with(dir))
    };
    all(root).into_iter().filter(inside).collect()
}

fn ids(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const ROOT: &str = "/";

    #[test]
    fn a_child_is_found_with_its_account_until_it_ends() {
        let root = Path::new(ROOT);
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("30").current_dir(dir.path()).spawn().unwrap();
        let found = children(root, std::process::id());
        let found = found.iter().find(|process| process.pid == child.id()).unwrap();
        assert_eq!(found.parent, std::process::id());
        let real = dir.path().canonicalize().unwrap();
        assert_eq!(working_in(root, &real), [child.id()]);
        let found = account(root, child.id(), None).unwrap();
        assert!(found.cpu_ns.is_some() && found.io.is_some(), "{found:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(account(root, child.id(), None), None);
        assert_eq!(process(root, child.id()), None);
    }

    #[test]
    fn a_thread_is_charged_for_its_own_reads() {
        let root = Path::new(ROOT);
        let read = || {
            let thread = current_thread();
            let before = account(root, std::process::id(), Some(thread)).unwrap().io.unwrap();
            fs::read("/proc/self/maps").unwrap();
            let after = account(root, std::process::id(), Some(thread)).unwrap().io.unwrap();
            after.requested_read_bytes - before.requested_read_bytes
        };
        assert!(std::thread::spawn(read).join().unwrap() > 1000);
    }

    #[test]
    fn a_thread_that_ends_meanwhile_has_no_account_instead_of_half_a_one() {
        let root = Path::new(ROOT);
        let pid = std::process::id();
        let until = std::time::Instant::now() + std::time::Duration::from_millis(400);
        let mut seen = 0;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while std::time::Instant::now() < until {
                        std::thread::spawn(|| ()).join().expect("it does nothing");
                    }
                });
            }
            while std::time::Instant::now() < until {
                for thread in thread_ids(root, pid) {
                    if let Some(account) = account(root, pid, Some(thread)) {
                        assert!(account.io.is_some(), "half an account after {seen} whole ones");
                        seen += 1;
                    }
                }
            }
        });
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn this_programs_code_is_found_in_its_memory() {
        let code = code(Path::new(ROOT), std::process::id()).unwrap();
        let here = (current_thread as *const ()).addr() as u64;
        let found = code.iter().find(|code| (code.start..code.end).contains(&here)).unwrap();
        let own = std::env::current_exe().unwrap();
        assert_eq!(found.module, own.file_name().unwrap().to_str().unwrap());
        let line = "7f0-7ff r-xp 00000000 fd:00 12                    /usr/lib/a b.so (deleted)";
        let wanted = Code { start: 0x7f0, end: 0x7ff, module: "a b.so".to_owned() };
        assert_eq!(code_of(line), Some(wanted));
        assert_eq!(code_of("7f0-7ff r--p 00000000 fd:00 12 /usr/lib/a.so"), None);
        let made = code_of("7f0-7ff rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(made.module, "anonymous");
    }

    #[test]
    fn a_name_with_brackets_hides_no_parent() {
        let dir = tempfile::tempdir().unwrap();
        let of = dir.path().join("proc/77");
        fs::create_dir_all(&of).unwrap();
        fs::write(of.join("stat"), "77 (a) S (b) S 12 77 77 0").unwrap();
        let found = process(dir.path(), 77).unwrap();
        assert_eq!((found.parent, found.title.as_str()), (12, "a) S (b"));
    }
}
