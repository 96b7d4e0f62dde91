//! Bugs planted in the instance are found. They are planted in the whole process, so these tests
//! are a separate program.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::sync::Mutex;

use blockstone_instance::testing::{
    Case, Effort, Failure, Planted, Setting, campaign, hunt, plant, shrink,
};

/// Held by each test: only one bug may be planted at a time.
static PLANTED: Mutex<()> = Mutex::new(());

/// Bugs that show up quickly; `cargo xtask lab durability --mutations` looks for all.
const QUICK: [Planted; 6] = [
    Planted::CheckpointWithoutSync,
    Planted::ControlBeforeSync,
    Planted::CommitAtOnce,
    Planted::RedoVolatile,
    Planted::RedoOverwritten,
    Planted::ImagesOmitted,
];

#[test]
fn planted_bugs_are_found() {
    let _one = PLANTED.lock().unwrap();
    for bug in QUICK {
        let found = hunt(bug, 60, Effort::SHORT, 2);
        assert!(found.is_some(), "{} was not found", bug.name());
    }
}

#[test]
fn a_bad_end_is_made_smaller_kept_and_replayed() {
    let _one = PLANTED.lock().unwrap();
    plant(Some(Planted::CheckpointWithoutSync));
    let (_, failures) = campaign(Setting::ALL[0], 0..4, Effort::SHORT, 2);
    let Failure { case, violation, .. } = failures.first().unwrap();
    let (small, violation) = shrink(case, violation);
    assert!(small.history.events.len() <= case.cut.cut);
    assert!(small.cut.lost.len() <= case.cut.lost.len().max(1));
    let text = small.to_text();
    let read = Case::from_text(&text).unwrap();
    assert_eq!(read.to_text(), text);
    assert_eq!(read.run().unwrap_err(), violation);
    let story = small.story(&violation);
    assert!(story.contains("full-page/1: the power goes") && story.contains("oracle"), "{story}");
    plant(None);
}
