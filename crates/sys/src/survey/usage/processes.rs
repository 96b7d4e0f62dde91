//! Processes that have a block device open or see it mounted, as far as this process may look.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::{NO_SYSFS, Unknown, block_number};
use crate::mounts::Mounts;
use crate::proc::{text, under};

/// Number of the initial PID namespace, a constant of the kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
const PATH_ONLY: u32 = 0o10_000_000;

#[derive(Debug)]
pub(super) enum User {
    /// Has it open for now: it may close it.
    Open(String),
    Mounted(String),
}

/// Returns the first process other than this one that has a device with one of these numbers open,
/// or a mount in its namespace that `mounted` recognises. Fails when there are processes that
/// cannot be inspected.
pub(super) fn user(
    root: &Path,
    numbers: &[String],
    mounted: &dyn Fn(&Mounts) -> Option<String>,
) -> Result<Option<User>, Unknown> {
    let proc = under(root, "/proc");
    let (mut hidden, mut namespaces) = (0_u32, HashSet::new());
    for process in pids(root)? {
        let directory = proc.join(&process);
        if process != std::process::id().to_string() {
            match opened(&directory, numbers) {
                Ok(true) => {
                    let name = text(&directory.join("comm")).unwrap_or_default();
                    return Ok(Some(User::Open(format!("open in process {process} ({name})"))));
                }
                Ok(false) => {}
                // A sandbox may hide the files of init even from root. Init serves no data.
                Err(_) if process == "1" && rustix::process::geteuid().is_root() => {}
                Err(error) => hidden += u32::from(is_refusal(&error)),
            }
        }
        match fs::read_link(directory.join("ns/mnt")) {
            Ok(namespace) if namespaces.insert(namespace.clone()) => {
                let mounts = Mounts::of_process(root, &process);
                if let Some(user) = mounts.as_ref().and_then(mounted) {
                    let user = format!("{user} in the mount namespace of process {process}");
                    return Ok(Some(User::Mounted(user)));
                }
                if mounts.is_none() {
                    // The process may have ended; another one in its namespace may answer.
                    namespaces.remove(&namespace);
                }
            }
            // The namespace is already known, or cannot be read; a process that cannot be inspected
            // was counted when its descriptors were read.
            Ok(_) | Err(_) => {}
        }
    }
    if hidden > 0 {
        let why = format!("the open files of {hidden} processes cannot be read");
        return Err(Unknown { why, hint: "run as root, who may look at every process" });
    }
    Ok(None)
}

/// Returns the processes of the whole machine; fails when some are not visible.
fn pids(root: &Path) -> Result<Vec<String>, Unknown> {
    let proc = under(root, "/proc");
    let namespace = fs::read_link(proc.join("self/ns/pid"));
    if namespace.map_err(|_| Unknown {
        why: "/proc/self/ns/pid cannot be read".to_owned(),
        hint: NO_SYSFS,
    })? != Path::new(FIRST_PID_NAMESPACE)
    {
        return Err(Unknown {
            why: "processes outside of this container cannot be seen".to_owned(),
            hint: "run on the host, or in a container that shares the host's PID namespace",
        });
    }
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let found = fs::read_dir(&proc).map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(is_number).collect::<Vec<_>>()
    });
    let mut found = found.unwrap_or_default();
    if !found.iter().any(|process| process == "1") {
        return Err(Unknown {
            why: "/proc does not show the processes of other users".to_owned(),
            hint: "run as root, or where /proc is mounted without hidepid",
        });
    }
    found.sort();
    Ok(found)
}

fn opened(directory: &Path, numbers: &[String]) -> io::Result<bool> {
    for entry in fs::read_dir(directory.join("fd"))? {
        let descriptor = entry?;
        if let Err(error) = fs::read_link(descriptor.path()) {
            if is_refusal(&error) {
                return Err(error);
            }
            continue;
        }
        if block_number(&descriptor.path()).is_some_and(|number| numbers.contains(&number)) {
            let shown = directory.join("fdinfo").join(descriptor.file_name());
            let flags = text(&shown).and_then(|info| {
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
                u32::from_str_radix(flags.trim(), 8).ok()
            });
            // A descriptor that only stands for the path reads and writes nothing.
            if flags.is_none_or(|flags| flags & PATH_ONLY == 0) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
