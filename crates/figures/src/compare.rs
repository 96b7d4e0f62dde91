//! Comparison of two sets of recordings, figure by figure.
//!
//! A [`Source`] is one recording with its figures, however they were derived: the headline figures
//! and points of a measurement, or the cells of views over a part of time. [`Comparison::of`] puts
//! the figures of the same name into a [`Row`] and says what holds for the whole: how the set-ups
//! differed, and what a reader must know.

mod facts;
mod order;
mod outcome;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::stats::Estimate;
use blockstone_base::units::Bytes;
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::CalibrateParameters;

pub use outcome::{Better, Compared, Outcome, compare};
pub use verdict::Verdict as Judgement;

/// Two sets of recordings; `b` is judged against `a`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub a: Side,
    pub b: Side,
    /// Verdict on B against A by the headline figures; `None` if parts of time are compared, whose
    /// figures are only higher or lower.
    pub verdict: Option<Judgement>,
    /// Settings, versions and devices that differ between the sides.
    pub differences: Vec<Difference>,
    /// Number of rows by outcome.
    pub counts: Counts,
    /// Rows in the order of the first source. A figure that it lacks follows the one before it in
    /// its own source.
    pub rows: Vec<Row>,
    /// Differences in the set-up, which may explain a difference in place of the storage.
    pub warnings: Vec<String>,
    /// Caveats that every reader of this comparison must know.
    pub caveats: Vec<String>,
}

/// A set of recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The first recording; trustworthy if all are.
    pub first: Recorded,
    /// Number of recordings.
    pub n: usize,
    pub recordings: Vec<Recorded>,
}

/// A recording of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Name of the recording on the command line, with the part of its time, and with the tool that
    /// measured if that was not Blockstone.
    pub recording: String,
    pub id: String,
    /// Start of the recording (RFC 3339).
    pub started_at: String,
    pub host: String,
    /// Path under test.
    pub target: String,
    /// Device at the top of the target's chain.
    pub device: Option<String>,
    /// Block size of the small operations, in bytes.
    pub block_bytes: Option<u64>,
    /// Largest part of the file that was visited, in bytes.
    pub span_bytes: Option<u64>,
    /// Whether the page cache was bypassed; `None` if this is unknown or differs between phases.
    pub direct: Option<bool>,
    /// Whether no verdict condemns any of the recording's numbers.
    pub trustworthy: bool,
    /// Start of the part that is compared, in nanoseconds since `started_at`; `None` for a whole
    /// recording.
    pub from_ns: Option<u64>,
    /// End of that part, likewise.
    pub to_ns: Option<u64>,
    /// Facts about what it was measured with and on, by name.
    pub facts: BTreeMap<String, String>,
}

/// A fact that both sides have and that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the fact: a setting, the kernel, a mount option.
    pub name: String,
    /// Value in A; several if its recordings differ.
    pub a: String,
    /// Value in B, likewise.
    pub b: String,
}

/// Number of rows by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub faster: u64,
    pub slower: u64,
    pub higher: u64,
    pub lower: u64,
    pub not_established: u64,
    pub other_load: u64,
    pub condemned: u64,
    pub only_in_one: u64,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub key: Key,
    /// Title for people: `Most random reads a second`.
    pub title: String,
    /// Estimate over the recordings of `a` that have the figure; `None` if only `b` has it.
    pub a: Option<Estimate>,
    /// Estimate over the recordings of `b`, likewise.
    pub b: Option<Estimate>,
    /// Number of recordings of `a` that have the figure.
    pub n_a: usize,
    pub n_b: usize,
    /// b ÷ a with its interval.
    pub ratio: Option<Estimate>,
    /// Probability that chance alone shows a difference at least as large, from 0 to 1.
    pub p_value: Option<f64>,
    /// Smallest share of false differences among the rows of the comparison at which this one still
    /// counts as different (Benjamini and Hochberg).
    pub q_value: Option<f64>,
    /// Outcome of the comparison, as seen from `b`.
    pub outcome: Outcome,
    /// Rules that condemn the figure in any recording of either side.
    pub condemned_by: Vec<String>,
    /// Rules that warn of the figure in any recording of either side.
    pub warned_by: Vec<String>,
    /// Loads on which the figure depends, if the measurements chose them and they differ.
    pub loads: Vec<String>,
}

