//! SQLite in a directory that is held, with and without direct I/O: two VFSes (the interface
//! through which SQLite opens files) on top of SQLite's own, "unix".
//!
//! Both use a path as it is. "unix" would follow the links in it once, when a connection is opened,
//! and from then on use the names that it found: a user who can rename a directory on that path
//! could then redirect it. A path through a descriptor, `/proc/self/fd/N/name`, leads to the same
//! directory for as long as the descriptor is open. If the last name of a path is a link, it is not
//! followed.
//!
//! The second one reads and writes the database file with `O_DIRECT` and leaves everything else to
//! "unix": locks, flushes and sizes of the database, and all I/O on its log, journal and shared
//! memory.
//!
//! An open file here is a file of the VFS "unix" followed by a pointer to [`Direct`]; of its
//! methods, those that read or write database pages are replaced.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use libsqlite3_sys as ffi;

use crate::buffer::{SLOT_ALIGN_BYTES, Slot};

const HELD: &CStr = c"blockstone-held";
const DIRECT: &CStr = c"blockstone-direct";
/// The largest page of SQLite.
const BUFFER_BYTES: usize = 65_536;

/// Returns the name of the VFS that uses paths as they are, registering it if necessary.
pub fn held() -> &'static CStr {
    VFS.get_or_init(register);
    HELD
}

/// Returns the name of the VFS that also reads and writes databases past the page cache. If a path
/// does not support that, opening the database fails with "unable to open database file".
pub fn direct() -> &'static CStr {
    VFS.get_or_init(register);
    DIRECT
}

/// A database file, opened once for direct I/O by all connections of this process.
///
/// A process loses its locks on a file when it closes any descriptor of it. This one is therefore
/// closed with the last of its connections, and by no thread while another opens one.
#[derive(Clone, Debug)]
pub struct Database(Option<Arc<Opened>>);

#[derive(Debug)]
struct Opened {
    file: File,
    read_bytes: AtomicU64,
}

type Known = Vec<((u64, u64), Weak<Opened>)>;

/// Returns all open databases, by device and inode.
fn known() -> MutexGuard<'static, Known> {
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Database {
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut known = known();
        known.retain(|(_, opened)| opened.strong_count() > 0);
        let found = std::fs::metadata(path)?;
        let id = (found.dev(), found.ino());
        let open = known.iter().find(|(known, _)| *known == id);
        if let Some(opened) = open.and_then(|(_, opened)| opened.upgrade()) {
            return Ok(Self(Some(opened)));
        }
        let flags = libc::O_DIRECT | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino()) != id {
            return Err(io::Error::other("it was replaced as it was opened"));
        }
        let opened = Arc::new(Opened { file, read_bytes: AtomicU64::new(0) });
        known.push((id, Arc::downgrade(&opened)));
        Ok(Self(Some(opened)))
    }

    /// Returns the bytes that its connections have read from it since the first of them was opened.
    pub fn read_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |opened| opened.read_bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _known = known();
        self.0 = None;
    }
}

/// State of an open file in addition to that of the VFS "unix".
struct Direct {
    database: Database,
    /// SQLite's own buffers are not aligned.
    buffer: Slot,
    /// Methods of the VFS "unix"; those of this file follow.
    unix: &'static ffi::sqlite3_io_methods,
    methods: ffi::sqlite3_io_methods,
}

impl Direct {
    /// Reads the bytes available at `offset`, and returns how many bytes of `to` they filled.
    fn read(&mut self, to: &mut [MaybeUninit<u8>], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(opened) = self.database.0.as_ref().filter(|_| done < to.len()) {
            let at = offset + done as u64;
            // The database header is read in part.
            let skip = at as usize % SLOT_ALIGN_BYTES;
            let wanted = (skip + to.len() - done).next_multiple_of(SLOT_ALIGN_BYTES);
            let wanted = wanted.min(self.buffer.len());
            let got =
                retried(|| opened.file.read_at(&mut self.buffer[..wanted], at - skip as u64))?;
            opened.read_bytes.fetch_add(got as u64, Ordering::Relaxed);
            let Some(part) = self.buffer[..got].get(skip..).filter(|part| !part.is_empty()) else {
                break;
            };
            let part = &part[..part.len().min(to.len() - done)];
            to[done..][..part.len()].write_copy_of_slice(part);
            done += part.len();
        }
        Ok(done)
    }

