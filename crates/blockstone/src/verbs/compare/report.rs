//! The reports of a comparison: of figures, and of what every layer did.

pub mod figures;
pub mod layers;

use blockstone_base::Estimate;
use blockstone_base::table::{Missing, Value};
use blockstone_figures::compare::{Comparison, Outcome, Recorded, Row, Subject};
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, Tone, format};

/// What both have, around the sections of one; those without a row are omitted.
fn report(verb: &'static str, comparison: &Comparison, mut sections: Vec<Section>) -> Report {
    let Comparison { a, b, counts, rows, warnings, caveats } = comparison;
    sections.retain(|section| !section.blocks.is_empty());
    let sides = [("A", a), ("B", b)];
    let recordings =
        || sides.into_iter().flat_map(|(side, set)| set.recordings.iter().map(move |r| (side, r)));
    let untrustworthy = recordings()
        .filter(|(_, recorded)| !recorded.trustworthy)
        .map(|(side, recorded)| format!("{side} is not trustworthy: {}", recorded.id));
    let tone = if counts.condemned > 0 { Tone::Warning } else { Tone::Plain };
    let (subject, text) = ("B against A".to_owned(), counted(rows, " · "));
    Report {
        verb: verb.into(),
        version: 1,
        headline: Headline { subject, text, tone, ..Headline::default() },
        identity: recordings().map(|(side, recorded)| identity(side, recorded)).collect(),
        warnings: untrustworthy.chain(warnings.iter().cloned()).collect(),
        sections,
        notes: caveats.clone(),
        document: json::keys(comparison),
        ..Report::default()
    }
}

/// How many rows have each outcome, in words.
fn counted<'a>(rows: impl IntoIterator<Item = &'a Row>, separator: &str) -> String {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let counts = Outcome::ALL.map(|outcome| (outcome, count(outcome)));
    let parts = counts.iter().filter(|(_, count)| *count > 0);
    let parts = parts.map(|(outcome, count)| format!("{count} {}", outcome.words()));
    parts.collect::<Vec<_>>().join(separator)
}

/// A recording in a line; a part of its time by its name and its host.
fn identity(side: &str, recorded: &Recorded) -> String {
    let Recorded { recording, id, started_at, host, target, device, from_ns, .. } = recorded;
    if from_ns.is_some() {
        let host = if host.is_empty() { String::new() } else { format!(" · {host}") };
        return format!("{side} {recording}{host}");
    }
    let device = device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    format!("{side} {target}{device} · {host} · {} · {id}", format::instant(started_at))
}

/// Both sides of a row, their ratio, and what may be said of it.
fn cells(row: &Row) -> [Value; 4] {
    let missing = Value::Missing(match row.key.subject {
        Subject::Measured { .. } => Missing::Unknown,
        // An object of a view, such as a wait event, did not occur.
        Subject::Viewed { .. } => Missing::Nothing,
    });
    let value = |side: Option<Estimate>| {
        side.map_or_else(|| missing.clone(), |estimate| Value::Number(estimate.value))
    };
    // Where the sides are condemned, their ratio says nothing.
    let ratio = row.ratio.filter(|_| row.outcome != Outcome::Condemned);
    let ratio = ratio.map_or(Value::Missing(Missing::Nothing), Value::Estimate);
    let outcome = match row.outcome {
        outcome @ (Outcome::Higher | Outcome::Lower) if !row.warned_by.is_empty() => {
            format!("{}, but see {}", outcome.words(), row.warned_by.join(", ")).into()
        }
        Outcome::OtherLoad => {
            format!("{} ({})", Outcome::OtherLoad.words(), row.loads.join(" / ")).into()
        }
        outcome => outcome.words().into(),
    };
    [value(row.a), value(row.b), ratio, outcome]
}
