//! The control file: identity and state of the instance, and where recovery begins.
//!
//! Its two halves are written in turn, each durable before the other may be touched, so a torn
//! write leaves the older state. A half consists of two identical copies: a single damaged block
//! must not bring back an older state whose redo may have been overwritten. After an opening, the
//! newest half is made whole on all mirrors before the older one is overwritten, as it may be whole
//! on only one of them.

use std::sync::Arc;

use blockstone_base::Bytes;
use blockstone_sys::buffer::Slot;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{get, put};
use crate::error::InstanceError;
use crate::group::GroupFile;
use crate::planted::{Planted, planted};
use crate::redo::buffer::{Mark, RedoAddress};
use crate::redo::{Lsn, REDO_BLOCK_BYTES};
use crate::spec::{InstanceSpec, TornProtection, WRITERS_MAX};

/// Bytes of a copy, equal to a block of the file.
pub(crate) const COPY_BYTES: usize = 4096;
/// Bytes of a half: the unit of writes.
pub(crate) const HALF_BYTES: usize = 2 * COPY_BYTES;
pub(crate) const CONTROL_BYTES: usize = 2 * HALF_BYTES;

const MAGIC: u64 = u64::from_le_bytes(*b"bstnctrl");
const VERSION: u32 = 1;
const WORDS: usize = 19;
/// Positions in redo and files stay below 4 EiB, so that lengths can be added to them.
pub(crate) const POSITION_MAX: u64 = 1 << 62;

/// Properties of an instance that are fixed at its creation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Identity {
    /// Drawn at its creation; every block and redo block carries it.
    pub id: u64,
    pub spec: InstanceSpec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Writes of the control file so far.
    pub sequence: u64,
    /// Recovery replays the redo after this position.
    pub checkpoint: Lsn,
    /// Chunk that contains this position, or the last one before it.
    pub mark: Mark,
    /// Number of schemas that have their data, from the first.
    pub loaded: u32,
    /// How blocks have been protected since the last opening.
    pub protection: TornProtection,
    /// Number of database writers since the last opening, each with its part of the double-write
    /// area.
    pub writers: u32,
}

#[derive(Debug)]
pub(crate) struct Control {
    file: GroupFile,
    identity: Identity,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    memory: Slot,
    /// Whether all copies of the newest half are whole, as after a write.
    is_whole: bool,
}

impl Control {
    pub fn create(file: GroupFile, identity: Identity, state: State) -> Result<(), InstanceError> {
        // Both halves: one left by an earlier instance in the same group could look newer.
        let inner = Inner { state, memory: Slot::new(HALF_BYTES)?, is_whole: true };
        let control = Self { file, identity, inner: Mutex::new(inner) };
        control.write(|_| {})?;
        control.write(|_| {})
    }

