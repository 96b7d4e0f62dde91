//! Acknowledged writes that a power cut lost.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::durability::findings::{
    Class, Cuts, DurabilityFindings, Stage, StreamFindings,
};

const ABOUT: About = About {
    id: "lost-after-cut",
    weight: Weight::Condemns,
    doc: "Writes that were acknowledged as durable are missing, torn or misplaced after a power \
          cut that a witness on another machine saw.",
    threshold: "Any block of a method that promises durability (fsync, fdatasync, O_DSYNC, O_SYNC, \
                RWF_DSYNC) that the witness knows as acknowledged and that is older, absent, in \
                parts or elsewhere. Passes only where the controls, which flush nothing, lost \
                something: those past the page cache decide where there are any, for only these \
                show that the device lost power. Inconclusive otherwise: the cut proves nothing.",
    cause: "The device, or a controller, hypervisor or network storage in between, acknowledges \
            flushes before the data are durable; or the file system does not send them.",
    next: "Do not keep a database there. Look at the chain with blockstone check durability PATH; \
           turn off the volatile cache (hdparm -W0, sdparm --clear WCE, the cache mode of the \
           hypervisor) and cut again; report it to the vendor with the numbers.",
};

pub(super) const RULE: RuleOf<DurabilityFindings> =
    RuleOf::new(&ABOUT, |found| Judgement::when(is_after_a_cut(found), || check(found)));

const GENTLE: &str = "what was not flushed was kept too, so that this cut says nothing of flushes. \
                      Cut the power of the device itself while it is written to; where its cache \
                      is protected, every cut looks so";

fn is_after_a_cut(findings: &DurabilityFindings) -> bool {
    findings.stage == Stage::Verified || findings.witnessed_cuts() != Cuts::default()
}

fn check(findings: &DurabilityFindings) -> Judgement {
    if findings.stage == Stage::Witnessed {
        return witnessed(findings);
    }
    let promised: Vec<&StreamFindings> =
        findings.of_controls(false).filter(|it| it.acknowledged > 0).collect();
    let sum = |of: fn(&StreamFindings) -> u64| promised.iter().map(|it| of(it)).sum::<u64>();
    let checked = sum(|it| it.checked);
    if promised.is_empty() {
        return Judgement::inconclusive("no write was acknowledged as durable before the cut");
    }
    let broken: Vec<&StreamFindings> =
        promised.iter().copied().filter(|it| it.is_broken()).collect();
    let Some(first) = broken.first() else {
        let control = |it: &StreamFindings| format!("{} lost {}", it.stream.case(), it.lost);
        let lost =
            findings.of_controls(true).filter(|it| it.lost + it.torn > 0).map(control).next();
        return match lost {
            Some(lost) if promised.iter().any(|it| it.class == Class::Durable) => {
                Judgement::pass(format!("0 of {checked} blocks lost; of the controls, {lost}"))
            }
            _ => Judgement::inconclusive(format!("0 of {checked} blocks lost, and {GENTLE}")),
        };
    };
    let evidence = format!(
        "{} lost, {} torn, {} misplaced of {checked} blocks; {}: {}",
        sum(|it| it.lost),
        sum(|it| it.torn),
        sum(|it| it.misplaced),
        first.stream.case(),
        first.evidence
    );
    Judgement::fail(evidence, broken.iter().map(|it| it.stream.case()).collect())
}

/// Judges all power cuts that a witness recorded.
fn witnessed(findings: &DurabilityFindings) -> Judgement {
    let Cuts { conclusive, with_loss, inconclusive } = findings.witnessed_cuts();
    let paths = findings.witnessed.iter().filter(|it| it.cuts.with_loss > 0);
    let paths = paths.map(|it| format!("{}:{}", it.description.host, it.description.path));
    let lost = format!("{with_loss} of {conclusive} cuts lost what was flushed");
    match (conclusive, with_loss) {
        (0, _) => Judgement::inconclusive(format!("{inconclusive} cuts, and {GENTLE}")),
        (_, 0) => Judgement::pass(lost),
        _ => Judgement::fail(lost, paths.collect()),
    }
}
