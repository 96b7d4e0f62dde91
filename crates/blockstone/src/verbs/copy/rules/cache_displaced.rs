//! A copy that stays in the page cache, in place of data that others need there.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::Bytes;
use blockstone_base::verdict::Weight;

use super::CopyFindings;

/// Room for the last pages of files, and for file system blocks that other programs read meanwhile.
const FEW_BYTES: u64 = 1 << 20;

const ABOUT: About = About {
    id: "cache-displaced",
    weight: Weight::Warns,
    doc: "After a copy the page cache holds more of its files than before: pages that nobody \
          asked for, in place of what a database or the system may read next.",
    threshold: "The sources and targets have more bytes in the page cache than before, by more \
                than 1 % of the bytes that were moved and by more than 1 MiB. Inconclusive where \
                the kernel does not tell (cachestat(2), Linux 6.5), or a file system keeps its \
                files in memory.",
    cause: "Another program read or wrote the files meanwhile; or the file system buffers what was \
            asked to go past the page cache.",
    next: "Look at the method in the report. Copy with --method direct or --method dontcache, or \
           to another file system; see blockstone check direct PATH.",
};

pub(super) const RULE: RuleOf<CopyFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &CopyFindings) -> Judgement {
    let (before, after) = (findings.page_cache_bytes_before, findings.page_cache_bytes_after);
    let (Some(before), Some(after)) = (before, after) else {
        return Judgement::inconclusive(
            "the kernel does not tell this user what it caches of the files",
        );
    };
    let more = after.saturating_sub(before);
    let most = FEW_BYTES.max(findings.data_bytes / 100);
    let evidence = format!(
        "{} of the files were cached before and {} after, of {} moved",
        Bytes(before),
        Bytes(after),
        Bytes(findings.data_bytes)
    );
    Judgement::decide(more > most, evidence, vec!["page_cache_bytes_after".to_owned()])
}
