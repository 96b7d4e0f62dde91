//! Blocks that did not contain what had been written.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;

use super::{CalibrationRule, Case, labels};

const ABOUT: About = About {
    id: "corrupt",
    weight: Weight::Condemns,
    doc: "A block that was read is not what was written to its address: its stamp or checksum \
          differs.",
    threshold: "A single block. A lost overwrite is not seen: it leaves an earlier block of the \
                same address, which is sound.",
    cause: "The storage lost or misplaced a write, or another process wrote to the file.",
    next: "Keep the file (--keep) and compare the named blocks; check the kernel log and the \
           device's own error counters before anything is stored here.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

fn check(case: &Case) -> Judgement {
    let count = |get: fn(&crate::window::Window) -> u64| case.windows.iter().map(get).sum::<u64>();
    let stamps = count(|window| window.checks.stamps_verified);
    let checksums = count(|window| window.checks.checksums_verified);
    let mismatches = count(|window| window.checks.mismatches);
    let evidence = format!(
        "{} of {} verified blocks differ ({} with the whole payload)",
        thousands(mismatches as i64),
        thousands(stamps as i64),
        thousands(checksums as i64)
    );
    if mismatches > 0 {
        let bad = case.points.iter().filter(|point| point.evidence.mismatches > 0);
        Judgement::fail(evidence, labels(bad))
    } else if stamps == 0 {
        Judgement::inconclusive("no block was verified: the data are not Blockstone's own")
    } else {
        Judgement::pass(evidence)
    }
}
