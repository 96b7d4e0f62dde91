//! The reports of a comparison: of figures, and of the activity of every layer.

mod earlier;
pub mod figures;
pub mod layers;
pub mod rows;

use std::fmt::Write as _;

use blockstone_base::Estimate;
use blockstone_base::table::{Measure, Missing, Rows as _, Table, Value};
use blockstone_figures::compare::{
    Comparison, Difference, Judgement, Outcome, Recorded, Row, Subject,
};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, Tone, format};

use rows::{CaveatRow, RecordingRow, SetupRow, WarningRow};

/// Tables that both documents have.
pub const TABLES: Tables = &[
    ("setup", SetupRow::COLUMNS),
    ("recordings", RecordingRow::COLUMNS),
    ("warnings", WarningRow::COLUMNS),
    ("caveats", CaveatRow::COLUMNS),
];

/// Returns the parts that both reports share, around the sections of one of them and before the
/// rows of its document. Empty sections are omitted.
fn report(
    verb: &'static str,
    comparison: &Comparison,
    mut sections: Vec<Section>,
    rows_of_document: Table,
) -> Report {
    let Comparison { a, b, counts, rows, warnings, caveats, .. } = comparison;
    sections.push(Section::documents(documents(comparison).into_iter().chain([rows_of_document])));
    sections.retain(|section| !section.blocks.is_empty());
    let sides = [("A", a), ("B", b)];
    let recordings =
        || sides.into_iter().flat_map(|(side, set)| set.recordings.iter().map(move |r| (side, r)));
    let untrustworthy = recordings()
        .filter(|(_, recorded)| !recorded.trustworthy)
        .map(|(side, recorded)| format!("{side} is not trustworthy: {}", recorded.id));
    let tone = if counts.condemned > 0 { Tone::Warning } else { Tone::Plain };
    let counts = counted(rows, " · ");
    let text = match comparison.verdict {
        Some(verdict) => format!("{} ({counts})", sentence(verdict, rows)),
        None => counts,
    };
    let subject = "B against A".to_owned();
    // Differences in settings precede the figures, because they may explain them.
    if let Some(table) = differences(comparison) {
        sections.insert(0, Section::new("differences", WHAT_DIFFERS).with([table]));
    }
    let has_table = !comparison.differences.is_empty();
    let of_text = |warning: &&String| !(has_table && warning.contains("differs"));
    Report {
        verb: verb.into(),
        version: 2,
        headline: Headline { subject, text, tone, ..Headline::default() },
        identity: recordings().map(|(side, recorded)| identity(side, recorded)).collect(),
        warnings: untrustworthy.chain(warnings.iter().filter(of_text).cloned()).collect(),
        sections,
        notes: caveats.clone(),
        shown_only: &["figures", "points", "differences", "undecided-*"],
        first: earlier::keys(comparison),
        ..Report::default()
    }
}

const WHAT_DIFFERS: &str = "What differs between A and B";
/// Maximum number of differences on a screen.
const DIFFERENCES: usize = 15;

fn differences(comparison: &Comparison) -> Option<Table> {
    let row = |it: &Difference| {
        let [name, a, b] = [&it.name, &it.a, &it.b].map(Clone::clone);
        SetupRow { name, a, b }
    };
    let rows = comparison.differences.iter().map(row);
    let table = SetupRow::table("setup", WHAT_DIFFERS, rows).on_screen(DIFFERENCES);
    (!table.rows.is_empty()).then_some(table)
}

/// Returns the tables that only documents have, except the rows.
fn documents(comparison: &Comparison) -> [Table; 3] {
    let warnings = comparison.warnings.iter().cloned();
    let caveats = comparison.caveats.iter().cloned();
    [
        RecordingRow::table("recordings", "", RecordingRow::of(comparison)),
        WarningRow::table("warnings", "", warnings.map(|warning| WarningRow { warning })),
        CaveatRow::table("caveats", "", caveats.map(|caveat| CaveatRow { caveat })),
    ]
}

