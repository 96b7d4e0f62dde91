//! Reads the redo chunk by chunk, until one is not there as a whole.

use blockstone_sys::buffer::Slot;

use crate::error::InstanceError;
use crate::files::Files;
use crate::redo::buffer::{Logs, Mark, Place};
use crate::redo::{Lsn, REDO_BLOCK_BYTES, REDO_HEADER_BYTES, RedoHeader};

/// A place in the redo, and the position that must be found there.
pub(super) struct Reader<'a> {
    files: &'a Files,
    instance: u64,
    logs: Logs,
    next: Mark,
    payload: Vec<u8>,
    memory: Option<Slot>,
}

impl<'a> Reader<'a> {
    pub fn new(files: &'a Files, instance: u64, logs: Logs, start: Mark) -> Self {
        Self { files, instance, logs, next: start, payload: Vec::new(), memory: None }
    }

    pub fn end(&self) -> Lsn {
        self.next.first
    }

    pub fn sequence(&self) -> u64 {
        self.next.place.sequence
    }

    /// The next chunk: the position of its first byte, and its records.
    pub fn next(&mut self) -> Result<Option<(Lsn, &[u8])>, InstanceError> {
        let here = self.next.place;
        let started = Place { sequence: here.sequence + 1, offset: 0 };
        for place in [here, started] {
            if let Some(blocks) = self.chunk(place)? {
                let first = self.next.first;
                let offset = place.offset + u64::from(blocks) * REDO_BLOCK_BYTES as u64;
                self.next = Mark {
                    first: Lsn(first.0 + self.payload.len() as u64),
                    place: Place { offset, ..place },
                };
                return Ok(Some((first, &self.payload)));
            }
        }
        Ok(None)
    }

    /// Reads the chunk at `place` into `payload`; its redo blocks, or none when it is not whole.
    fn chunk(&mut self, place: Place) -> Result<Option<u32>, InstanceError> {
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
    /// records; none when one of them is not whole, or not of this chunk. The first header.
    fn redo_blocks(
        &mut self,
        place: Place,
        index: u32,
        count: u32,
    ) -> Result<Option<RedoHeader>, InstanceError> {
        let offset = place.offset + u64::from(index) * REDO_BLOCK_BYTES as u64;
        let base = place.sequence * self.logs.bytes;
        let (instance, first) = (self.instance, self.next.first);
        let is_ours = |at: u64, bytes: &[u8]| {
            RedoHeader::read(instance, bytes).is_some_and(|header| {
                header.first == first
                    && header.address == base + at
                    && u64::from(header.index) == (at - place.offset) / REDO_BLOCK_BYTES as u64
            })
        };
        let file = &self.files.redo[(place.sequence % self.logs.count) as usize];
        let bytes = count as usize * REDO_BLOCK_BYTES;
        if self.memory.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.memory = Some(Slot::new(bytes.next_power_of_two())?);
        }
        let memory = self.memory.as_mut().expect("it was made just now");
        let memory = &mut memory[..bytes];
        if !file.read_if_whole(offset, memory, &is_ours)? {
            return Ok(None);
        }
        let mut head = None;
        for redo_block in memory.chunks(REDO_BLOCK_BYTES) {
            let header = RedoHeader::read(instance, redo_block).expect("it was just verified");
            let end = REDO_HEADER_BYTES + header.payload_bytes;
            self.payload.extend_from_slice(&redo_block[REDO_HEADER_BYTES..end]);
            head.get_or_insert(header);
        }
        Ok(head)
    }
}
