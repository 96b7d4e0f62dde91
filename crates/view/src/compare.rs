//! Figures of views over an interval for a comparison: their means, and how much they vary without
//! a change.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::stats::{self, Estimate};
use blockstone_base::table::{Merge, name_of};
use blockstone_figures::Interval;
use blockstone_figures::compare::{Figure, Key, Recorded, Source, Subject};

use crate::registry;

/// Slices of an interval: enough to show how much a figure varies without a change.
const SLICES: usize = 20;
/// A figure needs a value in at least this many slices; a mean per event needs one in half of them.
const SLICES_MIN: usize = 3;
/// Views that are not compared: their rows are single sessions or slices of time, repeat another
/// view over the last seconds, or show the cost of measuring.
const LEFT_OUT: [&str; 7] =
    ["sessions", "sampled-sessions", "snapper", "session-waits", "ash", "load-now", "own"];

/// Totals, which grow with the length of the interval.
const TOTALS: [&str; 7] = [
    "samples",
    "sessions",
    "statements",
    "waits",
    "wait_time_ns",
    "checkpoints_timed",
    "checkpoints_requested",
];

/// Figures that the kernel averages over minutes. Successive slices are not independent, so their
/// spread does not show their error.
const SLOW: [&str; 3] = ["load_one_minute", "load_five_minutes", "load_fifteen_minutes"];

/// Identifies a row: index of the view, instance, and name.
type Named = (usize, Option<String>, String);

/// The values of a figure by slice, and the slices that have its row.
#[derive(Default)]
struct SliceValues {
    numbers: BTreeMap<usize, f64>,
    rows: BTreeSet<usize>,
}

impl SliceValues {
    /// Returns the values to average over `slices`, those in which the view has a table. A rate is
    /// zero in a slice without the row: leaving these slices out would overstate the rate of rare
    /// events.
    fn values(&self, merge: Merge, slices: &BTreeSet<usize>) -> Vec<f64> {
        let is_rate = merge == Merge::Mean;
        let value = |slice: &usize| {
            let nothing = (is_rate && !self.rows.contains(slice)).then_some(0.0);
            self.numbers.get(slice).copied().or(nothing)
        };
        let values: Vec<f64> = slices.iter().filter_map(value).collect();
        let enough = if is_rate { SLICES_MIN } else { SLICES_MIN.max(slices.len() / 2) };
        if self.numbers.len() < SLICES_MIN || values.len() < enough { Vec::new() } else { values }
    }
}

