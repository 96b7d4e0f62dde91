//! A Linux RAID that lacks a disk, or is copying one.

use blockstone_base::identity::DeviceKind;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "raid-degraded",
    weight: Weight::Warns,
    doc: "A software RAID beneath the path that lacks a disk, or that rebuilds, checks or reshapes \
          itself beside the load.",
    threshold: "Of any md device of the chain, when the measurement began: md/degraded above 0, or \
                md/sync_action other than idle or frozen (/sys/class/block/mdN/md). Inconclusive \
                without a device beneath the path, and where this was not recorded. A RAID of a \
                controller, of LVM (dm-raid), ZFS or btrfs cannot be seen by it.",
    cause: "A disk failed or was removed, or a rebuild or the periodic check is running.",
    next: "See /proc/mdstat; measure again once it is complete and idle, or keep the numbers as \
           those of this state.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

fn check(manifest: &Manifest) -> Judgement {
    let devices = &manifest.target.devices;
    if devices.is_empty() {
        return Judgement::inconclusive("no block device is known beneath the path");
    }
    let raids: Vec<_> = devices.iter().filter(|device| device.kind == DeviceKind::Raid).collect();
    let mut found = Vec::new();
    let mut complete = Vec::new();
    for device in raids {
        let name = &device.name;
        let Some(raid) = &device.raid else {
            return Judgement::inconclusive(format!("the state of {name} was not recorded"));
        };
        let missing = raid.disks_missing.unwrap_or(0);
        let action = raid.sync_action.as_deref().unwrap_or("idle");
        if missing > 0 {
            found.push(format!("{name} lacks {missing} of {} disks", raid.disks));
        }
        if !["idle", "frozen"].contains(&action) {
            found.push(format!("{name} of {} disks is busy with: {action}", raid.disks));
        }
        complete.push(format!("{name} has all of its {} disks", raid.disks));
    }
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), Vec::new());
    }
    if complete.is_empty() {
        return Judgement::pass("no md device is beneath the path");
    }
    Judgement::pass(complete.join(", "))
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::RaidState;
    use blockstone_base::verdict::{Outcome, Verdict};

    use super::*;
    use crate::testing::{Fixture, device};

    fn judged(raid: Option<RaidState>) -> Verdict {
        let mut fixture = Fixture::healthy();
        let mut md = device("md0", DeviceKind::Raid);
        md.raid = raid;
        fixture.manifest.target.devices.insert(0, md);
        fixture.verdict("raid-degraded")
    }

    fn state(disks_missing: Option<u64>, action: Option<&str>) -> RaidState {
        let sync_action = action.map(str::to_owned);
        RaidState { disks: 4, disks_missing, sync_action }
    }

    #[test]
    fn a_missing_disk_and_a_rebuild_are_warned_about() {
        let verdict = judged(Some(state(Some(1), Some("recover"))));
        assert!(verdict.warns() && !verdict.concerns.is_empty());
        let expected = "md0 lacks 1 of 4 disks; md0 of 4 disks is busy with: recover";
        assert_eq!(verdict.evidence, expected);
        for action in ["check", "resync", "reshape", "repair"] {
            assert!(judged(Some(state(Some(0), Some(action)))).warns(), "{action}");
        }
    }

    #[test]
    fn a_complete_raid_passes_and_an_old_recording_is_open() {
        assert_eq!(judged(Some(state(Some(0), Some("idle")))).outcome, Outcome::Pass);
        assert_eq!(judged(Some(state(Some(0), Some("frozen")))).outcome, Outcome::Pass);
        // Level 0 cannot lack a disk and has nothing to rebuild.
        assert_eq!(judged(Some(state(None, None))).outcome, Outcome::Pass);
        assert_eq!(judged(None).outcome, Outcome::Inconclusive);
    }
}
