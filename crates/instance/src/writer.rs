//! DBWR: writes changed blocks, oldest first, in batches.
//!
//! A batch is claimed, latched shared, sealed with checksums, waits for its redo (the write-ahead
//! rule), and is written with all copies in flight together. Its frames stay readable throughout.

use std::time::Duration;

use parking_lot::RwLockWriteGuard;

use crate::block;
use crate::cache::Shared as Body;
use crate::error::InstanceError;
use crate::files::BATCH_BLOCKS;
use crate::group::BatchWrite;
use crate::planted::{Planted, planted};
use crate::redo::Lsn;
use crate::shared::Shared;
use crate::spec::TornProtection;
use crate::wait::{Direction, Event, Ledger, Statistic};

/// Interval at which it looks for work without being woken.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Runs until the instance stops. Writer `number` has its own part of the double-write area.
pub(crate) fn run(shared: &Shared, ledger: &Ledger, number: u32) -> Result<(), InstanceError> {
    let mut claimed = Vec::with_capacity(BATCH_BLOCKS);
    while shared.health.is_running() {
        if shared.must_write() {
            shared.log.claim(&shared.cache, BATCH_BLOCKS, &mut claimed);
        }
        if claimed.is_empty() {
            shared.writer_bell.wait(LOOK_AFTER);
            continue;
        }
        write(shared, ledger, number, &claimed)?;
        claimed.clear();
        shared.pace_checkpoint();
    }
    Ok(())
}

fn write(
    shared: &Shared,
    ledger: &Ledger,
    number: u32,
    frames: &[u32],
) -> Result<(), InstanceError> {
    let mut bodies: Vec<(u32, Body<'_>)> = Vec::with_capacity(frames.len());
    for &frame in frames {
        let mut body = shared.cache.body(frame);
        block::seal(&mut body);
        bodies.push((frame, RwLockWriteGuard::downgrade(body)));
    }
    bodies.sort_unstable_by_key(|(_, body)| block::number(body));
    let last_change = bodies.iter().map(|(_, body)| block::scn(body)).max().unwrap_or(0);
    shared.log.demand(Lsn(last_change));
    let ignored = planted(Planted::WriteAheadIgnored);
    if !ignored {
        shared.log.wait_durable(Lsn(last_change))?;
    }
    assert!(
        ignored || shared.log.durable() >= Lsn(last_change),
        "the write-ahead rule: no block is written before its redo"
    );
    let block_bytes = shared.block_bytes;
    let writes: Vec<BatchWrite<'_>> = bodies
        .iter()
        .map(|(_, body)| BatchWrite { offset: block::number(body) * block_bytes, data: body })
        .collect();
    let work = || shared.files.write_blocks(shared.protection, number, &writes);
    let (written, _) = ledger.timed(&shared.histograms, Event::DbFileParallelWrite, work);
    let info = written?;
    // Adjacent blocks count as one request, and the copies of a mirrored one are not counted. The
    // time of a request is the time the device took for it, not the duration of the batch.
    let requests = info.ios.div_ceil(shared.copies);
    let service_ns = info.service_ns / info.ios.max(1) * requests;
    let bytes = writes.len() as u64 * block_bytes;
    ledger.moved(Direction::Write, requests, bytes, service_ns);
    ledger.add(Statistic::PhysicalWrites, writes.len() as u64);
    ledger.add(Statistic::WriteRequests, requests);
    if shared.protection == TornProtection::DoubleWrite {
        ledger.add(Statistic::ProtectionBytes, bytes);
    }
    for (frame, _) in &bodies {
        shared.cache.written(*frame);
    }
    let count = bodies.len();
    drop(writes);
    drop(bodies);
    shared.cache.became_clean(count);
    Ok(())
}
