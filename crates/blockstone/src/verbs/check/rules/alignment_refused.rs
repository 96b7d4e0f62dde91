//! Direct I/O that is refused although it is aligned as the kernel demands.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::direct::findings::{Cell, Class, DirectFindings};

const ABOUT: About = About {
    id: "alignment-refused",
    weight: Weight::Warns,
    doc: "statx(2) says how direct I/O to a file must be aligned; requests aligned so are refused.",
    threshold: "Any request of a shape that statx (STATX_DIOALIGN) allows on this very file is \
                refused. Inconclusive where statx says nothing about direct I/O (btrfs and tmpfs \
                as of Linux 6.18, kernels before 6.1).",
    cause: "The device below asks for a larger alignment than the file system knows, or the file \
            system refuses what it announces.",
    next: "Use requests of whole blocks from memory aligned to a page, which databases do; report \
           it to the maintainers of the file system.",
};

pub(super) const RULE: RuleOf<DirectFindings> =
    RuleOf::new(&ABOUT, |found| Judgement::when(found.is_of_path(), || check(found)));

fn check(findings: &DirectFindings) -> Judgement {
    let promised: Vec<&Cell> =
        findings.cells.iter().filter(|cell| cell.promised == Some(true)).collect();
    let refused: Vec<String> = promised
        .iter()
        .filter(|cell| cell.class == Class::Refused)
        .map(|cell| cell.case())
        .collect();
    if promised.is_empty() {
        return Judgement::inconclusive("statx(2) promises no direct I/O here");
    }
    let evidence = if refused.is_empty() {
        format!("all {} that statx(2) allows are accepted", promised.len())
    } else {
        format!(
            "{} of {} that statx(2) allows: {}",
            refused.len(),
            promised.len(),
            refused.join(", ")
        )
    };
    Judgement::decide(!refused.is_empty(), evidence, refused)
}
