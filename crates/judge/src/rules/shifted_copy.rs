//! Copies that blocks cannot see.

use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::Weight;
use blockstone_reduce::findings::file_name;

use super::{Check, Judgement, Rule, ScanCase};

pub(super) const RULE: Rule = Rule {
    id: "shifted-copy",
    weight: Weight::Warns,
    doc: "A file holds what another does, but between its blocks: deduplication of fixed blocks \
          finds nothing.",
    threshold: "5 % of a file match another at a distance that is no multiple of 4 KiB.",
    cause: "A header before the data, another partition start, or a tape or backup format.",
    next: "Align the copy to 4 KiB, or let the array see the original.",
    checks: &[Check::Scan(check)],
};

fn check(case: &ScanCase) -> Judgement {
    look(case).at(vec!["dedup_ratio".to_owned()])
}

fn look(case: &ScanCase) -> Judgement {
    if !case.chunks {
        return Judgement::inconclusive("chunks were not looked for");
    }
    let Some(shift) = case.findings.shifts.first() else {
        return Judgement::pass("no file holds another one between its blocks");
    };
    let evidence = format!(
        "{} holds {} of {} shifted by {} bytes ({} % of it); chunks repeat {:.2}:1",
        file_name(case.files, shift.displacement.copy),
        Bytes(shift.bytes),
        file_name(case.files, shift.displacement.original),
        shift.displacement.shift_bytes,
        three_digits(shift.part_of_copy * 100.0),
        case.findings.chunk_ratio.unwrap_or(1.0)
    );
    Judgement::fail(evidence, Vec::new())
}
