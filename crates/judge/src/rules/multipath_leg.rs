//! A path to a disk that does not work.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "multipath-leg",
    weight: Weight::Warns,
    doc: "A disk with several paths of which some do not work or only one is left: throughput and \
          the limit of the link are those of fewer paths.",
    threshold: "Of a dm-multipath device (dm/uuid begins with mpath) or an NVMe disk with several \
                controllers, when the measurement began: device/state of a path is other than \
                running (SCSI) or live (NVMe), or there is a single path. Inconclusive without a \
                device beneath the path, and where a state was not recorded. What only the \
                multipath daemon knows (multipath -ll), such as a path that its checker has \
                failed, cannot be seen by it.",
    cause: "A cable, port, switch or controller failed, or a path was never configured.",
    next: "See multipath -ll, or nvme list-subsys; measure again with all paths.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

const WORKING: [&str; 2] = ["running", "live"];

fn check(manifest: &Manifest) -> Judgement {
    let devices = &manifest.target.devices;
    if devices.is_empty() {
        return Judgement::inconclusive("no block device is known beneath the path");
    }
    let mut found = Vec::new();
    let mut whole = Vec::new();
    for device in devices.iter().filter(|device| has_paths(device)) {
        let (name, count) = (&device.name, device.beneath.len());
        let mut broken = Vec::new();
        for path in &device.beneath {
            let known = devices.iter().find(|device| device.name == *path);
            let Some(state) = known.and_then(|path| path.state.as_deref()) else {
                return Judgement::inconclusive(format!(
                    "the state of {path}, a path to {name}, was not recorded"
                ));
            };
            if !WORKING.contains(&state) {
                broken.push(format!("{path} {state}"));
            }
        }
        if !broken.is_empty() {
            let (out, broken) = (broken.len(), broken.join(", "));
            found.push(format!("{out} of {count} paths to {name} do not work: {broken}"));
        } else if count == 1 {
            found.push(format!("{name} has 1 path: {}", device.beneath[0]));
        }
        whole.push(format!("{count} paths to {name} work"));
    }
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), Vec::new());
    }
    if whole.is_empty() {
        return Judgement::pass("no disk with several paths is beneath the path");
    }
    Judgement::pass(whole.join(", "))
}

fn has_paths(device: &BlockDevice) -> bool {
    match device.kind {
        DeviceKind::DeviceMapper => {
            device.model.as_deref().is_some_and(|model| model.starts_with("mpath "))
        }
        // The devices below a disk are always the paths of native NVMe multipath.
        DeviceKind::Disk => !device.beneath.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};

    use super::*;
    use crate::testing::{Fixture, device};

    fn judged(top: &str, kind: DeviceKind, paths: &[(&str, Option<&str>)]) -> Verdict {
        let mut fixture = Fixture::healthy();
        let mut upper = device(top, kind);
        upper.model = Some("mpath data".into());
        upper.beneath = paths.iter().map(|&(name, _)| name.to_owned()).collect();
        fixture.manifest.target.devices = vec![upper];
        for (name, state) in paths {
            let mut leg = device(name, DeviceKind::Disk);
            leg.state = state.map(str::to_owned);
            fixture.manifest.target.devices.push(leg);
        }
        fixture.verdict("multipath-leg")
    }

    #[test]
    fn a_dead_leg_is_named() {
        let mapped = DeviceKind::DeviceMapper;
        let verdict = judged("dm-0", mapped, &[("sda", Some("running")), ("sdb", Some("offline"))]);
        assert!(verdict.warns() && !verdict.concerns.is_empty());
        assert_eq!(verdict.evidence, "1 of 2 paths to dm-0 do not work: sdb offline");
        assert!(judged("dm-0", mapped, &[("sda", Some("running"))]).warns());
        let legs = [("nvme0c0n1", Some("live")), ("nvme0c1n1", Some("connecting"))];
        let verdict = judged("nvme0n1", DeviceKind::Disk, &legs);
        assert!(verdict.evidence.contains("nvme0c1n1 connecting"), "{}", verdict.evidence);
    }

    #[test]
    fn working_paths_and_other_mapped_devices_pass_and_an_unknown_state_is_open() {
        let both = [("sda", Some("running")), ("sdb", Some("running"))];
        assert_eq!(judged("dm-0", DeviceKind::DeviceMapper, &both).outcome, Outcome::Pass);
        let old = [("sda", Some("running")), ("sdb", None)];
        assert_eq!(judged("dm-0", DeviceKind::DeviceMapper, &old).outcome, Outcome::Inconclusive);
        let mut fixture = Fixture::healthy();
        let mut volume = device("dm-1", DeviceKind::DeviceMapper);
        (volume.model, volume.beneath) = (Some("LVM vg-data".into()), vec!["vda".into()]);
        fixture.manifest.target.devices.insert(0, volume);
        assert_eq!(fixture.verdict("multipath-leg").outcome, Outcome::Pass);
    }
}