    pub fn open(file: GroupFile) -> Result<Self, InstanceError> {
        file.verify_with(Arc::new(|_, copy| is_whole(copy)));
        let mut memory = Slot::new(HALF_BYTES)?;
        let mut newest: Option<(Identity, State)> = None;
        let (mut other_version, mut failure) = (None, None);
        for offset in (0..CONTROL_BYTES).step_by(COPY_BYTES) {
            let mut look = |copy: &[u8]| match is_whole(copy).then(|| decode(copy)) {
                Some(Ok(Some(found)))
                    if newest.is_none_or(|(_, state)| state.sequence < found.1.sequence) =>
                {
                    newest = Some(found);
                }
                Some(Err(version)) => other_version = Some(version),
                _ => {}
            };
            let read = file.read_copies(offset as u64, &mut memory[..COPY_BYTES], &mut look);
            failure = failure.or(read.err());
        }
        match (newest, other_version, failure) {
            (Some((identity, state)), ..) => {
                let inner = Inner { state, memory, is_whole: false };
                Ok(Self { file, identity, inner: Mutex::new(inner) })
            }
            (None, Some(found), _) => Err(InstanceError::ControlVersion { found, known: VERSION }),
            (None, None, Some(failure)) => Err(failure.into()),
            (None, None, None) => Err(InstanceError::ControlDamaged),
        }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn state(&self) -> State {
        self.inner.lock().state
    }

    pub fn write(&self, change: impl FnOnce(&mut State)) -> Result<(), InstanceError> {
        let inner = &mut *self.inner.lock();
        if !inner.is_whole {
            encode(&self.identity, &inner.state, &mut inner.memory[..COPY_BYTES]);
            for offset in inner.state.copies() {
                self.file.restore(offset, &inner.memory[..COPY_BYTES])?;
            }
            inner.is_whole = true;
        }
        let mut next = inner.state;
        change(&mut next);
        next.sequence += 1;
        inner.memory.chunks_mut(COPY_BYTES).for_each(|copy| encode(&self.identity, &next, copy));
        let [offset, _] = next.copies();
        self.file.write(offset, &inner.memory, true)?;
        inner.state = next;
        Ok(())
    }
}

impl State {
    /// Returns the offsets of its two copies.
    fn copies(&self) -> [u64; 2] {
        let number = if planted(Planted::ControlOneHalf) { 0 } else { self.sequence % 2 };
        let half = number * HALF_BYTES as u64;
        [half, half + COPY_BYTES as u64]
    }
}

fn encode(identity: &Identity, state: &State, out: &mut [u8]) {
    let Identity { id, spec } = identity;
    let words: [u64; WORDS] = [
        MAGIC,
        u64::from(VERSION),
        *id,
        spec.block.get(),
        u64::from(spec.schemas),
        spec.rows,
        spec.scan_blocks,
        u64::from(spec.redo_logs),
        spec.redo.get(),
        spec.seed,
        u64::from(spec.random_percent),
        state.sequence,
        state.checkpoint.0,
        state.mark.first.0,
        state.mark.place.sequence,
        state.mark.place.offset,
        u64::from(state.loaded),
        state.protection as u64,
        u64::from(state.writers),
    ];
    out.fill(0);
    for (at, word) in words.iter().enumerate() {
        put(out, at * 8, *word);
    }
    let sum = xxh3_64(&out[..out.len() - 8]);
    put(out, COPY_BYTES - 8, sum);
}

fn is_whole(bytes: &[u8]) -> bool {
    let sum = COPY_BYTES - 8;
    get(bytes, 0) == MAGIC && get(bytes, sum) == xxh3_64(&bytes[..sum])
}

/// Whether an instance can have this specification and reach this state; a forged file may contain
/// anything.
fn is_sound(spec: &InstanceSpec, state: &State) -> bool {
    let Mark { first, place } = state.mark;
    let rows = spec.rows.checked_add(spec.scan_blocks);
    let blocks = rows.and_then(|rows| rows.checked_mul(spec.schemas.into()));
    let bytes = blocks.and_then(|blocks| blocks.checked_mul(spec.block.get()));
    let positions = [state.sequence, state.checkpoint.0, first.0];
    spec.check().is_ok()
        && bytes.is_some_and(|bytes| bytes <= POSITION_MAX)
        && place.offset <= spec.redo.get()
        && place.offset.is_multiple_of(REDO_BLOCK_BYTES as u64)
        && place.sequence.checked_mul(spec.redo.get()).is_some_and(|at| at <= POSITION_MAX)
        && positions.iter().all(|&position| position <= POSITION_MAX)
        && state.loaded <= spec.schemas
        && state.writers <= WRITERS_MAX
}

/// Returns the content of a whole copy; `None` if it makes no sense, or its version if that
/// differs.
fn decode(bytes: &[u8]) -> Result<Option<(Identity, State)>, u32> {
    let word = |at: usize| get(bytes, at * 8);
    if word(1) != u64::from(VERSION) {
        return Err(word(1) as u32);
    }
    let spec = InstanceSpec {
        block: Bytes(word(3)),
        schemas: word(4) as u32,
        rows: word(5),
        scan_blocks: word(6),
        redo_logs: word(7) as u32,
        redo: Bytes(word(8)),
        seed: word(9),
        random_percent: word(10) as u8,
    };
    let place = RedoAddress { sequence: word(14), offset: word(15) };
    let state = State {
        sequence: word(11),
        checkpoint: Lsn(word(12)),
        mark: Mark { first: Lsn(word(13)), place },
        loaded: word(16) as u32,
        protection: TornProtection::from_number(word(17)),
        writers: word(18) as u32,
    };
    Ok(is_sound(&spec, &state).then_some((Identity { id: word(2), spec }, state)))
}

#[cfg(test)]
mod tests;
