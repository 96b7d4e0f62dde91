//! CKPT: advances the point where recovery begins. It does so incrementally, as the database
//! writers clean the oldest blocks, and immediately if a log switch waits for it.

use std::time::Duration;

use crate::control::HALF_BYTES;
use crate::error::InstanceError;
use crate::planted::{Planted, planted};
use crate::shared::Shared;
use crate::wait::{Direction, Event, Ledger, Statistic};

/// Interval at which a checkpoint advances if there is no reason to hurry.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(shared: &Shared, ledger: &Ledger) -> Result<(), InstanceError> {
    while shared.health.is_running() {
        shared.checkpoint_bell.wait(EVERY);
        shared.health.check()?;
        advance(shared, ledger)?;
    }
    Ok(())
}

/// Advances the checkpoint as far as blocks have been written. The order matters: first the
/// position is taken, then every write that returned before is made durable, then the control file
/// records the position, and only then may the redo before it be overwritten.
pub(crate) fn advance(shared: &Shared, ledger: &Ledger) -> Result<(), InstanceError> {
    let (lsn, mark) = shared.log.checkpoint_candidate(&shared.cache);
    let state = shared.control.state();
    if (lsn, mark) == (state.checkpoint, state.mark) {
        return Ok(());
    }
    if planted(Planted::ControlBeforeSync) {
        shared.control.write(|state| (state.checkpoint, state.mark) = (lsn, mark))?;
    }
    if !planted(Planted::CheckpointWithoutSync) {
        shared.files.data.sync()?;
    }
    let late = planted(Planted::CheckpointPositionLate);
    let (lsn, mark) =
        if late { shared.log.checkpoint_candidate(&shared.cache) } else { (lsn, mark) };
    let write = || {
        shared.control.write(|state| {
            state.checkpoint = lsn;
            state.mark = mark;
        })
    };
    let (written, elapsed_ns) =
        ledger.timed(&shared.histograms, Event::ControlFileParallelWrite, write);
    written?;
    ledger.moved(Direction::Write, 1, HALF_BYTES as u64, elapsed_ns);
    ledger.add(Statistic::Checkpoints, 1);
    // Recovery reads from the mark on, which may be in the previous log.
    shared.log.checkpointed(if planted(Planted::MarkOverwritten) { lsn } else { mark.first });
    Ok(())
}
