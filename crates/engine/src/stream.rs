//! Reads files from beginning to end: in segments, in a fixed order, with as many reads in flight
//! as there are threads claiming segments, optionally rate-limited, and bypassing the page cache if
//! possible.
//!
//! Threads call [`Stream::claim`] and then read the claimed segment; the segment numbers give the
//! order in which they belong. Holes are not read: they are claimed as holes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockstone_sys::file::{Access, BlockFile, FileError, FileState, open_direct};
use parking_lot::{Condvar, Mutex};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    /// Size in bytes when the file was found; data appended later is not read.
    pub bytes: u64,
    /// Offset at which to begin, in bytes; a multiple of the segment.
    pub from_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub segment_bytes: usize,
    /// Bypass the page cache. A file system that does not allow this is read through the cache, and
    /// the pages left there are dropped.
    pub direct: bool,
    /// Limit in bytes per second.
    pub rate: Option<u64>,
}

/// The segment or hole to read next; it belongs to the claimer alone.
#[derive(Debug)]
pub struct Claim {
    /// Number of the claim, consecutive.
    pub number: u64,
    /// Index of the file among the sources.
    pub source: usize,
    pub start_bytes: u64,
    /// Length in bytes, never more than a segment unless it is a hole. An empty file is one empty
    /// claim.
    pub len_bytes: u64,
    pub kind: ClaimKind,
    pub is_last: bool,
}

#[derive(Debug)]
pub enum ClaimKind {
    Data(Arc<Open>),
    /// A hole: zeros.
    Hole(Arc<Open>),
    /// The file could not be opened; the claim covers all of it.
    Failed(FileError),
}

#[derive(Debug)]
pub struct Open {
    file: BlockFile,
    found: FileState,
    drops: bool,
}

#[derive(Debug)]
pub struct Stream {
    sources: Vec<Source>,
    how: How,
    cursor: Mutex<Cursor>,
    ended: Mutex<bool>,
    end: Condvar,
}

#[derive(Debug)]
struct Cursor {
    number: u64,
    source: usize,
    open: Option<(Arc<Open>, u64)>,
    paced: Duration,
    started: Option<Instant>,
}

impl Stream {
    pub fn new(sources: Vec<Source>, how: How) -> Self {
        let cursor =
            Cursor { number: 0, source: 0, open: None, paced: Duration::ZERO, started: None };
        let (cursor, ended) = (Mutex::new(cursor), Mutex::new(false));
        Self { sources, how, cursor, ended, end: Condvar::new() }
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Ends the stream: nothing more will be read, and threads that wait for the rate are woken
    /// now. At a low rate they would otherwise sleep for minutes.
    pub fn end(&self) {
        *self.ended.lock() = true;
        self.end.notify_all();
    }

    /// Returns the next segment or hole, once the rate allows it; `None` if everything is claimed,
    /// or if [`Self::end`] was called in the meantime.
    pub fn claim(&self) -> Option<Claim> {
        let (claim, due) = {
            let mut cursor = self.cursor.lock();
            let claim = self.next(&mut cursor)?;
            let due = self.due(&mut cursor, &claim);
            (claim, due)
        };
        match due.and_then(|due| due.checked_duration_since(Instant::now())) {
            Some(wait) if self.ends_within(wait) => None,
            _ => Some(claim),
        }
    }

    fn ends_within(&self, wait: Duration) -> bool {
        let mut ended = self.ended.lock();
        self.end.wait_while_for(&mut ended, |ended| !*ended, wait);
        *ended
    }

    fn next(&self, cursor: &mut Cursor) -> Option<Claim> {
        let source = self.sources.get(cursor.source)?;
        let number = cursor.number;
        cursor.number += 1;
        let claim = |start_bytes, len_bytes, kind, is_last| Claim {
            number,
            source: cursor.source,
            start_bytes,
            len_bytes,
            kind,
            is_last,
        };
        let (open, at) = match cursor.open.take() {
            Some(open) => open,
            None => match self.open(source) {
                Ok(open) => (Arc::new(open), source.from_bytes),
                Err(error) => {
                    let claim = claim(source.from_bytes, 0, ClaimKind::Failed(error), true);
                    cursor.source += 1;
                    return Some(claim);
                }
            },
        };
        let left = source.bytes.saturating_sub(at);
        let segment = self.how.segment_bytes as u64;
        let data = match open.file.next_data(at) {
            _ if left == 0 => Some(at),
            // Past the end of a truncated file there is no hole: the read reports it.
            None if open.file.state().is_ok_and(|now| now.bytes < source.bytes) => Some(at),
            data => data,
        };
        let hole = data.map_or(left, |data| (data - at).min(left));
        let is_rest = hole == left;
        let hole = if is_rest { hole } else { hole / segment * segment };
        let (len, kind) = if hole > 0 {
            (hole, ClaimKind::Hole(Arc::clone(&open)))
        } else {
            (left.min(segment), ClaimKind::Data(Arc::clone(&open)))
        };
        let is_last = len == left;
        let claim = claim(at, len, kind, is_last);
        if is_last {
            cursor.source += 1;
        } else {
            cursor.open = Some((open, at + len));
        }
        Some(claim)
    }

    fn open(&self, source: &Source) -> Result<Open, FileError> {
        let open = |direct| BlockFile::open(&source.path, Access::Read, direct);
        let (file, capability) = open_direct(self.how.direct, "not asked for", open)?;
        let drops = self.how.direct && !capability.is_full();
        let found = file.state()?;
        Ok(Open { file, found, drops })
    }

    /// Returns when a claim may be read, if there is a rate.
    fn due(&self, cursor: &mut Cursor, claim: &Claim) -> Option<Instant> {
        let rate = self.how.rate?;
        let started = *cursor.started.get_or_insert_with(Instant::now);
        let due = started + cursor.paced;
        if matches!(claim.kind, ClaimKind::Data(_)) {
            cursor.paced += Duration::from_secs_f64(claim.len_bytes as f64 / rate.max(1) as f64);
        }
        Some(due)
    }
}

impl Open {
    /// Reads the claimed bytes into `out`; a shorter count means the end of the file.
    pub fn read(&self, start_bytes: u64, out: &mut [u8]) -> Result<usize, FileError> {
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(start_bytes + done as u64, &mut out[done..]) {
                Ok(0) => break,
                Ok(bytes) => {
                    done += bytes;
                    // Only the end of a file falls between sectors, and a direct read beyond it
                    // would be refused.
                    if self.file.is_direct() && !done.is_multiple_of(512) {
                        break;
                    }
                }
                Err(INTERRUPTED) => {}
                Err(errno) => {
                    return Err(self.file.error("read", std::io::Error::from_raw_os_error(errno)));
                }
            }
        }
        if self.drops {
            self.file.drop_cached_part(start_bytes, done as u64);
        }
        Ok(done)
    }

