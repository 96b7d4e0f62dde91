//! A run that measured the cache, not the storage.

use blockstone_base::Bytes;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, percent, read_figures, scale};

const ABOUT: About = About {
    id: "mostly-cached",
    weight: Weight::Warns,
    doc: "A workload that fits into the buffer cache: its rates are those of memory, with too few \
          physical reads to describe the storage.",
    threshold: "Fewer than 10 physical reads per 100 blocks visited.",
    cause: "The schemas, or their hot part, are hardly larger than the buffer cache.",
    next: "Use a smaller --cache or a larger --scale; if a cached workload is intended, use the \
           logical reads.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

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
    let judgement = Judgement::decide(misses < MISSES_MIN, evidence, read_figures());
    match past_cache(case) {
        Some(next) => judgement.advising(next),
        None => judgement,
    }
}

/// Size of the data, in multiples of the cache, at which most blocks visited at random are read.
const TIMES_CACHE: u64 = 4;

/// Returns the sizes with which most blocks would be read. `None` if the data have that size
/// already and it is a hot range that the cache holds.
fn past_cache(case: &RunCase) -> Option<String> {
    let parameters = case.window.parameters();
    let data_bytes = scale::data_bytes(&parameters)?;
    let cache_bytes = parameters.cache_bytes?.get();
    let scale = scale::of_all(&parameters, cache_bytes.checked_mul(TIMES_CACHE)?)?;
    (data_bytes / TIMES_CACHE < cache_bytes).then(|| {
        format!(
            "The schemas have {}, the cache {}. Use {scale}, or --cache {}: then about three of \
             four blocks are read from storage. If a cached workload is intended, use the logical \
             reads.",
            Bytes(data_bytes),
            Bytes(cache_bytes),
            scale::option(data_bytes / TIMES_CACHE)
        )
    })
}
