//! Servers that this program starts, as another user if it is root, and that end with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

pub use rustix::process::Signal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// The first of `names` that the machine's user list has. The list is read as a file: in a static
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

pub fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes the program that `command` will start run as `user`, and get `signal` when the thread
/// that starts it ends, however that comes about.
pub fn confine(command: &mut Command, user: Option<&User>, signal: Signal) {
    if let Some(user) = user {
        // As the superuser, the standard library drops supplementary groups as well.
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
    // no allocation, for an `ErrorKind` becomes an error without one.
    unsafe { command.pre_exec(prepare) };
}

/// Sends `signal` to process `pid`; one that has ended already is no error.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = rustix::process::Pid::from_raw(pid as i32) else { return Ok(()) };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
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
}
