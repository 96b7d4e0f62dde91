//! Two traces side by side. Each is one observation: differences apply to these executions, and
//! have no interval.

use std::collections::BTreeMap;

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Rows as _, Table, Value, happened, ratio, text, time, total,
};
use blockstone_base::units::format_ns;
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Detail, Headline, Report, Section};
use blockstone_trace::{Component, Spent, Statement, Trace};

use crate::verbs::trace::input::Input;
use crate::verbs::trace::rows::{SideBucketRow, SideRow, SideSpentRow, one_line};
use crate::verbs::trace::{earlier, words};

use super::charts::{self, Sides};

const ROWS_MAX: usize = 500;

/// Declares the table of something in both traces.
macro_rules! compared {
    ($about:literal, $name:ident, $key:ident, $heading:literal, $doc:literal, $calls:literal
     $(, $text:ident)?) => {
        rows! {
            #[doc = $about]
            pub(in crate::verbs::trace) struct $name {
                #[doc = $doc]
                $key: String = text($heading),
                /// Time in the first.
                a_ns: Value = time("A"),
                /// Time in the second.
                b_ns: Value = time("B"),
                /// Difference of the times.
                difference_ns: f64 = time("B − A"),
                /// Quotient of the times.
                ratio: Value = ratio("B ÷ A"),
                /// In the first.
                a_calls: Value = total(concat!($calls, " A"), Measure::Count),
                /// In the second.
                b_calls: Value = total(concat!($calls, " B"), Measure::Count),
                /// Mean time of one in the first trace.
                a_ns_mean: Value = time("mean A"),
                /// Mean time of one in the second trace.
                b_ns_mean: Value = time("mean B"),
                $(
                    /// Its beginning.
                    $text: String = text("text").answer(),
                )?
            }
        }

        impl $name {
            fn of($key: String, sides: Sides $(, $text: &str)?) -> Self {
                let [a, b] = sides;
                let ns = sides.map(|side| side.map(|(ns, _)| ns));
                let calls = sides.map(|side| Some(side?.1).filter(|calls| *calls > 0.0));
                let mean = |side: usize| happened(ns[side].zip(calls[side]).map(|(ns, n)| ns / n));
                let both = a.zip(b);
                Self {
                    $key,
                    a_ns: happened(ns[0]),
                    b_ns: happened(ns[1]),
                    difference_ns: ns[1].unwrap_or(0.0) - ns[0].unwrap_or(0.0),
                    ratio: happened(both.and_then(|(a, b)| (a.0 > 0.0).then(|| b.0 / a.0))),
                    a_calls: happened(calls[0]),
                    b_calls: happened(calls[1]),
                    a_ns_mean: mean(0),
                    b_ns_mean: mean(1),
                    $($text: one_line($text),)?
                }
            }
        }
    };
}

compared!(
    "Components of both traces.",
    ComparedRow,
    component,
    "component",
    "What time was spent on.",
    "calls"
);
compared!(
    "Statements of both traces.",
    ComparedStatementRow,
    id,
    "statement",
    "Its sql_id, or the hash of its text without values.",
    "executions",
    text
);

pub const TABLES: &[Tables] = &[&[
    ("sides", SideRow::COLUMNS),
    ("components", ComparedRow::COLUMNS),
    ("statements", ComparedStatementRow::COLUMNS),
    ("profiles", SideSpentRow::COLUMNS),
    ("histograms", SideBucketRow::COLUMNS),
]];

pub fn report(a: &Input, b: &Input, names: &[String; 2]) -> Report {
    let [a_ns, b_ns] = [a, b].map(|input| words::response_ns(&input.trace));
    let text = format!("response time {} in A, {} in B", format_ns(a_ns), format_ns(b_ns));
    let [first, second] = names;
    let mut notes: Vec<String> = Vec::new();
    notes.push("one trace a side: a difference may be chance; repeat both to see".to_owned());
    for (side, input) in [("A", a), ("B", b)] {
        notes.extend(input.trace.notes.iter().map(|note| format!("{side}: {note}")));
    }
    let both = [("A", &a.trace, first), ("B", &b.trace, second)];
    let sides = both.map(|(side, trace, files)| SideRow::of(side, trace, files));
    let spent = both.map(|(side, trace, _)| {
        SideSpentRow::all(&trace.components, words::response_ns(trace), side)
    });
    let buckets = both.map(|(side, trace, _)| SideBucketRow::all(&trace.components, side));
    let (spent, buckets) = (spent.into_iter().flatten(), buckets.into_iter().flatten());
    let compared = by_component(&a.trace, &b.trace);
    let chart = charts::against(&compared);
    // Logs of durations divide no time.
    let detail = if compared.is_empty() { Detail::Page } else { Detail::Screen };
    let components = components(compared);
    let warnings: Vec<String> = a.warnings.iter().chain(&b.warnings).cloned().collect();
    Report {
        verb: "trace-against".into(),
        version: 2,
        headline: Headline {
            subject: format!("{first} → {second}"), text, ..Headline::default()
        },
        partial: !warnings.is_empty(),
        warnings,
        sections: vec![
            Section::of("sides", SideRow::table("sides", "Traces", sides)),
            Section::of("components", components).detail(detail),
            Section::page("components-chart", "Response time in A and in B").with([chart]),
            Section::of("statements", statements(&a.trace, &b.trace)),
            Section::page("profiles", "Components and histograms").with([
                SideSpentRow::table("profiles", "Components", spent),
                SideBucketRow::table("histograms", "Histograms", buckets),
            ]),
        ],
        earlier: Some(earlier::against),
        notes,
        end: End::by(a.signal.or(b.signal)),
        ..Report::default()
    }
}

/// Components of both traces, those that took longest first.
fn by_component(a: &Trace, b: &Trace) -> Vec<(String, Sides)> {
    let spent = |spent: &Spent| (spent.ns, spent.calls);
    let mut all: BTreeMap<&Component, Sides> = BTreeMap::new();
    for (side, trace) in [a, b].into_iter().enumerate() {
        for (component, it) in &trace.components {
            all.entry(component).or_default()[side] = Some(spent(it));
        }
    }
    let mut rows: Vec<(String, Sides)> =
        all.into_iter().map(|(component, sides)| (words::component(component), sides)).collect();
    rows.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)));
    rows
}

fn components(rows: Vec<(String, Sides)>) -> Table {
    let rows = rows.into_iter().map(|(name, sides)| ComparedRow::of(name, sides));
    ComparedRow::table("components", "Components", rows)
}

fn statements(a: &Trace, b: &Trace) -> Table {
    let mut all: BTreeMap<&str, (Sides, &str)> = BTreeMap::new();
    for (side, trace) in [a, b].into_iter().enumerate() {
        for Statement { id, text, ns, executions, .. } in &trace.statements {
            let held = all.entry(id).or_insert(([None, None], text));
            // A recursive statement may occur at several depths.
            let before = held.0[side].unwrap_or((0.0, 0.0));
            held.0[side] = Some((before.0 + ns, before.1 + executions));
        }
    }
    let mut rows: Vec<_> = all.into_iter().collect();
    rows.sort_by(|a, b| most(&b.1.0).total_cmp(&most(&a.1.0)));
    let rows = rows.into_iter();
    let rows = rows.map(|(id, (sides, text))| ComparedStatementRow::of(id.into(), sides, text));
    ComparedStatementRow::table("statements", "Statements", rows).on_screen(20).on_page(ROWS_MAX)
}

fn most(sides: &Sides) -> f64 {
    sides.iter().flatten().map(|(ns, _)| *ns).fold(0.0, f64::max)
}
