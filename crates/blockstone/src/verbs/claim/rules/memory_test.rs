//! A stated rate that may have come from the page cache of the host.

use blockstone_base::rule::{Judgement, RuleOf};
use blockstone_base::units::{megabytes, percent};
use blockstone_judge::rules::memory_test::ABOUT;

use crate::verbs::claim::stated::{Claim, IOPS, RATE, Span};

/// Largest share of the data that memory may hold.
const HELD_SHARE_MAX: f64 = 0.5;

pub(super) const RULE: RuleOf<Claim> = RuleOf::new(&ABOUT, check);

fn check(claim: &Claim) -> Judgement {
    if claim.cached {
        let evidence = "the claim itself says that a cache answered";
        return Judgement::fail(evidence, concerned(claim));
    }
    if claim.bytes_per_s().or(claim.requests_per_s()).is_none() {
        return Judgement::inconclusive("no rate was stated");
    }
    if claim.direct {
        return Judgement::pass("direct I/O does not go through the page cache");
    }
    let (Some(share), Some(data), Some(memory)) =
        (claim.memory_share(), claim.size_bytes(), claim.memory_bytes.map(Span::least))
    else {
        let missing =
            if claim.size_bytes().is_none() { "how much data" } else { "how much memory" };
        return Judgement::inconclusive(format!("{missing} there was is not stated"));
    };
    let evidence = format!(
        "{} of data on {} of memory: the page cache can hold {}",
        megabytes(data as u64),
        megabytes(memory as u64),
        percent(share)
    );
    Judgement::decide(share > HELD_SHARE_MAX, evidence, concerned(claim))
        .caused_by("The page cache can have answered; what the storage does remains unknown.")
        .advising(
            "Repeat it with direct I/O, or with at least twice as much data as memory, and look at \
             the bytes that the device moved.",
        )
}

/// Returns the figures of a claim that a cache may have made.
fn concerned(claim: &Claim) -> Vec<String> {
    let iops = claim.requests_per_s().map(|_| IOPS);
    [Some(RATE), iops].into_iter().flatten().map(str::to_owned).collect()
}
