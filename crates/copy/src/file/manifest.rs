//! A list of files with the hashes of their chunks, one JSON line per file: the contents of a copy
//! when it was made, for later comparison. It is untrusted input.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::held::HeldDir;
use rustix::io::Errno;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use twox_hash::XxHash3_128;

use super::copier::REQUEST_MOST;
use super::extents::Spans;
use super::io::End;
use super::{Chunk, Copier, Options, Verified, Watch, choose, verify};
use crate::CopyError;

/// Longest accepted line: a file of 16 TiB in chunks of 8 MiB.
const LINE_BYTES: u64 = 128 << 20;
const PAGE_BYTES: u64 = 4096;
/// Smallest request size, for gaps in which a manifest lists no chunk.
const GAP_BYTES: u64 = 1 << 20;
/// Memory for requests; enough for at least one chunk.
const MEMORY_BYTES: u64 = 256 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the target, without `..`.
    pub path: PathBuf,
    pub size_bytes: u64,
    /// In ascending order; the gaps between them are holes.
    pub chunks: Vec<Chunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// `medium_bytes` is `None` if nothing shows that the bytes came from the medium.
    Equal {
        read_bytes: u64,
        medium_bytes: Option<u64>,
    },
    Differs {
        offset_bytes: u64,
        expected: u128,
        found: u128,
    },
    /// Its size differs from when it was copied.
    Size {
        found_bytes: u64,
    },
    Missing,
    /// Its name, or that of a directory above, now belongs to a link, a directory or anything else
    /// but a file.
    NoFile,
}

/// `C` is the type of a chunk as written or as read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<C> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The bytes of a path that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<Vec<u8>>,
    size_bytes: u64,
    /// Offset, length, XXH3-128 as a hexadecimal number.
    chunks: Vec<C>,
}

/// A chunk as read: its hash becomes a number immediately, because a line may have millions.
struct Listed(Chunk);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (offset_bytes, len_bytes, hash) = <(u64, u32, &str)>::deserialize(from)?;
        let is_hash = hash.len() == 32 && hash.bytes().all(|it| it.is_ascii_hexdigit());
        let xxh3_128 = Some(hash).filter(|_| is_hash);
        let xxh3_128 = xxh3_128.and_then(|hash| u128::from_str_radix(hash, 16).ok());
        let no_hash = "a hash that is not a number of 32 hexadecimal digits";
        let xxh3_128 = xxh3_128.ok_or_else(|| D::Error::custom(no_hash))?;
        Ok(Self(Chunk { offset_bytes, len_bytes, xxh3_128 }))
    }
}

/// Appends the line of a file.
pub fn write(out: &mut dyn Write, entry: &Entry) -> io::Result<()> {
    let name = entry.path.as_os_str();
    let chunk = |it: &Chunk| (it.offset_bytes, it.len_bytes, format!("{:032x}", it.xxh3_128));
    let line = Line {
        path: name.to_str().map(str::to_owned),
        path_bytes: name.to_str().is_none().then(|| name.as_bytes().to_vec()),
        size_bytes: entry.size_bytes,
        chunks: entry.chunks.iter().map(chunk).collect(),
    };
    let mut line = serde_json::to_vec(&line)?;
    line.push(b'\n');
    if line.len() as u64 >= LINE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    out.write_all(&line)
}

/// Returns the entries of a manifest. An error ends the iteration.
pub fn read<'a>(
    mut from: impl BufRead + 'a,
) -> impl Iterator<Item = Result<Entry, CopyError>> + 'a {
    let (mut number, mut ended) = (0, false);
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        number += 1;
        let mut line = Vec::new();
        let found = match from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) if line.len() as u64 == LINE_BYTES => Err("it is longer than 128 MiB".to_owned()),
            Ok(_) => parse(&line),
            Err(error) => Err(error.to_string()),
        };
        ended = found.is_err();
        Some(found.map_err(|why| CopyError::Manifest { line: number, why }))
    })
}

/// Parses one line.
pub fn parse(line: &[u8]) -> Result<Entry, String> {
    let line: Line<Listed> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let path = match (line.path, line.path_bytes) {
        (Some(path), None) => PathBuf::from(path),
        (None, Some(bytes)) => PathBuf::from(OsString::from_vec(bytes)),
        _ => return Err("it has not one path".to_owned()),
    };
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_below || path.as_os_str().is_empty() || path.as_os_str().as_bytes().contains(&0) {
        return Err(format!("`{}` is not a path below a directory", path.display()));
    }
    let chunks: Vec<Chunk> = line.chunks.into_iter().map(|Listed(chunk)| chunk).collect();
    let mut end = 0;
    for &Chunk { offset_bytes, len_bytes, .. } in &chunks {
        let until = offset_bytes.checked_add(u64::from(len_bytes));
        let until = until.filter(|&until| until <= line.size_bytes && offset_bytes >= end);
        end = until
            .ok_or_else(|| format!("the chunk at {offset_bytes} lies outside of its place"))?;
        if !(1..=REQUEST_MOST).contains(&len_bytes.into()) {
            return Err(format!("a chunk of {}", Bytes(len_bytes.into())));
        }
    }
    Ok(Entry { path, size_bytes: line.size_bytes, chunks })
}

