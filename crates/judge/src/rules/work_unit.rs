//! Operations that were not what was requested.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, all_figures, percent};

const ABOUT: About = About {
    id: "work-unit",
    weight: Weight::Condemns,
    doc: "Operations that visited a different number of rows than the work unit, or a share of \
          updates that differs from the requested one.",
    threshold: "One row too many or too few; or a share of updates that differs by more than two \
                percentage points, if at least 1,000 operations ran. Sessions spread updates \
                evenly, so a window of any length has nearly the exact share.",
    cause: "An error in this tool, or a target whose schemas do not hold the rows that were \
            loaded.",
    next: "Please report this, with the recording.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

/// Largest difference between the share of updates requested and the share sent.
const SHARE_OFF_MAX: f64 = 0.02;
/// Fewest operations for which the share is judged.
const ENOUGH_OPS: u64 = 1_000;

/// Checks whether the transactions of order entry have the shares that were requested.
fn mix(case: &RunCase, seen: &mut Vec<String>, wrong: &mut Vec<String>) {
    let Some(transactions) = &case.findings.transactions else { return };
    let sent: u64 = transactions.kinds.iter().map(|kind| kind.count).sum();
    if sent < ENOUGH_OPS {
        return;
    }
    let known = transactions.kinds.iter().filter_map(|kind| Some((kind, kind.asked_pct?)));
    let off = |ratio: f64, asked: u32| (ratio - f64::from(asked) / 100.0).abs();
    let off = known.map(|(kind, asked)| (off(kind.ratio, asked), kind, asked));
    let Some((off, kind, asked)) = off.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let text = format!(
        "{} of the transactions were {}; {asked} % were requested, the others are closer",
        percent(kind.ratio),
        kind.name
    );
    if off <= SHARE_OFF_MAX { seen.push(text) } else { wrong.push(text) }
}

/// Checks whether every table has all rows of its schema: `InnoDB` keeps a second row for each.
fn tables(case: &RunCase, seen: &mut Vec<String>, wrong: &mut Vec<String>) {
    let Some(made) = case.findings.bulk_write.as_ref().filter(|made| made.tables > 0) else {
        return;
    };
    let Some(rows) = case.window.parameters().rows_per_schema else { return };
    let each = made.rows_mean.unwrap_or(0.0);
    let text =
        format!("tables of {each:.1} rows were made of schemas of {}", thousands(rows as i64));
    let is_whole = [1, 2].iter().any(|times| (each - (times * rows) as f64).abs() < 1e-6);
    if is_whole { seen.push(text) } else { wrong.push(text) }
}

fn check(case: &RunCase) -> Judgement {
    let grown = |kind, column| case.window.grown("operation", kind, column).unwrap_or(0);
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    let run = case.window.parameters();
    let units = [
        ("select", run.work_unit.map(u64::from)),
        ("update", run.update_work_unit.map(u64::from)),
        ("scan", run.scan_rows),
        ("stock-level", run.work_unit.map(u64::from)),
    ];
    for (kind, unit) in units {
        let (ops, rows) = (grown(kind, "completed_ops"), grown(kind, "rows"));
        let Some(unit) = unit.filter(|_| ops > 0) else { continue };
        let text = format!(
            "{} {kind}s visited {} rows; the work unit is {unit}",
            thousands(ops as i64),
            thousands(rows as i64)
        );
        if rows == ops * unit { seen.push(text) } else { wrong.push(text) }
    }
    let sent: u64 =
        ["select", "update", "scan"].map(|kind| grown(kind, "completed_ops")).iter().sum();
    if let Some(asked) = run.update_pct.filter(|_| sent >= ENOUGH_OPS) {
        let share = grown("update", "completed_ops") as f64 / sent as f64;
        let text =
            format!("{} of the operations were updates; {asked} % were requested", percent(share));
        // Where sessions run at different speeds, the fast ones do not change the mix of each.
        if (share - f64::from(asked) / 100.0).abs() <= SHARE_OFF_MAX {
            seen.push(text);
        } else {
            wrong.push(text);
        }
    }
    mix(case, &mut seen, &mut wrong);
    tables(case, &mut seen, &mut wrong);
    match (wrong.is_empty(), seen.is_empty()) {
        (false, _) => Judgement::fail(wrong.join("; "), all_figures()),
        (true, false) => Judgement::pass(seen.join("; ")),
        (true, true) => Judgement::inconclusive("no operation completed in the window"),
    }
}
