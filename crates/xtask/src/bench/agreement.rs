//! Checks that our figures for a disk agree with fio's: each round has one run of ours between two
//! of fio. The noise is how far fio disagrees with itself within a round: the largest ratio of its
//! two runs, either way. Ours agrees if its median ratio to the mean of the two is within that
//! noise.

use anyhow::Result;
use blockstone_testkit::{FileKind, ScratchDir};

use super::side::{Load, Measured, Side};
use super::{Extent, Options, median};
use crate::goals::{Column, Goal, Point, Results, column};

const POINTS: &[Load] = &[
    Load { engine: "psync", fio_engine: "psync", depth: 1 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 16 },
];

/// If fio's two runs of a round differ by more than this, the disk was not ours alone, and
/// agreement within such noise proves nothing.
const NOISE_MAX: f64 = 1.25;

const COLUMNS: &[Column] = &[
    column("fio_iops_before", "fio\nIOPS", 0),
    column("iops", "ours\nIOPS", 0),
    column("fio_iops_after", "fio\nIOPS", 0),
    column("fio_latency_us_p50_before", "fio\np50 µs", 1),
    column("latency_us_p50", "ours\np50 µs", 1),
    column("fio_latency_us_p50_after", "fio\np50 µs", 1),
];

type Figure = (&'static str, fn(&Measured) -> f64);

const FIGURES: [Figure; 2] = [("IOPS", |m| m.iops), ("p50", |m| m.latency_ns_p50 / 1e3)];

type Round = [Measured; 3];

pub fn run(options: &Options) -> Result<Results> {
    let Extent { seconds, rounds, size } = options.extent();
    let ours = Side::ours()?;
    let dir = ScratchDir::on_disk()?;
    let file = dir.path().join("file");
    FileKind::Real.create(&file, size)?;
    eprintln!(
        "8 KiB random direct reads of {size} on disk; each round: fio, ours, fio, {seconds} s each"
    );
    let mut results = Results { columns: COLUMNS, points: Vec::new(), goals: Vec::new() };
    for point in POINTS {
        let mut done = Vec::new();
        for number in 1..=rounds {
            let turn = |side: &Side| side.measure(*point, &file, seconds);
            let round = [turn(&Side::Fio)?, turn(&ours)?, turn(&Side::Fio)?];
            let values = FIGURES.iter().flat_map(|(_, part)| round.iter().map(part)).collect();
            results.points.push(Point { name: format!("{} {number}", point.name()), values });
            done.push(round);
        }
        for (name, part) in FIGURES {
            results.goals.extend(conclude(&format!("{} {name}", point.name()), part, &done)?);
        }
        eprintln!("{} done", point.name());
    }
    Ok(results)
}

fn conclude(name: &str, part: fn(&Measured) -> f64, rounds: &[Round]) -> Result<[Goal; 2]> {
    let noise = rounds.iter().map(|[before, _, after]| {
        let ratio = part(after) / part(before);
        ratio.max(1.0 / ratio)
    });
    let noise = noise.fold(1.0, f64::max);
    let ratio =
        |[before, ours, after]: &Round| part(ours) / f64::midpoint(part(before), part(after));
    let ours = median(rounds.iter().map(ratio).collect())?;
    Ok([
        Goal::at_most(format!("{name}: fio against itself"), noise, NOISE_MAX),
        Goal::within(format!("{name}: ours ÷ fio"), ours, 1.0 / noise, noise),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_agrees_within_the_noise_and_great_noise_proves_nothing() {
        let met = |before: f64, ours: f64, after: f64| {
            let round = [before, ours, after].map(Measured::of_iops);
            let goals = conclude("x", |measured| measured.iops, &[round]).unwrap();
            goals.map(|goal| goal.is_met())
        };
        assert_eq!(met(100.0, 104.0, 105.0), [true, true]);
        assert_eq!(met(100.0, 90.0, 105.0), [true, false]);
        assert_eq!(met(100.0, 115.0, 105.0), [true, false]);
        assert_eq!(met(100.0, 150.0, 200.0), [false, true]);
    }
}
