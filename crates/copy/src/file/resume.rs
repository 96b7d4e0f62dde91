//! Sidecar that an interrupted copy leaves next to its target so that it can be resumed: which
//! chunks are durable, and their hashes. It is untrusted input.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{AtFlags, StatxFlags, statx};
use twox_hash::XxHash3_128;

use super::Chunk;

const MAGIC: &[u8; 8] = b"bsresum2";
/// Magic number, five numbers for the source and three for the part, request size, checksum.
const HEAD_BYTES: usize = 8 + 5 * 8 + 3 * 8 + 8 + 8;
/// Offset, length, hash, checksum.
const RECORD_BYTES: usize = 8 + 4 + 16 + 4;
/// Maximum number of records: 16 TiB in chunks of 8 MiB. Chunks beyond it are copied again.
const RECORDS_MAX: usize = 2 << 20;

/// Identifies a source and shows whether it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    pub size_bytes: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
}

impl Identity {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let ns = |seconds: i64, ns: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(ns);
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            size_bytes: found.len(),
            modified_ns: ns(found.mtime(), found.mtime_nsec()),
            changed_ns: ns(found.ctime(), found.ctime_nsec()),
        })
    }

    /// Returns how `now` differs; `None` if it does not.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        if self.size_bytes != now.size_bytes {
            return Some(format!("its size went from {} to {}", self.size_bytes, now.size_bytes));
        }
        let same = (self.modified_ns, self.changed_ns) == (now.modified_ns, now.changed_ns);
        (!same).then(|| "it was changed".to_owned())
    }
}

/// The file that an interrupted copy wrote to: its inode number alone may be reused by another
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartIdentity {
    pub device: u64,
    pub inode: u64,
    /// Creation time in nanoseconds; 0 if the file system does not keep it.
    pub born_ns: i64,
}

impl PartIdentity {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let born = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
        let born = born.filter(|it| it.stx_mask & StatxFlags::BTIME.bits() != 0);
        let born_ns = born.map_or(0, |it| {
            let ns = it.stx_btime.tv_sec.wrapping_mul(1_000_000_000);
            ns.wrapping_add(it.stx_btime.tv_nsec.into())
        });
        Ok(Self { device: found.dev(), inode: found.ino(), born_ns })
    }
}

/// Chunks that are durable in the target of a copy, as its sidecar claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub source: Identity,
    pub part: PartIdentity,
    pub request_bytes: u64,
    pub chunks: BTreeMap<u64, Chunk>,
    /// Size of the whole records in the sidecar, in bytes.
    pub whole_bytes: u64,
}

