//! A target that has a temporary name until it is complete and durable.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blockstone_sys::held::{FileType, HeldDir};
use rustix::fs::{Advice, FlockOperation, fadvise, flock};
use twox_hash::XxHash3_128;

use super::resume::{Claims, Identity, PartIdentity, Sidecar};
use super::{Carry, Options};
use crate::CopyError;

const NAME_MAX: usize = 255;

/// A file that does not have its name yet.
pub(super) struct PartialFile<'a> {
    dir: &'a HeldDir,
    name: &'a Path,
    temporary: PathBuf,
    sidecar: PathBuf,
    pub file: File,
    /// Whether an interrupted copy made it.
    pub is_left: bool,
    force: bool,
    has_sidecar: Cell<bool>,
}

impl<'a> PartialFile<'a> {
    /// Makes or finds the file. Fails before anything is written if the target exists, or if an
    /// interrupted copy left its file, unless the options say what to do in that case.
    pub(super) fn open(
        (dir, name): (&'a HeldDir, &'a Path),
        options: &Options,
    ) -> Result<Self, CopyError> {
        if name.file_name() != Some(name.as_os_str()) {
            let what = format!("`{}` is not the name of a file", name.display());
            return Err(CopyError::Usage { what, hint: "name the directory by itself" });
        }
        let path = dir.path().join(name);
        match dir.look(name).map_err(CopyError::io("look at", &path))? {
            Some(FileType::Directory) => {
                let is_dir = io::Error::from(io::ErrorKind::IsADirectory);
                return Err(CopyError::io("replace", &path)(is_dir));
            }
            Some(found) => {
                CopyError::unless_replaceable(found, &path)?;
                if !options.force {
                    return Err(CopyError::Exists { path });
                }
            }
            None => {}
        }
        let [part, sidecar] = ["part", "resume"].map(|kind| beside(name, kind));
        let part_path = dir.path().join(&part);
        let failed = |operation| CopyError::io(operation, &part_path);
        let left = match dir.write(&part, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.map_err(failed("open"))?),
        };
        let this = |file, is_left| Self {
            dir,
            name,
            temporary: part.clone(),
            sidecar: sidecar.clone(),
            file,
            is_left,
            force: options.force,
            has_sidecar: Cell::new(is_left),
        };
        if let Some(file) = left {
            lock(&file, &path, &part_path)?;
            if options.resume && !is_own(&file) {
                let why = "it does not belong to this user alone";
                let denied = io::Error::new(io::ErrorKind::PermissionDenied, why);
                return Err(failed("go on with")(denied));
            }
            if options.resume {
                let left = this(file, true);
                if left.is_named_by_sidecar() {
                    return Ok(left);
                }
                // Nothing shows that a copy made this file, so it is not written to.
            } else if !options.force {
                return Err(CopyError::LeftOver { path, part: part_path });
            }
            dir.remove(&part).map_err(failed("remove"))?;
        }
        let file = dir.create_new(&part).map_err(failed("create"))?;
        lock(&file, &path, &part_path)?;
        let new = this(file, false);
        new.remove_sidecar();
        Ok(new)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    pub(super) fn part_path(&self) -> PathBuf {
        self.dir.path().join(&self.temporary)
    }

    /// Opens the sidecar, if it belongs to this user alone.
    fn own_sidecar(&self) -> Option<File> {
        self.dir.write(&self.sidecar, false).ok().filter(is_own)
    }

    /// Returns whether a sidecar of this user says that an interrupted copy wrote this very file.
    fn is_named_by_sidecar(&self) -> bool {
        let named = self.own_sidecar().and_then(|file| Claims::part_of(&file).ok()?);
        named.is_some_and(|named| PartIdentity::of(&self.file).is_ok_and(|it| it == named))
    }

    /// Returns the sidecar that an interrupted copy of this very source left next to the file, and
    /// its claims.
    fn left(&self, source: &Identity) -> Result<Option<(File, Claims)>, CopyError> {
        let path = self.dir.path().join(&self.sidecar);
        if self.is_left
            && let Some(file) = self.own_sidecar()
            && let Some(claims) = Claims::read(&file).map_err(CopyError::io("read", &path))?
            && claims.source == *source
            && PartIdentity::of(&self.file).is_ok_and(|it| it == claims.part)
        {
            return Ok(Some((file, claims)));
        }
        Ok(None)
    }

    /// Returns the request size of an interrupted copy of this very source: only chunks of that
    /// size can be found again.
    pub(super) fn request_of_left(&self, source: &Identity) -> Result<Option<u64>, CopyError> {
        Ok(self.left(source)?.map(|(_, claims)| claims.request_bytes))
    }

