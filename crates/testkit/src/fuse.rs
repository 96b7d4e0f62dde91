//! Files in memory on several FUSE mounts. The kernel caches names, attributes and pages of each
//! mount in a different way, so it is known when readers see what was written through another.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;

use crate::error::TestkitError;
use crate::lease::{DISK_ROOT, Lease};

const HOUR: Duration = Duration::from_hours(1);
const BLOCK_BYTES: u32 = 4096;

/// Cache policy of the kernel for the files of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseCache {
    /// How long attributes and names are cached, including names that do not exist.
    pub time: Duration,
    pub pages: FusePages,
    /// Whether the server opens files with `O_DIRECT`.
    pub direct: bool,
}

/// How long pages are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusePages {
    /// Not at all: every request goes to the server.
    None,
    /// Until the file is opened again.
    UntilOpened,
    /// Until fetched attributes show that the file has changed.
    UntilChanged,
    /// Until they are dropped.
    Forever,
}

impl FuseCache {
    /// Every request goes to the server.
    pub const NOTHING: Self = Self::of(Duration::ZERO, FusePages::None);
    /// Data are fresh after an open; names and attributes may be an hour old.
    pub const UNTIL_OPENED: Self = Self::of(HOUR, FusePages::UntilOpened);
    /// Everything may be an hour old.
    pub const FOREVER: Self = Self::of(HOUR, FusePages::Forever);

    /// Everything is fresh after this time.
    pub const fn for_a_time(time: Duration) -> Self {
        Self::of(time, FusePages::UntilChanged)
    }

    const fn of(time: Duration, pages: FusePages) -> Self {
        Self { time, pages, direct: true }
    }
}

/// Files on several mounts, which are unmounted when this value is dropped.
#[derive(Debug)]
pub struct FuseMounts {
    /// Dropped first, to unmount each.
    _sessions: Vec<BackgroundSession>,
    paths: Vec<PathBuf>,
    _lease: Lease,
}

impl FuseMounts {
    /// Creates an empty directory on a mount for each of `caches`.
    pub fn create(caches: &[FuseCache]) -> Result<Self, TestkitError> {
        let lease = Lease::acquire(Path::new(DISK_ROOT))?;
        let store = Arc::new(Mutex::new(Store::default()));
        let (mut sessions, mut paths) = (Vec::new(), Vec::new());
        for (number, &cache) in caches.iter().enumerate() {
            let path = lease.dir().join(format!("fuse-{number}"));
            fs::create_dir(&path).map_err(TestkitError::file("create", &path))?;
            let mut config = Config::default();
            config.mount_options = vec![MountOption::FSName("blockstone-testkit".to_owned())];
            let served = Served { store: Arc::clone(&store), cache };
            let session = fuser::spawn_mount(served, &path, &config);
            sessions.push(session.map_err(TestkitError::file("mount", &path))?);
            paths.push(path);
        }
        Ok(Self { _sessions: sessions, paths, _lease: lease })
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

#[derive(Debug)]
struct Store {
    /// All files, indexed by inode number minus one. Removed files stay for those who have them
    /// open.
    nodes: Vec<Node>,
    /// Counts changes; each gets its own timestamp.
    changes: u64,
}

#[derive(Debug)]
struct Node {
    attributes: FileAttr,
    content: Content,
}

#[derive(Debug)]
enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, INodeNo>),
}

impl Default for Store {
    fn default() -> Self {
        let mut store = Self { nodes: Vec::new(), changes: 0 };
        store.add(Content::Directory(BTreeMap::new()), 0o755, (0, 0));
        store
    }
}

