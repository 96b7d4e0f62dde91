//! Reads the next pieces of a file, and unpacks them, while one is parsed.

use std::io::{self, Read as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use blockstone_input::Unpacked;
use blockstone_sys::thread;

const PIECE_BYTES: usize = 1 << 20;
/// Pieces that are read before they are asked for.
const PIECES: usize = 2;

/// A piece of a file; empty at its end.
pub struct Piece {
    buffer: Vec<u8>,
    count: usize,
    /// Bytes of the packed file read so far.
    pub packed: u64,
}

impl Piece {
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.count]
    }
}

pub enum Ahead {
    Thread {
        pieces: Receiver<io::Result<Piece>>,
        spare: SyncSender<Vec<u8>>,
    },
    /// The system has no thread left.
    Here {
        source: Box<Unpacked>,
        spare: Vec<u8>,
    },
}

impl Ahead {
    pub fn of(source: Unpacked) -> Self {
        let (to_parser, pieces) = sync_channel(PIECES);
        let (spare, from_parser) = sync_channel(PIECES);
        let held = Arc::new(Mutex::new(Some(source)));
        let taken = Arc::clone(&held);
        let take = |held: &Mutex<Option<Unpacked>>| {
            held.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let work = move || {
            if let Some(source) = take(&taken) {
                read_all(source, &to_parser, &from_parser);
            }
        };
        match (thread::spawn("read", work), &*held) {
            (Err(_), held) if let Some(source) = take(held) => {
                Self::Here { source: Box::new(source), spare: Vec::new() }
            }
            _ => Self::Thread { pieces, spare },
        }
    }

    /// Returns the next piece.
    pub fn next(&mut self) -> io::Result<Piece> {
        match self {
            Self::Thread { pieces, .. } => pieces
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that reads it ended"))),
            Self::Here { source, spare } => read(source, std::mem::take(spare)),
        }
    }

    /// Takes back a piece, whose memory is used again.
    pub fn done(&mut self, piece: Piece) {
        match self {
            Self::Thread { spare, .. } => {
                // The thread may have ended.
                let _ = spare.try_send(piece.buffer);
            }
            Self::Here { spare, .. } => *spare = piece.buffer,
        }
    }
}

fn read_all(
    mut source: Unpacked,
    pieces: &SyncSender<io::Result<Piece>>,
    spare: &Receiver<Vec<u8>>,
) {
    loop {
        let piece = read(&mut source, spare.try_recv().unwrap_or_default());
        let is_last = !piece.as_ref().is_ok_and(|piece| piece.count > 0);
        if pieces.send(piece).is_err() || is_last {
            return;
        }
    }
}

fn read(source: &mut Unpacked, mut buffer: Vec<u8>) -> io::Result<Piece> {
    buffer.resize(PIECE_BYTES, 0);
    loop {
        match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                let count = read?;
                return Ok(Piece { buffer, count, packed: source.packed() });
            }
        }
    }
}