    fn write(&mut self, from: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while let Some(opened) = self.database.0.as_ref().filter(|_| done < from.len()) {
            let part = (from.len() - done).min(self.buffer.len());
            self.buffer[..part].copy_from_slice(&from[done..][..part]);
            let at = offset + done as u64;
            match retried(|| opened.file.write_at(&self.buffer[..part], at))? {
                0 => return Err(io::ErrorKind::StorageFull.into()),
                written => done += written,
            }
        }
        Ok(())
    }
}

fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// State of the VFS that extends "unix" with direct I/O.
struct Vfs {
    unix: *mut ffi::sqlite3_vfs,
    /// Offset in a file of the pointer to [`Direct`].
    direct_at: usize,
}

static VFS: OnceLock<Vfs> = OnceLock::new();

// SAFETY: the VFS "unix" is a static of SQLite that does not change once it is registered, and may
// be used by any thread.
unsafe impl Send for Vfs {}
// SAFETY: as for `Send`.
unsafe impl Sync for Vfs {}

fn register() -> Vfs {
    // SAFETY: the name is NUL-terminated; SQLite initialises itself first.
    let unix = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
    // SAFETY: the compiled-in SQLite has a VFS of this name on Linux, which is never removed.
    let mut own = unsafe { *unix };
    own.pNext = std::ptr::null_mut();
    own.xFullPathname = Some(full_pathname);
    // The other methods of "unix" do not look at the VFS that they are called with: SQLite itself
    // registers them under several names.
    own.zName = HELD.as_ptr();
    // SAFETY: SQLite keeps the pointer, and the value that it points to is complete and never
    // freed.
    unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0) };
    let direct_at = (own.szOsFile as usize).next_multiple_of(align_of::<*mut Direct>());
    own.szOsFile = (direct_at + size_of::<*mut Direct>()) as c_int;
    own.zName = DIRECT.as_ptr();
    own.xOpen = Some(open);
    // SAFETY: as above.
    unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0) };
    Vfs { unix, direct_at }
}

