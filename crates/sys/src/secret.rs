//! Files that hold passwords and tokens, and unguessable bytes.

use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use blockstone_base::units::Bytes;

use crate::held;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This user, or root.
    Trusted,
    Anybody,
}

/// Reads a regular file to which only its owner has access.
pub fn read(path: &Path, at_most: Bytes, owner: Owner) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(ErrorKind::PermissionDenied, why);
    let file = held::open_file(path)?;
    let status = file.metadata()?;
    let mode = status.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(refused(format!("other users may use it (mode {mode:03o})")));
    }
    let uid = status.uid();
    if owner == Owner::Trusted && uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(refused(format!("it belongs to the user {uid}")));
    }
    held::read_whole(file, at_most)
}

/// Returns unguessable bytes.
pub fn random<const LEN: usize>() -> io::Result<[u8; LEN]> {
    let mut bytes = [0; LEN];
    crate::input::open(Path::new("/dev/urandom"))?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_small_file_of_the_user_alone_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let why = |at_most: u64| {
            read(&path, Bytes(at_most), Owner::Trusted).map_err(|error| error.to_string())
        };
        assert!(why(9).is_err(), "it is not there");
        fs::write(&path, "secret").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(why(9).unwrap_err().contains("other users may use it"));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(why(6).unwrap(), b"secret");
        assert!(why(5).unwrap_err().contains("larger"));
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        assert!(why(9).unwrap_err().contains("not a regular file"), "and nobody waits for it");
    }
}
