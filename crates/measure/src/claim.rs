//! Claiming a device or the space of a directory: the checks that every measurement makes before it
//! writes.
//!
//! A device is overwritten only if it was named twice, nothing uses it and it is empty. A directory
//! or device must have room for everything that will be written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use blockstone_sys as sys;
use blockstone_sys::file::FileError;
use blockstone_sys::held::HeldDir;
use blockstone_sys::survey::{self, SurveyError};

use crate::contents::{self, Contents};

#[derive(Debug, thiserror::Error, Hint)]
pub enum ClaimError {
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] FileError),
    #[error("create files in {path}: {why}")]
    #[hint("run as a user with the permission, or choose another path")]
    NotWritable { path: PathBuf, why: std::io::Error },
    #[error("write to {path}: that would destroy what is on this device")]
    #[hint("--destroy {} allows it{}", path.display(), or(*instead))]
    DeviceNamedOnce { path: PathBuf, instead: Option<&'static str> },
    #[error("destroy {path}: other users can change what this name leads to: {why}")]
    #[hint("name the device below /dev")]
    Changeable { path: PathBuf, why: std::io::Error },
    #[error("destroy {path}: it is in use: {usage}")]
    #[hint("name a directory on it instead, or end that use of it first")]
    InUse { path: PathBuf, usage: String },
    #[error("destroy {path}: it is not empty: it holds {what}")]
    #[hint(
        "clear it with `wipefs -a` and `blkdiscard -z` if nothing on it is needed{}",
        or(*instead)
    )]
    NotEmpty { path: PathBuf, what: String, instead: Option<&'static str> },
    #[error("destroy {path}: it has no bytes")]
    #[hint("attach a file to the loop device, or put a medium into the drive")]
    NoBytes { path: PathBuf },
    #[error("create {asked} of files in {path}: only {free} are free")]
    #[hint("free some space, or use less with {less}")]
    NoSpace { path: PathBuf, asked: Bytes, free: Bytes, less: &'static str },
    #[error("use {path}: {size} is too small, at least {least} is needed")]
    #[hint("{hint}")]
    TooSmall { path: PathBuf, least: Bytes, size: Bytes, hint: String },
    /// I/O that never completes keeps the claimed device or file in use; `waiting` is, for example,
    /// `4 sessions`.
    #[error("{waiting} still wait for an I/O that does not complete")]
    #[hint("the device hangs; see dmesg")]
    Stuck { waiting: String },
}

fn or(instead: Option<&str>) -> String {
    instead.map(|instead| format!("; {instead}")).unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub struct Device<'a> {
    pub path: &'a Path,
    /// Whether it was named a second time, to allow overwriting it.
    pub destroy: bool,
    /// Alternative for the user, for the hint.
    pub instead: Option<&'static str>,
}

impl Device<'_> {
    /// Claims the device, unless it was named only once, is in use, is not empty, is not a device
    /// or cannot be read. One that holds nothing but what `is_remains` recognises as left by a
    /// killed measurement counts as empty.
    pub fn claim(
        &self,
        is_remains: impl FnOnce(&Path) -> Result<bool, FileError>,
    ) -> Result<(), ClaimError> {
        self.claim_beside(&[], is_remains)
    }

    /// Like [`Device::claim`], but the loop devices with these names may be backed by the same
    /// file, because they are claimed too.
    pub fn claim_beside(
        &self,
        twins: &[String],
        is_remains: impl FnOnce(&Path) -> Result<bool, FileError>,
    ) -> Result<(), ClaimError> {
        let (path, instead) = (self.path.to_owned(), self.instead);
        if !self.destroy {
            return Err(ClaimError::DeviceNamedOnce { path, instead });
        }
        is_fixed(self.path).map_err(|why| ClaimError::Changeable { path: path.clone(), why })?;
        if let Some(usage) = survey::user_of_beside(Path::new("/"), self.path, twins)? {
            return Err(ClaimError::InUse { path, usage });
        }
        let what = match contents::of(self.path) {
            Err(FileError::Open { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {
                let usage = "the kernel or another program holds it for itself".to_owned();
                return Err(ClaimError::InUse { path, usage });
            }
            found => found?,
        };
        let what = match what {
            Contents::NoBytes => return Err(ClaimError::NoBytes { path }),
            Contents::Empty => return Ok(()),
            Contents::Known(what) => what.to_owned(),
            Contents::Unknown { offset_bytes } => {
                format!("data, at byte {offset_bytes} and perhaps elsewhere")
            }
        };
        if is_remains(self.path)? {
            Ok(())
        } else {
            Err(ClaimError::NotEmpty { path, what, instead })
        }
    }
}

/// Fails when another user could change what a name leads to: it is looked up more than once before
/// its device is written to.
fn is_fixed(path: &Path) -> std::io::Result<()> {
    // A device that does not exist is reported by the next check.
    let Ok(whole) = sys::path::whole(path) else { return Ok(()) };
    for name in [path, &whole] {
        let (dir, _) = sys::path::parent(name)?;
        HeldDir::of(dir, name.parent().unwrap_or(name)).check_owner()?;
    }
    Ok(())
}

/// Fails when this user cannot create files in the directory.
pub fn directory(path: &Path) -> Result<(), ClaimError> {
    sys::path::may_make_files(path)
        .map_err(|why| ClaimError::NotWritable { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_named_once_is_refused_before_anything_is_read() {
        let path = Path::new("/dev/no-such-device");
        let once = Device { path, destroy: false, instead: Some("--read-only only reads it") };
        let refused = once.claim(|_| panic!("nothing is read")).unwrap_err().told();
        assert!(refused.contains("would destroy"), "{refused}");
        let hint = "hint: --destroy /dev/no-such-device allows it; --read-only only reads it";
        assert!(refused.ends_with(hint), "{refused}");
    }

    #[test]
    fn a_name_that_others_can_change_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("disk");
        symlink("/dev/null", &link).unwrap();
        is_fixed(&link).unwrap();
        is_fixed(Path::new("/dev/no-such-device")).unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let twice = Device { path: &link, destroy: true, instead: None };
        let refused = twice.claim(|_| Ok(true)).unwrap_err();
        assert!(refused.told().contains("hint: name the device below /dev"), "{refused}");
    }

    #[test]
    fn what_is_no_device_is_never_claimed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let twice = Device { path: file.path(), destroy: true, instead: None };
        let refused = twice.claim(|_| Ok(true)).unwrap_err();
        assert!(matches!(refused, ClaimError::Survey(_)), "{refused}");
    }

    #[test]
    fn a_message_without_an_alternative_ends_with_its_hint() {
        let path = PathBuf::from("/dev/sdz");
        let refused = ClaimError::NotEmpty { path, what: "XFS".to_owned(), instead: None }.told();
        assert!(refused.ends_with("if nothing on it is needed"), "{refused}");
    }
}
