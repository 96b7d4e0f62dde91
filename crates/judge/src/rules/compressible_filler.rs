//! Filler of a test in the place of data.

use blockstone_base::verdict::Weight;
use blockstone_reduce::findings::Class;

use super::{Check, Judgement, Rule, ScanCase};

pub(super) const RULE: Rule = Rule {
    id: "compressible-filler",
    weight: Weight::Warns,
    doc: "Used blocks shrink as no data of real databases do: filler of a test, not rows.",
    threshold: "Used contents shrink to an eighth or less of what they are. Real tables shrink to \
                a half or a third.",
    cause: "Test data: columns of one repeated character, as load generators write them.",
    next: "Scan files of the real database; arrays will not do this with them.",
    checks: &[Check::Scan(check)],
};

const FIGURES: [&str; 2] = ["compression_ratio", "reduction_ratio"];
const FILLER_RATIO: f64 = 8.0;
/// Fewer contents are a file's beginning, not its data.
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
            "{compressed} contents were compressed, which is too few to judge"
        ));
    };
    let finest =
        findings.compression.iter().filter(|c| c.class == Class::All && c.granule_bytes == 512);
    let best = finest.map(|c| c.ratio).fold(ratio, f64::max);
    let evidence = format!("used contents compress {ratio:.2}:1, all of them {best:.2}:1 at best");
    Judgement::decide(ratio >= FILLER_RATIO, evidence, Vec::new())
}