fn head(source: &Identity, part: &PartIdentity, request_bytes: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let times = [source.modified_ns, source.changed_ns].map(i64::cast_unsigned);
    let numbers = [source.device, source.inode, source.size_bytes, times[0], times[1]];
    let of_part = [part.device, part.inode, part.born_ns.cast_unsigned()];
    for number in numbers.into_iter().chain(of_part).chain([request_bytes]) {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((XxHash3_128::oneshot(&bytes) as u64).to_le_bytes());
    bytes
}

fn record(chunk: &Chunk, seed: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&chunk.offset_bytes.to_le_bytes());
    bytes[8..12].copy_from_slice(&chunk.len_bytes.to_le_bytes());
    bytes[12..28].copy_from_slice(&chunk.xxh3_128.to_le_bytes());
    let sum = XxHash3_128::oneshot_with_seed(seed, &bytes[..28]) as u32;
    bytes[28..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn seed_of(head: &[u8]) -> u64 {
    number(head, HEAD_BYTES - 8).map_or(0, u64::from_le_bytes)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Claims {
    /// Parses a sidecar; `None` if it is not one. Anything after an incomplete record is ignored.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let numbers: Vec<u64> =
            (1..10).map_while(|at| Some(u64::from_le_bytes(number(bytes, at * 8)?))).collect();
        let &[device, inode, size_bytes, modified, changed, ref of_part @ .., request_bytes] =
            &numbers[..]
        else {
            return None;
        };
        let &[part_device, part_inode, born] = of_part else { return None };
        let born_ns = born.cast_signed();
        let part = PartIdentity { device: part_device, inode: part_inode, born_ns };
        let source = Identity {
            device,
            inode,
            size_bytes,
            modified_ns: modified.cast_signed(),
            changed_ns: changed.cast_signed(),
        };
        let first = head(&source, &part, request_bytes);
        if bytes.get(..HEAD_BYTES)? != first {
            return None;
        }
        let seed = seed_of(&first);
        let (mut chunks, mut whole) = (BTreeMap::new(), 0);
        for found in bytes[HEAD_BYTES..].chunks_exact(RECORD_BYTES).take(RECORDS_MAX) {
            let chunk = Chunk {
                offset_bytes: u64::from_le_bytes(number(found, 0)?),
                len_bytes: u32::from_le_bytes(number(found, 8)?),
                xxh3_128: u128::from_le_bytes(number(found, 12)?),
            };
            if record(&chunk, seed) != found {
                break;
            }
            whole += 1;
            let end = chunk.offset_bytes.checked_add(u64::from(chunk.len_bytes));
            if end.is_some_and(|end| end <= size_bytes) {
                chunks.insert(chunk.offset_bytes, chunk);
            }
        }
        let whole_bytes = (HEAD_BYTES + whole * RECORD_BYTES) as u64;
        Some(Self { source, part, request_bytes, chunks, whole_bytes })
    }

    pub fn encode(
        source: &Identity,
        part: &PartIdentity,
        request_bytes: u64,
        chunks: &[Chunk],
    ) -> Vec<u8> {
        let mut bytes = head(source, part, request_bytes);
        let seed = seed_of(&bytes);
        bytes.extend(chunks.iter().flat_map(|chunk| record(chunk, seed)));
        bytes
    }

    /// Returns the part that a sidecar names.
    pub(super) fn part_of(from: &File) -> io::Result<Option<PartIdentity>> {
        let mut head = [0; HEAD_BYTES];
        match from.read_exact_at(&mut head, 0) {
            Ok(()) => Ok(Self::parse(&head).map(|claims| claims.part)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read(from: &File) -> io::Result<Option<Self>> {
        let most = HEAD_BYTES + RECORDS_MAX * RECORD_BYTES;
        let mut bytes = Vec::new();
        from.take(most as u64).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes))
    }
}

/// A sidecar being written.
#[derive(Debug)]
pub(super) struct Sidecar {
    file: File,
    seed: u64,
    records: usize,
}

impl Sidecar {
    /// Starts a new sidecar.
    pub(super) fn start(
        mut file: File,
        source: &Identity,
        part: &PartIdentity,
        request: u64,
    ) -> io::Result<Self> {
        let head = Claims::encode(source, part, request, &[]);
        file.write_all(&head)?;
        file.sync_all()?;
        Ok(Self { file, seed: seed_of(&head), records: 0 })
    }

    /// Continues an existing sidecar after its last whole record.
    pub(super) fn go_on(mut file: File, claims: &Claims) -> io::Result<Self> {
        file.set_len(claims.whole_bytes)?;
        file.seek(io::SeekFrom::End(0))?;
        let seed = seed_of(&head(&claims.source, &claims.part, claims.request_bytes));
        Ok(Self { file, seed, records: claims.chunks.len() })
    }

    /// Adds chunks that are durable in the target.
    pub(super) fn add(&mut self, chunks: &[Chunk]) -> io::Result<()> {
        let chunks = &chunks[..chunks.len().min(RECORDS_MAX.saturating_sub(self.records))];
        let bytes: Vec<u8> = chunks.iter().flat_map(|chunk| record(chunk, self.seed)).collect();
        self.file.write_all(&bytes)?;
        self.records += chunks.len();
        self.file.sync_data()
    }
}
