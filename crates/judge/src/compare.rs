//! Figures of a calibration or a run, as a comparison takes them.

use std::collections::BTreeSet;

use blockstone_base::load::LoadSpec;
use blockstone_base::stats::Estimate;
use blockstone_figures::compare::{Figure, Key, Recorded, Source, Subject};
use blockstone_record::manifest::{Figure as Headline, Group, Manifest};

use crate::findings::{Findings, Point};
use crate::rules::registry;

const NANOSECONDS: &str = "ns";

/// Returns the figures of a recording that are compared: the summary figures, then the numbers of
/// each point. `recording` is its name.
pub fn source(recording: String, manifest: &Manifest, findings: &Findings) -> Source {
    let of_file = findings.points.iter().filter(|point| asks_for_the_file(point));
    let directness: BTreeSet<bool> = of_file.map(|point| point.load.direct).collect();
    let recorded = Recorded {
        direct: (directness.len() == 1).then(|| directness.contains(&true)),
        trustworthy: findings.trustworthy(),
        ..Recorded::of(recording, manifest)
    };
    let drift_ratio = drift_ratio(&findings.points);
    let points = findings.points.iter().flat_map(|point| of_point(point, drift_ratio));
    Source { recorded, figures: summary(findings).chain(points).collect() }
}

/// Returns whether a point measured the file as the settings ask for it. The tool's own cost does
/// not, nor do the cached reads, some of which are buffered whatever the settings say.
fn asks_for_the_file(point: &Point) -> bool {
    !matches!(point.group, Group::Overhead | Group::CachedRead)
}

fn summary(findings: &Findings) -> impl Iterator<Item = Figure> {
    let warned_by = |name: &String| -> Vec<String> {
        let warnings = findings.verdicts.iter().filter(|verdict| verdict.warns());
        let concerned = warnings.filter(|verdict| verdict.concerns.contains(name));
        concerned.map(|verdict| verdict.rule.clone()).collect()
    };
    let figure = move |(name, figure): &(String, Headline)| {
        let point = findings.points.iter().find(|point| point.label == figure.phase);
        // The interval contains the drift of the reference; other loads may drift further.
        let again = point.map(|point| repeated(&findings.points, point, reading(name, figure)));
        let warned_by = warned_by(name);
        Figure {
            key: key(name, "", &figure.unit),
            title: if figure.title.is_empty() { name.clone() } else { figure.title.clone() },
            estimate: figure.estimate,
            condemned_by: figure.condemned_by.clone(),
            doubted: doubted(&warned_by),
            warned_by,
            drift_ratio: again.unwrap_or(0.0),
            load: point.filter(|_| figure.unit == NANOSECONDS).map(|it| load(&it.load)),
        }
    };
    findings.summary.iter().map(figure)
}

fn doubted(warned_by: &[String]) -> bool {
    !warned_by.iter().all(|rule| registry::is_of_storage(rule))
}

type Reading = fn(&Point) -> f64;

/// Returns how the value of a headline figure is read from a point. Megabytes a second vary with
/// operations.
fn reading(name: &str, figure: &Headline) -> Reading {
    match figure.unit.as_str() {
        NANOSECONDS if name.ends_with("_p50") => |p| p.latency.ns_p50.value,
        NANOSECONDS if name.ends_with("_p99") => |p| p.latency.ns_p99.value,
        NANOSECONDS => |p| p.latency.ns_mean.value,
        _ => |p| p.iops.value,
    }
}

/// Returns the drift of a load that has a single window: the largest relative difference from other
/// windows of the same load, such as the short window that it confirms. The drift of the reference
/// was tried alone and is not enough: between calibrations of one disk, large reads moved by 10 %,
/// but the reference did not move because a cap on requests limited it.
fn repeated(points: &[Point], once: &Point, of: Reading) -> f64 {
    if once.windows > 1 {
        return 0.0;
    }
    let others = points.iter().filter(|p| p.label != once.label && p.load.same_point(&once.load));
    let moved = |other: &Point| (of(other) - of(once)).abs() / f64::midpoint(of(other), of(once));
    others.map(moved).filter(|ratio| ratio.is_finite()).fold(0.0, f64::max)
}

/// Returns the relative drift expected of another recording, by the windows of the reference point:
/// the prediction interval t·s·√(1 + 1/k) of their k rates, less that of their mean, t·s ÷ √k.
fn drift_ratio(points: &[Point]) -> f64 {
    let reference = points.iter().find(|point| point.group == Group::Reference);
    reference
        .map_or(0.0, |point| point.iops.relative_half_width() * f64::from(point.windows + 1).sqrt())
}

