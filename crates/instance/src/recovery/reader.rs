//! Reads the redo chunk by chunk, until one is missing or incomplete.

use blockstone_sys::buffer::Slot;

use super::{Found, look};
use crate::control::POSITION_MAX;
use crate::error::InstanceError;
use crate::files::Files;
use crate::group::{GroupError, GroupFile};
use crate::redo::buffer::{Logs, Mark, RedoAddress};
use crate::redo::{Lsn, REDO_BLOCK_BYTES, REDO_HEADER_BYTES, RedoHeader};

/// Bytes per read in the search for redo after damage.
const SEARCH_BYTES: u64 = 1 << 20;

/// A place in the redo, and the position that must be found there.
pub(super) struct Reader<'a> {
    files: &'a Files,
    instance: u64,
    logs: Logs,
    next: Mark,
    /// Start of the chunk that was read last, and its number of redo blocks.
    last: Option<(Mark, u32)>,
    payload: Vec<u8>,
    memory: Option<Slot>,
    /// Reason why the place where the next chunk should begin cannot be read.
    unreadable: Option<GroupError>,
}

impl<'a> Reader<'a> {
    pub fn new(files: &'a Files, instance: u64, logs: Logs, start: Mark) -> Self {
        Self {
            files,
            instance,
            logs,
            next: start,
            last: None,
            payload: Vec::new(),
            memory: None,
            unreadable: None,
        }
    }

    pub fn end(&self) -> Lsn {
        self.next.first
    }

    /// Returns why it is unknown whether more redo follows, if that is the case.
    pub fn unreadable(&mut self) -> Option<GroupError> {
        self.unreadable.take()
    }

    pub fn sequence(&self) -> u64 {
        self.next.place.sequence
    }

    /// Returns the next chunk: the position of its first byte, and its records.
    pub fn next(&mut self) -> Result<Option<(Lsn, &[u8])>, InstanceError> {
        let here = self.next.place;
        let started = RedoAddress { sequence: here.sequence + 1, offset: 0 };
        for place in [here, started] {
            if let Some(blocks) = self.chunk(place)? {
                self.unreadable = None;
                let first = self.next.first;
                self.last = Some((Mark { first, place }, blocks));
                let offset = place.offset + u64::from(blocks) * REDO_BLOCK_BYTES as u64;
                self.next = Mark {
                    first: Lsn(first.0 + self.payload.len() as u64),
                    place: RedoAddress { offset, ..place },
                };
                return Ok(Some((first, &self.payload)));
            }
        }
        Ok(None)
    }

    /// Returns the records of the chunk that was read last.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Makes all copies of the last chunk equal. If power was lost while it was written, some disks
    /// may not have it, and no block that depends on it may be written before they do.
    pub fn restore_last(&mut self) -> Result<(), InstanceError> {
        let Some((start, blocks)) = self.last.take() else { return Ok(()) };
        let file = self.file(start.place);
        let is_ours = self.is_ours(start);
        let mut memory = Slot::new(REDO_BLOCK_BYTES)?;
        for index in 0..u64::from(blocks) {
            let offset = start.place.offset + index * REDO_BLOCK_BYTES as u64;
            if matches!(look(file, offset, &mut memory, &is_ours)?, Found::Accepted) {
                file.restore(offset, &memory)?;
            }
        }
        Ok(())
    }

