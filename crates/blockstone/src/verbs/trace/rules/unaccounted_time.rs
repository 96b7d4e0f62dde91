//! Response time of a trace that neither processor time nor waits explain.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::format_ns;
use blockstone_base::verdict::Weight;

use super::TraceFindings;

/// Share that a trace of an idle machine leaves unaccounted between its calls.
const SHARE_MAX: f64 = 0.1;

const ABOUT: About = About {
    id: "unaccounted-time",
    weight: Weight::Warns,
    doc: "A part of the response time is neither processor time nor a wait that the trace has.",
    threshold: "More than 10 % of the response time, or less than -10 %, and more than what clock \
                ticks explain. Inconclusive where the log has no processor time: what is left over \
                is then that time.",
    cause: "The session waited for a processor or for memory to be paged in; or the trace was \
            taken without waits, or begins or ends inside a call. A negative remainder: processor \
            time that waits contain too.",
    next: "Look at the run queue with blockstone watch while the statements run, and trace with \
           waits.",
};

pub(super) const RULE: RuleOf<TraceFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &TraceFindings) -> Judgement {
    let Some(unaccounted) = findings.unaccounted_ns.filter(|_| findings.response_ns > 0.0) else {
        return Judgement::inconclusive("the log does not contain processor time");
    };
    let share = unaccounted / findings.response_ns;
    let evidence = format!(
        "{} of {} are unaccounted, {:.1} %; clock ticks explain ±{}",
        format_ns(unaccounted),
        format_ns(findings.response_ns),
        share * 100.0,
        format_ns(findings.uncertain_ns)
    );
    let failed = share.abs() > SHARE_MAX && unaccounted.abs() > findings.uncertain_ns;
    Judgement::decide(failed, evidence, vec!["unaccounted_ns".to_owned()])
}