impl Store {
    fn now(&mut self) -> SystemTime {
        self.changes += 1;
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.changes)
    }

    fn add(&mut self, content: Content, mode: u32, owner: (u32, u32)) -> FileAttr {
        let now = self.now();
        let is_file = matches!(content, Content::File(_));
        let attributes = FileAttr {
            ino: INodeNo(self.nodes.len() as u64 + 1),
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: (mode & 0o7777) as u16,
            nlink: if is_file { 1 } else { 2 },
            uid: owner.0,
            gid: owner.1,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        };
        self.nodes.push(Node { attributes, content });
        attributes
    }

    fn node(&mut self, number: INodeNo) -> Result<&mut Node, Errno> {
        self.nodes.get_mut((number.0 as usize).wrapping_sub(1)).ok_or(Errno::ENOENT)
    }

    fn attributes(&mut self, number: INodeNo) -> Result<FileAttr, Errno> {
        Ok(self.node(number)?.attributes)
    }

    fn file(&mut self, number: INodeNo) -> Result<&mut Vec<u8>, Errno> {
        match &mut self.node(number)?.content {
            Content::File(bytes) => Ok(bytes),
            Content::Directory(_) => Err(Errno::EISDIR),
        }
    }

    fn directory(&mut self, number: INodeNo) -> Result<&mut BTreeMap<OsString, INodeNo>, Errno> {
        match &mut self.node(number)?.content {
            Content::Directory(names) => Ok(names),
            Content::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn find(&mut self, parent: INodeNo, name: &OsStr) -> Result<Option<FileAttr>, Errno> {
        let found = self.directory(parent)?.get(name).copied();
        found.map(|number| self.attributes(number)).transpose()
    }

    fn make(
        &mut self,
        (parent, name): (INodeNo, &OsStr),
        content: Content,
        mode: u32,
        by: &Request,
    ) -> Result<FileAttr, Errno> {
        if self.find(parent, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let new = self.add(content, mode, (by.uid(), by.gid()));
        self.directory(parent)?.insert(name.to_owned(), new.ino);
        self.touch(parent)?;
        Ok(new)
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let number = self.directory(parent)?.remove(name).ok_or(Errno::ENOENT)?;
        let node = self.node(number)?;
        node.attributes.nlink = node.attributes.nlink.saturating_sub(1);
        self.touch(parent)
    }

    fn remove_directory(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let found = self.find(parent, name)?.ok_or(Errno::ENOENT)?;
        if !self.directory(found.ino)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.remove(parent, name)
    }

    fn rename(
        &mut self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
    ) -> Result<(), Errno> {
        let moved = self.find(parent, name)?.ok_or(Errno::ENOENT)?;
        if self.find(new_parent, new_name)?.is_some() {
            self.remove(new_parent, new_name)?;
        }
        self.directory(parent)?.remove(name);
        self.directory(new_parent)?.insert(new_name.to_owned(), moved.ino);
        self.touch(parent)?;
        self.touch(new_parent)
    }

    /// Updates the times of a file after a change, and its size.
    fn touch(&mut self, number: INodeNo) -> Result<(), Errno> {
        let now = self.now();
        let node = self.node(number)?;
        (node.attributes.mtime, node.attributes.ctime) = (now, now);
        if let Content::File(bytes) = &node.content {
            node.attributes.size = bytes.len() as u64;
            node.attributes.blocks = node.attributes.size.div_ceil(512);
        }
        Ok(())
    }

    fn write(&mut self, number: INodeNo, offset: usize, data: &[u8]) -> Result<u32, Errno> {
        let bytes = self.file(number)?;
        let end = offset + data.len();
        bytes.resize(end.max(bytes.len()), 0);
        bytes[offset..end].copy_from_slice(data);
        self.touch(number)?;
        Ok(data.len() as u32)
    }
}

/// The files as shown by one mount.
#[derive(Debug)]
struct Served {
    store: Arc<Mutex<Store>>,
    cache: FuseCache,
}

impl Served {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flags(&self) -> FopenFlags {
        match self.cache.pages {
            FusePages::None => FopenFlags::FOPEN_DIRECT_IO,
            FusePages::UntilOpened => FopenFlags::empty(),
            FusePages::UntilChanged | FusePages::Forever => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }

    fn entry(&self, found: Result<FileAttr, Errno>, reply: ReplyEntry) {
        match found {
            Ok(found) => reply.entry(&self.cache.time, &found, Generation(0)),
            Err(error) => reply.error(error),
        }
    }
}

fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Operations that are not implemented here are handled by the kernel or not needed.
impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if self.cache.pages == FusePages::UntilChanged {
            let added = config.add_capabilities(InitFlags::FUSE_AUTO_INVAL_DATA);
            added.map_err(|_| io::ErrorKind::Unsupported)?;
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = {
            let mut store = self.store();
            // An inode number of 0 lets the kernel cache that the name does not exist.
            store.find(parent, name).and_then(|found| match found {
                Some(found) => Ok(found),
                None if self.cache.time.is_zero() => Err(Errno::ENOENT),
                None => Ok(FileAttr { ino: INodeNo(0), ..store.attributes(parent)? }),
            })
        };
        self.entry(found, reply);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.store().attributes(number) {
            Ok(found) => reply.attr(&self.cache.time, &found),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut store = self.store();
        let set = |store: &mut Store| -> Result<FileAttr, Errno> {
            if let Some(size) = size {
                store.file(number)?.resize(size as usize, 0);
                store.touch(number)?;
            }
            let now = store.now();
            let attributes = &mut store.node(number)?.attributes;
            attributes.perm = mode.map_or(attributes.perm, |mode| (mode & 0o7777) as u16);
            attributes.uid = uid.unwrap_or(attributes.uid);
            attributes.gid = gid.unwrap_or(attributes.gid);
            attributes.ctime = now;
            match mtime {
                Some(TimeOrNow::SpecificTime(time)) => attributes.mtime = time,
                Some(TimeOrNow::Now) => attributes.mtime = now,
                None => {}
            }
            Ok(*attributes)
        };
        match set(&mut store) {
            Ok(found) => reply.attr(&self.cache.time, &found),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let empty = Content::Directory(BTreeMap::new());
        let found = self.store().make((parent, name), empty, mode & !umask, by);
        self.entry(found, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.store().remove(parent, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.store().remove_directory(parent, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        done(self.store().rename((parent, name), (new_parent, new_name)), reply);
    }

    fn open(&self, _: &Request, _: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if !self.cache.direct && has(flags.0, OFlags::DIRECT) {
            return reply.error(Errno::EINVAL);
        }
        reply.opened(FileHandle(0), self.flags());
    }

    fn create(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let found = {
            let mut store = self.store();
            match store.find(parent, name) {
                Ok(Some(found)) if !has(flags, OFlags::EXCL) => Ok(found),
                _ => {
                    let empty = Content::File(Vec::new());
                    store.make((parent, name), empty, mode & !umask, by)
                }
            }
        };
        match found {
            Ok(_) if !self.cache.direct && has(flags, OFlags::DIRECT) => {
                reply.error(Errno::EINVAL);
            }
            Ok(found) => {
                let (time, handle) = (&self.cache.time, FileHandle(0));
                reply.created(time, &found, Generation(0), handle, self.flags());
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.store().file(number) {
            Ok(bytes) => {
                let start = (offset as usize).min(bytes.len());
                let end = (start + size as usize).min(bytes.len());
                reply.data(&bytes[start..end]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.store().write(number, offset as usize, data) {
            Ok(bytes) => reply.written(bytes),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut store = self.store();
        let names = match store.directory(number) {
            Ok(names) => names.clone(),
            Err(error) => return reply.error(error),
        };
        for ((name, number), at) in names.into_iter().zip(1..).skip(offset as usize) {
            let kind = store.attributes(number).map_or(FileType::RegularFile, |it| it.kind);
            if reply.add(number, at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let (blocks, files) = (1 << 20, 1 << 20);
        reply.statfs(blocks, blocks, blocks, files, files, BLOCK_BYTES, 255, BLOCK_BYTES);
    }
}

fn has(flags: i32, wanted: OFlags) -> bool {
    flags & wanted.bits() as i32 != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::thread::sleep;

    use super::*;
    use crate::require;

    #[test]
    fn each_mount_keeps_as_long_as_it_says() {
        require!(Fuse);
        let time = Duration::from_millis(300);
        let caches = [FuseCache::NOTHING, FuseCache::UNTIL_OPENED, FuseCache::for_a_time(time)];
        let mounts = FuseMounts::create(&caches).unwrap();
        let [writer, until_opened, for_a_time] = mounts.paths() else { panic!("three") };
        let name = "file";
        assert!(!for_a_time.join(name).exists());
        fs::write(writer.join(name), "old").unwrap();
        let read = |file: &File| {
            let mut bytes = [0; 3];
            file.read_exact_at(&mut bytes, 0).unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let held = File::open(until_opened.join(name)).unwrap();
        sleep(time * 2);
        let timed = File::open(for_a_time.join(name)).unwrap();
        assert_eq!((read(&held), read(&timed)), ("old".to_owned(), "old".to_owned()));

        fs::write(writer.join("renamed"), "new").unwrap();
        let written = OpenOptions::new().write(true).open(writer.join(name)).unwrap();
        written.write_all_at(b"new", 0).unwrap();
        assert_eq!(read(&held), "old");
        let reopened = File::open(until_opened.join(name)).unwrap();
        assert_eq!((read(&reopened), read(&held)), ("new".to_owned(), "new".to_owned()));
        sleep(time * 2);
        assert_eq!(read(&timed), "new");

        fs::rename(writer.join("renamed"), writer.join(name)).unwrap();
        fs::remove_file(writer.join(name)).unwrap();
        assert_eq!(fs::read_dir(writer).unwrap().count(), 0);
        assert!(until_opened.join(name).exists(), "the name is kept");
        sleep(time * 2);
        assert!(!for_a_time.join(name).exists());
    }

    #[test]
    fn a_server_may_refuse_direct_opens() {
        require!(Fuse);
        let refuses = FuseCache { direct: false, ..FuseCache::NOTHING };
        let mounts = FuseMounts::create(&[FuseCache::NOTHING, refuses]).unwrap();
        fs::write(mounts.paths()[0].join("file"), "x").unwrap();
        let open = |mount: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(mount.join("file"))
        };
        let [first, second] = [0, 1].map(|mount| open(&mounts.paths()[mount]));
        assert!(first.is_ok());
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
