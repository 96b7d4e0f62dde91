//! Lives on hostile disks, cut at many points: no acknowledged commit is lost, and no row contains
//! a change that was not requested. `cargo xtask lab durability` does this with thousands of seeds.

use std::path::PathBuf;

use blockstone_instance::group::DiskGroup;
use blockstone_instance::testing::{
    Case, Effort, Event, Failure, Faults, Image, Machine, Row, Setting, campaign, shrink,
};
use blockstone_instance::{Instance, InstanceError, RedoStress, TornProtection};

/// Seeds for each setting; a different start with `BLOCKSTONE_FIRST_SEED`, more with
/// `BLOCKSTONE_SEEDS`.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("BLOCKSTONE_FIRST_SEED").unwrap_or(0);
    first..first + number("BLOCKSTONE_SEEDS").unwrap_or(5)
}

fn nothing_is_lost(copies: usize, protection: TornProtection) {
    let setting = Setting { copies, protection };
    let (tally, failures) = campaign(setting, seeds(), Effort::SHORT, 1);
    if let Some(failure) = failures.first() {
        panic!("{}", told(failure));
    }
    assert!(tally.acknowledged > 0 && tally.replayed > 0 && tally.recovery_cuts > 0, "{tally:?}");
    let torn = protection == TornProtection::None && copies == 1;
    assert!(!torn || tally.damaged > 0, "no write was ever torn, so this tells nothing");
}

/// Shrinks a failure and saves it in a file.
fn told(failure: &Failure) -> String {
    let (case, violation) = shrink(&failure.case, &failure.violation);
    let name = format!("blockstone-{}-{}.case", std::process::id(), failure.seed);
    let path: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&path, case.to_text()).unwrap();
    format!(
        "seed {}: {}replay: BLOCKSTONE_CASE={} cargo test -p blockstone-instance --test instance \
         replay",
        failure.seed,
        case.story(&violation),
        path.display()
    )
}

#[test]
fn with_full_pages_nothing_is_lost() {
    nothing_is_lost(1, TornProtection::FullPage);
}

#[test]
fn with_double_writes_nothing_is_lost() {
    nothing_is_lost(1, TornProtection::DoubleWrite);
}

#[test]
fn without_protection_only_torn_blocks_are_lost_and_named() {
    nothing_is_lost(1, TornProtection::None);
}

#[test]
fn with_full_pages_on_three_mirrors_nothing_is_lost() {
    nothing_is_lost(3, TornProtection::FullPage);
}

#[test]
fn with_double_writes_on_three_mirrors_nothing_is_lost() {
    nothing_is_lost(3, TornProtection::DoubleWrite);
}

#[test]
fn without_protection_on_three_mirrors_only_torn_blocks_are_lost_and_named() {
    nothing_is_lost(3, TornProtection::None);
}

/// Judges the case in the file named by `BLOCKSTONE_CASE`.
#[test]
fn replay() {
    let Some(path) = std::env::var_os("BLOCKSTONE_CASE") else {
        let error = Case::from_text("blockstone-case 1\nnonsense 3").unwrap_err();
        assert_eq!(error, "read case: line 2 is not understood");
        return;
    };
    let case = Case::from_text(&std::fs::read_to_string(path).unwrap()).unwrap();
    if let Err(violation) = case.run() {
        panic!("{}", case.story(&violation));
    }
}

#[test]
fn a_write_that_fails_leaves_a_part_of_itself_and_a_sync_that_fails_drops_what_it_covered() {
    let (mut parts, mut gone) = (0, 0);
    for seed in 0..40 {
        let machine = Machine::new(1, 1 << 20, seed);
        let disk = &machine.disks()[0];
        disk.write_at(0, &[1; 8192]).unwrap();
        disk.sync().unwrap();
        machine.set_faults(Faults { change_fails_at: Some(1), ..Faults::default() });
        disk.write_at(0, &[2; 8192]).unwrap_err();
        let mut found = [0; 8192];
        disk.read_at(0, &mut found).unwrap();
        let old = found.chunks(512).filter(|sector| **sector == [1; 512]).count();
        let new = found.chunks(512).filter(|sector| **sector == [2; 512]).count();
        parts += u32::from(old > 0 && new > 0 && old + new < 16);

        disk.write_at(8192, &[3; 512]).unwrap();
        machine.set_faults(Faults { sync_fails_at: Some(1), ..Faults::default() });
        disk.sync().unwrap_err();
        disk.read_at(8192, &mut found[..512]).unwrap();
        assert_eq!(found[..512], [3; 512], "the page cache still shows it");
        disk.sync().unwrap();
        machine.lose_power();
        disk.read_at(8192, &mut found[..512]).unwrap();
        gone += u32::from(found[..512] != [3; 512]);
    }
    assert!(parts > 20 && gone > 10, "{parts} in parts, {gone} gone");
}