/// Returns the path unchanged.
unsafe extern "C" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite calls this with a NUL-terminated path.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    if path.len() > out_bytes as usize {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for `out_bytes`, at least as many as are copied, and does not overlap
    // `path`.
    unsafe { std::ptr::copy_nonoverlapping(path.as_ptr().cast(), out, path.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let vfs = VFS.get_or_init(register);
    // SAFETY: a VFS has this method, and `file` has room for a file of "unix", at its beginning.
    let opened = unsafe {
        let Some(open) = (*vfs.unix).xOpen else { return ffi::SQLITE_CANTOPEN };
        open(vfs.unix, path, file, flags, out_flags)
    };
    if opened != ffi::SQLITE_OK || flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
        return opened;
    }
    // SAFETY: it was opened, so its methods are those of "unix", which are static; and the path of
    // a database is NUL-terminated.
    let (unix, path) = unsafe { (&*(*file).pMethods, CStr::from_ptr(path)) };
    let database = Database::open(Path::new(OsStr::from_bytes(path.to_bytes())));
    let (Ok(database), Ok(buffer)) = (database, Slot::new(BUFFER_BYTES)) else {
        // SAFETY: it was opened, and SQLite does not close a file that failed to open.
        unsafe {
            unix.xClose.map(|close| close(file));
            (*file).pMethods = std::ptr::null();
        }
        return ffi::SQLITE_CANTOPEN;
    };
    let methods = ffi::sqlite3_io_methods {
        // Without the methods that map the file into memory.
        iVersion: 2,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xFileControl: Some(control),
        ..*unix
    };
    let direct = Box::into_raw(Box::new(Direct { database, buffer, unix, methods }));
    // SAFETY: `register` made SQLite allocate room for this pointer here; the box stays until the
    // file is closed.
    unsafe {
        *direct_of(file) = direct;
        (*file).pMethods = &raw const (*direct).methods;
    }
    ffi::SQLITE_OK
}

/// Returns the address of the pointer to our state in `file`, a file of this VFS.
fn direct_of(file: *mut ffi::sqlite3_file) -> *mut *mut Direct {
    let at = VFS.get_or_init(register).direct_at;
    file.wrapping_byte_add(at).cast()
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: `open` created it from a box, and a file is closed once, after its last use.
    let direct = unsafe { Box::from_raw(*direct_of(file)) };
    let Some(close) = direct.unix.xClose else { return ffi::SQLITE_IOERR_CLOSE };
    // SAFETY: it is an open file of "unix". It is closed before `direct` is dropped.
    unsafe { close(file) }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    to: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is open, and SQLite uses a file in one thread at a time; `to` has room for
    // `bytes` bytes.
    let (direct, to) = unsafe {
        let to = std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<u8>>(), bytes as usize);
        (&mut **direct_of(file), to)
    };
    match direct.read(to, offset as u64) {
        Ok(done) if done == to.len() => ffi::SQLITE_OK,
        Ok(done) => {
            to[done..].fill(MaybeUninit::new(0));
            ffi::SQLITE_IOERR_SHORT_READ
        }
        Err(_) => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as for `read`.
    let direct = unsafe { &mut **direct_of(file) };
    if !(bytes as usize | offset as usize).is_multiple_of(SLOT_ALIGN_BYTES) {
        // Not a page of a database whose pages direct I/O can write. The kernel keeps both paths
        // coherent: it writes cached pages back before a direct read, and drops them before a
        // direct write.
        let Some(write) = direct.unix.xWrite else { return ffi::SQLITE_IOERR_WRITE };
        // SAFETY: the arguments are passed on unchanged.
        return unsafe { write(file, from, bytes, offset) };
    }
    // SAFETY: as for `read`.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes as usize) };
    match direct.write(from, offset as u64).map_err(|error| error.kind()) {
        Ok(()) => ffi::SQLITE_OK,
        Err(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => ffi::SQLITE_FULL,
        Err(_) => ffi::SQLITE_IOERR_WRITE,
    }
}

unsafe extern "C" fn control(
    file: *mut ffi::sqlite3_file,
    what: c_int,
    argument: *mut c_void,
) -> c_int {
    if what == ffi::SQLITE_FCNTL_MMAP_SIZE {
        // Nothing is mapped, whatever was requested.
        //
        // SAFETY: the argument of this control points to a number of this type.
        unsafe { *argument.cast::<ffi::sqlite3_int64>() = 0 };
        return ffi::SQLITE_OK;
    }
    // SAFETY: as for `read`; the arguments are passed on unchanged.
    unsafe {
        let Some(control) = (**direct_of(file)).unix.xFileControl else {
            return ffi::SQLITE_NOTFOUND;
        };
        control(file, what, argument)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::path::PathBuf;

    use blockstone_testkit::{FuseCache, FuseMounts, require};

    use super::*;
    use crate::{account, survey};

    /// A connection.
    struct Link(*mut ffi::sqlite3);

    impl Link {
        fn open(path: &Path, vfs: &CStr) -> Result<Self, c_int> {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
            let mut link = Self(std::ptr::null_mut());
            // SAFETY: all strings are NUL-terminated.
            let opened = unsafe {
                ffi::sqlite3_open_v2(path.as_ptr(), &raw mut link.0, flags, vfs.as_ptr())
            };
            if opened == ffi::SQLITE_OK { Ok(link) } else { Err(opened) }
        }

        fn direct(path: &Path) -> Self {
            Self::open(path, direct()).unwrap()
        }

        /// Executes a statement and returns the first column of its last row.
        fn say(&self, statement: &str) -> String {
            unsafe extern "C" fn row(
                said: *mut c_void,
                _: c_int,
                values: *mut *mut c_char,
                _: *mut *mut c_char,
            ) -> c_int {
                // SAFETY: `said` is the string below, and a row has a value that is not null.
                unsafe {
                    *said.cast::<String>() = CStr::from_ptr(*values).to_str().unwrap().to_owned();
                }
                0
            }
            let text = CString::new(statement).unwrap();
            let mut said = String::new();
            let to = (&raw mut said).cast();
            let none = std::ptr::null_mut();
            // SAFETY: the connection is open, and everything else lives until this returns.
            let done = unsafe { ffi::sqlite3_exec(self.0, text.as_ptr(), Some(row), to, none) };
            assert_eq!(done, ffi::SQLITE_OK, "{statement}");
            said
        }

        /// Returns the file of the database, with its methods.
        fn file(&self) -> (*mut ffi::sqlite3_file, ffi::sqlite3_io_methods) {
            let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
            let (main, what) = (c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER);
            // SAFETY: the connection is open, and the call returns its open file.
            unsafe {
                ffi::sqlite3_file_control(self.0, main, what, (&raw mut file).cast());
                (file, *(*file).pMethods)
            }
        }

        fn read(&self, bytes: usize, offset: i64) -> (c_int, Vec<u8>) {
            let (file, methods) = self.file();
            let mut to = vec![0xee; bytes];
            let place = to.as_mut_ptr().cast();
            // SAFETY: the file is open, and there is room for the bytes.
            let done = unsafe { methods.xRead.unwrap()(file, place, bytes as c_int, offset) };
            (done, to)
        }

        fn write(&self, from: &[u8], offset: i64) -> c_int {
            let (file, methods) = self.file();
            let place = from.as_ptr().cast();
            // SAFETY: the file is open, and the bytes exist.
            unsafe { methods.xWrite.unwrap()(file, place, from.len() as c_int, offset) }
        }
    }

    impl Drop for Link {
        fn drop(&mut self) {
            // SAFETY: it was opened, if only in part, and is not used any more.
            unsafe { ffi::sqlite3_close(self.0) };
        }
    }

    /// Returns a directory whose file system supports direct I/O, as that of the build does on
    /// every machine that builds this.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let found = survey::target(Path::new("/"), dir.path()).unwrap();
        assert!(found.direct_io.capability.is_full(), "{found:#?}");
        let path = dir.path().join("database.db");
        (dir, path)
    }

    #[test]
    fn what_is_counted_as_read_is_charged_by_the_kernel_and_all_connections_see_it() {
        let (_dir, path) = place();
        let links = [Link::direct(&path), Link::direct(&path)];
        let [writer, reader] = &links;
        for pragma in ["page_size = 8192", "journal_mode = WAL", "cache_size = 0"] {
            writer.say(&format!("PRAGMA {pragma}"));
        }
        assert_eq!(reader.say("PRAGMA mmap_size = 1000000"), "0", "a mapping would not be direct");
        writer.say("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, ballast BLOB)");
        writer.say(
            "INSERT INTO t WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r \
             WHERE i < 1000) SELECT i, 1, zeroblob(7000) FROM r",
        );
        writer.say("PRAGMA wal_checkpoint(TRUNCATE)");
        let database = Database::open(&path).unwrap();
        let charged = || {
            let (pid, thread) = (std::process::id(), account::current_thread());
            account::account(Path::new("/"), pid, Some(thread)).unwrap().io.unwrap().read_bytes
        };
        let before = (database.read_bytes(), charged());
        let sum = "SELECT sum(n * length(ballast)) FROM t";
        assert_eq!(reader.say(sum), "7000000");
        let counted = database.read_bytes() - before.0;
        assert!(counted >= 1000 * 8192, "{counted}");
        assert!(charged() - before.1 >= counted, "{} {counted}", charged() - before.1);
        writer.say("UPDATE t SET n = 2");
        assert_eq!(reader.say(sum), "14000000", "from the log");
        writer.say("PRAGMA wal_checkpoint(TRUNCATE)");
        assert_eq!(reader.say(sum), "14000000", "from the database");
        assert_eq!(reader.say("PRAGMA integrity_check"), "ok");
        drop((links, database));
        let plain = Link::open(&path, c"unix").unwrap();
        assert_eq!(plain.say(sum), "14000000");
        assert_eq!(plain.say("PRAGMA integrity_check"), "ok");
    }

    #[test]
    fn any_range_is_read_and_written_and_what_is_not_there_is_zero() {
        let (_dir, path) = place();
        let link = Link::direct(&path);
        let far = 3 << 30;
        let pages: Vec<u8> = (0..20 * 8192_u32).map(|at| (at / 7) as u8).collect();
        for offset in [0, far] {
            assert_eq!(link.write(&pages, offset), ffi::SQLITE_OK);
            assert_eq!(link.read(pages.len(), offset), (ffi::SQLITE_OK, pages.clone()));
            let part = pages[24..40].to_vec();
            assert_eq!(link.read(16, offset + 24), (ffi::SQLITE_OK, part));
        }
        let (done, read) = link.read(16384, far + pages.len() as i64 - 8192);
        assert_eq!(done, ffi::SQLITE_IOERR_SHORT_READ);
        assert!(read[..8192] == pages[pages.len() - 8192..] && read[8192..] == [0; 8192]);
        let beyond = link.read(100, far + pages.len() as i64 + 4096);
        assert_eq!(beyond, (ffi::SQLITE_IOERR_SHORT_READ, vec![0; 100]));
        // Written through the page cache, and visible to direct reads.
        assert_eq!(link.write(&[9; 16], far + 24), ffi::SQLITE_OK);
        let (_, read) = link.read(8192, far);
        assert!(
            read[..24] == pages[..24] && read[24..40] == [9; 16] && read[40..] == pages[40..8192]
        );
        assert_eq!(link.write(&pages[..8192], far), ffi::SQLITE_OK);
        assert_eq!(link.read(8192, far), (ffi::SQLITE_OK, pages[..8192].to_vec()));
    }

    #[test]
    fn no_lock_is_lost_when_another_connection_ends() {
        let (_dir, path) = place();
        let link = Link::direct(&path);
        link.say("CREATE TABLE t (n INTEGER)");
        link.say("BEGIN EXCLUSIVE");
        let inode = format!(":{} ", std::fs::metadata(&path).unwrap().ino());
        let locks = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks.lines().filter(|line| line.contains(&inode)).count()
        };
        let held = locks();
        assert!(held > 0);
        drop(Link::direct(&path));
        drop(Database::open(&path).unwrap());
        assert_eq!(locks(), held);
        link.say("COMMIT");
        assert_eq!(locks(), 0);
    }

    #[test]
    fn a_directory_that_is_replaced_leads_no_file_elsewhere() {
        for vfs in [held(), direct()] {
            let (root, path) = place();
            let dir = root.path().join("dir");
            std::fs::create_dir(&dir).unwrap();
            let held = File::open(&dir).unwrap();
            let file = crate::path::of_descriptor(&held).join("database.db");
            let link = Link::open(&file, vfs).unwrap();
            link.say("PRAGMA journal_mode = WAL");
            link.say("CREATE TABLE t (n INTEGER)");
            let moved = root.path().join("moved");
            std::fs::rename(&dir, &moved).unwrap();
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(&path, "theirs").unwrap();
            for name in ["database.db", "database.db-wal", "database.db-shm"] {
                std::os::unix::fs::symlink(&path, dir.join(name)).unwrap();
            }
            let other = Link::open(&file, vfs).unwrap();
            other.say("INSERT INTO t VALUES (7)");
            assert_eq!(link.say("SELECT n FROM t"), "7");
            link.say("PRAGMA wal_checkpoint(TRUNCATE)");
            drop((link, other));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
            assert_eq!(std::fs::read_dir(&moved).unwrap().count(), 1, "no log is left");
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 3);
            // A link in place of the file is not followed.
            std::fs::remove_file(moved.join("database.db")).unwrap();
            std::os::unix::fs::symlink(&path, moved.join("database.db")).unwrap();
            assert_eq!(Link::open(&file, vfs).err(), Some(ffi::SQLITE_CANTOPEN));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        }
    }

    #[test]
    fn a_path_without_direct_io_is_an_error() {
        require!(Root, Fuse);
        let mounts = FuseMounts::create(&[FuseCache { direct: false, ..FuseCache::NOTHING }]);
        let path = mounts.unwrap().paths()[0].join("database.db");
        assert_eq!(Link::open(&path, direct()).err(), Some(ffi::SQLITE_CANTOPEN));
    }
}