    /// Returns whether an interrupted copy of this very source left chunks to resume from.
    pub(super) fn has_claims(&self, source: &Identity) -> Result<bool, CopyError> {
        Ok(self.left(source)?.is_some_and(|(_, claims)| !claims.chunks.is_empty()))
    }

    /// Returns the claims of an interrupted copy of this very source, and the sidecar to continue.
    pub(super) fn sidecar(
        &self,
        source: &Identity,
        request: u64,
    ) -> Result<(Option<Claims>, Sidecar), CopyError> {
        let path = self.dir.path().join(&self.sidecar);
        let failed = |operation| CopyError::io(operation, &path);
        self.has_sidecar.set(true);
        if let Some((file, claims)) = self.left(source)?
            && claims.request_bytes == request
        {
            let sidecar = Sidecar::go_on(file, &claims).map_err(failed("write"))?;
            return Ok((Some(claims), sidecar));
        }
        self.remove_sidecar();
        // The file holds data of another source, or unknown data.
        self.file.set_len(0).map_err(CopyError::io("resize", &self.part_path()))?;
        let file = self.dir.create_new(&self.sidecar).map_err(failed("create"))?;
        let part =
            PartIdentity::of(&self.file).map_err(CopyError::io("look at", &self.part_path()))?;
        Ok((None, Sidecar::start(file, source, &part, request).map_err(failed("write"))?))
    }

    fn remove_sidecar(&self) {
        // It may not exist. If it cannot be removed, a later resume finds that its claims are
        // false.
        let _ = self.dir.remove(&self.sidecar);
    }

    /// Removes everything that was written.
    pub(super) fn abandon(self) {
        self.remove_sidecar();
        let _ = self.dir.remove(&self.temporary);
    }

    /// Makes the bytes durable.
    pub(super) fn sync(&self) -> Result<(), CopyError> {
        self.file.sync_all().map_err(CopyError::io("fsync", &self.part_path()))
    }

    /// Makes the bytes and what is carried durable; the name remains the temporary one.
    pub(super) fn settle(&self, source: &File, carry: Carry<'_>) -> Result<(), CopyError> {
        carry(source, &self.file)?;
        self.sync()?;
        self.drop_pages();
        Ok(())
    }

    /// Drops the file's pages from the page cache; pages that are not durable stay.
    pub(super) fn drop_pages(&self) {
        // All of its pages are ours; setting a size within a page caches one too.
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
    }

    /// Gives the file its name; [`PartialFile::end`] makes that durable.
    pub(super) fn rename(&self) -> Result<(), CopyError> {
        let path = self.path();
        let renamed = if self.force {
            self.dir.rename(&self.temporary, self.name)
        } else {
            self.dir.rename_new(&self.temporary, self.name)
        };
        match renamed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(CopyError::Exists { path })
            }
            renamed => renamed.map_err(CopyError::io("rename to", &path)),
        }
    }

    /// Makes the name durable, unless its directory was synced already.
    pub(super) fn end(self, synced: &mut Vec<*const HeldDir>) -> Result<(), CopyError> {
        if !synced.contains(&std::ptr::from_ref(self.dir)) {
            let sync = self.dir.sync(Path::new(""));
            sync.map_err(CopyError::io("fsync", self.dir.path()))?;
            synced.push(self.dir);
        }
        if self.has_sidecar.get() {
            self.remove_sidecar();
        }
        Ok(())
    }
}

/// Returns whether the left-over belongs to this user alone. If others may write to the directory,
/// a file of theirs could expose what is written, or be another name of a file of this user.
fn is_own(file: &File) -> bool {
    let me = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|found| found.uid() == me && found.nlink() == 1)
}

fn lock(file: &File, path: &Path, part: &Path) -> Result<(), CopyError> {
    use rustix::io::Errno;
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            Err(CopyError::Busy { path: path.to_owned(), part: part.to_owned() })
        }
        // A file system without locks.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns `.NAME.blockstone-KIND`; if that is too long, the name is shortened and its hash added.
fn beside(name: &Path, kind: &str) -> PathBuf {
    let name = name.as_os_str().as_bytes();
    let tail = format!(".blockstone-{kind}");
    let mut new = b".".to_vec();
    if name.len() + tail.len() < NAME_MAX {
        new.extend(name);
    } else {
        new.extend(&name[..name.len().min(180)]);
        new.extend(format!(".{:032x}", XxHash3_128::oneshot(name)).into_bytes());
    }
    new.extend(tail.into_bytes());
    PathBuf::from(OsString::from(OsStr::from_bytes(&new)))
}
