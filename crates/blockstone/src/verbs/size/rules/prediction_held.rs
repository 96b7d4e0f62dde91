//! A run of the load that was predicted from a need.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::stats::Estimate;
use blockstone_base::units::{format_ns, thousands};
use blockstone_base::verdict::Weight;

use super::{NeedFindings, RunOfNeed};

const ABOUT: About = About {
    id: "prediction-held",
    weight: Weight::Warns,
    doc: "A run was held against the need, and did other I/O than was predicted, or took longer \
          for it than is wanted.",
    threshold: "The intervals of the requests a second that the run did and that the need has do \
                not meet; or the whole interval of the p99 of its reads lies above the one that is \
                wanted, or above those that a --curve measured at the loads next to the need. \
                Inconclusive where the run does not know its requests or its p99, or where the \
                interval of its p99 holds one of these.",
    cause: "The storage does not carry the load at this latency; or the run was not the one that \
            the need describes.",
    next: "Run the command of the report on the storage that was sized, for as long as the \
           averaging time of the need. If it keeps failing, size with a lower --utilisation.",
};

pub(super) const RULE: RuleOf<NeedFindings> =
    RuleOf::new(&ABOUT, |found| found.run.as_ref().map_or_else(Judgement::not_applicable, check));

/// Two rates that differ by less than this are equal, whatever their intervals.
const EQUAL_WITHIN: f64 = 0.02;

fn check(run: &RunOfNeed) -> Judgement {
    let Some(iops) = run.iops else {
        return Judgement::inconclusive("the run does not know the requests of its database");
    };
    let predicted = run.predicted_iops;
    let slack = EQUAL_WITHIN * predicted.value;
    let meets = iops.high >= predicted.low - slack && iops.low <= predicted.high + slack;
    let mut evidence =
        format!("{} requests/s, predicted {}", number(iops.value), range(&predicted));
    if !meets {
        return Judgement::fail(evidence, vec!["iops".to_owned()]);
    }
    let predicted_ns = run.predicted_latency_ns_p99;
    if run.wanted_latency_ns_p99.is_none() && predicted_ns.is_none() {
        return Judgement::pass(format!("{evidence}; no --p99 was asked for"));
    }
    let Some(p99) = run.latency_ns_p99 else {
        let evidence = format!("{evidence}; the run has too few reads for a p99");
        return Judgement::inconclusive(evidence);
    };
    evidence.extend(["; p99 of its reads ", &format_ns(p99.value)]);
    if let Some(wanted_ns) = run.wanted_latency_ns_p99 {
        evidence.extend([", wanted ", &format_ns(wanted_ns)]);
    }
    if let Some((low, high)) = predicted_ns {
        let from = if low > 0.0 {
            format!("between {} and", format_ns(low))
        } else {
            "at most".to_owned()
        };
        evidence.extend([", predicted ", &from, " ", &format_ns(high)]);
    }
    let most = [run.wanted_latency_ns_p99, predicted_ns.map(|it| it.1)];
    let most = || most.into_iter().flatten();
    if most().any(|most| p99.low > most) {
        return Judgement::fail(evidence, vec!["read_latency_ns_p99".to_owned()]);
    }
    if most().any(|most| p99.high > most && p99.value > most) {
        return Judgement::inconclusive(evidence);
    }
    Judgement::pass(evidence)
}

fn range(predicted: &Estimate) -> String {
    let (low, high) = (predicted.low, predicted.high);
    match (number(low), number(high)) {
        (low, _) if high == f64::INFINITY => format!("{low} or more"),
        (low, high) if low == high => low,
        (low, high) => format!("{low} – {high}"),
    }
}

fn number(value: f64) -> String {
    thousands(value.round() as i64)
}
