//! Writes before the measurement, and whether their rate had settled.

use blockstone_base::table::{Measure, Rows as _, Table};
use blockstone_base::units::{Bytes, thousands};
use blockstone_judge::precondition::Precondition;
use blockstone_record::manifest::Manifest;
use blockstone_report::Section;
use blockstone_report::chart::{self, Axis, Chart, Color, Form};

use super::rows::RoundRow;

pub fn section(manifest: &Manifest, done: &Precondition) -> Section {
    Section::new("precondition", "Preconditioning")
        .with([summary(manifest, done)])
        .with([chart(done)])
}

pub fn rounds(done: &Precondition) -> Table {
    let rows = done.rounds.iter().zip(1..).map(|(done, round)| RoundRow {
        round,
        written_bytes: done.written_bytes,
        iops: done.iops,
    });
    let title = "Rounds of random writes before the measurement";
    RoundRow::table("precondition-rounds", title, rows)
}

fn summary(manifest: &Manifest, done: &Precondition) -> String {
    let (in_order, random) = (done.pass_bytes, done.written_bytes - done.pass_bytes);
    let written = format!(
        "{} were written in order and {} at random before the measurement: {}.",
        Bytes(in_order),
        Bytes(random),
        done.outcome()
    );
    let rates = || done.last_rounds().iter().map(|round| round.iops.value);
    let least = rates().fold(f64::INFINITY, f64::min);
    let most = rates().fold(0.0, f64::max);
    let end = (!done.rounds.is_empty()).then(|| {
        let [least, most] = [least, most].map(|rate| thousands(rate.round() as i64));
        let n = done.last_rounds().len();
        format!("In the last {n} it wrote {least} to {most} blocks a second.")
    });
    let beneath = manifest.target.file_system.as_ref().map(|_| {
        "Only the test file was written: how much of the drive beneath the file system was ever \
         written is not known."
            .to_owned()
    });
    [Some(written), end, beneath].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn chart(done: &Precondition) -> Chart {
    let chart = Chart::new(
        "precondition-chart",
        "Random writes by round",
        Axis::new("round", Measure::Count),
        Axis::new("writes a second", Measure::Count),
    )
    .about("The rate of flash falls until garbage collection keeps up with the writes.");
    let points = done.rounds.iter().zip(1_u32..).map(|(round, n)| {
        let interval = Some((round.iops.low, round.iops.high));
        let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        chart::Point { interval, ..(f64::from(n), Some(round.iops.value)).into() }
    });
    let points: Vec<chart::Point> = points.collect();
    if points.is_empty() {
        return chart;
    }
    chart.layer("writes", Color::Series(0), Form::Line { points, dashed: false, marks: true })
}
