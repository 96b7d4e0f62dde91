//! Reading procfs and sysfs. Every path is resolved below a root, so that a test can pass its own
//! tree; on a real machine the root is `/`.
//!
//! Files that are read at every tick are kept open as a [`PseudoFile`] and parsed in place, without
//! allocation; the `procfs` crate, which builds maps and strings, is used for what is read once.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Room for the first read; most files under `/proc` and all under `/sys` fit.
const FIRST_BUFFER_BYTES: usize = 4096;

/// A file under `/proc` or `/sys` that is kept open and read repeatedly into one buffer. The kernel
/// renders it at each read from offset 0, so one system call returns one consistent state.
#[derive(Debug)]
pub struct PseudoFile {
    file: File,
    buffer: Vec<u8>,
    len: usize,
}

impl PseudoFile {
    /// Opens `path` below `root`.
    pub fn open(root: &Path, path: &str) -> io::Result<Self> {
        let file = File::open(under(root, path))?;
        Ok(Self { file, buffer: vec![0; FIRST_BUFFER_BYTES], len: 0 })
    }

    /// Reads the file's current content. Fails as pread(2): `ENODEV` or `ESRCH` when the device or
    /// thread is gone.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        loop {
            let len = self.file.read_at(&mut self.buffer, 0)?;
            if len < self.buffer.len() {
                self.len = len;
                return Ok(self.content());
            }
            self.buffer.resize(len * 2, 0);
        }
    }

    /// Returns the result of the last [`Self::read`].
    pub fn content(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Returns `path` (absolute, as the kernel names it) below `root`.
pub fn under(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Writes to a kernel file.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Reads a file's text unchanged.
pub fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Reads a file's bytes unchanged.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Returns the target of a link.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    fs::read_link(path)
}

/// Reads a short file's text, trimmed; `None` if it is missing, unreadable or empty.
pub fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

pub fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Returns the unsigned numbers in a text in order, whatever separates them.
pub fn numbers(text: &[u8]) -> impl Iterator<Item = u64> + '_ {
    text.split(|b| !b.is_ascii_digit()).filter(|digits| !digits.is_empty()).map(decimal)
}

/// Returns the numbers that follow `key` at the start of a line: `Dirty:`, `ctxt`, `some`.
pub fn numbers_after<'a>(text: &'a [u8], key: &str) -> Option<impl Iterator<Item = u64> + 'a> {
    let line = text
        .split(|&b| b == b'\n')
        .filter_map(|line| line.strip_prefix(key.as_bytes()))
        .find(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))?;
    Some(numbers(line))
}

/// Returns a line of this process's status, without its name.
pub(crate) fn own_status(root: &Path, name: &str) -> Option<String> {
    let status = text(&under(root, "/proc/self/status"))?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

/// Returns a line of `/proc/meminfo`, in bytes.
pub(crate) fn meminfo_bytes(root: &Path, name: &str) -> Option<u64> {
    let meminfo = fs::read(under(root, "/proc/meminfo")).ok()?;
    Some(numbers_after(&meminfo, name)?.next()?.saturating_mul(1024))
}

/// Returns the entries of a directory, sorted; empty if it cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

pub(crate) fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Returns the names of a directory's entries, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    entries(directory).iter().filter_map(|path| name_of(path)).collect()
}

/// Maximum number of processors that Linux supports on any machine (`NR_CPUS`); a higher number is
/// corrupt.
pub const CPUS_MAX: usize = 8192;

/// Returns the numbers of the processors in a list such as `0-3,8`.
pub fn cpus_of_list(cpus: &str) -> Vec<u32> {
    let range = |range: &str| {
        let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        ((last as usize) < CPUS_MAX).then_some(first..=last)
    };
    cpus.split(',').filter_map(range).flatten().take(CPUS_MAX).collect()
}

fn decimal(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value: u64, b| value.wrapping_mul(10).wrapping_add(u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_read_whole_and_a_changed_one_anew() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("proc/stat");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'7'; 10_000]).unwrap();
        let mut file = PseudoFile::open(root.path(), "/proc/stat").unwrap();
        assert_eq!(file.read().unwrap().len(), 10_000);
        fs::write(&path, b"ctxt 5\n").unwrap();
        assert_eq!(file.read().unwrap(), b"ctxt 5\n");
    }

    #[test]
    fn keys_match_whole_words_only() {
        let text = b"cpu  1 2 3\ncpu0 4 5 6\nctxt 77\nDirty:   12 kB\n";
        assert_eq!(numbers_after(text, "cpu").unwrap().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(numbers_after(text, "ctxt").unwrap().next(), Some(77));
        assert_eq!(numbers_after(text, "Dirty:").unwrap().next(), Some(12));
        assert!(numbers_after(text, "Dir").is_none());
        assert!(numbers_after(text, "procs_running").is_none());
    }

    #[test]
    fn processor_lists_are_counted() {
        for (list, count) in
            [("0", 1), ("0-1", 2), ("0-3,8", 5), ("", 0), ("0-1,4-7,9", 7), ("0-4294967295", 0)]
        {
            assert_eq!(cpus_of_list(list).len(), count, "{list}");
        }
    }
}