/// Returns the figures to compare of a part of a recording: the mean of each figure over its
/// slices, in the order of the views, their rows by name and their columns.
pub fn source(recorded: Recorded, interval: &Interval<'_>) -> Source {
    let Interval { from_ns, to_ns, .. } = *interval;
    let recorded = Recorded { from_ns: Some(from_ns), to_ns: Some(to_ns), ..recorded };
    let mut seen: BTreeMap<Named, BTreeMap<usize, SliceValues>> = BTreeMap::new();
    let mut slices: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (at, slice) in interval.slices(SLICES).into_iter().enumerate() {
        for (place, view) in registry::ALL.iter().enumerate() {
            if LEFT_OUT.contains(&view.name) {
                continue;
            }
            let Some(table) = view.table(&slice) else { continue };
            slices.entry(place).or_default().insert(at);
            for row in &table.rows {
                let (instance, own) = view.parts(row);
                let name = name_of(view.columns, own);
                let figures = seen.entry((place, instance.map(str::to_owned), name)).or_default();
                for (column, value) in own.iter().enumerate() {
                    let key = &*view.columns[column].key;
                    if TOTALS.contains(&key) || SLOW.contains(&key) {
                        continue;
                    }
                    let figure = figures.entry(column).or_default();
                    figure.rows.insert(at);
                    figure.numbers.extend(value.number().map(|number| (at, number)));
                }
            }
        }
    }
    let duration_ns = to_ns.saturating_sub(from_ns);
    let all = seen.into_iter().flat_map(|(named, figures)| {
        figures.into_iter().map(move |(column, seen)| (named.clone(), column, seen))
    });
    let figures = all.filter_map(|((place, instance, row), column, seen)| {
        let view = registry::ALL[place];
        let values = seen.values(view.columns[column].merge, slices.get(&place)?);
        let subject = Subject::Viewed { view: view.name.to_owned(), instance, row };
        Some(Figure {
            key: Key { subject, figure: view.columns[column].key.to_string() },
            title: view.columns[column].heading.to_string(),
            estimate: Estimate { duration_ns, ..stats::mean_over_time(&values)? },
            condemned_by: Vec::new(),
            warned_by: Vec::new(),
            doubted: false,
            drift_ratio: 0.0,
            load: None,
        })
    });
    Source { recorded, figures: figures.collect() }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_figures::compare::{Comparison, Outcome, Row};
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing;

    use serde_json::{Value as Json, json};

    use super::*;

    /// A network interface that receives about `rate` bytes per second, with noise, over 60 ticks.
    fn history(rate: u64) -> History {
        let column = |name: &str| {
            json!({ "name": name, "unit": "bytes", "kind": "counter", "source": "", "doc": "",
                "unmeasured": null })
        };
        let probe = |name: &str, columns: Vec<Json>| {
            let mut info = json!({ "probe": name, "doc": "", "columns": columns });
            (info["ticks"], info["missed_ticks"]) = (json!(0), json!(0));
            info
        };
        let probes = vec![probe("network", vec![column("received_bytes")]), probe("host", vec![])];
        let probes: Vec<ProbeInfo> = serde_json::from_value(Json::from(probes)).unwrap();
        let mut history = History::new(probes);
        let mut total = 0;
        for tick in 0..60_u64 {
            let noise = tick * 7_919 % 11;
            total += rate + noise * rate / 100;
            history.push("network", tick * 1_000_000_000, "eth0", vec![Cell::from(total)]);
            history.push("host", tick * 1_000_000_000, "", Vec::new());
        }
        history
    }

    fn whole(history: &History) -> Source {
        of(&history.whole().unwrap())
    }

    fn of(interval: &Interval<'_>) -> Source {
        let recorded = Recorded {
            recording: "night".into(),
            id: "abc123".into(),
            started_at: "2026-01-01T00:00:00Z".into(),
            host: "db1".into(),
            target: "/".into(),
            device: None,
            block_bytes: None,
            span_bytes: None,
            direct: None,
            trustworthy: true,
            from_ns: None,
            to_ns: None,
            facts: BTreeMap::default(),
        };
        source(recorded, interval)
    }

    /// Returns the view, instance and row of a figure.
    fn viewed(key: &Key) -> (&str, Option<&str>, &str) {
        match &key.subject {
            Subject::Viewed { view, instance, row } => (view, instance.as_deref(), row),
            Subject::Measured { .. } => panic!("{key:?} is of no view"),
        }
    }

    fn received(comparison: &Comparison) -> &Row {
        let is_it = |row: &&Row| row.key.figure == "received_bytes_per_s";
        comparison.rows.iter().find(is_it).unwrap()
    }

    fn outcome(a: u64, b: u64) -> Outcome {
        let (a, b) = (whole(&history(a)), whole(&history(b)));
        received(&Comparison::of(&[a], &[b])).outcome
    }

    #[test]
    fn a_difference_is_told_from_noise_and_nothing_from_itself() {
        assert_eq!(outcome(10_000, 10_000), Outcome::NotEstablished);
        assert_eq!(outcome(10_000, 10_010), Outcome::NotEstablished);
        assert_eq!(outcome(10_000, 12_000), Outcome::Higher);
        assert_eq!(outcome(12_000, 10_000), Outcome::Lower);
    }

    #[test]
    fn of_sets_the_variation_between_recordings_decides() {
        let set = |rates: [u64; 3]| rates.map(|rate| whole(&history(rate)));
        let outcome = |a, b| received(&Comparison::of(&set(a), &set(b))).outcome;
        assert_eq!(outcome([10_000, 10_100, 9_900], [12_000, 12_100, 11_900]), Outcome::Higher);
        assert_eq!(
            outcome([10_000, 14_000, 6_000], [12_000, 12_100, 11_900]),
            Outcome::NotEstablished
        );
        let row = Comparison::of(&set([10_000; 3]), &set([10_000; 3])[..2]);
        assert_eq!((received(&row).n_a, received(&row).n_b), (3, 2));
    }

    #[test]
    fn rows_of_several_instances_are_told_apart_by_a_key_of_their_own() {
        let of = |name: &str| {
            let columns = [(Kind::Counter, "waits time_ns")];
            ProbeInfo { probe: format!("event@{name}"), ..testing::probe("event", &columns) }
        };
        let mut history = History::new(vec![of("a"), of("b"), testing::probe("host", &[])]);
        for tick in 0..60_u64 {
            history.push("host", tick * 1_000_000_000, "", Vec::new());
            for (instance, by) in [("a", 1_000), ("b", 2_000)] {
                let cells = vec![Cell::from(tick), Cell::from(tick * by)];
                let probe = format!("event@{instance}");
                history.push(&probe, tick * 1_000_000_000, "IO/read", cells);
            }
        }
        let (a, b) = (whole(&history), whole(&history));
        let comparison = Comparison::of(&[a], &[b]);
        let waits = comparison.rows.iter().filter(|row| row.key.figure == "waits_per_s");
        let keys: Vec<_> = waits.map(|row| viewed(&row.key)).collect();
        let expected = ["a", "b"].map(|instance| ("events", Some(instance), keys[0].2));
        assert_eq!(keys, expected, "{comparison:#?}");
    }

    #[test]
    fn what_happens_now_and_then_has_a_rate_over_all_of_the_time() {
        let columns = [(Kind::Counter, "waits time_ns")];
        let probes = vec![testing::probe("event", &columns), testing::probe("host", &[])];
        let mut history = History::new(probes);
        for tick in 0..60_u64 {
            history.push("host", tick * 1_000_000_000, "", Vec::new());
            for (event, since) in [("always", 0), ("late", 39)] {
                if tick >= since {
                    let cells = vec![Cell::from(tick), Cell::from(tick * 1_000)];
                    history.push("event", tick * 1_000_000_000, event, cells);
                }
            }
        }
        let source = whole(&history);
        let figure = |event: &str, name: &str| {
            let is_it = |figure: &&Figure| {
                viewed(&figure.key).2.contains(event) && figure.key.figure == name
            };
            source.figures.iter().find(is_it).map(|figure| figure.estimate)
        };
        assert!(figure("always", "wait_ns").is_some());
        let (always, late) = (figure("always", "waits_per_s"), figure("late", "waits_per_s"));
        let (always, late) = (always.unwrap(), late.unwrap());
        assert!((always.value - 1.0).abs() < 0.1, "{always:?}");
        // The row exists during the last third only.
        assert!((late.value - 0.33).abs() < 0.1 && late.low < 0.25, "{late:?}");
        assert!(figure("late", "wait_ns").is_none(), "too seldom for a mean of each");
    }

    #[test]
    fn what_only_one_side_has_is_said() {
        let (a, empty) = (whole(&history(10)), History::default());
        let comparison = Comparison::of(&[a], &[of(&empty.interval(0, 1))]);
        assert!(!comparison.rows.is_empty());
        assert_eq!(comparison.counts.only_in_one, comparison.rows.len() as u64);
        assert!(comparison.rows.iter().all(|row| row.b.is_none() && row.n_b == 0));
        let first = &comparison.rows[0];
        assert_eq!((viewed(&first.key).0, first.outcome), ("network", Outcome::OnlyInOne));
        assert_eq!((comparison.b.first.from_ns, comparison.b.first.to_ns), (Some(0), Some(1)));
        assert_eq!(comparison.a.recordings[0].recording, "night");
    }
}
