//! Figures and tables of a comparison. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Merge, Missing, Row as Cells, Value, bytes, count, flag, happened, ratio, text, time,
    total, unmerged,
};
use blockstone_figures::compare::{Comparison, Judgement, Recorded, Row, Subject};

rows! {
    /// Single figures of a comparison of measurements.
    pub struct Summary {
        /// Verdict on B against A by the headline figures: `faster`, `slower`, `same`, `mixed` or
        /// `not-established`.
        verdict: Value = text("verdict").answer(),
        /// Rows in which B is faster.
        faster: u64 = total("faster", Measure::Count),
        /// Rows in which B is slower.
        slower: u64 = total("slower", Measure::Count),
        /// Rows in which B is higher, where a cause outside the storage is possible.
        higher: u64 = total("higher", Measure::Count),
        /// Rows in which B is lower, likewise.
        lower: u64 = total("lower", Measure::Count),
        /// Rows whose numbers do not show a difference.
        not_established: u64 = total("not established", Measure::Count),
        /// Rows whose numbers depend on loads that differ.
        other_load: u64 = total("other load", Measure::Count),
        /// Rows that a rule condemns on one side.
        condemned: u64 = total("condemned", Measure::Count),
        /// Rows that only one side has.
        only_in_one: u64 = total("on one side", Measure::Count),
    }
}

rows! {
    /// Single figures of a comparison of parts of time.
    pub struct LayersSummary {
        /// Change of the database time from A to B, in active sessions, if both sides have it.
        db_time_change: Value = count("change of DB time"),
        /// Rows in which B is higher.
        higher: u64 = total("higher", Measure::Count),
        /// Rows in which B is lower.
        lower: u64 = total("lower", Measure::Count),
        /// Rows whose numbers do not show a difference.
        not_established: u64 = total("not established", Measure::Count),
        /// Rows that only one side has.
        only_in_one: u64 = total("on one side", Measure::Count),
    }
}

rows! {
    /// Recordings of both sides.
    pub struct RecordingRow {
        /// `a` or `b`.
        side: &'static str = text("side"),
        /// Name of the recording on the command line, with the part of its time, and with the tool
        /// that measured if that was not Blockstone.
        recording: String = text("recording"),
        /// Its id.
        id: String = text("ID"),
        /// Start of the recording, as RFC 3339.
        started_at: String = text("started"),
        /// Name of the host.
        host: String = text("host"),
        /// Path under test.
        target: String = text("target"),
        /// Device at the top of the target's chain.
        device: Option<String> = text("device"),
        /// Block size of the small operations.
        block_bytes: Option<u64> = bytes("block"),
        /// Largest part of the file that was visited.
        span_bytes: Option<u64> = bytes("span"),
        /// Whether the page cache was bypassed; unknown if it differs between phases.
        direct: Option<bool> = flag("direct"),
        /// Whether no verdict condemns any of the recording's numbers.
        trustworthy: bool = flag("trustworthy"),
        /// Start of the part that is compared, since `started_at`; off for a whole recording.
        from_ns: Value = time("from"),
        /// End of that part, likewise.
        to_ns: Value = time("to"),
    }
}

rows! {
    /// Settings, versions and devices that differ between the sides.
    pub struct SetupRow {
        /// A setting, a version, a device, or what the kernel was told of it.
        name: String = text(""),
        /// In A, of each of its recordings.
        a: String = unmerged("A", Measure::Text).answer(),
        /// In B.
        b: String = unmerged("B", Measure::Text).answer(),
    }
}

rows! {
    /// Differences in the set-up, which may explain a difference in place of the storage.
    pub struct WarningRow {
        /// A sentence.
        warning: String = text("warning").prose(),
    }
}

rows! {
    /// Facts that every reader of the comparison must know.
    pub struct CaveatRow {
        /// A sentence or two.
        caveat: String = text("caveat").prose(),
    }
}

