//! Ownership and removal of the devices and files of test environments.
//!
//! Each of them has a folder `/var/tmp/blockstone-testkit/<name>/` with the backing file, the mount
//! point, or the number of a zram device. The folder alone tells what to undo, so a killed run
//! needs no cooperation: its lock on the folder's `owner` file is released, and the next use
//! dismantles the folder. A folder with a file `kept` belongs to the user and stays.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::TestkitError;
use crate::throttle::{Controller, Throttle};
use crate::tool::{control, control_text, tool};

/// On a disk, because in memory the tests of storage would test memory.
pub(crate) const DISK_ROOT: &str = "/var/tmp/blockstone-testkit";

/// In memory, where `O_DIRECT` succeeds but reaches no device.
pub(crate) const MEMORY_ROOT: &str = "/dev/shm/blockstone-testkit";

const OWNER: &str = "owner";
const KEPT: &str = "kept";
pub(crate) const BACKING: &str = "backing";
pub(crate) const MOUNT: &str = "mnt";
/// A file that a server presents as a file system of its own.
pub(crate) const SERVED: &str = "served";
/// Files with the ids of processes that serve the folder.
const PROCESSES: [&str; 2] = ["machine.pid", "disk.pid"];
/// File with the number of a zram device.
pub(crate) const ZRAM: &str = "zram";

/// A folder that is dismantled, with everything it names, when the lease is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    dir: PathBuf,
    /// Locked while this process lives; `None` for a kept folder.
    owner: Option<File>,
}

impl Lease {
    /// Creates a folder under `root`, after dismantling those that killed runs left there.
    pub(crate) fn acquire(root: &Path) -> Result<Self, TestkitError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let _exclusive = lock_root(root)?;
        take_apart_orphans(root)?;
        let dir = root.join(format!("t{}-{count}", std::process::id()));
        fs::create_dir(&dir).map_err(TestkitError::file("create", &dir))?;
        let path = dir.join(OWNER);
        let owner = File::create(&path).map_err(TestkitError::file("create", &path))?;
        owner.lock().map_err(TestkitError::file("lock", &path))?;
        Ok(Self { dir, owner: Some(owner) })
    }

    /// Creates a folder that outlives this process, with a name chosen by the user.
    pub(crate) fn keep(root: &Path, name: &str) -> Result<Self, TestkitError> {
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(ordinary) {
            let what = "a device's name consists of letters, digits, - and _";
            return Err(TestkitError::Name { what, name: name.to_owned() });
        }
        let _exclusive = lock_root(root)?;
        take_apart_orphans(root)?;
        let dir = root.join(name);
        if dir.exists() {
            let what = "there is a device of that name already";
            return Err(TestkitError::Name { what, name: name.to_owned() });
        }
        fs::create_dir(&dir).map_err(TestkitError::file("create", &dir))?;
        let path = dir.join(KEPT);
        File::create(&path).map_err(TestkitError::file("create", &path))?;
        Ok(Self { dir, owner: None })
    }

    /// Finds the folder of a kept device.
    pub(crate) fn find(root: &Path, name: &str) -> Result<Self, TestkitError> {
        let dir = root.join(name);
        if dir.join(KEPT).exists() {
            check_owner(root)?;
            Ok(Self { dir, owner: None })
        } else {
            Err(TestkitError::Name { what: "no device has that name", name: name.to_owned() })
        }
    }

    pub(crate) fn kept(root: &Path) -> Result<Vec<String>, TestkitError> {
        let mut names: Vec<String> = folders(root)?
            .into_iter()
            .filter(|dir| dir.join(KEPT).exists())
            .map(|dir| name_of(&dir))
            .collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder's name, which is also that of its control group.
    pub(crate) fn name(&self) -> String {
        name_of(&self.dir)
    }

    pub(crate) fn remove(&self) -> Result<(), TestkitError> {
        take_apart(&self.dir)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.owner.is_none() {
            return;
        }
        // The lock on `owner` is released when the file closes. Without the lock on the root, a
        // process that creates a folder now would take this one for an orphan and dismantle it at
        // the same time.
        let exclusive = lock_root(self.dir.parent().unwrap_or(Path::new("/")));
        if let Err(error) = exclusive.and_then(|_held| take_apart(&self.dir)) {
            // A destructor cannot return an error, and the next use retries.
            writeln!(io::stderr(), "testkit: {error}").ok();
        }
    }
}

fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Locks the root while folders are created or removed, so that none is removed before it is
/// locked.
fn lock_root(root: &Path) -> Result<File, TestkitError> {
    fs::create_dir_all(root).map_err(TestkitError::file("create", root))?;
    check_owner(root)?;
    let path = root.join(".lock");
    let lock = File::create(&path).map_err(TestkitError::file("create", &path))?;
    lock.lock().map_err(TestkitError::file("lock", &path))?;
    Ok(lock)
}

/// Any user can create the root first. A root that another user made or can write to may hold links
/// to anything, and folders that name any device.
fn check_owner(root: &Path) -> Result<(), TestkitError> {
    let found = fs::symlink_metadata(root).map_err(TestkitError::file("look at", root))?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && own && found.mode() & 0o002 == 0 {
        return Ok(());
    }
    let why = io::Error::new(io::ErrorKind::PermissionDenied, "another user can write to it");
    Err(TestkitError::file("use", root)(why))
}

fn folders(root: &Path) -> Result<Vec<PathBuf>, TestkitError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(TestkitError::file("list", root)(error)),
    };
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|p| p.is_dir()).collect())
}

fn take_apart_orphans(root: &Path) -> Result<(), TestkitError> {
    for dir in folders(root)? {
        if !dir.join(KEPT).exists() && is_orphan(&dir) {
            take_apart(&dir)?;
        }
    }
    Ok(())
}

