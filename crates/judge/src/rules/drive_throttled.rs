//! An `NVMe` drive that slowed itself down: to cool, or to save power.

use std::collections::BTreeMap;

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::counted;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{DriveReading, Manifest};

use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "drive-throttled",
    weight: Weight::Warns,
    doc: "An NVMe drive that slowed itself down: because it was hot, or because it was set to a \
          power state below its highest. The rates are those of this state.",
    threshold: "Of any NVMe controller beneath the path, read at the start and at the end of the \
                recording (log page 02h, feature 02h; NVM Express Base Specification 2.0): bit 1 \
                of the critical warning, its temperature; transitions to or time in host \
                controlled thermal management, or minutes above the warning or critical \
                temperature, that grew in between; or a power state other than 0 that serves \
                I/O. States that the drive takes by itself while idle do not count. \
                Inconclusive where no controller of an NVMe disk could be asked at both ends, \
                which takes root. Disks of SCSI, SATA and hypervisors do not show their heat \
                this way.",
    cause: "Too little air at the drive, a host or enclosure that limits its power, or a thermal \
            limit that was set low.",
    next: "See nvme smart-log and nvme get-feature -f 2; cool the drive or raise its power state, \
           and measure again for long enough to reach its steady temperature.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

fn check(manifest: &Manifest) -> Judgement {
    let is_nvme = |name: &str| name.starts_with("nvme");
    let Some(disk) = manifest.target.devices.iter().find(|device| is_nvme(&device.name)) else {
        return Judgement::pass("no NVMe drive is beneath the path");
    };
    let mut drives: BTreeMap<&str, Vec<&DriveReading>> = BTreeMap::new();
    for reading in &manifest.drives {
        drives.entry(&reading.controller).or_default().push(reading);
    }
    let (mut found, mut fine) = (Vec::new(), Vec::new());
    for (name, readings) in drives {
        let [first, .., last] = readings[..] else { continue };
        let signs = signs(first, last);
        let judged = if signs.is_empty() { &mut fine } else { &mut found };
        judged.push(format!("{name}: {}", state(last, &signs)));
    }
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), Vec::new());
    }
    if fine.is_empty() {
        let name = &disk.name;
        return Judgement::inconclusive(format!("the controller of {name} did not answer"));
    }
    Judgement::pass(fine.join("; "))
}

/// Returns what shows that the drive slowed itself down between two readings.
fn signs(first: &DriveReading, last: &DriveReading) -> Vec<String> {
    let mut signs = Vec::new();
    if first.is_hot || last.is_hot {
        signs.push("it warns of its temperature".to_owned());
    }
    let sum = |of: &[u32; 2]| u64::from(of[0]) + u64::from(of[1]);
    let grown = |of: fn(&DriveReading) -> [u32; 2]| sum(&of(last)).saturating_sub(sum(&of(first)));
    let (times, seconds) = (grown(|it| it.throttled), grown(|it| it.throttled_s));
    if times + seconds > 0 {
        let times = counted(times, "time");
        signs.push(format!("it slowed itself down to cool {times}, for {seconds} s"));
    }
    let minutes = grown(|it| [it.warm_minutes, it.critical_minutes]);
    if minutes > 0 {
        let minutes = counted(minutes, "minute");
        signs.push(format!("{minutes} above the temperature that it warns of"));
    }
    if [first, last].iter().any(|it| it.power_state.is_some_and(|state| state > 0)) {
        signs.push("its power is limited".to_owned());
    }
    signs
}

fn state(reading: &DriveReading, signs: &[String]) -> String {
    let mut parts = signs.to_vec();
    if let Some(kelvin) = reading.temperature_kelvin {
        parts.push(format!("{} °C at the end", i32::from(kelvin) - 273));
    }
    if let Some(number) = reading.power_state {
        let most = reading.power_mw_max.map(|mw| format!(" ({} W)", mw as f64 / 1e3));
        parts.push(format!("power state {number}{}", most.unwrap_or_default()));
    }
    if signs.is_empty() {
        parts.push("no thermal management".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};

    use super::*;
    use crate::testing::Fixture;

    fn judged(change: impl Fn(&mut DriveReading)) -> Verdict {
        let first = DriveReading {
            t_ns: 0,
            controller: "nvme0".to_owned(),
            temperature_kelvin: Some(311),
            is_hot: false,
            warm_minutes: 7,
            critical_minutes: 1,
            throttled: [3, 1],
            throttled_s: [90, 5],
            power_state: Some(0),
            power_mw_max: Some(25_000),
        };
        let mut last = DriveReading { t_ns: 1 << 34, ..first.clone() };
        change(&mut last);
        let mut fixture = Fixture::healthy();
        fixture.top_device().name = "nvme0n1".to_owned();
        fixture.manifest.drives = vec![first, last];
        fixture.verdict("drive-throttled")
    }

    #[test]
    fn heat_and_a_limit_of_power_are_warned_of() {
        let hot = judged(|last| last.is_hot = true);
        assert!(hot.warns() && !hot.concerns.is_empty(), "{}", hot.evidence);
        let slowed = judged(|last| (last.throttled, last.throttled_s) = ([5, 1], [100, 5]));
        let expected = "nvme0: it slowed itself down to cool 2 times, for 10 s, 38 °C at the end, \
                        power state 0 (25 W)";
        assert_eq!(slowed.evidence, expected);
        assert!(judged(|last| last.warm_minutes = 8).warns());
        assert!(judged(|last| last.critical_minutes = 2).warns());
        assert!(judged(|last| last.power_state = Some(2)).warns());
    }

    #[test]
    fn what_happened_before_the_recording_and_idle_states_do_not_count() {
        assert_eq!(judged(|_| {}).outcome, Outcome::Pass);
        let idle = judged(|last| last.power_state = None);
        assert_eq!(idle.outcome, Outcome::Pass, "{}", idle.evidence);
        // A counter that went back, as after a change of drives, has not grown.
        assert_eq!(judged(|last| last.throttled = [0, 0]).outcome, Outcome::Pass);
    }
}