rows! {
    /// Figures of both sides, as people see them.
    pub struct FigureLine {
        /// The figure, or the point and its figure.
        figure: String = text(""),
        /// Value of the first set of recordings.
        a: Value = unmerged("A", Measure::OfRow).answer(),
        /// Value of the second set.
        b: Value = unmerged("B", Measure::OfRow).answer(),
        /// The second ÷ the first.
        ratio: Value = ratio("B ÷ A").answer(),
        /// Whether B is faster or slower, if that is established.
        outcome: Value = unmerged("result", Measure::Text).answer(),
        /// Unit of A and B.
        unit: String = unmerged("unit", Measure::Text),
    }
}

rows! {
    /// Figures of both sides, in the order of the first recording. A figure that it lacks follows
    /// the one before it in its own recording.
    pub struct FigureRow {
        /// Name of a headline figure, or label of a point.
        label: String = text("label"),
        /// Figure of the point; empty if the label itself is the figure.
        figure: String = text("figure"),
        /// Estimate over the recordings of A that have the figure.
        a: Value = unmerged("A", Measure::OfRow),
        /// Estimate over the recordings of B, likewise.
        b: Value = unmerged("B", Measure::OfRow),
        /// B ÷ A with its interval.
        ratio: Value = ratio("B ÷ A"),
        /// `faster`, `slower`, `higher`, `lower`, `not-established`, `other-load`, `condemned` or
        /// `only-in-one`, as seen from B.
        outcome: &'static str = text("result").merged(Merge::Never),
        /// Recordings of A that have the figure.
        n_a: u64 = count("n of A"),
        /// Recordings of B that have it.
        n_b: u64 = count("n of B"),
        /// Probability that chance alone shows a difference at least as large, from 0 to 1.
        p_value: Value = unmerged("p", Measure::Count),
        /// Smallest share of false differences among the rows of the comparison at which this one
        /// still counts as different (Benjamini and Hochberg).
        q_value: Value = unmerged("q", Measure::Count),
        /// Unit of A and B.
        unit: String = unmerged("unit", Measure::Text),
        /// Whether less is better.
        lower_is_faster: bool = flag("lower is faster"),
        /// Title for people.
        title: String = unmerged("title", Measure::Text),
        /// Rules that warn of the figure in any recording of either side.
        warned_by: Value = unmerged("warned by", Measure::Text),
        /// Loads on which the figure depends, if the measurements chose them and they differ.
        loads: Value = unmerged("loads", Measure::Text),
    }
}

rows! {
    /// Figures of every layer in both sides, as people see them.
    pub struct LayerLine {
        /// The table that has the figure.
        view: &'static str = text("view"),
        /// The database, where several are watched.
        instance: Value = text("instance"),
        /// The row of that table.
        row: String = text("what"),
        /// The column of that table.
        figure: String = text("figure"),
        /// Mean over the first part of time, or set of such.
        a: Value = unmerged("A", Measure::OfRow).answer(),
        /// Mean of B.
        b: Value = unmerged("B", Measure::OfRow).answer(),
        /// The second ÷ the first.
        ratio: Value = ratio("B ÷ A").answer(),
        /// Whether B is higher or lower, if that is established.
        outcome: Value = unmerged("result", Measure::Text).answer(),
        /// For events: share of the change of database time.
        contribution: Value = unmerged("of change", Measure::Share),
    }
}

rows! {
    /// Figures of every layer in both sides, in the order of the views.
    pub struct LayerRow {
        /// View that has the figure.
        view: String = text("view"),
        /// Database, where several are watched.
        instance: Value = text("instance"),
        /// Row of the view; empty in a view of one row.
        row: String = text("row"),
        /// Key of the column of the view.
        figure: String = text("figure"),
        /// Mean over the recordings of A that have the figure.
        a: Value = unmerged("A", Measure::OfRow),
        /// Mean of B, likewise.
        b: Value = unmerged("B", Measure::OfRow),
        /// B ÷ A with its interval.
        ratio: Value = ratio("B ÷ A"),
        /// `higher`, `lower`, `not-established` or `only-in-one`, as seen from B.
        outcome: &'static str = text("result").merged(Merge::Never),
        /// Recordings of A that have the figure.
        n_a: u64 = count("n of A"),
        /// Recordings of B that have it.
        n_b: u64 = count("n of B"),
        /// Probability that chance alone shows a difference at least as large, from 0 to 1.
        p_value: Value = unmerged("p", Measure::Count),
        /// Smallest share of false differences among the rows of the comparison at which this one
        /// still counts as different (Benjamini and Hochberg).
        q_value: Value = unmerged("q", Measure::Count),
        /// Heading of the column, for people.
        title: String = unmerged("title", Measure::Text),
    }
}

