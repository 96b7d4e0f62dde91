//! The rule on the pages that a copy left in the page cache passes, fails and is inconclusive.

use blockstone_base::rule::judge;
use blockstone_base::verdict::Outcome;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn a_copy_that_stays_in_the_page_cache_is_a_warning() {
    let judged = |data_bytes, page_cache_bytes_before, page_cache_bytes_after| {
        let found = CopyFindings { data_bytes, page_cache_bytes_before, page_cache_bytes_after };
        judge(ALL, &found).into_iter().next().unwrap()
    };
    let outcome = |data, before, after| judged(data, before, after).outcome;
    let failed = judged(8 * MIB, Some(0), Some(8 * MIB));
    assert!(failed.warns() && failed.evidence.contains("8 MiB after"), "{failed:?}");
    assert_eq!(failed.concerns, ["page_cache_bytes_after"]);
    assert_eq!(outcome(8 * MIB, Some(9 * MIB), Some(9 * MIB)), Outcome::Pass);
    assert_eq!(outcome(8 * MIB, Some(9 * MIB), Some(0)), Outcome::Pass, "less is not a fault");
    assert_eq!(outcome(8 * MIB, Some(0), Some(MIB)), Outcome::Pass);
    assert_eq!(outcome(1000 * MIB, Some(0), Some(10 * MIB)), Outcome::Pass);
    assert_eq!(outcome(1000 * MIB, Some(0), Some(11 * MIB)), Outcome::Fail);
    assert_eq!(outcome(8 * MIB, None, Some(0)), Outcome::Inconclusive);
}
