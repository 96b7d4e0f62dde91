//! More of each rotating disk than its mechanics allow.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;

use crate::verbs::claim::stated::{Claim, DISK_IOPS, DISK_MBPS, Pattern};

const ABOUT: About = About {
    id: "above-disk",
    weight: Weight::Warns,
    doc: "A claim says more of each rotating disk than its mechanics allow without help.",
    threshold: "In a claim that states how many rotating disks there are: each does more than one \
                random request a revolution, which is 250 a second at 15,000 rpm, the speed that \
                is assumed if none is stated; or it moves more than 300 MB/s. Inconclusive if the \
                number of disks or their kind is not stated.",
    cause: "A cache, long queues or short strokes helped, or there are more disks than stated.",
    next: "Ask how many disks took part, how full they were, and what the caches had answered.",
};

pub(super) const RULE: RuleOf<Claim> = RuleOf::new(&ABOUT, check);

/// The fastest disks that are sold.
const RPM_MAX: f64 = 15_000.0;
/// Media rate of the fastest disks with one actuator, on their outer tracks.
const MEGABYTES_MAX: f64 = 300.0;

fn check(claim: &Claim) -> Judgement {
    let Some(disks) = claim.disks.filter(|disks| disks.rotating) else {
        return Judgement::inconclusive("no number of rotating disks is stated");
    };
    let rpm = disks.rpm.unwrap_or(RPM_MAX);
    let is_sequential = claim.iops.iter().all(|iops| iops.of.pattern == Some(Pattern::Sequential));
    let iops = claim.stated_iops().filter(|_| !is_sequential);
    let iops = iops.map(|iops| iops.least() / disks.count);
    let megabytes = claim.bytes_per_s().map(|rate| rate / disks.count / 1e6);
    let revolutions = rpm / 60.0;
    let mut concerns = Vec::new();
    let mut seen = Vec::new();
    if let Some(iops) = iops {
        let [each, most, rpm] = [iops, revolutions, rpm].map(three_digits);
        seen.push(format!("{each} requests/s of each disk; {rpm} rpm are {most} revolutions/s"));
        concerns.extend((iops > revolutions).then(|| DISK_IOPS.to_owned()));
    }
    if let Some(megabytes) = megabytes {
        let each = three_digits(megabytes);
        seen.push(format!("{each} MB/s of each disk; the fastest move {MEGABYTES_MAX} MB/s"));
        concerns.extend((megabytes > MEGABYTES_MAX).then(|| DISK_MBPS.to_owned()));
    }
    if seen.is_empty() {
        return Judgement::inconclusive("no rate of random requests or bytes is stated");
    }
    Judgement::decide(!concerns.is_empty(), seen.join("; "), concerns)
}