    pub fn is_direct(&self) -> bool {
        self.file.is_direct()
    }

    /// State of the file when it was opened.
    pub fn found(&self) -> FileState {
        self.found
    }

    /// Returns the current state of the file.
    pub fn state(&self) -> Result<FileState, FileError> {
        self.file.state()
    }
}

/// EINTR: a signal came first; the read must be repeated.
const INTERRUPTED: i32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_sys::buffer::Arena;

    const HOW: How = How { segment_bytes: 1 << 16, direct: false, rate: None };

    fn source(path: PathBuf, bytes: u64) -> Source {
        Source { path, bytes, from_bytes: 0 }
    }

    fn read_all(stream: &Stream) -> Vec<(u64, usize, u64, Vec<u8>)> {
        let mut pieces = Vec::new();
        while let Some(claim) = stream.claim() {
            let mut arena = Arena::new(1, 1 << 16).unwrap();
            let bytes = match claim.kind {
                ClaimKind::Data(open) => {
                    let out = &mut arena.slot(0)[..];
                    let read = open.read(claim.start_bytes, out).unwrap();
                    out[..read.min(claim.len_bytes as usize)].to_vec()
                }
                ClaimKind::Hole(_) => vec![0; claim.len_bytes as usize],
                ClaimKind::Failed(error) => error.to_string().into_bytes(),
            };
            pieces.push((claim.number, claim.source, claim.start_bytes, bytes));
        }
        pieces
    }

    #[test]
    fn files_come_whole_and_in_order_with_their_holes_and_failures() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut content = vec![7; 300_001];
        content[100_000..250_000].fill(0);
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, &content).unwrap();
        let hole = BlockFile::create_new(&b, false).unwrap();
        hole.set_size(1 << 20).unwrap();
        hole.write_at(1 << 19, &[9; 4096]).unwrap();
        for direct in [false, true] {
            let sources = vec![
                source(a.clone(), 300_001),
                source(dir.path().join("none"), 10),
                source(b.clone(), 1 << 20),
            ];
            let pieces = read_all(&Stream::new(sources, How { direct, ..HOW }));
            let numbers: Vec<u64> = pieces.iter().map(|piece| piece.0).collect();
            assert_eq!(numbers, (0..pieces.len() as u64).collect::<Vec<_>>());
            let of = |file| {
                let parts = pieces.iter().filter(|piece| piece.1 == file);
                parts.flat_map(|piece| piece.3.clone()).collect::<Vec<u8>>()
            };
            assert!(of(0) == content);
            assert!(String::from_utf8(of(1)).unwrap().contains("none"));
            let second = of(2);
            let mut expected = vec![0; 1 << 20];
            expected[1 << 19..][..4096].fill(9);
            assert!(second == expected);
            assert!(pieces.len() < 5 + 1 + 16, "holes are not read piece by piece");
        }
    }

    #[test]
    fn a_rate_is_kept_and_a_beginning_is_honoured() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, vec![1; 1 << 19]).unwrap();
        let from = Source { path, bytes: 1 << 19, from_bytes: 1 << 16 };
        let started = Instant::now();
        let pieces = read_all(&Stream::new(vec![from], How { rate: Some(4 << 20), ..HOW }));
        assert_eq!((pieces.len(), pieces[0].2), (7, 1 << 16));
        // Six gaps of a sixty-fourth of a second; there is no wait after the last segment.
        assert!(started.elapsed() >= Duration::from_millis(90), "{:?}", started.elapsed());
    }

    #[test]
    fn whoever_waits_for_the_rate_is_told_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, vec![1; 1 << 19]).unwrap();
        let slow = How { rate: Some(1000), ..HOW };
        let stream = Stream::new(vec![source(path, 1 << 19)], slow);
        assert!(stream.claim().is_some(), "the first is due at once");
        let started = Instant::now();
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| stream.claim().is_none());
            std::thread::sleep(Duration::from_millis(50));
            stream.end();
            assert!(waits.join().unwrap());
        });
        assert!(started.elapsed() < Duration::from_secs(30), "the next was due in a minute");
    }
}
