//! Operations of an open loop that the load generator itself started late.

use blockstone_base::load::Pacing;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_figures::Grown;

use super::{CalibrationRule, Case, RunCase, RunRule, percent, time};

const ABOUT: About = About {
    id: "late-start",
    weight: Weight::Warns,
    doc: "Operations of an open loop that started late because of the load generator, not because \
          earlier ones were still in flight: latency counts from the intended start, so the \
          generator's lateness is part of it.",
    threshold: "Warns if the generator's own lateness is more than 10 % of the latency, on \
                average; condemns if it is more than 50 %. A closed loop starts an operation when \
                the one before has ended, so nothing can be late.",
    cause: "Other processes, or the load itself, kept the processors busy when operations were \
            due.",
    next: "Stop other processes, use fewer sessions or a lower rate, or compare the service times, \
           which count from the submission.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const WARNING_RATIO: f64 = 0.10;
const CONDEMNING_RATIO: f64 = 0.50;
const CLOSED: &str = "closed loops only: 0 operations had an intended start";

/// Sums over the operations of one load.
struct Sums {
    label: String,
    ops: u64,
    late_ns: u64,
    latency_ns: u64,
}

impl Sums {
    fn ratio(&self) -> f64 {
        if self.latency_ns == 0 { 0.0 } else { self.late_ns as f64 / self.latency_ns as f64 }
    }
}

fn check(case: &Case) -> Judgement {
    if case.points.is_empty() {
        return Judgement::inconclusive("no load was measured");
    }
    let open = case.storage_points().filter(|p| matches!(p.load.pacing, Pacing::Open { .. }));
    let sums = open.map(|point| {
        let windows = case.windows_of(&point.label);
        Some(Sums {
            label: point.label.clone(),
            ops: windows.iter().map(|window| window.completed_ops()).sum(),
            late_ns: windows.iter().map(|window| window.late_ns_sum).sum::<Grown>().ok()?,
            latency_ns: windows.iter().map(|window| window.latency_ns_sum()).sum(),
        })
    });
    judge(sums.collect())
}

fn check_run(case: &RunCase) -> Judgement {
    if case.window.parameters().rate_per_s.is_none() {
        return Judgement::pass(CLOSED);
    }
    let grown = |column| case.window.grown_of_all("operation", column).ok();
    let sums = || {
        Some(Sums {
            label: case.window.phase.label.clone(),
            ops: grown("completed_ops")?,
            late_ns: grown("late_ns_sum")?,
            latency_ns: grown("latency_ns_sum")?,
        })
    };
    judge(sums().map(|sums| vec![sums]))
}

/// `loads` is `None` if it was not measured.
fn judge(loads: Option<Vec<Sums>>) -> Judgement {
    let Some(loads) = loads else {
        return Judgement::inconclusive("how late operations started was not recorded");
    };
    let worst = |a: &&Sums, b: &&Sums| a.ratio().total_cmp(&b.ratio());
    let Some(worst) = loads.iter().max_by(worst) else { return Judgement::pass(CLOSED) };
    let each_ns = |sum_ns: u64| time(sum_ns as f64 / worst.ops.max(1) as f64);
    let evidence = format!(
        "{}: {} of the latency: operations started {} late, mean latency {}",
        worst.label,
        percent(worst.ratio()),
        each_ns(worst.late_ns),
        each_ns(worst.latency_ns)
    );
    let late = loads.iter().filter(|sums| sums.ratio() > WARNING_RATIO);
    let labels = late.map(|sums| sums.label.clone()).collect();
    let judgement = Judgement::decide(worst.ratio() > WARNING_RATIO, evidence, labels);
    if worst.ratio() > CONDEMNING_RATIO { judgement.weighing(Weight::Condemns) } else { judgement }
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::{LoadSpec, Op, Pacing};
    use blockstone_base::verdict::{Outcome, Weight};
    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, load};

    #[test]
    fn lateness_is_held_against_the_latency() {
        let pacing = Pacing::Open { rate_per_s: 1000.0, poisson: true };
        let label = "open-loop/r1000";
        for (late_ns, outcome, weight) in [
            (5_000, Outcome::Pass, Weight::Warns),
            (30_000, Outcome::Fail, Weight::Warns),
            (60_000, Outcome::Fail, Weight::Condemns),
        ] {
            let mut fixture = Fixture::healthy();
            let spec = LoadSpec { pacing, ..load(Op::Read, "psync", 16) };
            fixture.add(label, Group::OpenLoop, spec, &Behaviour::natural(1000.0, 100e3));
            let window = fixture.window_mut(label);
            window.late_ns_sum = Ok(window.completed_ops() * late_ns);
            let findings = fixture.find();
            let verdict = findings.verdicts.iter().find(|v| v.rule == "late-start").unwrap();
            assert_eq!((verdict.outcome, verdict.weight), (outcome, weight), "{verdict:?}");
            let point = findings.points.iter().find(|point| point.label == label).unwrap();
            assert_eq!(point.condemned_by.is_empty(), weight == Weight::Warns);
        }
    }
}
