//! Throughput that the link to the device cannot carry.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::CalibrateParameters;

use super::{CalibrationRule, Case, RunCase, RunRule, labels, read_figures, virtualised};
use crate::findings::Point;

pub const ABOUT: About = About {
    id: "above-link",
    weight: Weight::Condemns,
    doc: "More bytes per second than the link to the device can carry: a cache on the host side \
          of the link answered.",
    threshold: "The lower end of a point's interval, including the background load, is more than 2 \
                % above the payload rate of the link: the rate given by --link-mbps, otherwise the \
                sum over the disks at the bottom of the chain, as known to the kernel. The 2 % \
                allow for rounding of published rates. In a run: the bytes read or written a \
                second, whichever is more. In a claim: the rate and the links that are stated.",
    cause: "A cache on this side of the link answered, or the link is faster than stated.",
    next: "Check the speed of the link (lspci -vv, ethtool) and where the data come from; measure \
           a file larger than every cache to be sure.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Rounding of published link rates.
pub const TOLERANCE_RATIO: f64 = 0.02;

const UNKNOWN: &str = "the speed of the link is unknown; set it with --link-mbps";

fn unknown(manifest: &Manifest) -> Judgement {
    let between = virtualised(manifest).map(|it| format!("; {it}")).unwrap_or_default();
    Judgement::inconclusive(format!("{UNKNOWN}{between}"))
}

fn check(case: &Case) -> Judgement {
    let stated = case.manifest.parameters::<CalibrateParameters>().link_bytes_per_s;
    let Some((bytes_per_s, description)) = link(stated, case.devices()) else {
        return unknown(case.manifest);
    };
    let limit = bytes_per_s / 1e6;
    let low = |point: &Point| {
        point.mb_per_s.low + point.background.as_ref().map_or(0.0, |(_, mb_per_s)| mb_per_s.low)
    };
    let Some(most) = case.storage_points().max_by(|a, b| low(a).total_cmp(&low(b))) else {
        return Judgement::inconclusive("no throughput was measured");
    };
    let evidence = text(&most.label, low(most), &description, limit);
    let above = |point: &&Point| low(point) > limit * (1.0 + TOLERANCE_RATIO);
    let found = labels(case.storage_points().filter(above));
    Judgement::decide(!found.is_empty(), evidence, found)
}

fn check_run(case: &RunCase) -> Judgement {
    let stated = case.window.parameters().link_bytes_per_s;
    let Some((bytes_per_s, description)) = link(stated, &case.manifest.target.devices) else {
        return unknown(case.manifest);
    };
    let limit = bytes_per_s / 1e6;
    // A link carries both directions at the same time.
    let low = |name: &'static str| Some((case.findings.figure(name)?.estimate.low, name));
    let rates: Vec<_> = ["read_mbps", "write_mbps"].into_iter().filter_map(low).collect();
    let Some(most) = rates.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Judgement::inconclusive("no throughput was measured");
    };
    let above = |direction: &str| {
        let name = format!("{direction}_mbps");
        rates.iter().any(|rate| rate.0 > limit * (1.0 + TOLERANCE_RATIO) && rate.1 == name)
    };
    let mut found = if above("read") { read_figures() } else { Vec::new() };
    if above("write") {
        found.extend(["write_iops", "hardware_write_iops", "write_mbps"].map(str::to_owned));
    }
    let evidence = text(most.1, most.0, &description, limit);
    Judgement::decide(!found.is_empty(), evidence, found)
}

fn text(what: &str, low: f64, link: &str, limit: f64) -> String {
    format!("{what}: at least {low:.0} MB/s; {link} carries {limit:.0} MB/s")
}

/// Returns the payload bytes a second of the whole path, and a description of the path.
fn link(stated: Option<f64>, devices: &[BlockDevice]) -> Option<(f64, String)> {
    if let Some(bytes_per_s) = stated {
        return Some((bytes_per_s, "--link-mbps".to_owned()));
    }
    // Legs of a RAID or of several paths carry data in parallel; one unknown leg leaves the sum
    // unknown.
    let disks = devices.iter().filter(|device| device.kind == DeviceKind::Disk);
    let links: Vec<_> = disks.map(|disk| disk.link.as_ref()).collect::<Option<_>>()?;
    let description =
        links.iter().map(|link| link.description.as_str()).collect::<Vec<_>>().join(" + ");
    (!links.is_empty()).then(|| (links.iter().map(|link| link.bytes_per_s).sum(), description))
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::{DeviceKind, Link};
    use blockstone_base::verdict::Outcome;

    use crate::testing::{Fixture, device};

    /// A RAID over disks on links of these payload rates; the fixture reads at least 1,700 MB/s.
    fn raid_over(links: &[Option<f64>]) -> Outcome {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices = vec![device("md0", DeviceKind::Raid)];
        for (index, rate) in links.iter().enumerate() {
            let mut disk = device(&format!("sd{index}"), DeviceKind::Disk);
            disk.link = rate.map(|bytes_per_s| Link {
                description: "SATA 6.0 Gb/s".into(),
                bytes_per_s,
                bytes_per_s_max: None,
                description_max: None,
                source: "/sys".into(),
            });
            fixture.manifest.target.devices.push(disk);
        }
        fixture.verdict("above-link").outcome
    }

    #[test]
    fn legs_carry_side_by_side_and_an_unknown_one_leaves_it_open() {
        assert_eq!(raid_over(&[Some(600e6)]), Outcome::Fail);
        assert_eq!(raid_over(&[Some(600e6); 4]), Outcome::Pass);
        assert_eq!(raid_over(&[Some(600e6), None]), Outcome::Inconclusive);
        assert_eq!(raid_over(&[]), Outcome::Inconclusive);
    }
}