/// A failed flush left blocks whole in the cache of a machine that did not lose power, and torn on
/// its disk; the next recovery then used the double-write area for its own blocks.
#[test]
fn a_recovery_after_a_failed_flush_keeps_the_copies_until_the_blocks_are_durable() {
    let setting = Setting { copies: 1, protection: TornProtection::DoubleWrite };
    let open = |machine: &Machine| -> Result<Instance, InstanceError> {
        Instance::open(&DiskGroup::open_on(machine.disks())?, &setting.open_spec())
    };
    let mut failed = 0;
    for seed in 0..160 {
        let machine = Machine::with(setting.ground().disks, seed, false);
        let instance = open(&machine).unwrap();
        let mut session = instance.session(0).unwrap();
        session.update(0, 0, 40, RedoStress::Lite).unwrap();
        session.commit().unwrap();
        machine.set_faults(Faults { sync_fails_at: Some(1 + seed % 4), ..Faults::default() });
        failed += u32::from(instance.checkpoint().is_err());
        drop(session);
        instance.crash();
        let at = 1 + seed / 4 * 7 % 140;
        machine.set_faults(Faults { power_goes_at_change: Some(at), ..Faults::default() });
        if let Ok(instance) = open(&machine) {
            instance.crash();
        }
        machine.lose_power();
        let recovered = setting.recover(machine.images()).unwrap();
        for (key, row) in recovered.rows.iter().enumerate() {
            let version = u64::from(key < 40);
            let whole = matches!(row, Row::Whole { state, .. } if state.version == version);
            assert!(whole, "seed {seed}, row {key}: {row:?}");
        }
    }
    assert!(failed > 20, "{failed} checkpoints failed");
}

/// The last chunk of redo had reached only one mirror when power was lost. A recovery that is cut
/// must not leave blocks that depend on it on disks that do not have it.
#[test]
fn a_recovery_puts_the_last_redo_on_every_mirror_before_it_writes_blocks() {
    let setting = Setting { copies: 3, protection: TornProtection::FullPage };
    let machine = Machine::with(setting.ground().disks, 1, false);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    let instance = Instance::open(&group, &setting.open_spec()).unwrap();
    machine.take_history();
    let mut session = instance.session(0).unwrap();
    // Few enough for one chunk: the log writer waits for the commit while less than half the log
    // buffer is full.
    session.update(0, 0, 3, RedoStress::Lite).unwrap();
    session.commit().unwrap();
    drop(session);
    instance.crash();
    drop(group);
    let redo = machine.take_history().events.into_iter().filter_map(|event| match event {
        Event::Write(write) if write.by == "lgwr" => Some(write),
        _ => None,
    });
    let redo: Vec<_> = redo.collect();
    let last = redo.iter().map(|write| write.offset).max().unwrap();
    for write in redo.iter().filter(|write| write.offset == last && write.disk < 2) {
        let zeros = vec![0; write.data.len()];
        machine.alter(usize::from(write.disk), |disk| disk.write(write.offset, &zeros));
    }
    let left = machine.images();
    let versions = |disks: &[Image]| -> Vec<u64> {
        let recovered = setting.recover(disks.to_vec()).unwrap();
        let version = |row: &Row| match row {
            Row::Whole { state, .. } => state.version,
            other => panic!("{other:?}"),
        };
        recovered.rows.iter().map(version).collect()
    };
    let (without, with) = (versions(&left[..2]), versions(&left));
    let mut kept = 0;
    for at in 1..160 {
        let machine = Machine::with(left.clone(), at, false);
        machine.set_faults(Faults { power_goes_at_change: Some(at), ..Faults::default() });
        let opened = DiskGroup::open_on(machine.disks()).map_err(InstanceError::from);
        drop(opened.and_then(|group| Instance::open(&group, &setting.open_spec())));
        machine.lose_power();
        let found = versions(&machine.images()[..2]);
        assert!(found == without || found == with, "cut at change {at}: {found:?}");
        kept += u32::from(found == with);
    }
    assert!((1..159).contains(&kept), "early cuts lose the redo, late ones do not: {kept}");
}
