//! Two traces side by side. Each is one observation: differences apply to these executions, and
//! have no interval.

use std::collections::BTreeMap;

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Row, Table, Value, happened, ratio, text, time, total,
};
use blockstone_base::units::format_ns;
use blockstone_record::manifest::End;
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section};
use blockstone_trace::{Component, Spent, Statement, Trace};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::input::Input;
use super::document::{ComponentKeys, profile, unaccounted};
use super::{VERSION, words};

const ROWS_MAX: usize = 500;

#[derive(Serialize, JsonSchema)]
pub struct AgainstDocument {
    tool_version: &'static str,
    a: SideKeys,
    b: SideKeys,
}

#[derive(Serialize, JsonSchema)]
struct SideKeys {
    files: String,
    span_seconds: Option<f64>,
    response_seconds: f64,
    profile: Vec<ComponentKeys>,
    unaccounted_seconds: Option<f64>,
    skipped_lines: u64,
}

const COMPONENTS: &[Heading] = &[
    text("component", "component", "What time was spent on."),
    time("a_ns", "A", "Time in the first."),
    time("b_ns", "B", "Time in the second."),
    time("difference_ns", "B − A", "Of times."),
    ratio("ratio", "B ÷ A", "Of times."),
    total("a_calls", "calls A", Measure::Count, "In the first."),
    total("b_calls", "calls B", Measure::Count, "In the second."),
    time("a_ns_mean", "mean A", "Of a call in the first."),
    time("b_ns_mean", "mean B", "Of a call in the second."),
];

const STATEMENTS: &[Heading] = &[
    text("id", "statement", "Its sql_id, or the hash of its text without values."),
    time("a_ns", "A", "Time in the first."),
    time("b_ns", "B", "Time in the second."),
    time("difference_ns", "B − A", "Of times."),
    ratio("ratio", "B ÷ A", "Of times."),
    total("a_calls", "executions A", Measure::Count, "In the first."),
    total("b_calls", "executions B", Measure::Count, "In the second."),
    time("a_ns_mean", "mean A", "Of an execution in the first."),
    time("b_ns_mean", "mean B", "Of an execution in the second."),
    text("text", "text", "Its beginning.").answer(),
];

pub const TABLES: &[&str] = &["components", "statements"];

pub fn report(a: &Input, b: &Input, names: &[String; 2]) -> Report {
    let [a_ns, b_ns] = [a, b].map(|input| words::response_ns(&input.trace));
    let text = format!("response time {} in A, {} in B", format_ns(a_ns), format_ns(b_ns));
    let [first, second] = names;
    let mut notes: Vec<String> = Vec::new();
    notes.push("one trace a side: a difference may be chance; repeat both to see".to_owned());
    for (side, input) in [("A", a), ("B", b)] {
        notes.extend(input.trace.notes.iter().map(|note| format!("{side}: {note}")));
    }
    let warnings: Vec<String> = a.warnings.iter().chain(&b.warnings).cloned().collect();
    Report {
        verb: "trace-against".into(),
        version: 1,
        headline: Headline {
            subject: format!("{first} → {second}"), text, ..Headline::default()
        },
        identity: vec![format!("A: {first}"), format!("B: {second}")],
        partial: !warnings.is_empty(),
        warnings,
        sections: vec![
            Section::of("components", components(&a.trace, &b.trace)),
            Section::of("statements", statements(&a.trace, &b.trace)),
        ],
        document: json::keys(AgainstDocument {
            tool_version: VERSION,
            a: side(a, first),
            b: side(b, second),
        }),
        notes,
        end: End::by(a.signal.or(b.signal)),
        ..Report::default()
    }
}

fn side(input: &Input, files: &str) -> SideKeys {
    let trace = &input.trace;
    SideKeys {
        files: files.to_owned(),
        span_seconds: trace.span_ns.map(words::seconds),
        response_seconds: words::seconds(words::response_ns(trace)),
        profile: profile(&trace.components),
        unaccounted_seconds: unaccounted(&trace.components),
        skipped_lines: trace.skipped_lines,
    }
}

/// Time and calls on each side; `None` if that side has none.
type Sides = [Option<(f64, f64)>; 2];

fn row(name: &str, sides: Sides) -> Row {
    let [a, b] = sides;
    let ns = sides.map(|side| side.map(|(ns, _)| ns));
    let calls = sides.map(|side| side.map(|(_, calls)| calls).filter(|calls| *calls > 0.0));
    let mean = |side: usize| Some(ns[side]? / calls[side]?);
    let both = a.zip(b);
    row![
        name,
        happened(ns[0]),
        happened(ns[1]),
        ns[1].unwrap_or(0.0) - ns[0].unwrap_or(0.0),
        happened(both.and_then(|(a, b)| (a.0 > 0.0).then(|| b.0 / a.0))),
        happened(calls[0]),
        happened(calls[1]),
        happened(mean(0)),
        happened(mean(1))
    ]
}

fn components(a: &Trace, b: &Trace) -> Table {
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
    let rows = rows.iter().map(|(name, sides)| row(name, *sides));
    Table::new("components", "Components", COMPONENTS).with(rows)
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
    let rows = rows.iter().take(ROWS_MAX).map(|(id, (sides, text))| {
        let mut row = row(id, *sides);
        row.cells.push(Value::from(super::tables::one_line(text)));
        row
    });
    Table::new("statements", "Statements", STATEMENTS).with(rows).on_screen(20)
}

fn most(sides: &Sides) -> f64 {
    sides.iter().flatten().map(|(ns, _)| *ns).fold(0.0, f64::max)
}
