//! Chooses the method for a pair of files and explains why no cheaper one is possible.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use blockstone_sys::cached;
use blockstone_sys::file::BlockFile;
use blockstone_sys::ring::RWF_DONTCACHE;
use blockstone_sys::survey::{Alignment, Mounts, alignment_of};
use blockstone_sys::{held, path, proc};
use rustix::fs::{Advice, IFlags, fadvise, fstatfs, ioctl_getflags};
use rustix::io::{ReadWriteFlags, preadv2};

use super::finish::PartialFile;
use super::io::End;
use super::{Method, Options};
use crate::CopyError;

/// Alignment of direct requests if the required one is unknown.
const ALIGN_BYTES: u64 = 4096;
const BTRFS: i64 = 0x9123_683e;
/// NFS, SMB (cifs, smb2), Ceph.
const SERVED: [i64; 4] = [0x6969, 0xff53_4d42_u32 as i64, 0xfe53_4d42_u32 as i64, 0x00c3_6400];
const NFS: i64 = 0x6969;

impl Method {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reflink => "reflink",
            Self::Server => "server",
            Self::Direct => "direct",
            Self::Dontcache => "dontcache",
            Self::Buffered => "buffered",
            Self::Mmap => "mmap",
            Self::CopyFileRange => "copy-file-range",
        }
    }
}

/// The two files of a copy.
pub(super) struct Pair<'a> {
    pub source: &'a File,
    pub source_path: &'a Path,
    pub part: &'a PartialFile<'a>,
}

/// The way in which this process moves the bytes.
#[derive(Debug)]
pub(super) struct Moved {
    pub method: Method,
    pub why: String,
    pub ends: [End; 2],
}

fn file_system(file: impl AsFd) -> i64 {
    fstatfs(file).map_or(0, |found| found.f_type)
}

/// Returns whether a server keeps the file. Its answers may be served from its memory.
pub(super) fn is_served(file: impl AsFd) -> bool {
    SERVED.contains(&file_system(file))
}

/// Makes the target share the blocks of the source. Returns the reason if it cannot.
pub(super) fn reflink(pair: &Pair<'_>) -> Result<(), String> {
    let device = |file: &File| file.metadata().map(|it| it.dev()).unwrap_or_default();
    let kinds = [pair.source, &pair.part.file].map(file_system);
    // On btrfs, each subvolume has a device number of its own.
    if device(pair.source) != device(&pair.part.file) && kinds != [BTRFS; 2] {
        return Err("no reflink: the files are on two file systems".to_owned());
    }
    rustix::fs::ioctl_ficlone(&pair.part.file, pair.source)
        .map_err(|errno| format!("no reflink: {}", io::Error::from(errno)))
}

/// Checks whether a server can copy these files. Returns the reason if it cannot.
pub(super) fn server(pair: &Pair<'_>) -> Result<(), String> {
    let files = [pair.source, &pair.part.file];
    let kinds = files.map(file_system);
    if !files.iter().all(is_served) {
        return Err("no server has both files".to_owned());
    }
    let devices = files.map(|file| file.metadata().map(|it| it.dev()).unwrap_or_default());
    if devices[0] != devices[1] {
        return Err("no copy by a server: the files are on two mounts".to_owned());
    }
    if kinds[0] == NFS && !is_nfs_4_2(pair.part) {
        return Err("no copy by the server: the mount is older than NFS 4.2".to_owned());
    }
    Ok(())
}

/// Returns whether the mount is NFS 4.2: with older versions, the client reads and writes through
/// its page cache instead.
fn is_nfs_4_2(part: &PartialFile<'_>) -> bool {
    let mounts = Mounts::read(Path::new("/"));
    let target = part.path();
    let version = path::whole(target.parent().unwrap_or(Path::new("/")));
    let version =
        version.ok().and_then(|dir| mounts.above(&dir)?.option("vers").map(str::to_owned));
    version.is_some_and(|version| version == "4.2")
}

/// Returns the cheapest way in which this process can move the bytes of these files.
pub(super) fn moved(pair: &Pair<'_>, options: &Options) -> Result<Moved, CopyError> {
    let (read, from, mut why) = source(pair.source, pair.source_path, options)?;
    let (written, to, target_why) = target(pair.part, options)?;
    if !why.is_empty() && !target_why.is_empty() {
        why += "; ";
    }
    Ok(Moved { method: read.max(written), why: why + &target_why, ends: [from, to] })
}

/// Like [`moved`], for a small file among many others: the page cache writes them together.
pub(super) fn moved_together(pair: &Pair<'_>, options: &Options) -> Result<Moved, CopyError> {
    let uncached = Options { method: Some(Method::Dontcache), ..*options };
    match moved(pair, &uncached) {
        Ok(moved) => Ok(Moved { why: "many small files: written together".to_owned(), ..moved }),
        Err(CopyError::Method { .. }) => moved(pair, options),
        Err(error) => Err(error),
    }
}

/// Returns how a file is best read, and why no cheaper way is possible.
pub(super) fn source(
    file: &File,
    path: &Path,
    options: &Options,
) -> Result<(Method, End, String), CopyError> {
    Side { name: "source", file, path, writes: false }.best(options)
}