/// Reads the file of an entry below `root` from its medium and compares it. `watch` paces the reads
/// and may end them: `Interrupted`.
pub fn check(
    entry: &Entry,
    root: &HeldDir,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Compared, CopyError> {
    let path = root.path().join(&entry.path);
    let file = match root.read_within(&entry.path) {
        Err(error) => return absent(&error).ok_or_else(|| CopyError::io("open", &path)(error)),
        Ok(file) => file,
    };
    let size = file.metadata().map_err(CopyError::io("look at", &path))?.len();
    if size != entry.size_bytes {
        return Ok(Compared::Size { found_bytes: size });
    }
    let longest = entry.chunks.iter().map(|chunk| chunk.len_bytes).max().unwrap_or(1);
    let request = u64::from(longest).next_multiple_of(PAGE_BYTES).max(GAP_BYTES);
    let most = (MEMORY_BYTES / request).clamp(1, u64::from(options.in_flight));
    let options = Options { request: Bytes(request), in_flight: most as u32, ..*options };
    let all =
        with_zeros(entry, &file, request).map_err(CopyError::io("find the data of", &path))?;
    let end = end_for(&file, &path, &all, &options)?;
    let mut copier = Copier::new(options)?;
    let io = copier.io(&[end.clone(), end.clone()], size)?;
    Ok(match verify::compare(io, &end, &all, watch)? {
        Ok(verified) => {
            let read_bytes = all.iter().map(|chunk| u64::from(chunk.len_bytes)).sum();
            let medium_bytes = match verified {
                Verified::Equal { medium_bytes, .. } => Some(medium_bytes),
                Verified::Unproven { .. } | Verified::NotCompared | Verified::NotAsked => None,
            };
            Compared::Equal { read_bytes, medium_bytes }
        }
        Err(verify::Difference { offset, expected, found }) => {
            Compared::Differs { offset_bytes: offset, expected, found }
        }
    })
}

/// Returns the result for an entry that no longer has a file.
fn absent(error: &io::Error) -> Option<Compared> {
    match error.kind() {
        io::ErrorKind::NotFound => Some(Compared::Missing),
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidInput => Some(Compared::NoFile),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Some(Compared::NoFile),
        _ => None,
    }
}

/// Opens the file for direct I/O if the chunks are aligned for it.
pub(super) fn end_for(
    file: &File,
    path: &Path,
    chunks: &[Chunk],
    options: &Options,
) -> Result<End, CopyError> {
    let end = choose::medium(file, path, options)?;
    if chunks.iter().all(|chunk| chunk.offset_bytes.is_multiple_of(end.align)) {
        return Ok(end);
    }
    choose::cached(file, path)
}

/// Returns the chunks to read: those of the entry, and any data in the gaps between them, which
/// should be zeros.
pub(super) fn with_zeros(entry: &Entry, file: &File, request: u64) -> Result<Vec<Chunk>, Errno> {
    let mut all = entry.chunks.clone();
    let mut spans = Spans::of(file, entry.size_bytes, request, PAGE_BYTES);
    let mut hashes = HashMap::new();
    let mut zeros = |start: u64, end: u64| {
        let len_bytes = (end - start) as u32;
        let hash = || hash_of_zeros(len_bytes as usize);
        let xxh3_128 = *hashes.entry(len_bytes).or_insert_with(hash);
        Chunk { offset_bytes: start, len_bytes, xxh3_128 }
    };
    let mut next = 0;
    while let Some(span) = spans.next()? {
        let (mut start, end) = (span.offset, span.offset + u64::from(span.len));
        while start < end {
            let of =
                |chunk: &Chunk| chunk.offset_bytes..chunk.offset_bytes + u64::from(chunk.len_bytes);
            let held = entry.chunks.get(next).map_or(u64::MAX..u64::MAX, of);
            if held.end <= start {
                next += 1;
            } else if held.start <= start {
                start = held.end;
            } else {
                let until = end.min(held.start);
                all.push(zeros(start, until));
                start = until;
            }
        }
    }
    all.sort_unstable_by_key(|chunk| chunk.offset_bytes);
    Ok(all)
}

fn hash_of_zeros(len: usize) -> u128 {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut hasher = XxHash3_128::new();
    let mut left = len;
    while left > 0 {
        let taken = left.min(ZEROS.len());
        hasher.write(&ZEROS[..taken]);
        left -= taken;
    }
    hasher.finish_128()
}
