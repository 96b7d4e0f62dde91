//! Copies that comparing aligned blocks cannot find.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::Weight;
use blockstone_reduce::findings::file_name;

use super::{ScanCase, ScanRule};

const ABOUT: About = About {
    id: "shifted-copy",
    weight: Weight::Warns,
    doc: "A file contains data of another file, not aligned to blocks: deduplication of \
          fixed-size blocks does not find them.",
    threshold: "5 % of a file match another file at a distance that is not a multiple of 4 KiB.",
    cause: "A header before the data, a different partition offset, or a tape or backup format.",
    next: "Align the copy to 4 KiB, or store it in its original format.",
};

pub(super) const RULE: ScanRule = ScanRule::new(&ABOUT, check);

fn check(case: &ScanCase) -> Judgement {
    look(case).at(vec!["dedup_ratio".to_owned()])
}

fn look(case: &ScanCase) -> Judgement {
    if !case.chunks {
        return Judgement::inconclusive("the search for unaligned copies was off");
    }
    let Some(shift) = case.findings.shifts.first() else {
        return Judgement::pass("no file contains unaligned data of another file");
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
