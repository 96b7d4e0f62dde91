//! Writers, or readers, of one file that wait for each other.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::order::findings::{Class, OrderFindings};

const ABOUT: About = About {
    id: "writers-wait",
    weight: Weight::Warns,
    doc: "Several writers of one file wait for each other, or its readers for a writer: the file \
          system lets one at a time through, whatever the device could do.",
    threshold: "The time that threads wait for the lock of the file (the i_rwsem of its inode, \
                counted in the kernel) is at least 30 % of the most that it can be, and at least \
                three times as much as with files of their own. Of n writers the most is \
                1 − 1/n of their time; of readers beside one writer it is taken as 75 %. Up to \
                15 % of it passes. Where the kernel is not asked: more than 2 waits for each \
                request, and at most 1.3 with files of their own: four writers have 2.8 in a hole \
                of ext4, and 1.0 in written blocks. Inconclusive between, and where no evidence \
                decides.",
    cause: "The file system takes the lock of the file alone for writes that change where its \
            blocks lie: ext4 for those that extend the file, fill a hole, or are not wholly in \
            one extent of written blocks; XFS for those behind the end of the file that leave a \
            gap, as several writers at once do; and both for all writes that use the page cache.",
    next: "Write all of the file once before it is used, or allocate it ahead in large pieces; \
           let each writer have a file of its own; or use XFS, whose direct writers share the \
           lock within the size of the file. Write past the page cache (O_DIRECT).",
};

pub(super) const RULE: RuleOf<OrderFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OrderFindings) -> Judgement {
    let serialises = findings.of(Class::Serialises);
    let (scales, tried) = (findings.of(Class::Scales), findings.largest().count());
    if serialises.is_empty() {
        let unknown = findings.of(Class::Unknown);
        return match (scales.len(), unknown.len()) {
            (0, 0) => Judgement::inconclusive("no request was accepted"),
            (_, 0) => Judgement::pass(format!("{} of {tried} modes scale", scales.len())),
            _ => Judgement::inconclusive(format!("cannot tell: {}", unknown.join(", "))),
        };
    }
    let shares = findings.largest().filter(|cell| cell.class == Class::Serialises);
    let shares = shares.filter_map(|cell| cell.one_file.lock_time_share);
    let mut evidence = format!("{} of {tried} modes: {}", serialises.len(), serialises.join(", "));
    if let Some(share) = shares.max_by(f64::total_cmp) {
        evidence = format!("{evidence}; up to {:.0} % of the time is waiting", share * 100.0);
    }
    Judgement::fail(evidence, serialises.into_iter().map(str::to_owned).collect())
}
