//! A run that asked the cache, not the storage.

use blockstone_base::verdict::Weight;

use super::{Check, Judgement, Rule, RunCase, percent, read_figures};

pub(super) const RULE: Rule = Rule {
    id: "mostly-cached",
    weight: Weight::Warns,
    doc: "A workload that fits into the buffer cache: its rates are those of memory, with too few \
          physical reads to describe the storage.",
    threshold: "Fewer than 10 physical reads per 100 blocks visited.",
    cause: "The schemas, or their hot part, are hardly larger than the buffer cache.",
    next: "Use a smaller --cache or a larger --scale; if a cached workload is intended, use the \
           logical reads.",
    checks: &[Check::Run(check)],
};

const MISSES_MIN: f64 = 0.10;

fn check(case: &RunCase) -> Judgement {
    let statistic = |column| case.window.statistic(column);
    let (Ok(visited), Ok(read)) = (statistic("logical_reads"), statistic("physical_reads")) else {
        return Judgement::inconclusive("the target does not count blocks visited and read");
    };
    if visited == 0 {
        return Judgement::inconclusive("no block was visited");
    }
    let misses = read as f64 / visited as f64;
    let evidence = format!("{} of the blocks visited were read from storage", percent(misses));
    Judgement::decide(misses < MISSES_MIN, evidence, read_figures())
}