/// Key that identifies a figure in every recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub subject: Subject,
    /// Name of the subject's figure; empty if the subject itself is the figure.
    pub figure: String,
}

/// The subject that has a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A measurement: the name of a headline figure, or a point's label.
    Measured { label: String, unit: String, lower_is_faster: bool },
    /// A row of a view; `row` is empty in a view of one row. `instance` is there if several
    /// databases are watched.
    Viewed { view: String, instance: Option<String>, row: String },
}

/// A figure of one recording.
#[derive(Clone, Debug)]
pub struct Figure {
    pub key: Key,
    /// Title for people.
    pub title: String,
    pub estimate: Estimate,
    /// Rules that condemn the figure.
    pub condemned_by: Vec<String>,
    /// Rules that warn of the figure.
    pub warned_by: Vec<String>,
    /// Whether one of these rules names a cause outside the storage, such as other programs.
    pub doubted: bool,
    /// Half the width of the 95 % interval in which another recording of the same storage is
    /// expected, as a fraction of the value, as far as the samples of the estimate do not show it.
    pub drift_ratio: f64,
    /// Load on which the figure depends, if the measurement itself chose that.
    pub load: Option<String>,
}

/// A recording with its figures, in the order in which they should be read.
#[derive(Clone, Debug)]
pub struct Source {
    pub recorded: Recorded,
    pub figures: Vec<Figure>,
}

impl Comparison {
    /// Compares set `b` with set `a`.
    ///
    /// # Panics
    /// Panics if one of them is empty.
    pub fn of(a: &[Source], b: &[Source]) -> Self {
        let rows = rows(a, b);
        let (a, b) = (Side::of(a), Side::of(b));
        let (verdict, differences) = (Judgement::of(&rows), facts::differences(&a, &b));
        let mut caveats = vec![order::caveat(&a, &b).to_owned()];
        caveats.extend(variation(&a, &b));
        caveats.extend(partial(&rows, &a, &b));
        caveats.push(discoveries(&rows));
        let (warnings, counts) = (warnings(&a, &b), Counts::of(&rows));
        Self { a, b, verdict, differences, counts, rows, warnings, caveats }
    }
}

impl Recorded {
    /// Describes a whole recording from its manifest; `recording` is its name.
    pub fn of(recording: String, manifest: &Manifest) -> Self {
        let asked: CalibrateParameters = manifest.parameters();
        Self {
            recording,
            id: manifest.id.clone(),
            started_at: manifest.started_at.clone(),
            host: manifest.host.hostname.clone(),
            target: manifest.target.path.clone(),
            device: manifest.target.devices.first().map(|device| device.name.clone()),
            block_bytes: asked.block_bytes.map(Bytes::get),
            span_bytes: asked.size_bytes.map(Bytes::get),
            direct: None,
            trustworthy: !manifest.verdicts.iter().any(Verdict::condemns),
            from_ns: None,
            to_ns: None,
            facts: facts::of(manifest),
        }
    }
}

impl Side {
    fn of(sources: &[Source]) -> Self {
        let recordings: Vec<Recorded> =
            sources.iter().map(|source| source.recorded.clone()).collect();
        let trustworthy = recordings.iter().all(|recorded| recorded.trustworthy);
        let first = Recorded { trustworthy, ..recordings[0].clone() };
        Self { first, n: recordings.len(), recordings }
    }
}

impl Counts {
    fn of(rows: &[Row]) -> Self {
        let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count() as u64;
        Self {
            faster: count(Outcome::Faster),
            slower: count(Outcome::Slower),
            higher: count(Outcome::Higher),
            lower: count(Outcome::Lower),
            not_established: count(Outcome::NotEstablished),
            other_load: count(Outcome::OtherLoad),
            condemned: count(Outcome::Condemned),
            only_in_one: count(Outcome::OnlyInOne),
        }
    }
}

impl Figure {
    /// Returns the estimate to use if this is the only one of its side. The variation from
    /// recording to recording is independent of that within its samples, so that the two add in
    /// quadrature.
    fn alone(&self) -> Estimate {
        let Estimate { value, low, high, .. } = self.estimate;
        let drift = value.abs() * self.drift_ratio;
        let (below, above) = ((value - low).hypot(drift), (high - value).hypot(drift));
        Estimate { low: value - below, high: value + above, ..self.estimate }.not_negative()
    }
}

