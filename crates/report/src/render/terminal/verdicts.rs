//! The verdicts: failures in full, the rest in as few lines as they need.

use std::collections::BTreeSet;

use blockstone_base::verdict::{Outcome, Verdict, Weight};

use super::columns::wrap;
use super::paint::Style;
use crate::render::undecided::{by_reason, undecided};
use crate::report::Report;

/// Returns condemning failures first, then warnings, then what could not be decided, then the
/// passes. With `all`, each verdict that could not be decided has its evidence.
pub fn lines(report: &Report, all: bool, style: &Style) -> Vec<String> {
    let verdicts = &report.verdicts;
    let mut lines = Vec::new();
    for weight in [Weight::Condemns, Weight::Warns] {
        for verdict in verdicts {
            if verdict.outcome == Outcome::Fail && verdict.weight == weight {
                lines.extend(failure(verdict, &concerns(report, verdict), style));
            }
        }
    }
    for text in inconclusive(verdicts, all) {
        lines.extend(wrap(&text, style.width, 0, 4).iter().map(|line| style.dim(line)));
    }
    let passed: Vec<&str> =
        verdicts.iter().filter(|v| v.outcome == Outcome::Pass).map(|v| v.rule.as_str()).collect();
    if !passed.is_empty() {
        let text = format!("✓ {} passed: {}", passed.len(), passed.join(", "));
        lines.extend(wrap(&text, style.width, 0, 2).iter().map(|line| style.good(line)));
    }
    lines
}

fn inconclusive(verdicts: &[Verdict], all: bool) -> Vec<String> {
    let undecided = undecided(verdicts);
    if all || undecided.len() < 2 {
        let line = |v: &&Verdict| format!("? {} inconclusive: {}", v.rule, v.evidence);
        return undecided.iter().map(line).collect();
    }
    let (count, reasons) = (undecided.len(), by_reason(&undecided));
    vec![format!("? {count} inconclusive (the page and --verbose say why): {reasons}")]
}

fn failure(verdict: &Verdict, concerns: &str, style: &Style) -> Vec<String> {
    let (sign, verb) = if verdict.condemns() { ("✗", "condemns") } else { ("!", "concerns") };
    let first = format!("{sign} {} {verb} {concerns}", verdict.rule);
    let mut lines: Vec<String> = wrap(&first, style.width, 0, 4)
        .iter()
        .map(|line| if verdict.condemns() { style.bad(line) } else { style.warning(line) })
        .collect();
    for (heading, text) in
        [("seen:", &verdict.evidence), ("cause:", &verdict.cause), ("next:", &verdict.next)]
    {
        if !text.is_empty() {
            lines.extend(wrap(&format!("{heading} {text}"), style.width, 4, 6));
        }
    }
    lines
}

/// Returns the titles of up to four figures, otherwise their number; figures of other windows are
/// named by their windows.
fn concerns(report: &Report, verdict: &Verdict) -> String {
    let (names, all) = (&verdict.concerns, report.cards.len());
    if all == 0 && !names.is_empty() {
        // A check has cases instead of figures.
        return if names.len() > 4 { format!("{} cases", names.len()) } else { names.join(", ") };
    }
    let (beside, own): (Vec<&str>, Vec<&str>) =
        names.iter().map(String::as_str).partition(|name| name.contains('/'));
    let windows: BTreeSet<&str> =
        beside.iter().filter_map(|name| Some(name.rsplit_once('/')?.0)).collect();
    let figures = match own.len() {
        0 => None,
        1..=4 => {
            let titles: Vec<&str> = own.iter().map(|name| report.title(name)).collect();
            Some(titles.join(" · "))
        }
        count if count >= all => Some("all figures".to_owned()),
        count => Some(format!("{count} of {all} figures")),
    };
    match (figures, windows.len()) {
        (None, 0) => "the whole run".to_owned(),
        (Some(figures), 0) => figures,
        (figures, count) => {
            let others = if count <= 2 {
                windows.into_iter().collect::<Vec<_>>().join(", ")
            } else {
                format!("{count} windows")
            };
            figures.map_or(others.clone(), |figures| format!("{figures}; also in {others}"))
        }
    }
}