/// Returns the figures of a point. Drift moves whole windows, which their own samples cannot show.
fn of_point(point: &Point, drift_ratio: f64) -> impl Iterator<Item = Figure> {
    type Read = fn(&Point) -> Estimate;
    const NUMBERS: [(&str, &str, Read); 4] = [
        ("iops", "IOPS", |p| p.iops),
        ("mb_per_s", "MB/s", |p| p.mb_per_s),
        ("latency_ns_p50", NANOSECONDS, |p| p.latency.ns_p50),
        ("latency_ns_p99", NANOSECONDS, |p| p.latency.ns_p99),
    ];
    let numbers = NUMBERS.into_iter().map(|(figure, unit, read)| (figure, unit, read(point)));
    numbers.filter(|(.., estimate)| estimate.samples > 0).map(move |(figure, unit, estimate)| {
        Figure {
            key: key(&point.label, figure, unit),
            title: point.label.clone(),
            estimate,
            condemned_by: point.condemned_by.clone(),
            doubted: doubted(&point.warned_by),
            warned_by: point.warned_by.clone(),
            drift_ratio,
            load: (point.group == Group::Confirm && unit == NANOSECONDS).then(|| load(&point.load)),
        }
    })
}

/// Describes the operations in flight: how many, and of which engine or sync method. A latency
/// depends on them.
fn load(load: &LoadSpec) -> String {
    let by = load.sync.map_or(load.engine.as_str(), |sync| sync.name());
    format!("{by}, {} in flight", load.in_flight())
}

