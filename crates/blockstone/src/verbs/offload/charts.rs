//! Charts and bars of ledgers.

use blockstone_base::table::Measure;
use blockstone_base::units::Bytes;
use blockstone_offload::Ledger;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::percent;
use blockstone_report::render::terminal::Style;

use super::tables::lines;

/// Most runs that a chart has room for.
const RUNS_MAX: usize = 6;
/// Characters of the longest bar.
const BAR: f64 = 30.0;

/// Charts the bytes of runs side by side, in the order of the ledger.
pub fn ledger(ledgers: &[Ledger]) -> Chart {
    let shown = &ledgers[..ledgers.len().min(RUNS_MAX)];
    let mut names: Vec<String> = Vec::new();
    for (line, _) in shown.iter().flat_map(lines) {
        let line = line.trim().to_owned();
        if !names.contains(&line) {
            names.push(line);
        }
    }
    let x = Axis::names("", names.clone());
    let y = Axis::new("bytes", Measure::Bytes);
    let mut chart = Chart::new("ledger-chart", "Where the bytes went", x, y).wide(320).about(
        "From the plan to the client. What a storage saves is the step from the first line to what \
         reads leave on the wire.",
    );
    for (run, color) in shown.iter().zip(0..) {
        let points = lines(run).into_iter().filter_map(|(line, bytes)| {
            let at = names.iter().position(|name| name == line.trim())?;
            Some(Point::from((at as f64, Some(bytes as f64))))
        });
        let form = Form::Bars { points: points.collect(), stacked: false };
        chart = chart.layer(run.name.clone(), Color::Series(color), form);
    }
    chart
}

/// Shows the bytes of a run as bars in their fixed order, each with its share of the first line.
pub fn bars(ledger: &Ledger, style: &Style) -> Vec<String> {
    let lines = lines(ledger);
    let greatest = lines.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let first = ledger.read_bytes;
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let bar = |(line, bytes): &(String, u64)| {
        let cells = (*bytes as f64 / greatest as f64 * BAR).round() as usize;
        let cells = if *bytes > 0 { cells.max(1) } else { 0 };
        let share = if first > 0 { percent(*bytes as f64 / first as f64) } else { String::new() };
        let bar = format!("{:<width$}", "█".repeat(cells), width = BAR as usize);
        let bytes = Bytes(*bytes).to_string();
        format!("  {line:<width$}  {}  {bytes:>10}  {share:>6}", style.dim(&bar))
    };
    lines.iter().map(bar).collect()
}