/// Whether the owner of the folder is dead: the kernel releases a lock when its process exits.
fn is_orphan(dir: &Path) -> bool {
    match File::open(dir.join(OWNER)) {
        Ok(owner) => !matches!(owner.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => true,
    }
}

/// Undoes everything that the folder names. The cap goes first: under it, the last dirty pages
/// would be written at a few hundred operations per second while the unmount waits for them.
fn take_apart(dir: &Path) -> Result<(), TestkitError> {
    for name in PROCESSES {
        end_process(&dir.join(name), dir)?;
    }
    let mut devices = Vec::new();
    for backing in [BACKING, SERVED].map(|name| dir.join(name)) {
        // A server that was killed does not even answer whether the file exists.
        if backing.exists() || is_mounted(&backing)? {
            devices.extend(loops_over(&backing)?);
        }
    }
    if let Some(controller) = Controller::detect() {
        let throttle = Throttle::find(&controller, &name_of(dir));
        for device in &devices {
            throttle.lift(&device_number(device)?)?;
        }
        retry(|| throttle.remove())?;
    }
    let served = dir.join(SERVED);
    let (beneath, mounts): (Vec<_>, Vec<_>) =
        mounts_below(dir)?.into_iter().rev().partition(|mount| *mount == served);
    for mount in mounts {
        unmount(&mount)?;
    }
    for device in devices {
        retry(|| tool("losetup", &["--detach".as_ref(), device.as_os_str()]).map(drop))?;
    }
    for mount in beneath {
        unmount(&mount)?;
    }
    if let Ok(number) = fs::read_to_string(dir.join(ZRAM)) {
        remove_zram(number.trim())?;
    }
    fs::remove_dir_all(dir).map_err(TestkitError::file("remove", dir))
}

/// Ends the process whose id is in `file`, if it was started with files in `dir`: the id may have
/// been reused.
fn end_process(file: &Path, dir: &Path) -> Result<(), TestkitError> {
    let number = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    let Some(pid) = number.and_then(Pid::from_raw) else { return Ok(()) };
    let started_with = PathBuf::from(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    let is_its = || {
        let words = fs::read(&started_with).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&*dir.to_string_lossy())
    };
    if !is_its() {
        return Ok(());
    }
    // It may have exited in the meantime.
    let _ = kill_process(pid, Signal::KILL);
    retry(|| {
        if !is_its() {
            return Ok(());
        }
        Err(TestkitError::file("wait for", &started_with)(io::ErrorKind::TimedOut.into()))
    })
}

fn remove_zram(number: &str) -> Result<(), TestkitError> {
    let reset = PathBuf::from(format!("/sys/block/zram{number}/reset"));
    if !reset.exists() {
        return Ok(());
    }
    retry(|| control(&reset, "1"))?;
    retry(|| control(Path::new("/sys/class/zram-control/hot_remove"), number))
}

/// Returns the loop devices backed by `backing`.
pub(crate) fn loops_over(backing: &Path) -> Result<Vec<PathBuf>, TestkitError> {
    let arguments = ["--noheadings", "--output", "NAME", "--associated"].map(OsStr::new);
    let listed = tool("losetup", &[&arguments[..], &[backing.as_os_str()]].concat())?;
    Ok(listed.lines().map(str::trim).filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

/// Returns `major:minor` of a device, as control files of the kernel name it.
pub(crate) fn device_number(device: &Path) -> Result<String, TestkitError> {
    let name = device.file_name().unwrap_or_default();
    control_text(&Path::new("/sys/class/block").join(name).join("dev"))
}

/// Whether a file system is mounted at `path` in this process's mount namespace.
pub(crate) fn is_mounted(path: &Path) -> Result<bool, TestkitError> {
    Ok(mounts_below(path)?.iter().any(|mount| mount == path))
}

/// Returns the mount points at `dir` and below, in mount order.
fn mounts_below(dir: &Path) -> Result<Vec<PathBuf>, TestkitError> {
    let table = Path::new("/proc/self/mounts");
    let mounts = fs::read_to_string(table).map_err(TestkitError::file("read", table))?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    Ok(points.filter(|point| point.starts_with(dir)).map(Path::to_owned).collect())
}

/// Unmounts a file system. A child that another test is just starting may have its files open for a
/// moment, so it is tried again for some seconds.
pub fn unmount(mount: &Path) -> Result<(), TestkitError> {
    retry(|| tool("umount", &[mount.as_os_str()]).map(drop))
}

/// Retries for some seconds: a device stays busy for a moment after its last user (udev examines
/// it, or a killed process is still exiting).
pub(crate) fn retry(
    mut undo: impl FnMut() -> Result<(), TestkitError>,
) -> Result<(), TestkitError> {
    for _ in 0..50 {
        if undo().is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
    undo()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("blockstone-lease-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_folder_without_a_living_owner_is_taken_apart_and_others_stay() {
        let root = root("orphans");
        let orphan = root.join("t1-0");
        fs::create_dir_all(&orphan).unwrap();
        fs::write(orphan.join(OWNER), "").unwrap();
        let kept = Lease::keep(&root, "mine").unwrap();
        assert!(!orphan.exists(), "its lock is free, so its owner is dead");

        let first = Lease::acquire(&root).unwrap();
        let second = Lease::acquire(&root).unwrap();
        assert!(first.dir().exists(), "its owner lives");
        assert!(kept.dir().exists(), "it is the user's");
        assert_eq!(Lease::kept(&root).unwrap(), ["mine"]);

        let gone = [first.dir().to_owned(), second.dir().to_owned()];
        drop((first, second));
        assert!(gone.iter().all(|dir| !dir.exists()));
        kept.remove().unwrap();
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_root_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (theirs, link) = (root("theirs"), root("link"));
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
        let victim = theirs.join("victim");
        fs::write(&victim, "data").unwrap();
        symlink(&victim, theirs.join(".lock")).unwrap();
        symlink(&theirs, &link).unwrap();
        fs::create_dir(theirs.join("slow")).unwrap();
        fs::write(theirs.join("slow").join(KEPT), "").unwrap();
        for root in [&theirs, &link] {
            let refused = [Lease::acquire(root), Lease::keep(root, "x"), Lease::find(root, "slow")];
            for refused in refused {
                let error = refused.unwrap_err().to_string();
                assert!(error.contains("another user can write to it"), "{error}");
            }
        }
        assert_eq!(fs::read(&victim).unwrap(), b"data");
        fs::remove_file(&link).unwrap();
        fs::remove_dir_all(&theirs).unwrap();
    }

    #[test]
    fn a_name_is_used_once_and_is_a_plain_word() {
        let root = root("names");
        let kept = Lease::keep(&root, "slow").unwrap();
        assert!(matches!(Lease::keep(&root, "slow"), Err(TestkitError::Name { .. })));
        assert!(matches!(Lease::keep(&root, "../slow"), Err(TestkitError::Name { .. })));
        assert!(matches!(Lease::find(&root, "fast"), Err(TestkitError::Name { .. })));
        kept.remove().unwrap();
        fs::remove_dir_all(&root).unwrap();
    }
}