/// Returns how a file is best written, and why no cheaper way is possible.
pub(super) fn target(
    part: &PartialFile<'_>,
    options: &Options,
) -> Result<(Method, End, String), CopyError> {
    Side { name: "target", file: &part.file, path: &part.part_path(), writes: true }.best(options)
}

/// One of the two files, before the way to move its bytes is chosen.
struct Side<'a> {
    name: &'static str,
    file: &'a File,
    path: &'a Path,
    writes: bool,
}

impl Side<'_> {
    fn best(&self, options: &Options) -> Result<(Method, End, String), CopyError> {
        let wanted = |method| options.method.is_none_or(|it| it == method);
        let mut whys = Vec::new();
        if wanted(Method::Direct) {
            match self.direct(options.request.get()) {
                Ok(end) => return Ok((Method::Direct, end, String::new())),
                Err(why) => whys.push(why),
            }
        }
        if wanted(Method::Dontcache) {
            match self.uncached() {
                Ok(()) => return Ok((Method::Dontcache, self.cached(true)?, self.said(&whys))),
                Err(why) => whys.push(why),
            }
        }
        let why = match options.method {
            None | Some(Method::Buffered) => {
                return Ok((Method::Buffered, self.cached(false)?, self.said(&whys)));
            }
            Some(Method::Direct | Method::Dontcache) => self.said(&whys),
            Some(Method::Reflink | Method::Server | Method::Mmap | Method::CopyFileRange) => {
                "one side is not a file".to_owned()
            }
        };
        let method = options.method.map_or("", Method::name);
        Err(CopyError::Method { path: self.path.to_owned(), method, why })
    }

    fn said(&self, whys: &[String]) -> String {
        if whys.is_empty() { String::new() } else { format!("{}: {}", self.name, whys.join(", ")) }
    }

    fn direct(&self, request: u64) -> Result<End, String> {
        if cached::is_in_memory(self.file).unwrap_or(false) {
            return Err("its file system keeps files in memory".to_owned());
        }
        let kind = file_system(self.file);
        if self.writes && kind == BTRFS && !is_nodatacow(self.file) && is_since_6_14() {
            let why = "btrfs has checksums of its data, and serves direct writes through the page \
                       cache (Linux 6.14)";
            return Err(why.to_owned());
        }
        let align = match alignment_of(self.file) {
            Alignment::Refused => return Err("the file system has no direct I/O here".to_owned()),
            Alignment::Known { offset_bytes, .. } => u64::from(offset_bytes),
            Alignment::Unknown => ALIGN_BYTES,
        };
        if align == 0 || !request.is_multiple_of(align) {
            return Err(format!("direct requests would be multiples of {align} bytes"));
        }
        let file = held::again(self.file, self.writes, true);
        let file = file.map_err(|error| format!("O_DIRECT: {error}"))?;
        let file = Arc::new(BlockFile::of(file, self.path, true));
        // btrfs reads compressed extents through the page cache.
        Ok(End { file, align, uncached: false, drops: kind == BTRFS })
    }

    /// Checks whether the file system supports `RWF_DONTCACHE`. Returns the reason if it does not.
    fn uncached(&self) -> Result<(), String> {
        let size = self.file.metadata().map_or(0, |it| it.len());
        let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE as u32);
        let mut byte = [0];
        let mut into = [io::IoSliceMut::new(&mut byte)];
        // A read at the end of the file returns nothing, but the kernel checks the flag.
        let tried = preadv2(self.file, &mut into, size, flags);
        tried.map(drop).map_err(|errno| format!("RWF_DONTCACHE: {}", io::Error::from(errno)))
    }

    fn cached(&self, uncached: bool) -> Result<End, CopyError> {
        let file = held::again(self.file, self.writes, false);
        let file = file.map_err(CopyError::io("open", self.path))?;
        // Pages read ahead of the copy would look like those of other readers.
        let _ = fadvise(&file, 0, None, Advice::Random);
        let file = Arc::new(BlockFile::of(file, self.path, false));
        Ok(End { file, align: 1, uncached, drops: !uncached })
    }
}

fn is_nodatacow(file: &File) -> bool {
    ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

fn is_since_6_14() -> bool {
    let release = proc::text(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    version >= (Some(6), Some(14))
}

/// Opens a file to be read from its medium: past the page cache, or after its pages were dropped.
pub(super) fn medium(file: &File, path: &Path, options: &Options) -> Result<End, CopyError> {
    let side = Side { name: "target", file, path, writes: false };
    side.direct(options.request.get()).or_else(|_| cached(file, path))
}

/// Opens a file through the page cache, after its pages were dropped.
pub(super) fn cached(file: &File, path: &Path) -> Result<End, CopyError> {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Side { name: "target", file, path, writes: false }.cached(false)
}

/// Opens a device for direct requests.
pub(super) fn device(opened: io::Result<File>, path: &Path) -> Result<End, CopyError> {
    let opened = opened.map_err(CopyError::io("open", path))?;
    let align = match alignment_of(&opened) {
        Alignment::Known { offset_bytes, .. } => u64::from(offset_bytes),
        Alignment::Refused | Alignment::Unknown => ALIGN_BYTES,
    };
    let file = Arc::new(BlockFile::of(opened, path, true));
    Ok(End { file, align, uncached: false, drops: false })
}
