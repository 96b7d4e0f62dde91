//! A disk with a volatile write cache that is broken in a known way: an NBD server (network block
//! device, fixed newstyle, simple replies) in this process. A client that disconnects without
//! notice, as a killed one does, cuts the disk's power: the contents of the cache are lost.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::rng::Rng;

use crate::error::TestkitError;

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None: a flush writes back everything cached.
    None,
    /// It ignores one flush in this many and then loses power.
    LosesFlush(u64),
    /// Only the first half of one page in this many is written back.
    TearsPage(u64),
    /// It ignores flushes. When it loses power, half of the cached pages have been written back, in
    /// any order.
    Reorders,
    /// It treats writes with FUA (forced unit access) as writes without it.
    IgnoresFua,
    /// A flush takes this long.
    SlowFlush(Duration),
}

/// A request that the disk received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Write {
        offset_bytes: u64,
        data: Vec<u8>,
    },
    /// A flush, with the size of the watched file before the flush was acknowledged.
    Flush {
        watched_bytes: u64,
    },
}

const PAGE: usize = 4096;

#[derive(Debug)]
pub(crate) struct Server {
    socket: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    connection: Mutex<Option<UnixStream>>,
    requests: Mutex<Vec<Request>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Serves `backing` on `socket` until dropped. With a `watched` file, all requests are
    /// recorded.
    pub(crate) fn start(
        (backing, socket): (&Path, &Path),
        fault: Fault,
        watched: Option<PathBuf>,
    ) -> Result<Self, TestkitError> {
        let opened = OpenOptions::new().read(true).write(true).open(backing);
        let opened = opened.and_then(|medium| Ok((medium.metadata()?.len(), medium)));
        let (bytes, medium) = opened.map_err(TestkitError::file("open", backing))?;
        let listener = UnixListener::bind(socket);
        let listener = listener.map_err(TestkitError::file("listen on", socket))?;
        let shared = Arc::new(Shared::default());
        let mut disk = Disk {
            medium,
            bytes,
            fault,
            watched,
            cache: BTreeMap::new(),
            flushes: 0,
            pages: 0,
            rng: Rng::new(1, 0),
            shared: Arc::clone(&shared),
        };
        let thread = Some(thread::spawn(move || disk.serve(&listener)));
        Ok(Self { socket: socket.to_owned(), shared, thread })
    }

    /// Returns the requests since the start.
    pub(crate) fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(connection) = &*lock(&self.shared.connection) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // The thread may be waiting for a client.
        let _ = UnixStream::connect(&self.socket);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How a connection ended.
#[derive(PartialEq)]
enum End {
    /// The client disconnected properly.
    Orderly,
    PowerCut,
}

#[derive(Debug)]
struct Disk {
    medium: File,
    bytes: u64,
    fault: Fault,
    watched: Option<PathBuf>,
    /// Cached pages by number.
    cache: BTreeMap<u64, Vec<u8>>,
    flushes: u64,
    /// Number of pages written back.
    pages: u64,
    rng: Rng,
    shared: Arc<Shared>,
}

impl Disk {
    fn serve(&mut self, listener: &UnixListener) {
        for client in listener.incoming() {
            let Ok((client, other)) = client.and_then(|it| Ok((it.try_clone()?, it))) else {
                return;
            };
            *lock(&self.shared.connection) = Some(other);
            if self.shared.ended.load(Ordering::SeqCst) {
                return;
            }
            let end = self.attend(client).unwrap_or(End::PowerCut);
            // Dropping the connection tells waiting clients that there will be no answer.
            *lock(&self.shared.connection) = None;
            let cache = std::mem::take(&mut self.cache);
            let keeps_half = self.fault == Fault::Reorders;
            for (number, page) in cache {
                if end == End::Orderly || keeps_half && self.rng.below(2) == 0 {
                    let _ = self.medium.write_all_at(&page, number * PAGE as u64);
                }
            }
        }
    }

    fn attend(&mut self, mut to: UnixStream) -> io::Result<End> {
        let mut from = BufReader::new(to.try_clone()?);
        if !negotiate(&mut from, &mut to, self.bytes)? {
            return Ok(End::Orderly);
        }
        loop {
            let magic = u32::from_be_bytes(take(&mut from)?);
            let flags = u16::from_be_bytes(take(&mut from)?);
            let kind = u16::from_be_bytes(take(&mut from)?);
            let cookie: [u8; 8] = take(&mut from)?;
            let offset_bytes = u64::from_be_bytes(take(&mut from)?);
            let length = u32::from_be_bytes(take(&mut from)?) as usize;
            if magic != REQUEST || length > LENGTH_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut data = vec![0; if kind == WRITE || kind == READ { length } else { 0 }];
            if kind == WRITE {
                from.read_exact(&mut data)?;
            }
            let mut is_cut = false;
            match kind {
                READ => self.read(offset_bytes, &mut data)?,
                WRITE => self.write(offset_bytes, &data, flags & FUA != 0)?,
                FLUSH => is_cut = self.flush()?,
                DISCONNECT => return Ok(End::Orderly),
                _ => return Err(io::ErrorKind::Unsupported.into()),
            }
            let mut reply = [&REPLY.to_be_bytes()[..], &[0; 4], &cookie].concat();
            if kind == READ {
                reply.extend(data);
            }
            to.write_all(&reply)?;
            if is_cut {
                to.shutdown(Shutdown::Both)?;
                return Ok(End::PowerCut);
            }
        }
    }

