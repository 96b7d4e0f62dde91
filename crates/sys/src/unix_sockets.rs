//! Unix sockets that processes listen on, as `/proc` shows them.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::proc::{self, entries, under};

/// Bit of the flags in `/proc/net/unix` that a listening socket has.
const ACCEPTS: u64 = 0x1_0000;

/// Returns the paths that process `pid` listens on; `None` if this user may not see its
/// descriptors.
pub fn of_process(root: &Path, pid: u32) -> Option<Vec<PathBuf>> {
    let dir = under(root, format!("/proc/{pid}"));
    let descriptors = entries(&dir.join("fd"));
    if descriptors.is_empty() {
        return None;
    }
    let own: BTreeSet<String> = descriptors.iter().filter_map(|entry| inode(entry)).collect();
    let table = proc::read(&dir.join("net/unix")).unwrap_or_default();
    let paths = table.lines().filter_map(listening).filter(|(inode, _)| own.contains(*inode));
    Some(paths.filter_map(|(_, path)| from_root(&dir, path)).collect())
}

/// Returns the paths that any process of this network namespace listens on.
pub fn all(root: &Path) -> Vec<PathBuf> {
    let table = proc::read(&under(root, "/proc/net/unix")).unwrap_or_default();
    let paths = table.lines().filter_map(listening).map(|(_, path)| path);
    paths.filter(|path| path.is_absolute()).collect()
}

/// Returns the owner of the socket at `path`. Fails if it is not a socket; a link is not followed.
pub fn owner(path: &Path) -> std::io::Result<u32> {
    let found = std::fs::symlink_metadata(path)?;
    if !found.file_type().is_socket() {
        return Err(std::io::Error::other("it is not a socket"));
    }
    Ok(found.uid())
}

/// Returns a path of a process from the root directory. It may be relative to the working
/// directory, since paths of sockets must be short.
fn from_root(process: &Path, path: PathBuf) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path);
    }
    let (place, name) = (path.parent()?, path.file_name()?);
    let place = proc::link_target(&process.join("cwd")).ok()?.join(place);
    Some(place.canonicalize().ok()?.join(name))
}

/// Returns inode and path of a listening socket that has a path.
fn listening(line: &str) -> Option<(&str, PathBuf)> {
    // Number, references, protocol, flags, type, state, inode, path; a path may contain blanks.
    let mut rest = line;
    let mut fields = [""; 7];
    for field in &mut fields {
        let (word, after) = rest.trim_start().split_once(' ')?;
        (*field, rest) = (word, after);
    }
    let flags = u64::from_str_radix(fields[3], 16).ok()?;
    let is_path = !rest.is_empty() && !rest.starts_with('@');
    (flags & ACCEPTS != 0 && is_path).then(|| (fields[6], PathBuf::from(rest)))
}

fn inode(entry: &Path) -> Option<String> {
    let target = proc::link_target(entry).ok()?;
    Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_listens_is_found_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a server.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let found = of_process(Path::new("/"), std::process::id()).unwrap();
        assert!(found.contains(&path), "{found:?}");
        assert!(all(Path::new("/")).contains(&path));
        assert_eq!(owner(&path).unwrap(), rustix::process::geteuid().as_raw());
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert!(owner(&dir.path().join("link")).is_err(), "a link may lead anywhere");
        assert_eq!(of_process(Path::new("/"), 1 << 30), None);
    }

    #[test]
    fn a_relative_path_begins_in_the_working_directory() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let of = |path: &str| from_root(Path::new("/proc/self"), path.into());
        assert_eq!(of("../x.sock"), Some(here.parent().unwrap().join("x.sock")));
        assert_eq!(of("/run/x.sock"), Some("/run/x.sock".into()));
        assert_eq!(of("no-such-directory/x.sock"), None);
    }

    #[test]
    fn lines_of_other_sockets_are_skipped() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/x.sock";
        assert_eq!(listening(line), Some(("4711", "/run/x.sock".into())));
        for other in [
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "0000000000000000: 00000003 00000000 00000000 0001 03 4711 /run/x.sock",
            "0000000000000000: 00000002 00000000 00010000 0001 01 4711 @abstract",
            "0000000000000000: 00000002 00000000 00010000 0001 01 4711",
        ] {
            assert_eq!(listening(other), None, "{other}");
        }
    }
}
