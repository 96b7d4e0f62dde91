//! Bugs that are planted on purpose, to show that the tests would find them. Without the feature
//! `testing` there are none, and the code is compiled as if they did not exist.

use blockstone_base::named;

named! {
    /// A bug, named after its effect.
    Planted {
        CheckpointWithoutSync = "the checkpoint advances without a flush of the data",
        CheckpointPositionLate = "the checkpoint's position is taken after the flush",
        ControlBeforeSync = "the control file is written before the data are flushed",
        CommitAtOnce = "a commit does not wait for its redo",
        RedoVolatile = "redo is written without being made durable",
        WriteAheadIgnored = "blocks are written before their redo",
        RedoOverwritten = "a redo log is written over before the checkpoint has passed it",
        MarkOverwritten = "a redo log is written over that recovery begins to read in",
        ImagesOmitted = "full pages are not written after a checkpoint",
        CopiesNotSynced = "the double-write area is not flushed before blocks are written in place",
        PlacesNotSynced = "the double-write area is used again before blocks are durable in place",
        TornNotRestored = "torn blocks are not restored from the double-write area",
        WholeNotRewritten = "blocks whose flush may have failed are not written again by recovery",
        RestoredThroughArea = "torn blocks are restored through the double-write area",
        StaleCopiesAccepted = "copies in the double-write area count however old they are",
        ScnIgnored = "replay applies changes to blocks that have seen them",
        MiddleDropped = "a heavy change leaves the middle columns as they were",
        ChangedBlocksOnly = "replay writes only the blocks that it changed",
        RecoveryNotSynced = "recovery moves the checkpoint before its blocks are durable",
        DamageIsEnd = "damaged redo counts as its end, whatever follows",
        ControlOneHalf = "the control file is written to one half only",
        SyncReturnsEarly = "a flush that is under way is not waited for",
        FlushRetried = "a flush that failed is tried again and believed",
        MissUntold = "a write that a mirror did not take is not recorded",
        StaleForgotten = "what a disk that leaves may have lost is forgotten",
        ResyncUnverified = "blocks are copied to a returning disk without being verified",
    }
}

#[cfg(any(test, feature = "testing"))]
static ACTIVE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Plants one bug in the whole process, or removes it.
#[cfg(any(test, feature = "testing"))]
pub fn plant(bug: Option<Planted>) {
    let number = bug.map_or(0, |bug| bug as usize + 1);
    ACTIVE.store(number, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(any(test, feature = "testing"))]
#[inline]
pub(crate) fn planted(bug: Planted) -> bool {
    ACTIVE.load(std::sync::atomic::Ordering::Relaxed) == bug as usize + 1
}

#[cfg(not(any(test, feature = "testing")))]
#[inline]
pub(crate) const fn planted(_: Planted) -> bool {
    false
}
