//! Verdict on what `check durability` found about flushes without a power cut.

use blockstone_check::durability::findings::{Class, DurabilityFindings, Stage};

use blockstone_base::rule::{Judgement, RuleOf};
use blockstone_judge::rules::{lying_flush, memory_backed};

const CAUSE: &str = "The file system does not flush its device (mount option nobarrier or \
                     barrier=0, volatile of an overlay), or a layer in between drops flushes.";
const NEXT: &str = "Mount without that option and check again; where no option explains it, test \
                    with a power cut: blockstone check durability --witness HOST:PORT PATH.";

const MEMORY_CAUSE: &str = "The path is stored in main memory, so a flush has nothing to write to.";

pub(super) const RULE: RuleOf<DurabilityFindings> = RuleOf::new(&lying_flush::ABOUT, |found| {
    Judgement::when(found.stage == Stage::Examined, || check(found))
});

fn check(findings: &DurabilityFindings) -> Judgement {
    let Some(flushing) = &findings.flushing else {
        return Judgement::inconclusive("no flush was timed");
    };
    let evidence = flushing.evidence.as_str();
    if flushing.class == Class::Memory {
        let judgement = Judgement::fail(evidence, vec!["flush".to_owned()]);
        return judgement.caused_by(MEMORY_CAUSE).advising(memory_backed::ABOUT.next);
    }
    if flushing.class == Class::Unflushed {
        let judgement = Judgement::fail(evidence, vec!["flush".to_owned()]);
        return judgement.caused_by(CAUSE).advising(NEXT);
    }
    if let Some(option) = &findings.barrier_off {
        let evidence = format!("mounted {option}: the file system flushes nothing; {evidence}");
        let judgement = Judgement::fail(evidence, vec!["flush".to_owned()]);
        return judgement.caused_by(CAUSE).advising(NEXT);
    }
    match (flushing.class, &findings.hypervisor) {
        (Class::Volatile, None) => Judgement::pass(evidence),
        (Class::Volatile, Some(hypervisor)) => Judgement::inconclusive(format!(
            "{evidence}; behind {hypervisor}, which may keep it in its own memory: only a power \
             cut of the host tells"
        )),
        _ => Judgement::inconclusive(evidence),
    }
}