impl Subject {
    fn better(&self) -> Better {
        match self {
            Self::Measured { lower_is_faster: true, .. } => Better::Less,
            Self::Measured { .. } => Better::More,
            Self::Viewed { .. } => Better::Neither,
        }
    }
}

fn rows(a: &[Source], b: &[Source]) -> Vec<Row> {
    let mut sides: BTreeMap<&Key, [Vec<&Figure>; 2]> = BTreeMap::new();
    for (side, set) in [a, b].into_iter().enumerate() {
        for figure in set.iter().flat_map(|source| &source.figures) {
            sides.entry(&figure.key).or_default()[side].push(figure);
        }
    }
    let keys = keys(a.iter().chain(b)).into_iter();
    let mut rows: Vec<Row> = keys.map(|key| row(key, &sides[key][0], &sides[key][1])).collect();
    // A handful of headline figures must not be penalised for a hundred points.
    let (headline, others): (Vec<&mut Row>, Vec<&mut Row>) =
        rows.iter_mut().partition(|row| row.is_headline());
    limit_false_discoveries(headline);
    limit_false_discoveries(others);
    rows
}

impl Row {
    /// Returns whether this is a figure of a whole measurement.
    pub fn is_headline(&self) -> bool {
        matches!(self.key.subject, Subject::Measured { .. }) && self.key.figure.is_empty()
    }

    /// Returns whether this is a headline figure and the intervals of both sides do not overlap.
    fn is_apart(&self) -> bool {
        let both = self.a.zip(self.b).filter(|_| self.is_headline());
        both.is_some_and(|(a, b)| a.high < b.low || b.high < a.low)
    }
}

/// Largest share of rows called different that may be so by chance.
const FALSE_DISCOVERIES_MAX: f64 = 0.05;

/// Of many rows without a difference, some look different by chance. A row counts as different only
/// as long as at most one in twenty of the rows called different is expected to be false (Benjamini
/// and Hochberg, J. Royal Statistical Society B 57, 1995). A headline figure whose intervals do not
/// overlap differs in any case: with equal figures this happens about once in some thousand.
fn limit_false_discoveries(rows: Vec<&mut Row>) {
    let mut tested: Vec<&mut Row> = rows
        .into_iter()
        .filter(|row| row.condemned_by.is_empty() && row.p_value.is_some())
        .collect();
    tested.sort_by(|x, y| x.p_value.partial_cmp(&y.p_value).expect("no probability is NaN"));
    let count = tested.len() as f64;
    let mut least = 1.0_f64;
    for (rank, row) in tested.iter_mut().enumerate().rev() {
        least = least.min(row.p_value.unwrap_or(1.0) * count / (rank + 1) as f64);
        row.q_value = Some(least);
        if least > FALSE_DISCOVERIES_MAX && !row.is_apart() {
            row.outcome = Outcome::NotEstablished;
        }
    }
}

/// Returns every key once, in the order of the first source. A key that it lacks follows the one
/// before it in its own source.
fn keys<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<&'a Key> {
    let (mut keys, mut known) = (Vec::new(), BTreeSet::new());
    for source in sources {
        let mut next = 0;
        for Figure { key, .. } in &source.figures {
            if known.insert(key) {
                keys.insert(next, key);
                next += 1;
            } else if let Some(ahead) = keys[next..].iter().position(|other| *other == key) {
                next += ahead + 1;
            }
        }
    }
    keys
}

fn row(key: &Key, a: &[&Figure], b: &[&Figure]) -> Row {
    let mut figures_of = a.iter().chain(b);
    let rules = |of: fn(&Figure) -> &Vec<String>| -> Vec<String> {
        let rules: BTreeSet<&String> = a.iter().chain(b).flat_map(|figure| of(figure)).collect();
        rules.into_iter().cloned().collect()
    };
    let (condemned_by, warned_by) = (rules(|f| &f.condemned_by), rules(|f| &f.warned_by));
    let estimates = |set: &[&Figure]| match set {
        [one] => vec![one.alone()],
        several => several.iter().map(|figure| figure.estimate).collect(),
    };
    let (n_a, n_b) = (a.len(), b.len());
    // If other programs or the processors affected a figure, it does not show which storage is
    // faster.
    let doubted = figures_of.clone().any(|figure| figure.doubted);
    let better = if doubted { Better::Neither } else { key.subject.better() };
    let loads = differing_loads(a.iter().chain(b));
    let mut compared = compare(&estimates(a), &estimates(b), better);
    if compared.outcome != Outcome::OnlyInOne {
        if !loads.is_empty() {
            compared =
                Compared { ratio: None, p_value: None, outcome: Outcome::OtherLoad, ..compared };
        }
        if !condemned_by.is_empty() {
            compared.outcome = Outcome::Condemned;
        }
    }
    let Compared { a, b, ratio, p_value, outcome } = compared;
    let first = figures_of.next().map(|figure| figure.title.clone());
    Row {
        key: key.clone(),
        title: first.unwrap_or_default(),
        a,
        b,
        n_a,
        n_b,
        ratio,
        p_value,
        q_value: None,
        outcome,
        condemned_by,
        warned_by,
        loads,
    }
}

