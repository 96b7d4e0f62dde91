//! Disks of shingled tracks, and other devices whose zones are written in sequence.

use blockstone_base::identity::DeviceKind;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "shingled",
    weight: Weight::Warns,
    doc: "A disk of zones that can only be written in sequence: of shingled tracks (SMR), or a \
          zoned SSD. Random writes go to a cache until it is full and have to be moved, or are \
          refused.",
    threshold: "Of any device of the chain, when the measurement began: queue/zoned other than \
                none (host-managed, host-aware), or the field ZONED of the disk's page B1h \
                (device/vpd_pgb1; SBC-4), which the kernel also makes for ATA disks, of word 69 \
                of their identity: drive-managed. Inconclusive where the zones of a disk are not \
                known. Some drive-managed disks do not admit to their zones, and a hypervisor or \
                an array does not show those of its disks.",
    cause: "The disk writes tracks that overlap: a block can be replaced only with all that \
            follow it in its zone.",
    next: "Do not keep a database on it; measure writes with --full, for longer than its cache \
           of tens of GB lasts.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

const NONE: &str = "none";

fn check(manifest: &Manifest) -> Judgement {
    let devices = &manifest.target.devices;
    if devices.is_empty() {
        return Judgement::inconclusive("no block device is known beneath the path");
    }
    let zoned = devices.iter().filter_map(|device| Some((device, device.zoned.as_deref()?)));
    let found: Vec<String> = zoned
        .filter(|(_, zones)| *zones != NONE)
        .map(|(device, zones)| format!("{} has zones, {zones}", device.name))
        .collect();
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), Vec::new());
    }
    let disks: Vec<_> = devices.iter().filter(|device| device.kind == DeviceKind::Disk).collect();
    if let Some(disk) = disks.iter().find(|disk| disk.zoned.is_none()) {
        return Judgement::inconclusive(format!("the zones of {} are not known", disk.name));
    }
    let turning: Vec<&str> = disks
        .iter()
        .filter(|disk| disk.rotational == Some(true))
        .map(|disk| disk.name.as_str())
        .collect();
    if turning.is_empty() {
        return Judgement::pass("no device beneath the path has zones");
    }
    Judgement::pass(format!("{} shows no zones", turning.join(", ")))
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Outcome;

    use crate::testing::Fixture;

    #[test]
    fn zones_are_warned_of_by_their_model_and_their_absence_passes() {
        for zones in ["host-managed", "host-aware", "drive-managed"] {
            let mut fixture = Fixture::healthy();
            fixture.top_device().zoned = Some(zones.to_owned());
            let verdict = fixture.verdict("shingled");
            assert!(verdict.warns() && !verdict.concerns.is_empty(), "{}", verdict.evidence);
            assert!(verdict.evidence.ends_with(zones), "{}", verdict.evidence);
        }
        let mut fixture = Fixture::healthy();
        fixture.top_device().rotational = Some(true);
        let verdict = fixture.verdict("shingled");
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
        fixture.top_device().zoned = None;
        assert_eq!(fixture.verdict("shingled").outcome, Outcome::Inconclusive);
    }
}
