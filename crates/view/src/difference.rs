//! Two intervals side by side: what was higher, what lower, and where that is not established.

use std::collections::BTreeMap;

use blockstone_base::stats::{self, Estimate};
use blockstone_figures::Interval;
pub use blockstone_figures::compare::Outcome;
use blockstone_figures::compare::{Better, Compared, compare};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::registry;
use crate::table::{Heading, Value, View};

/// A figure of both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// The view that has it.
    #[serde(serialize_with = "view_name")]
    #[schemars(with = "String")]
    pub view: &'static View,
    /// What names its row; empty in a view of one row.
    pub row: String,
    /// Its column.
    #[serde(rename = "figure", serialize_with = "column_key")]
    #[schemars(with = "String")]
    pub column: &'static Heading,
    /// Its mean over the first interval; none where it was not seen there.
    pub a: Option<Estimate>,
    /// Over the second.
    pub b: Option<Estimate>,
    /// The second ÷ the first.
    pub ratio: Option<Estimate>,
    /// What may be said of it.
    pub outcome: Outcome,
}

/// Slices of an interval: enough to show how much a figure changes by itself.
const SLICES: usize = 20;
/// Slices in which a figure has to be there.
const SLICES_MIN: usize = 3;
/// Views whose rows are single sessions, or what measuring itself did.
const LEFT_OUT: [&str; 4] = ["sessions", "sampled-sessions", "snapper", "own"];

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

/// A figure by view, row and column.
type Key = (usize, String, usize);

/// Every figure of two intervals, in the order of the views.
pub fn differences(a: &Interval<'_>, b: &Interval<'_>) -> Vec<Difference> {
    let (a, b) = (means(a), means(b));
    let keys: std::collections::BTreeSet<&Key> = a.keys().chain(b.keys()).collect();
    keys.into_iter().map(|key| difference(key, a.get(key), b.get(key))).collect()
}

/// The keys of their document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DifferenceDocument<'a> {
    /// The first interval.
    a: Part<'a>,
    /// The second, of which each row says whether it was higher.
    b: Part<'a>,
    rows: Vec<Difference>,
}

/// What was compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Part<'a> {
    recording: &'a str,
    /// Where the interval begins, in nanoseconds since the recording did.
    from_ns: u64,
    /// Where it ends, likewise.
    to_ns: u64,
}

/// All of them as one document.
pub fn difference_document<'a>(
    a: (&'a str, &Interval<'_>),
    b: (&'a str, &Interval<'_>),
) -> DifferenceDocument<'a> {
    let part = |(recording, interval): (&'a str, &Interval<'_>)| {
        let Interval { from_ns, to_ns, .. } = *interval;
        Part { recording, from_ns, to_ns }
    };
    DifferenceDocument { a: part(a), b: part(b), rows: differences(a.1, b.1) }
}

fn view_name<S: Serializer>(view: &View, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(view.name)
}

fn column_key<S: Serializer>(column: &Heading, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&column.key)
}

/// The mean of each figure over the slices of an interval.
fn means(interval: &Interval<'_>) -> BTreeMap<Key, Estimate> {
    let mut seen: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
    for slice in interval.slices(SLICES) {
        for (place, view) in registry::ALL.iter().enumerate() {
            if LEFT_OUT.contains(&view.name) {
                continue;
            }
            let Some(table) = view.table(&slice) else { continue };
            for row in &table.rows {
                let name = view.name_of(row);
                for (column, value) in row.iter().enumerate() {
                    if let Value::Number(number) = value
                        && !TOTALS.contains(&&*view.columns[column].key)
                    {
                        seen.entry((place, name.clone(), column)).or_default().push(*number);
                    }
                }
            }
        }
    }
    let enough = seen.into_iter().filter(|(_, values)| values.len() >= SLICES_MIN);
    enough.filter_map(|(key, values)| Some((key, stats::mean_over_time(&values)?))).collect()
}

fn difference(key: &Key, a: Option<&Estimate>, b: Option<&Estimate>) -> Difference {
    let (place, row, column) = key;
    let view = registry::ALL[*place];
    let column = &view.columns[*column];
    let set = |side: Option<&Estimate>| side.copied().into_iter().collect::<Vec<_>>();
    let Compared { a, b, ratio, outcome } = compare(&set(a), &set(b), Better::Neither);
    Difference { view, row: row.clone(), column, a, b, ratio, outcome }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing::probe;
    use serde_json::{Value as Json, json};

    use super::*;

    /// A network interface that receives about `rate` bytes a second, with noise, over 60 ticks.
    fn history(rate: u64) -> History {
        let network = probe("network", &[(Kind::Counter, "received_bytes")]);
        let mut history = History::new(vec![network, probe("host", &[])]);
        let mut total = 0;
        for tick in 0..60_u64 {
            let noise = tick * 7_919 % 11;
            total += rate + noise * rate / 100;
            history.push("network", tick * 1_000_000_000, "eth0", vec![Cell::from(total)]);
            history.push("host", tick * 1_000_000_000, "", Vec::new());
        }
        history
    }

    fn outcome(a: u64, b: u64) -> Outcome {
        let (a, b) = (history(a), history(b));
        let found = differences(&a.whole().unwrap(), &b.whole().unwrap());
        let is_it = |found: &&Difference| found.column.key == "received_bytes_per_s";
        found.iter().find(is_it).unwrap().outcome
    }

    #[test]
    fn a_difference_is_told_from_noise_and_nothing_from_itself() {
        assert_eq!(outcome(10_000, 10_000), Outcome::NotEstablished);
        assert_eq!(outcome(10_000, 10_010), Outcome::NotEstablished);
        assert_eq!(outcome(10_000, 12_000), Outcome::Higher);
        assert_eq!(outcome(12_000, 10_000), Outcome::Lower);
    }

    #[test]
    fn what_only_one_side_has_is_said() {
        let (a, empty) = (history(10), History::default());
        let mut b = history(10);
        b.push("network", 0, "eth1", vec![Cell::Value(0)]);
        let none = empty.interval(0, 1);
        let found = differences(&a.whole().unwrap(), &none);
        assert!(!found.is_empty());
        assert!(found.iter().all(|found| found.outcome == Outcome::OnlyInOne && found.b.is_none()));
        let document = json!(difference_document(("a", &a.whole().unwrap()), ("b", &none)));
        assert_eq!(document["rows"].as_array().unwrap().len(), found.len());
        assert_eq!(document["rows"][0]["outcome"], "only-in-one");
    }
}