    fn page(&self, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = self.cache.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE];
        self.medium.read_exact_at(&mut page, number * PAGE as u64)?;
        Ok(page)
    }

    fn read(&self, offset_bytes: u64, data: &mut [u8]) -> io::Result<()> {
        for (number, within, part) in pages(offset_bytes, data.len()) {
            data[part.clone()].copy_from_slice(&self.page(number)?[within..within + part.len()]);
        }
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8], is_durable: bool) -> io::Result<()> {
        self.keep(|| Request::Write { offset_bytes, data: data.to_vec() });
        for (number, within, part) in pages(offset_bytes, data.len()) {
            let mut page = self.page(number)?;
            page[within..within + part.len()].copy_from_slice(&data[part]);
            if is_durable && !matches!(self.fault, Fault::Reorders | Fault::IgnoresFua) {
                self.medium.write_all_at(&page, number * PAGE as u64)?;
                self.cache.remove(&number);
            } else {
                self.cache.insert(number, page);
            }
        }
        Ok(())
    }

    /// Handles a flush. Returns whether the disk then loses power.
    fn flush(&mut self) -> io::Result<bool> {
        self.flushes += 1;
        match self.fault {
            Fault::Reorders => return Ok(false),
            Fault::LosesFlush(of) if self.flushes.is_multiple_of(of) => return Ok(true),
            Fault::SlowFlush(time) => thread::sleep(time),
            _ => {}
        }
        for (number, page) in std::mem::take(&mut self.cache) {
            self.pages += 1;
            let is_torn =
                matches!(self.fault, Fault::TearsPage(of) if self.pages.is_multiple_of(of));
            let bytes = if is_torn { PAGE / 2 } else { PAGE };
            self.medium.write_all_at(&page[..bytes], number * PAGE as u64)?;
        }
        let watched = self.watched.as_deref().map(std::fs::metadata);
        let watched_bytes = watched.and_then(Result::ok).map_or(0, |found| found.len());
        self.keep(|| Request::Flush { watched_bytes });
        Ok(false)
    }

    fn keep(&self, request: impl FnOnce() -> Request) {
        if self.watched.is_some() {
            lock(&self.shared.requests).push(request());
        }
    }
}

/// Returns the pages of a range: page number, first byte within the page, and the part of the
/// range.
fn pages(
    offset_bytes: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset_bytes + done as u64;
        let within = (at % PAGE as u64) as usize;
        let part = done..length.min(done + PAGE - within);
        done = part.end;
        (!part.is_empty()).then_some((at / PAGE as u64, within, part))
    })
}

// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
const HANDSHAKE: u16 = 0b11;
const NO_ZEROES: u32 = 0b10;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const INFO: u32 = 6;
const GO: u32 = 7;
const ACKNOWLEDGED: u32 = 1;
const EXPORT: u32 = 3;
const UNSUPPORTED: u32 = 0x8000_0001;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Supports flags, flush and FUA.
const TRANSMISSION: u16 = 0b1101;
const FUA: u16 = 1;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const LENGTH_MAX: usize = 32 << 20;
const OPTION_MAX: u64 = 4096;

fn take<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether the client goes on to use the disk.
fn negotiate(from: &mut impl Read, to: &mut impl Write, disk_bytes: u64) -> io::Result<bool> {
    to.write_all(&[&b"NBDMAGICIHAVEOPT"[..], &HANDSHAKE.to_be_bytes()].concat())?;
    let flags = u32::from_be_bytes(take(from)?);
    let export = [&disk_bytes.to_be_bytes()[..], &TRANSMISSION.to_be_bytes()].concat();
    loop {
        let magic: [u8; 8] = take(from)?;
        let option = u32::from_be_bytes(take(from)?);
        let length = u64::from(u32::from_be_bytes(take(from)?));
        if magic != *b"IHAVEOPT" || length > OPTION_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
        let mut reply = |kind: u32, data: &[u8]| {
            let length = data.len() as u32;
            let numbers = [option, kind, length].map(u32::to_be_bytes).concat();
            to.write_all(&[&OPTION_REPLY.to_be_bytes()[..], &numbers, data].concat())
        };
        match option {
            EXPORT_NAME => {
                let zeroes = if flags & NO_ZEROES == 0 { 124 } else { 0 };
                to.write_all(&[export, vec![0; zeroes]].concat())?;
                return Ok(true);
            }
            ABORT => {
                reply(ACKNOWLEDGED, &[])?;
                return Ok(false);
            }
            INFO | GO => {
                // The first number names the information that follows: the export.
                reply(EXPORT, &[&[0_u8; 2][..], &export].concat())?;
                reply(ACKNOWLEDGED, &[])?;
                if option == GO {
                    return Ok(true);
                }
            }
            _ => reply(UNSUPPORTED, &[])?,
        }
    }
}
