//! Charts of ledgers.

use blockstone_base::table::Measure;
use blockstone_offload::Ledger;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};

use super::tables::lines;

/// Runs that a chart has room for.
const RUNS_MAX: usize = 6;

/// The bytes of runs in the order of the ledger, beside one another.
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
