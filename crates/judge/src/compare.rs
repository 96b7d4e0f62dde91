//! Two recordings side by side: faster, slower, or difference not established.

use std::collections::BTreeSet;

use blockstone_base::stats::Estimate;
use blockstone_base::units::Bytes;
pub use blockstone_figures::compare::Outcome as Change;
use blockstone_figures::compare::{self, Better, Compared};
use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use serde::Serialize;

use crate::findings::{Findings, Point};

/// Two recordings, number by number; `b` is judged against `a`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first recording.
    pub a: Side,
    /// The second, of which each row says whether it was faster.
    pub b: Side,
    /// Summary figures first, in their order, then the points in the order of `a`.
    pub rows: Vec<Row>,
    /// What differed in the set-up, so that a difference may not come from the storage.
    pub warnings: Vec<String>,
    /// What every reader of this comparison has to know.
    pub caveats: Vec<String>,
}

/// What was measured on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The recording's id.
    pub id: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The machine's name.
    pub host: String,
    /// The path under test.
    pub target: String,
    /// The device at the top of the target's chain.
    pub device: Option<String>,
    /// Block size of the small operations, in bytes.
    pub block_bytes: Option<u64>,
    /// Bytes of the file that were visited at most.
    pub span_bytes: Option<u64>,
    /// Whether the page cache was bypassed.
    pub direct: Option<bool>,
    /// Whether nothing condemned the recording's numbers.
    pub trustworthy: bool,
}

/// One number of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The summary figure's name, or the point's label.
    pub label: String,
    /// Which number of it: empty for a summary figure, else `iops`, `mb_per_s`, `latency_ns_p50`
    /// or `latency_ns_p99`.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Whether less is better: a latency.
    pub lower_is_faster: bool,
    /// The number of `a`; none when only `b` has it.
    pub a: Option<Estimate>,
    /// The number of `b`; none when only `a` has it.
    pub b: Option<Estimate>,
    /// b ÷ a with its interval.
    pub ratio: Option<Estimate>,
    /// What may be said about it.
    pub outcome: Change,
    /// Rules that condemn either side.
    pub condemned_by: Vec<String>,
}

/// Compares `b` with `a`, number by number.
pub fn compare(a: (&Manifest, &Findings), b: (&Manifest, &Findings)) -> Comparison {
    let mut rows = summary_rows(a.1, b.1);
    rows.extend(point_rows(a.1, b.1));
    let (a, b) = (side(a), side(b));
    let warnings = warnings(&a, &b);
    Comparison { rows, warnings, caveats: caveats(), a, b }
}

fn caveats() -> Vec<String> {
    vec![
        "A and B were measured one after the other, not interleaved: any change of the machine in \
         between counts as a difference."
            .to_owned(),
        "The intervals include the drift of the reference point within each recording, but not \
         drift between the two recordings."
            .to_owned(),
        "Each row is at 95 % confidence: of twenty rows without a difference, one shows a \
         difference by chance."
            .to_owned(),
    ]
}

fn side((manifest, findings): (&Manifest, &Findings)) -> Side {
    let asked: CalibrateParameters = manifest.parameters();
    let storage = || findings.points.iter().filter(|point| asks_for_the_file(point));
    let directness: BTreeSet<bool> = storage().map(|point| point.load.direct).collect();
    Side {
        id: manifest.id.clone(),
        started_at: manifest.started_at.clone(),
        host: manifest.host.hostname.clone(),
        target: manifest.target.path.clone(),
        device: manifest.target.devices.first().map(|device| device.name.clone()),
        block_bytes: asked.block_bytes.map(Bytes::get),
        span_bytes: asked.size_bytes.map(Bytes::get),
        direct: (directness.len() == 1).then(|| directness.contains(&true)),
        trustworthy: findings.trustworthy(),
    }
}