impl Summary {
    pub fn of(comparison: &Comparison) -> Self {
        let counts = &comparison.counts;
        Self {
            verdict: happened(comparison.verdict.map(Judgement::word)),
            faster: counts.faster,
            slower: counts.slower,
            higher: counts.higher,
            lower: counts.lower,
            not_established: counts.not_established,
            other_load: counts.other_load,
            condemned: counts.condemned,
            only_in_one: counts.only_in_one,
        }
    }
}

impl LayersSummary {
    pub fn of(comparison: &Comparison, db_time_change: Option<f64>) -> Self {
        let counts = &comparison.counts;
        Self {
            db_time_change: db_time_change.into(),
            higher: counts.higher,
            lower: counts.lower,
            not_established: counts.not_established,
            only_in_one: counts.only_in_one,
        }
    }
}

impl RecordingRow {
    /// Returns the rows of both sides.
    pub fn of(comparison: &Comparison) -> impl Iterator<Item = Self> {
        let sides = [("a", &comparison.a), ("b", &comparison.b)];
        sides.into_iter().flat_map(|(side, set)| {
            set.recordings.iter().map(move |recorded| Self::one(side, recorded))
        })
    }

    fn one(side: &'static str, recorded: &Recorded) -> Self {
        let edge = |ns: Option<u64>| ns.ok_or(Missing::Off).into();
        Self {
            side,
            recording: recorded.recording.clone(),
            id: recorded.id.clone(),
            started_at: recorded.started_at.clone(),
            host: recorded.host.clone(),
            target: recorded.target.clone(),
            device: recorded.device.clone(),
            block_bytes: recorded.block_bytes,
            span_bytes: recorded.span_bytes,
            direct: recorded.direct,
            trustworthy: recorded.trustworthy,
            from_ns: edge(recorded.from_ns),
            to_ns: edge(recorded.to_ns),
        }
    }
}

impl FigureRow {
    pub fn of(row: &Row) -> Option<Cells> {
        let Subject::Measured { label, unit, lower_is_faster } = &row.key.subject else {
            return None;
        };
        let joined =
            |names: &[String], by: &str| happened((!names.is_empty()).then(|| names.join(by)));
        let cells = Self {
            label: label.clone(),
            figure: row.key.figure.clone(),
            a: row.a.into(),
            b: row.b.into(),
            ratio: happened(row.ratio),
            outcome: row.outcome.key(),
            n_a: row.n_a as u64,
            n_b: row.n_b as u64,
            p_value: happened(row.p_value),
            q_value: happened(row.q_value),
            unit: unit.clone(),
            lower_is_faster: *lower_is_faster,
            title: row.title.clone(),
            warned_by: joined(&row.warned_by, ", "),
            loads: joined(&row.loads, " / "),
        };
        Some(Cells::from(cells).condemned_by(&row.condemned_by))
    }
}

impl LayerRow {
    /// Returns a row whose numbers have this measure.
    pub fn of(row: &Row, measure: Measure) -> Option<Cells> {
        let Subject::Viewed { view, instance, row: of } = &row.key.subject else { return None };
        let cells = Self {
            view: view.clone(),
            instance: happened(instance.as_deref()),
            row: of.clone(),
            figure: row.key.figure.clone(),
            a: happened(row.a),
            b: happened(row.b),
            ratio: happened(row.ratio),
            outcome: row.outcome.key(),
            n_a: row.n_a as u64,
            n_b: row.n_b as u64,
            p_value: happened(row.p_value),
            q_value: happened(row.q_value),
            title: row.title.clone(),
        };
        Some(Cells::from(cells).of(measure))
    }
}
