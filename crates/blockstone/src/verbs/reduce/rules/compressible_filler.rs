//! Test filler in place of data.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_reduce::findings::Class;

use super::{ScanCase, ScanRule};

const ABOUT: About = About {
    id: "compressible-filler",
    weight: Weight::Warns,
    doc: "Used blocks compress far better than data of real databases: they hold filler of a \
          test, not rows.",
    threshold: "Used contents compress to an eighth of their size or less. Real tables compress \
                to a half or a third.",
    cause: "Test data, such as the columns of one repeated character that load generators write.",
    next: "Scan files of the real database; an array will reduce them less.",
};

pub(super) const RULE: ScanRule = ScanRule::new(&ABOUT, check);

const FIGURES: [&str; 2] = ["compression_ratio", "reduction_ratio"];
const FILLER_RATIO: f64 = 8.0;
/// Fewer contents are the beginning of a file, not its data.
const CONTENTS_MIN: usize = 100;

fn check(case: &ScanCase) -> Judgement {
    look(case).at(FIGURES.map(str::to_owned).into())
}

fn look(case: &ScanCase) -> Judgement {
    let findings = case.findings;
    let compressed = findings.primary().contents_compressed;
    let ratio = findings.usage.used_compression_ratio;
    let Some(ratio) = ratio.filter(|_| compressed >= CONTENTS_MIN) else {
        return Judgement::inconclusive(format!(
            "only {compressed} contents were compressed, too few to decide"
        ));
    };
    let finest =
        findings.compression.iter().filter(|c| c.class == Class::All && c.granule_bytes == 512);
    let best = finest.map(|c| c.ratio).fold(ratio.value, f64::max);
    let evidence =
        format!("used contents compress {:.2}:1, all of them {best:.2}:1 at best", ratio.value);
    // A sample decides only if its whole interval is on one side.
    if ratio.low < FILLER_RATIO && ratio.high >= FILLER_RATIO && !ratio.is_exact() {
        let (low, high) = (ratio.low, ratio.high);
        return Judgement::inconclusive(format!("{evidence}; 99 %: {low:.2}–{high:.2}"));
    }
    Judgement::decide(ratio.value >= FILLER_RATIO, evidence, Vec::new())
}
