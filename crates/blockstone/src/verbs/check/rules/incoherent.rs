//! Writes that others do not see.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::format_ns;
use blockstone_base::verdict::Weight;
use blockstone_check::coherence::findings::{Cell, Class, CoherenceFindings};

const ABOUT: About = About {
    id: "incoherent",
    weight: Weight::Condemns,
    doc: "What one rank (descriptor, mount, host) wrote, and the kernel acknowledged, another does \
          not read; or it reads what nobody wrote.",
    threshold: "Any case whose class is not linearizable: of each way to write and each way to \
                read, a read has to return the last version that was acknowledged before it, and \
                every rank has to see a change of a name at once (docs/check.md). Only a warning \
                where all such cases are fresh after reopening or later by less than a second, \
                which NFS promises and no more. Inconclusive where nothing could be tried.",
    cause: "Each rank has a page cache, or a cache of names, of its own, and nothing invalidates \
            it when another rank writes.",
    next: "Use only the ways to write and read that are linearizable here: in most cases O_DIRECT \
           on both sides. Mount a file system of one host on one host; on NFS use noac, which \
           does not help a reader that has the file open to write, or locks around reads and \
           writes.",
};

pub(super) const RULE: RuleOf<CoherenceFindings> = RuleOf::new(&ABOUT, check);

const TORN_CAUSE: &str = "Ranks write whole pages or blocks of which they have an old copy, or the \
                          storage mixes writes.";
const TORN_NEXT: &str = "\
    Let only one rank write to this storage, write with O_DIRECT or locks where that is \
    linearizable here (NFS), or use a file system that is made for several hosts (OCFS2, GFS2, \
    Lustre); restore what was written by several.";

fn check(findings: &CoherenceFindings) -> Judgement {
    let of = |wanted: fn(&Cell) -> bool| -> Vec<&Cell> {
        findings.cells.iter().filter(|cell| wanted(cell)).collect()
    };
    let tried = of(|cell| cell.class != Class::Unknown);
    let wrong = of(Cell::is_incoherent);
    if tried.is_empty() {
        return Judgement::inconclusive("nothing could be tried");
    }
    let Some(worst) = wrong.iter().rev().max_by_key(|cell| cell.class) else {
        let count = tried.len();
        return Judgement::pass(format!("{count} of {count} cases are linearizable"));
    };
    let mut evidence = format!(
        "{} of {} cases: {} is {}: {}",
        wrong.len(),
        tried.len(),
        worst.case,
        worst.class.name(),
        worst.evidence
    );
    if let Some([first, second]) = &worst.witness {
        let at = |ns: u64| format_ns(ns as f64);
        evidence = format!(
            "{evidence}; {} of v{} at rank {} ended at {}, {} of v{} at rank {} started at {}",
            first.operation,
            first.version,
            first.rank,
            first.end_ns.map_or_else(|| "no time".to_owned(), at),
            second.operation,
            second.version,
            second.rank,
            at(second.start_ns)
        );
    }
    let judgement = Judgement::fail(evidence, wrong.iter().map(|cell| cell.case.clone()).collect());
    match worst.class {
        Class::Torn => judgement.caused_by(TORN_CAUSE).advising(TORN_NEXT),
        Class::Sequential | Class::Reopen => judgement.weighing(Weight::Warns),
        _ => judgement,
    }
}