/// Returns the verdict in one sentence, with the figure that differs most.
fn sentence(verdict: Judgement, rows: &[Row]) -> String {
    let headline: Vec<&Row> = rows.iter().filter(|row| row.is_headline()).collect();
    let count = |worse| headline.iter().filter(|row| row.is_worse() == Some(worse)).count();
    let compared = headline.iter().filter(|row| row.p_value.is_some()).count();
    let of = |n: usize| format!("{n} of {compared} figures");
    let most = headline.iter().filter(|row| row.is_worse().is_some()).max_by(|a, b| {
        let far = |row: &Row| row.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
        far(a).total_cmp(&far(b))
    });
    let most = most.and_then(|row| {
        let ratio = format::value(&Value::Number(row.ratio?.value), Measure::Ratio);
        Some(format!("; the largest change is \u{201c}{}\u{201d}, {ratio}", row.title))
    });
    let mut most = most.unwrap_or_default();
    let differs = || headline.iter().filter(|row| row.is_worse().is_some());
    let changed = differs().count();
    let warned = differs().filter(|row| !row.warned_by.is_empty()).count();
    if warned > 0 {
        let _ = write!(most, "; a rule warns of {warned} of {changed}");
    }
    match verdict {
        // A rule warns of each: the cause may lie outside the storage.
        _ if changed > 0 && warned == changed => format!("B differs in {}{most}", of(changed)),
        Judgement::Faster => format!("B is faster in {}{most}", of(count(false))),
        Judgement::Slower => format!("B is slower in {}{most}", of(count(true))),
        Judgement::Mixed => {
            format!("B is faster in {} and slower in {}{most}", count(false), of(count(true)))
        }
        Judgement::Same => "B is as fast as A, within 10 %".to_owned(),
        Judgement::NotEstablished => "No difference is established".to_owned(),
    }
}

/// Returns the number of rows with each outcome, in words.
fn counted<'a>(rows: impl IntoIterator<Item = &'a Row>, separator: &str) -> String {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let counts = Outcome::ALL.map(|outcome| (outcome, count(outcome)));
    let parts = counts.iter().filter(|(_, count)| *count > 0);
    let parts = parts.map(|(outcome, count)| format!("{count} {}", outcome.short()));
    parts.collect::<Vec<_>>().join(separator)
}

/// Describes a recording in a line; a part of its time by its name and its host.
fn identity(side: &str, recorded: &Recorded) -> String {
    let Recorded { recording, id, started_at, host, target, device, from_ns, .. } = recorded;
    if from_ns.is_some() {
        let host = if host.is_empty() { String::new() } else { format!(" · {host}") };
        return format!("{side} {recording}{host}");
    }
    let device = device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    format!("{side} {target}{device} · {host} · {} · {id}", format::instant(started_at))
}

/// Returns both sides of a row, their ratio, and the outcome.
fn cells(row: &Row) -> [Value; 4] {
    let missing = Value::Missing(match row.key.subject {
        Subject::Measured { .. } => Missing::Unknown,
        // An object of a view, for example a wait event, did not occur.
        Subject::Viewed { .. } => Missing::Nothing,
    });
    let value = |side: Option<Estimate>| {
        side.map_or_else(|| missing.clone(), |estimate| Value::Number(estimate.value))
    };
    // If the sides are condemned, their ratio is meaningless.
    let ratio = row.ratio.filter(|_| row.outcome != Outcome::Condemned);
    let ratio = ratio.map_or(Value::Missing(Missing::Nothing), Value::Estimate);
    let outcome = match row.outcome {
        outcome if outcome.is_established() && !row.warned_by.is_empty() => {
            let outside = matches!(outcome, Outcome::Higher | Outcome::Lower);
            let see = if outside { "but see" } else { "see" };
            format!("{}, {see} {}", outcome.words(), row.warned_by.join(", ")).into()
        }
        Outcome::OtherLoad => {
            format!("{} ({})", Outcome::OtherLoad.short(), row.loads.join(" / ")).into()
        }
        outcome => outcome.short().into(),
    };
    [value(row.a), value(row.b), ratio, outcome]
}