/// Returns the loads that the figures depend on; empty if it is the same for all.
fn differing_loads<'a>(figures: impl Iterator<Item = &'a &'a Figure>) -> Vec<String> {
    let loads: BTreeSet<&String> = figures.filter_map(|figure| figure.load.as_ref()).collect();
    if loads.len() > 1 { loads.into_iter().cloned().collect() } else { Vec::new() }
}

/// Describes how the set-ups differ, within a side or between the sides.
fn warnings(a: &Side, b: &Side) -> Vec<String> {
    fn text<T: ToString>(value: Option<&T>) -> String {
        value.map_or_else(|| "unknown".to_owned(), T::to_string)
    }
    type Fact = fn(&Recorded) -> String;
    const FACTS: [(&str, Fact); 6] = [
        ("block size (bytes)", |recorded| text(recorded.block_bytes.as_ref())),
        ("file size (bytes)", |recorded| text(recorded.span_bytes.as_ref())),
        ("direct I/O", |recorded| text(recorded.direct.as_ref())),
        ("target", |recorded| recorded.target.clone()),
        ("device", |recorded| text(recorded.device.as_ref())),
        ("host", |recorded| recorded.host.clone()),
    ];
    let differs = |(what, fact): (&str, Fact)| {
        let [a, b] = [a, b].map(|side| side.recordings.iter().map(fact).collect::<BTreeSet<_>>());
        let words = |values: &BTreeSet<String>| {
            values.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
        };
        (a != b || a.len() > 1)
            .then(|| format!("{what} differs: {} in A, {} in B", words(&a), words(&b)))
    };
    FACTS.into_iter().filter_map(differs).collect()
}

/// Describes the variation that the intervals cover.
fn variation(a: &Side, b: &Side) -> Option<String> {
    let between = "covers the variation between its recordings";
    let single = "is a single recording, whose interval does not cover the variation between";
    match (a.n, b.n) {
        (1, 1) if a.first.from_ns.is_some() => None,
        (1, 1) => Some(
            "The interval of each side is that in which another recording is expected, by how much \
             the reference point, and a load with several windows, varied within the recording; \
             what changed between the two recordings is not in it."
                .to_owned(),
        ),
        (1, _) => Some(format!("The interval of B {between}. A {single} recordings.")),
        (_, 1) => Some(format!("The interval of A {between}. B {single} recordings.")),
        _ => Some(format!(
            "The interval of each side {between}, with Student's t, and is never narrower than \
             the mean of their own intervals."
        )),
    }
}

/// Describes how reliable the rows are that are called different.
fn discoveries(rows: &[Row]) -> String {
    let tested = rows.iter().filter(|row| row.q_value.is_some()).count();
    format!(
        "Intervals are at 95 % for each row by itself. Of {tested} rows compared, those called \
         different are chosen so that at most one in twenty of them is expected to be false, \
         headline figures and single points each by themselves. A row is \
         higher or lower, not faster or slower, where a rule warns of a cause outside the storage."
    )
}

/// Describes how many figures are missing from some recordings of a set.
fn partial(rows: &[Row], a: &Side, b: &Side) -> Option<String> {
    let lacks = |n: usize, side: &Side| n > 0 && n < side.n;
    let count = rows.iter().filter(|row| lacks(row.n_a, a) || lacks(row.n_b, b)).count();
    (count > 0).then(|| {
        format!(
            "Rows whose figure is missing from some recordings of a set: {count}. In JSON, n_a and \
             n_b say how many recordings have it."
        )
    })
}

#[cfg(test)]
mod tests;
