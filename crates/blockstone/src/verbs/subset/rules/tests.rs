//! The rule on orphans passes, fails, warns and is inconclusive.

use blockstone_base::rule::judge;
use blockstone_base::verdict::{Outcome, Verdict};

use super::*;

fn judged(orphans: &[Option<u64>], naive: bool) -> Verdict {
    let key = |(at, orphans): (usize, &Option<u64>)| SubsetKey {
        name: format!("key_{at}"),
        orphans: *orphans,
    };
    let keys = orphans.iter().enumerate().map(key).collect();
    judge(ALL, &SubsetFindings { keys, naive }).into_iter().next().unwrap()
}

#[test]
fn one_orphan_condemns_a_subset() {
    assert_eq!(judged(&[], false).outcome, Outcome::Pass);
    assert_eq!(judged(&[Some(0), Some(0)], false).outcome, Outcome::Pass);
    let failed = judged(&[Some(0), Some(1), None], false);
    assert!(failed.condemns() && failed.evidence.contains("key_1 1"), "{failed:?}");
    assert_eq!(failed.concerns, ["key_1"]);
    assert!(judged(&[Some(1)], true).warns());
    assert_eq!(judged(&[Some(0), None], false).outcome, Outcome::Inconclusive);
}
