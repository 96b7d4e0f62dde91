//! Numbers that moved while they were measured.

use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Weight;
use blockstone_figures::rate;

use super::{Case, Judgement, Rule, labels, percent};
use crate::window::Window;

pub(super) const RULE: Rule = Rule {
    id: "unsteady",
    weight: Weight::Warns,
    doc: "A rate that kept moving: a trend or wide variation inside a headline's window, or a \
          reference point that came out differently over the run.",
    threshold: "A 95 % interval wider than ±10 %; halves of a window that differ by more than 10 % \
                and by more than their intervals; or windows of the reference that differ by more \
                than 10 % of their mean. Windows end early at ±2 %, so 10 % is five times what a \
                steady device needs.",
    cause: "A device that changes its state (garbage collection, write cache filling, thermal \
            limits) or a neighbour that comes and goes.",
    next: "Use --full for longer windows and repeats, or measure at a quiet time; every interval \
           of the summary already holds half the drift.",
    check,
};

const MOVEMENT_MAX: f64 = 0.10;

fn check(case: &Case) -> Judgement {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut widest = 0.0_f64;
    for point in case.headlines() {
        let half_width = point.iops.relative_half_width();
        let trend = case.windows_of(&point.label).into_iter().find_map(trend);
        widest = widest.max(half_width);
        if half_width > MOVEMENT_MAX {
            seen.push(format!("{}: interval ±{}", point.label, percent(half_width)));
        } else if let Some((first, second)) = trend {
            seen.push(format!(
                "{}: {:.0} IOPS in the first half of the window, {:.0} in the second",
                point.label, first.value, second.value
            ));
        } else {
            continue;
        }
        found.push(point.label.clone());
    }
    if let Some(drift) = case.drift_ratio.filter(|&drift| drift > MOVEMENT_MAX) {
        seen.insert(0, format!("the reference point moved by {} over the run", percent(drift)));
        found = labels(case.storage_points());
    }
    if !seen.is_empty() {
        return Judgement::fail(seen.join("; "), found);
    }
    match case.drift_ratio {
        Some(drift) => Judgement::pass(format!(
            "the reference point moved by {}; the widest interval is ±{}",
            percent(drift),
            percent(widest)
        )),
        None => Judgement::inconclusive(
            "the reference point was not measured twice, so drift is unknown",
        ),
    }
}

/// The rates of a window's halves when they differ by more than they may.
fn trend(window: &Window) -> Option<(Estimate, Estimate)> {
    let ticks = window.ops_track();
    let (first, second) = ticks.split_at(ticks.len() / 2);
    let (first, second) = (rate(first).ok()?, rate(second).ok()?);
    let apart = first.high < second.low || second.high < first.low;
    let level = f64::midpoint(first.value, second.value);
    let moved = (first.value - second.value).abs() > MOVEMENT_MAX * level;
    (apart && moved).then_some((first, second))
}
