//! LGWR: writes the content of the log buffer, one chunk after the other, so that all commits that
//! arrive during a write share the next one.

use crate::error::InstanceError;
use crate::planted::{Planted, planted};
use crate::redo::buffer::Chunk;
use crate::redo::{REDO_BLOCK_BYTES, REDO_HEADER_BYTES, REDO_PAYLOAD_BYTES, RedoHeader};
use crate::shared::Shared;
use crate::wait::{Direction, Event, Ledger, Statistic};

pub(crate) fn run(shared: &Shared, ledger: &Ledger) -> Result<(), InstanceError> {
    while let Some(mut chunk) = shared.log.take() {
        let bytes = seal(shared, &mut chunk);
        let place = chunk.mark.place;
        let file = &shared.files.redo[(place.sequence % shared.log.logs.count) as usize];
        let data = &chunk.memory[..bytes];
        let write = || file.write(place.offset, data, !planted(Planted::RedoVolatile));
        let (written, elapsed_ns) =
            ledger.timed(&shared.histograms, Event::LogFileParallelWrite, write);
        written?;
        ledger.moved(Direction::Write, 1, bytes as u64, elapsed_ns);
        ledger.add(Statistic::RedoWrites, 1);
        ledger.add(Statistic::RedoBytes, chunk.payload_bytes as u64);
        ledger.add(Statistic::RedoWrittenBytes, bytes as u64);
        ledger.add(Statistic::LogSwitches, chunk.switches);
        shared.log.give_back(chunk);
        shared.pace_writers();
    }
    Ok(())
}

/// Completes the redo blocks of a chunk; returns their total length in bytes.
fn seal(shared: &Shared, chunk: &mut Chunk) -> usize {
    let blocks = chunk.payload_bytes.div_ceil(REDO_PAYLOAD_BYTES);
    let place = chunk.mark.place;
    let address = place.sequence * shared.log.logs.bytes + place.offset;
    let mut left = chunk.payload_bytes;
    for (index, redo_block) in
        chunk.memory[..blocks * REDO_BLOCK_BYTES].chunks_mut(REDO_BLOCK_BYTES).enumerate()
    {
        let payload_bytes = left.min(REDO_PAYLOAD_BYTES);
        redo_block[REDO_HEADER_BYTES + payload_bytes..].fill(0);
        let header = RedoHeader {
            address: address + (index * REDO_BLOCK_BYTES) as u64,
            first: chunk.mark.first,
            index: index as u32,
            blocks: blocks as u32,
            payload_bytes,
        };
        header.seal(shared.control.identity().id, redo_block);
        left -= payload_bytes;
    }
    blocks * REDO_BLOCK_BYTES
}
