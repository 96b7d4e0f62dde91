//! Expectations: limits that figures of a report must keep to, decided on the report.
//!
//! A limit is decided on the whole 95 % interval of a figure: one that contains the limit, is
//! condemned or was not measured is not established, and never a pass.

mod names;

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Measure, Row, Rows as _, Table, Value, text};
use blockstone_base::units::counted;

pub use crate::expectation::{ExpectError, Expectation, Purpose, parse};
use crate::expected::{EXPECTATIONS, Expected, Found, Outcome};
use crate::report::{Detail, Report, Section, Tone};
pub use names::{Term, help, known, resolve};

rows! {
    /// Limits that were expected, and the outcome of each.
    pub struct ExpectationRow {
        /// Figure and limit.
        expectation: String = text("expected").answer(),
        /// `pass`; `FAIL`; `not established`: the interval contains the limit, or a sound figure
        /// is missing.
        outcome: &'static str = text("result").answer(),
        /// Number that was measured, and the ends of its 95 % interval.
        measured: String = text("measured").answer(),
        /// Row of the table that decides, and why a limit is not established.
        why: String = text("why").prose(),
        /// The one who states the limit.
        origin: String = text("stated by").prose(),
    }
}

/// Decides the limit on a report.
fn decided(expectation: &Expectation, report: &Report) -> Expected {
    let all = names::find(&expectation.name, report);
    let judged = all.into_iter().map(|found| {
        let (outcome, why) = if found.condemned_by.is_empty() {
            expectation.decide(&found.figure)
        } else {
            let rules = found.condemned_by.join(", ");
            (Outcome::NotEstablished, Some(format!("condemned: {rules}")))
        };
        let why = [found.row, why.unwrap_or_default()];
        let why: Vec<String> = why.into_iter().filter(|part| !part.is_empty()).collect();
        (outcome, why.join(": "), found.figure)
    });
    // The row that is worst decides.
    let worst = judged.max_by_key(|(outcome, ..)| *outcome);
    let (outcome, why, found) = worst.unwrap_or_else(|| {
        let found = Found { value: Value::default(), measure: Measure::Count };
        (Outcome::NotEstablished, "it was not measured".to_owned(), found)
    });
    let ends = match &found.value {
        Value::Estimate(Estimate { low, high, .. }) => [Some(*low), Some(*high)],
        _ => [None, None],
    };
    let [value, low, high] =
        [found.value.number(), ends[0], ends[1]].map(|it| it.filter(|it| it.is_finite()));
    Expected {
        name: expectation.name.clone(),
        limit: expectation.written(),
        value,
        low,
        high,
        outcome,
        why: Some(why).filter(|why| !why.is_empty()),
        origin: Some(expectation.origin.clone()).filter(|origin| !origin.is_empty()),
        found,
    }
}

/// Decides the limits on a report, shows them above its figures, and says so in its headline.
pub fn judge(report: &mut Report, expectations: &[Expectation]) {
    let decided = decide(report, expectations);
    show(report, decided);
}

/// Decides the limits on a report: those of its purpose and those that are expected.
pub fn decide(report: &Report, expectations: &[Expectation]) -> Vec<Expected> {
    let of_purpose = report.purpose.iter().flat_map(|purpose| &purpose.limits);
    of_purpose.chain(expectations).map(|it| decided(it, report)).collect()
}

/// Shows limits that were decided above the figures of a report, and says so in its headline.
pub fn show(report: &mut Report, expected: Vec<Expected>) {
    report.sections.retain(|section| section.id != EXPECTATIONS);
    report.expectations = expected;
    if report.expectations.is_empty() && report.purpose.is_none() {
        return;
    }
    let rows = report.expectations.iter().map(|it| ExpectationRow {
        expectation: it.to_string(),
        outcome: it.outcome.words(),
        measured: it.measured(),
        why: it.why.clone().unwrap_or_default(),
        origin: it.origin.clone().unwrap_or_default(),
    });
    let title = report
        .purpose
        .as_ref()
        .map_or("Expectations".to_owned(), |purpose| format!("Limits for {}", purpose.title));
    let rows = rows.map(Row::from);
    let table = Table::new(EXPECTATIONS, title, ExpectationRow::COLUMNS).with(rows);
    let note = report.purpose.as_ref().map(|purpose| purpose.note.clone());
    let section = Section::new(EXPECTATIONS, "").with([table]).with(note).detail(Detail::Top);
    report.sections.insert(0, section);
    let purpose = report.purpose.as_ref().map(|purpose| purpose.title.as_str());
    let (text, tone) = summary(&report.expectations, purpose);
    let headline = &mut report.headline;
    headline.leads = true;
    let parts = [text, std::mem::take(&mut headline.text)];
    headline.text =
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    if headline.tone == Tone::Plain || tone == Tone::Bad {
        headline.tone = tone;
    }
}

/// Returns the answer in words: yes, no, or not established.
fn summary(all: &[Expected], purpose: Option<&str>) -> (String, Tone) {
    let named = |outcome: Outcome| -> Vec<String> {
        let of = all.iter().filter(|it| it.outcome == outcome);
        of.map(ToString::to_string).collect()
    };
    let (failed, open) = (named(Outcome::Fail), named(Outcome::NotEstablished));
    let for_it = purpose.map_or(String::new(), |purpose| format!(" for {purpose}"));
    match (failed.as_slice(), open.as_slice()) {
        ([], []) if all.is_empty() => (format!("no limit is known{for_it}"), Tone::Plain),
        ([], []) if purpose.is_some() => (format!("OK{for_it}"), Tone::Plain),
        ([], []) if all.len() == 1 => ("as expected".to_owned(), Tone::Plain),
        ([], []) => {
            (format!("all {} as expected", counted(all.len() as u64, "limit")), Tone::Plain)
        }
        ([], open) => (format!("not established{for_it}: {}", open.join(", ")), Tone::Warning),
        (failed, _) if purpose.is_some() => {
            (format!("not OK{for_it}: {}", failed.join(", ")), Tone::Bad)
        }
        (failed, _) => (format!("not as expected: {}", failed.join(", ")), Tone::Bad),
    }
}

#[cfg(test)]
mod tests;
