//! Charts and bars of ledgers.

use blockstone_base::table::Measure;
use blockstone_offload::Ledger;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::percent;
use blockstone_report::picture::{Bar, Bars};

use super::tables::lines;

/// Maximum number of runs that a chart has room for.
const RUNS_MAX: usize = 6;

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
        "From the plan to the client. What storage saves is the step from the first line to what \
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
pub fn bars(ledger: &Ledger) -> Bars {
    let first = ledger.read_bytes;
    let bar = |(label, bytes): (String, u64)| {
        let share = (first > 0).then(|| percent(bytes as f64 / first as f64));
        let note = share.unwrap_or_default();
        Bar { label, value: bytes as f64, note, color: Color::Grey }
    };
    Bars::new("bytes", lines(ledger).into_iter().map(bar).collect())
}
