//! A file that a cache below it may hold completely.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::Bytes;
use blockstone_base::verdict::Weight;

use super::{CalibrationRule, Case, beyond_sight, labels};

const ABOUT: About = About {
    id: "file-may-fit-cache",
    weight: Weight::Warns,
    doc: "A file that is not larger than a cache that may lie beneath it: of the disk, the \
          controller, the array or the hypervisor's host. If all of it is cached, no step shows \
          between a small working set and the whole file.",
    threshold: "Warns if the largest span that was read is at most 256 MiB, which a single disk \
                may cache. Otherwise inconclusive below 256 GiB where a hypervisor, a controller \
                or an array may lie beneath, and below 4 GiB where every disk is attached \
                directly, by PCI Express or SATA. These sizes are assumptions, not measurements: \
                larger caches exist.",
    cause: "The file is small: the default, or a --size chosen for a short run.",
    next: "Measure a file larger than the cache: several times its size, if it is known (--size).",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

/// Largest cache of a single disk.
const DISK_BYTES: u64 = 256 << 20;
/// Largest sizes at which the layers below may hold the whole file; see the rule's threshold.
const ATTACHED_BYTES: u64 = 4 << 30;
const BEYOND_SIGHT_BYTES: u64 = 256 << 30;

fn check(case: &Case) -> Judgement {
    let reads: Vec<_> = case.reads().collect();
    let Some(span) = reads.iter().map(|point| point.load.span_bytes).max() else {
        return Judgement::inconclusive("no reads were measured");
    };
    let read = Bytes(span);
    if span <= DISK_BYTES {
        let evidence = format!("{read} were read; a single disk may cache {}", Bytes(DISK_BYTES));
        return Judgement::fail(evidence, labels(reads));
    }
    let (most, why) = match beyond_sight(case.manifest) {
        Some(why) => (BEYOND_SIGHT_BYTES, why),
        None => (ATTACHED_BYTES, "every disk is attached directly".to_owned()),
    };
    let evidence = format!("{read} were read; {why}, where up to {} may be cached", Bytes(most));
    if span < most { Judgement::inconclusive(evidence) } else { Judgement::pass(evidence) }
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::Fixture;

    fn judged(span: u64, hypervisor: Option<&str>) -> Verdict {
        let mut fixture = Fixture::healthy();
        for load in fixture.manifest.phases.iter_mut().filter_map(|phase| phase.load.as_mut()) {
            load.span_bytes = span;
        }
        fixture.manifest.host.hypervisor = hypervisor.map(str::to_owned);
        fixture.verdict("file-may-fit-cache")
    }

    #[test]
    fn what_is_large_enough_depends_on_what_may_lie_beneath() {
        assert_eq!(judged(4 << 30, None).outcome, Outcome::Pass);
        assert_eq!(judged(2 << 30, None).outcome, Outcome::Inconclusive);
        let verdict = judged(128 << 20, None);
        assert!(verdict.warns() && verdict.evidence.contains("128 MiB"), "{}", verdict.evidence);
        assert_eq!(judged(128 << 30, Some("KVM")).outcome, Outcome::Inconclusive);
        assert_eq!(judged(256 << 30, Some("KVM")).outcome, Outcome::Pass);
    }

    #[test]
    fn reads_alone_are_concerned() {
        let concerns = judged(64 << 20, None).concerns;
        assert!(concerns.iter().any(|name| name == "max_iops"), "{concerns:?}");
        assert!(!concerns.iter().any(|name| name.contains("write")), "{concerns:?}");
    }
}