    fn file(&self, place: RedoAddress) -> &'a GroupFile {
        &self.files.redo[(place.sequence % self.logs.count) as usize]
    }

    /// Whether the bytes at an offset are a redo block of the chunk that begins at `start`.
    fn is_ours(&self, start: Mark) -> impl Fn(u64, &[u8]) -> bool + use<> {
        let Mark { first, place } = start;
        let (instance, base) = (self.instance, place.sequence * self.logs.bytes);
        move |at, bytes| {
            RedoHeader::read(instance, bytes).is_some_and(|header| {
                header.first == first
                    && header.address == base + at
                    && u64::from(header.index) == (at - place.offset) / REDO_BLOCK_BYTES as u64
            })
        }
    }

    /// Reads the chunk at `place` into `payload`; returns its number of redo blocks, or `None` if
    /// it is not whole.
    fn chunk(&mut self, place: RedoAddress) -> Result<Option<u32>, InstanceError> {
        let left = (self.logs.bytes - place.offset) / REDO_BLOCK_BYTES as u64;
        self.payload.clear();
        if left == 0 {
            return Ok(None);
        }
        let Some(head) = self.redo_blocks(place, 0, 1)? else { return Ok(None) };
        let Some(rest) = head.blocks.checked_sub(1) else { return Ok(None) };
        if u64::from(rest) >= left {
            return Ok(None);
        }
        let whole = rest == 0 || self.redo_blocks(place, 1, rest)?.is_some();
        Ok(whole.then_some(head.blocks))
    }

    /// Reads `count` redo blocks of the chunk at `place`, from number `index` on, and appends their
    /// records. Returns the first header; `None` if one of them is not whole, or not of this chunk.
    fn redo_blocks(
        &mut self,
        place: RedoAddress,
        index: u32,
        count: u32,
    ) -> Result<Option<RedoHeader>, InstanceError> {
        let offset = place.offset + u64::from(index) * REDO_BLOCK_BYTES as u64;
        let is_ours = self.is_ours(Mark { first: self.next.first, place });
        let file = self.file(place);
        let bytes = count as usize * REDO_BLOCK_BYTES;
        if self.memory.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.memory = Some(Slot::new(bytes.next_power_of_two())?);
        }
        let memory = self.memory.as_mut().expect("it was made just now");
        let memory = &mut memory[..bytes];
        match look(file, offset, memory, &is_ours)? {
            Found::Accepted => {}
            Found::Refused => return Ok(None),
            Found::Unreadable(error) => {
                self.unreadable.get_or_insert(error);
                return Ok(None);
            }
        }
        let mut head = None;
        for redo_block in memory.chunks(REDO_BLOCK_BYTES) {
            let header = RedoHeader::read(self.instance, redo_block).expect("it was just verified");
            let end = REDO_HEADER_BYTES + header.payload_bytes;
            self.payload.extend_from_slice(&redo_block[REDO_HEADER_BYTES..end]);
            head.get_or_insert(header);
        }
        Ok(head)
    }

    /// Continues after damage, at the first intact redo block of a later chunk; returns false if
    /// there is none in any log.
    pub fn skip_damage(&mut self) -> Result<bool, InstanceError> {
        let Mark { first, place } = self.next;
        let mut memory = Slot::new(SEARCH_BYTES as usize)?;
        for sequence in place.sequence..place.sequence + self.logs.count {
            let start = if sequence == place.sequence { place.offset } else { 0 };
            let mut offset = start;
            while offset < self.logs.bytes {
                let bytes = SEARCH_BYTES.min(self.logs.bytes - offset);
                let part = &mut memory[..bytes as usize];
                let from = RedoAddress { sequence, offset };
                if let Some(found) = self.later(from, part, first)? {
                    self.next = found;
                    return Ok(true);
                }
                offset += bytes;
            }
        }
        Ok(false)
    }

    /// Returns the first redo block after position `first` in `memory.len()` bytes from `from` on.
    /// Parts that cannot be read are skipped.
    fn later(
        &self,
        from: RedoAddress,
        memory: &mut [u8],
        first: Lsn,
    ) -> Result<Option<Mark>, InstanceError> {
        let file = &self.files.redo[(from.sequence % self.logs.count) as usize];
        let any = |_, _: &[u8]| true;
        if !matches!(look(file, from.offset, memory, &any)?, Found::Accepted) {
            for (index, redo_block) in memory.chunks_mut(REDO_BLOCK_BYTES).enumerate() {
                let offset = from.offset + (index * REDO_BLOCK_BYTES) as u64;
                if !matches!(look(file, offset, redo_block, &any)?, Found::Accepted) {
                    redo_block.fill(0);
                }
            }
        }
        for (index, redo_block) in memory.chunks(REDO_BLOCK_BYTES).enumerate() {
            let offset = from.offset + (index * REDO_BLOCK_BYTES) as u64;
            let address = from.sequence * self.logs.bytes + offset;
            let Some(header) = RedoHeader::read(self.instance, redo_block) else { continue };
            if header.address != address || !(first.0 + 1..=POSITION_MAX).contains(&header.first.0)
            {
                continue;
            }
            // After the rest of a chunk whose beginning is gone.
            let passed = if header.index == 0 { 0 } else { REDO_BLOCK_BYTES as u64 };
            let place = RedoAddress { offset: offset + passed, ..from };
            return Ok(Some(Mark { first: header.first, place }));
        }
        Ok(None)
    }
}