/// Points on the file as the settings ask for it: not the tool's own cost, and not the cached reads
/// that are buffered whatever was asked.
fn asks_for_the_file(point: &Point) -> bool {
    !matches!(point.group, Group::Overhead | Group::CachedRead)
}

fn warnings(a: &Side, b: &Side) -> Vec<String> {
    fn text<T: std::fmt::Display>(value: Option<&T>) -> String {
        value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
    }
    let facts = [
        ("block size (bytes)", text(a.block_bytes.as_ref()), text(b.block_bytes.as_ref())),
        ("file size (bytes)", text(a.span_bytes.as_ref()), text(b.span_bytes.as_ref())),
        ("direct I/O", text(a.direct.as_ref()), text(b.direct.as_ref())),
        ("target", a.target.clone(), b.target.clone()),
        ("device", text(a.device.as_ref()), text(b.device.as_ref())),
        ("host", a.host.clone(), b.host.clone()),
    ];
    facts
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what} differs: {a} in A, {b} in B"))
        .collect()
}

fn summary_rows(a: &Findings, b: &Findings) -> Vec<Row> {
    let names = |findings: &Findings| -> Vec<String> {
        findings.summary.iter().map(|(name, _)| name.clone()).collect()
    };
    union(names(a), names(b))
        .into_iter()
        .map(|name| {
            let of = |findings: &Findings| {
                findings.summary.iter().find(|(n, _)| *n == name).map(|(_, f)| f.clone())
            };
            let (a, b) = (of(a), of(b));
            let unit = a.as_ref().or(b.as_ref()).map_or_else(String::new, |f| f.unit.clone());
            let condemned =
                a.iter().chain(&b).flat_map(|figure| figure.condemned_by.iter().cloned()).collect();
            let estimates = (a.map(|f| f.estimate), b.map(|f| f.estimate));
            row((name, String::new(), unit), estimates, condemned)
        })
        .collect()
}

fn point_rows(a: &Findings, b: &Findings) -> Vec<Row> {
    type Read = fn(&Point) -> Estimate;
    const NUMBERS: [(&str, &str, Read); 4] = [
        ("iops", "IOPS", |p| p.iops),
        ("mb_per_s", "MB/s", |p| p.mb_per_s),
        ("latency_ns_p50", "ns", |p| p.latency.ns_p50),
        ("latency_ns_p99", "ns", |p| p.latency.ns_p99),
    ];
    let labels = |findings: &Findings| -> Vec<String> {
        findings.points.iter().map(|point| point.label.clone()).collect()
    };
    let mut rows = Vec::new();
    for label in union(labels(a), labels(b)) {
        let of = |findings: &'_ Findings| {
            findings.points.iter().find(|point| point.label == label).cloned()
        };
        let (in_a, in_b) = (of(a), of(b));
        let condemned: BTreeSet<String> =
            in_a.iter().chain(&in_b).flat_map(|p| p.condemned_by.iter().cloned()).collect();
        for (figure, unit, read) in NUMBERS {
            // Drift moves whole windows, which their own samples cannot show; summary figures have
            // it in their interval already.
            let seen = |point: &Option<Point>, findings: &Findings| {
                let estimate = point.as_ref().map(read).filter(|estimate| estimate.samples > 0)?;
                Some(crate::summary::with_drift(estimate, findings.drift_ratio))
            };
            let estimates = (seen(&in_a, a), seen(&in_b, b));
            if estimates.0.is_some() || estimates.1.is_some() {
                let names = (label.clone(), figure.to_owned(), unit.to_owned());
                rows.push(row(names, estimates, condemned.clone()));
            }
        }
    }
    rows
}

fn row(
    (label, figure, unit): (String, String, String),
    (a, b): (Option<Estimate>, Option<Estimate>),
    condemned: BTreeSet<String>,
) -> Row {
    let lower_is_faster = unit == "ns";
    let better = if lower_is_faster { Better::Less } else { Better::More };
    let Compared { a, b, ratio, outcome } = compare::compare(a.as_slice(), b.as_slice(), better);
    let comparable = condemned.is_empty() || outcome == Change::OnlyInOne;
    let outcome = if comparable { outcome } else { Change::Condemned };
    let condemned_by = condemned.into_iter().collect();
    Row { label, figure, unit, lower_is_faster, a, b, ratio, outcome, condemned_by }
}