fn key(label: &str, figure: &str, unit: &str) -> Key {
    let (label, unit, lower_is_faster) = (label.to_owned(), unit.to_owned(), unit == NANOSECONDS);
    let subject = Subject::Measured { label, unit, lower_is_faster };
    Key { subject, figure: figure.to_owned() }
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::{Access, Op};
    use blockstone_figures::compare::{Comparison, Outcome, Row};

    use super::*;
    use crate::testing::{Behaviour, Fixture, large, load, saturating};

    fn disk(ceiling: f64) -> Fixture {
        Fixture::reads_as(|load| saturating(ceiling, 3.2, load.in_flight()))
    }

    fn of(fixture: &Fixture) -> Source {
        source(String::new(), &fixture.manifest, &fixture.find())
    }

    fn compared(a: &Fixture, b: &Fixture) -> Comparison {
        Comparison::of(&[of(a)], &[of(b)])
    }

    fn row<'a>(comparison: &'a Comparison, label: &str, figure: &str) -> &'a Row {
        let is_it = |row: &&Row| {
            matches!(&row.key.subject, Subject::Measured { label: of, .. } if of == label)
                && row.key.figure == figure
        };
        comparison.rows.iter().find(is_it).unwrap()
    }

    #[test]
    fn a_recording_does_not_differ_from_itself() {
        let fixture = Fixture::healthy();
        let comparison = compared(&fixture, &fixture);
        assert!(comparison.rows.iter().all(|row| row.outcome == Outcome::NotEstablished));
        assert!(comparison.warnings.is_empty(), "{:?}", comparison.warnings);
        assert!(comparison.caveats[0].contains("not interleaved"));
        assert!(comparison.rows.len() > 100, "{}", comparison.rows.len());
    }

    #[test]
    fn faster_is_more_a_second_and_less_latency() {
        let comparison = compared(&disk(40_000.0), &disk(80_000.0));
        assert_eq!(row(&comparison, "max_iops", "").outcome, Outcome::Faster);
        assert_eq!(row(&comparison, "read_latency_ns_p50", "").outcome, Outcome::Faster);
        let latency = row(&comparison, "random-read/psync/x4", "latency_ns_p99");
        let subject = &latency.key.subject;
        assert!(matches!(subject, Subject::Measured { lower_is_faster: true, .. }), "{subject:?}");
        assert_eq!(latency.outcome, Outcome::Faster);
        assert!((latency.ratio.unwrap().value - 0.5).abs() < 0.02, "{latency:?}");
        let back = compared(&disk(80_000.0), &disk(40_000.0));
        assert_eq!(row(&back, "max_iops", "").outcome, Outcome::Slower);
        assert_eq!(row(&back, "read_latency_ns_p50", "").outcome, Outcome::Slower);
    }

    #[test]
    fn a_capped_volume_is_slower_and_its_rule_stands_beside_it() {
        let capped = Fixture::reads_as(|load| {
            let natural_ns = 40e3 * f64::from(load.in_flight());
            Behaviour::capped(500.0, load.in_flight(), natural_ns)
        });
        let comparison = compared(&disk(40_000.0), &capped);
        let max = row(&comparison, "max_iops", "");
        assert_eq!(max.outcome, Outcome::Slower, "{max:?}");
        assert!(max.warned_by.contains(&"throttled".to_owned()), "{max:?}");
    }

    #[test]
    fn latencies_are_compared_at_the_same_load_only() {
        let confirmed = |in_flight| {
            let (mut fixture, of) = (disk(40_000.0), load(Op::Read, "uring", in_flight));
            let behaviour = saturating(40_000.0, 3.2, in_flight);
            fixture.add("confirm/max-iops", Group::Confirm, of, &behaviour);
            fixture
        };
        let comparison = compared(&confirmed(16), &confirmed(64));
        for (label, figure) in
            [("confirm/max-iops", "latency_ns_p50"), ("actual_latency_ns_mean", "")]
        {
            let row = row(&comparison, label, figure);
            assert_eq!((row.outcome, row.ratio), (Outcome::OtherLoad, None), "{label}");
            assert_eq!(row.loads, ["uring, 16 in flight", "uring, 64 in flight"]);
            assert!(row.a.is_some() && row.b.is_some() && row.q_value.is_none());
        }
        assert_eq!(row(&comparison, "max_iops", "").outcome, Outcome::NotEstablished);
        assert_eq!(comparison.counts.faster + comparison.counts.slower, 0);
        let same = compared(&confirmed(64), &confirmed(64));
        assert_eq!(same.counts.other_load, 0);
    }

    #[test]
    fn drift_as_large_as_the_difference_leaves_it_open() {
        let (a, mut b) = (disk(40_000.0), disk(44_000.0));
        assert_eq!(row(&compared(&a, &b), "max_iops", "").outcome, Outcome::Faster);
        let slow = saturating(30_000.0, 3.2, 1);
        b.add("reference", Group::Reference, load(Op::Read, "psync", 1), &slow);
        let comparison = compared(&a, &b);
        assert_eq!(row(&comparison, "max_iops", "").outcome, Outcome::NotEstablished);
        let point = row(&comparison, "random-read/psync/x4", "iops");
        assert_eq!(point.outcome, Outcome::NotEstablished);
    }

    #[test]
    fn a_load_whose_windows_differ_as_far_as_the_recordings_leaves_it_open() {
        let large = |ladder: f64, confirmed: f64| {
            let (mut fixture, load) = (Fixture::empty(), large(Access::Random, 4));
            let gives = |rate| Behaviour::natural(rate, 4e9 / rate);
            fixture.add("large-read/random/x4", Group::LargeRead, load.clone(), &gives(ladder));
            fixture.add("confirm/max-mbps", Group::Confirm, load, &gives(confirmed));
            fixture
        };
        let outcome = |a: &Fixture, b: &Fixture| row(&compared(a, b), "max_mbps", "").outcome;
        let (slow, fast) = (large(1_000.0, 1_000.0), large(1_100.0, 1_100.0));
        assert_eq!(outcome(&slow, &fast), Outcome::Faster);
        assert_eq!(outcome(&slow, &large(1_000.0, 1_100.0)), Outcome::NotEstablished);
    }

    #[test]
    fn condemned_and_one_sided_numbers_are_not_compared() {
        let (a, mut b) = (Fixture::healthy(), disk(80_000.0));
        b.window_mut("confirm/max-iops").process.set("read_bytes", 0);
        let comparison = compared(&a, &b);
        let max = row(&comparison, "max_iops", "");
        assert_eq!(
            (max.outcome, max.condemned_by.as_slice()),
            (Outcome::Condemned, &["memory-test".to_owned()][..])
        );
        assert_eq!(row(&comparison, "max_write_iops", "").outcome, Outcome::OnlyInOne);
        assert!(comparison.a.first.trustworthy && !comparison.b.first.trustworthy);
    }

    #[test]
    fn one_condemned_recording_condemns_the_row_of_its_set() {
        let mut memory = Fixture::healthy();
        memory.window_mut("confirm/max-iops").process.set("read_bytes", 0);
        let (clean, memory) = (of(&Fixture::healthy()), of(&memory));
        let comparison = Comparison::of(&[clean.clone(), memory], &[clean.clone(), clean]);
        let max = row(&comparison, "max_iops", "");
        assert_eq!((max.outcome, max.n_a), (Outcome::Condemned, 2));
        assert_eq!(max.condemned_by, ["memory-test"]);
        assert!(!comparison.a.first.trustworthy && comparison.a.recordings[0].trustworthy);
        assert_eq!(row(&comparison, "max_write_iops", "").outcome, Outcome::NotEstablished);
    }

    #[test]
    fn a_different_set_up_is_said() {
        let (a, mut b) = (disk(80_000.0), disk(80_000.0));
        b.manifest.settings.insert("block_bytes".into(), 4096.into());
        b.manifest.settings.insert("size_bytes".into(), (1_u64 << 30).into());
        b.manifest.target.path = "/other".into();
        for phase in &mut b.manifest.phases {
            let load = phase.load.as_mut().unwrap();
            load.direct = false;
        }
        let text = compared(&a, &b).warnings.join("\n");
        for what in ["block size", "file size", "direct I/O", "target"] {
            assert!(text.contains(&format!("{what} ")), "{what} in {text}");
        }
    }
}
