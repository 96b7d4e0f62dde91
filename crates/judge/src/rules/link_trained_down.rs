//! A link that negotiated less than both of its ends support.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule, percent, virtualised};

const ABOUT: About = About {
    id: "link-trained-down",
    weight: Weight::Warns,
    doc: "A PCI Express link to a disk or its controller that runs at fewer lanes or a lower speed \
          than both of its ends support.",
    threshold: "current_link_speed × current_link_width, as payload, is below the lesser of \
                max_link_speed × max_link_width of the device and of the port above it \
                (/sys/devices), on the slowest link of each disk. Inconclusive where a disk has no \
                such link that the kernel knows: virtual disks, SATA and Fibre Channel, and older \
                recordings.",
    cause: "A card that sits badly, a riser, cable or slot with fewer lanes, a firmware setting, \
            or errors on the link.",
    next: "See LnkCap and LnkSta of lspci -vv, and the kernel log for AER errors; reseat the \
           device or use another slot.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

/// Payload rates are computed from the same numbers, so any larger difference is not rounding.
const ROUNDING: f64 = 1e-6;

fn check(manifest: &Manifest) -> Judgement {
    let is_disk = |device: &&BlockDevice| device.kind == DeviceKind::Disk;
    let disks: Vec<_> = manifest.target.devices.iter().filter(is_disk).collect();
    let mut found = Vec::new();
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for disk in disks {
        let name = &disk.name;
        let link = disk.link.as_ref();
        let most = link.and_then(|link| Some((link, link.bytes_per_s_max?)));
        let Some((link, most)) = most else {
            unknown.push(name.as_str());
            continue;
        };
        let able = link.description_max.as_deref().unwrap_or("more");
        if link.bytes_per_s < most * (1.0 - ROUNDING) {
            found.push(format!(
                "{name}: {}, where both ends support {able} ({} of it; {})",
                link.description,
                percent(link.bytes_per_s / most),
                link.source
            ));
        }
        known.push(format!("{name}: {}", link.description));
    }
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), Vec::new());
    }
    if !unknown.is_empty() || known.is_empty() {
        return Judgement::inconclusive(match unknown.join(", ") {
            names if names.is_empty() => "no disk is known beneath the path".to_owned(),
            names => {
                let between = virtualised(manifest).map(|it| format!("; {it}")).unwrap_or_default();
                format!("what the link to {names} could carry is not known{between}")
            }
        });
    }
    Judgement::pass(format!("{}, as much as both ends support", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::Fixture;

    fn judged(bytes_per_s: f64, bytes_per_s_max: Option<f64>) -> Verdict {
        let mut fixture = Fixture::healthy();
        let link = fixture.top_device().link.as_mut().unwrap();
        (link.bytes_per_s, link.bytes_per_s_max) = (bytes_per_s, bytes_per_s_max);
        link.description_max = Some("PCIe 16.0 GT/s x4".into());
        fixture.verdict("link-trained-down")
    }

    #[test]
    fn fewer_lanes_than_both_ends_have_are_warned_about() {
        let verdict = judged(3.94e9, Some(7.88e9));
        assert!(verdict.warns() && !verdict.concerns.is_empty());
        assert!(verdict.evidence.contains("support PCIe 16.0 GT/s x4 (50 %"), "{verdict:?}");
    }

    #[test]
    fn a_full_link_passes_and_one_with_a_single_known_speed_is_open() {
        assert_eq!(judged(7.88e9, Some(7.88e9)).outcome, Outcome::Pass);
        assert_eq!(judged(600e6, None).outcome, Outcome::Inconclusive);
    }
}