/// All of `a` in its order, then what only `b` has.
fn union(a: Vec<String>, b: Vec<String>) -> Vec<String> {
    let only_b: Vec<String> = b.into_iter().filter(|name| !a.contains(name)).collect();
    a.into_iter().chain(only_b).collect()
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;

    use super::*;
    use crate::testing::{Fixture, load, saturating};

    fn disk(ceiling: f64) -> Fixture {
        Fixture::reads_as(|load| saturating(ceiling, 3.2, load.in_flight()))
    }

    fn compared(a: &Fixture, b: &Fixture) -> Comparison {
        compare((&a.manifest, &a.find()), (&b.manifest, &b.find()))
    }

    fn row<'a>(comparison: &'a Comparison, label: &str, figure: &str) -> &'a Row {
        comparison.rows.iter().find(|row| row.label == label && row.figure == figure).unwrap()
    }

    #[test]
    fn a_recording_does_not_differ_from_itself() {
        let fixture = Fixture::healthy();
        let comparison = compared(&fixture, &fixture);
        assert!(comparison.rows.iter().all(|row| row.outcome == Change::NotEstablished));
        assert!(comparison.warnings.is_empty(), "{:?}", comparison.warnings);
        assert!(comparison.caveats[0].contains("not interleaved"));
        assert!(comparison.rows.len() > 100, "{}", comparison.rows.len());
    }

    #[test]
    fn faster_is_more_a_second_and_less_latency() {
        let comparison = compared(&disk(40_000.0), &disk(80_000.0));
        assert_eq!(row(&comparison, "max_iops", "").outcome, Change::Faster);
        assert_eq!(row(&comparison, "read_latency_ns_p50", "").outcome, Change::Faster);
        let latency = row(&comparison, "random-read/psync/x4", "latency_ns_p99");
        assert!(latency.lower_is_faster && latency.outcome == Change::Faster);
        assert!((latency.ratio.unwrap().value - 0.5).abs() < 0.02, "{latency:?}");
        let back = compared(&disk(80_000.0), &disk(40_000.0));
        assert_eq!(row(&back, "max_iops", "").outcome, Change::Slower);
        assert_eq!(row(&back, "read_latency_ns_p50", "").outcome, Change::Slower);
    }

    #[test]
    fn drift_as_large_as_the_difference_leaves_it_open() {
        let (a, mut b) = (disk(40_000.0), disk(44_000.0));
        assert_eq!(row(&compared(&a, &b), "max_iops", "").outcome, Change::Faster);
        let slow = saturating(30_000.0, 3.2, 1);
        b.add("reference", Group::Reference, load(Op::Read, "psync", 1), &slow);
        let comparison = compared(&a, &b);
        assert_eq!(row(&comparison, "max_iops", "").outcome, Change::NotEstablished);
        let point = row(&comparison, "random-read/psync/x4", "iops");
        assert_eq!(point.outcome, Change::NotEstablished);
    }

    #[test]
    fn condemned_and_one_sided_numbers_are_not_compared() {
        let (a, mut b) = (Fixture::healthy(), disk(80_000.0));
        b.window_mut("confirm/max-iops").process.set("read_bytes", 0);
        let comparison = compared(&a, &b);
        let max = row(&comparison, "max_iops", "");
        assert_eq!(
            (max.outcome, max.condemned_by.as_slice()),
            (Change::Condemned, &["memory-test".to_owned()][..])
        );
        assert_eq!(row(&comparison, "max_write_iops", "").outcome, Change::OnlyInOne);
        assert!(comparison.a.trustworthy && !comparison.b.trustworthy);
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
