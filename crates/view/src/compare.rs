//! Figures of views over an interval, as a comparison takes them: their means, and how much they
//! vary by themselves.

use std::collections::BTreeMap;

use blockstone_base::stats::{self, Estimate};
use blockstone_base::table::name_of;
use blockstone_figures::Interval;
use blockstone_figures::compare::{Figure, Key, Recorded, Source, Subject};

use crate::registry;
use crate::table::Value;

/// Slices of an interval: enough to show how much a figure changes by itself.
const SLICES: usize = 20;
/// Slices in which a figure has to be there.
const SLICES_MIN: usize = 3;
/// Views whose rows are single sessions or slices of time, what another has over the last seconds,
/// or what measuring itself did.
const LEFT_OUT: [&str; 7] =
    ["sessions", "sampled-sessions", "snapper", "session-waits", "ash", "load-now", "own"];

/// Figures that grow with the time that is looked at: how many there were of something in all.
const TOTALS: [&str; 7] = [
    "samples",
    "sessions",
    "statements",
    "waits",
    "wait_time_ns",
    "checkpoints_timed",
    "checkpoints_requested",
];

/// What is compared of a part of a recording: the mean of each figure over its slices, in the order
/// of the views, their rows by name and their columns.
pub fn source(recorded: Recorded, interval: &Interval<'_>) -> Source {
    let Interval { from_ns, to_ns, .. } = *interval;
    let recorded = Recorded { from_ns: Some(from_ns), to_ns: Some(to_ns), ..recorded };
    let mut seen: BTreeMap<(usize, Option<String>, String, usize), Vec<f64>> = BTreeMap::new();
    for slice in interval.slices(SLICES) {
        for (place, view) in registry::ALL.iter().enumerate() {
            if LEFT_OUT.contains(&view.name) {
                continue;
            }
            let Some(table) = view.table(&slice) else { continue };
            for row in &table.rows {
                let (instance, own) = view.parts(row);
                let (instance, name) = (instance.map(str::to_owned), name_of(view.columns, own));
                for (column, value) in own.iter().enumerate() {
                    if let Value::Number(number) = value
                        && !TOTALS.contains(&&*view.columns[column].key)
                    {
                        let key = (place, instance.clone(), name.clone(), column);
                        seen.entry(key).or_default().push(*number);
                    }
                }
            }
        }
    }
    let duration_ns = to_ns.saturating_sub(from_ns);
    let enough = seen.into_iter().filter(|(_, values)| values.len() >= SLICES_MIN);
    let figures = enough.filter_map(|((place, instance, row, column), values)| {
        let view = registry::ALL[place];
        let subject = Subject::Viewed { view: view.name.to_owned(), instance, row };
        Some(Figure {
            key: Key { subject, figure: view.columns[column].key.to_string() },
            title: view.columns[column].heading.to_string(),
            estimate: Estimate { duration_ns, ..stats::mean_over_time(&values)? },
            condemned_by: Vec::new(),
            warned_by: Vec::new(),
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

    /// A network interface that receives about `rate` bytes a second, with noise, over 60 ticks.
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
        let document = json!(Comparison::of(&[a], &[b]));
        let rows = document["rows"].as_array().unwrap();
        let waits = rows.iter().filter(|row| row["figure"] == "waits_per_s");
        let keys: Vec<_> = waits.map(|row| (row["instance"].clone(), row["row"].clone())).collect();
        let expected = ["a", "b"].map(|instance| (json!(instance), keys[0].1.clone()));
        assert_eq!(keys, expected, "{document:#}");
    }

    #[test]
    fn what_only_one_side_has_is_said() {
        let (a, empty) = (whole(&history(10)), History::default());
        let comparison = Comparison::of(&[a], &[of(&empty.interval(0, 1))]);
        assert!(!comparison.rows.is_empty());
        assert_eq!(comparison.counts.only_in_one, comparison.rows.len());
        assert!(comparison.rows.iter().all(|row| row.b.is_none() && row.n_b == 0));
        let document = json!(comparison);
        let first = &document["rows"][0];
        assert_eq!((&first["view"], &first["outcome"]), (&json!("network"), &json!("only-in-one")));
        assert_eq!((&document["b"]["from_ns"], &document["b"]["to_ns"]), (&json!(0), &json!(1)));
        assert_eq!(document["a"]["recordings"][0]["recording"], "night");
    }
}
