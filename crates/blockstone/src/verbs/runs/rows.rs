//! Tables of recordings. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Row, Value, bytes, count, happened, text, time, unmerged,
};
use blockstone_record::RunEntry;
use blockstone_record::manifest::Figure;

use super::{reason, state_word};

rows! {
    /// The recordings, newest first, as people see them.
    pub(super) struct RunRow {
        /// The id of the recording, for other verbs.
        id: String = text("ID"),
        /// Time of the start.
        started_at: String = text("started"),
        /// The verb that made it.
        verb: String = text("verb"),
        /// Path that was measured; a long one is cut on the left.
        target: String = text("target"),
        /// How it ended.
        state: &'static str = text("state"),
        /// For a calibration the maximum, for a run the reads.
        iops: Value = count("IOPS"),
        // Megabytes per second as plain numbers: with the unit in the heading, the column is
        // narrower.
        /// Likewise in megabytes per second.
        mbps: Value = count("MB/s"),
        /// Median latency of a commit.
        commit_latency_ns_p50: Value = time("commit"),
    }
}

rows! {
    /// The recordings, newest first.
    pub(super) struct RecordingRow {
        /// Id that names the recording to other verbs.
        id: String = text("ID"),
        /// Verb that made the recording.
        verb: String = text("verb"),
        /// Start of the recording, as RFC 3339.
        started_at: Option<String> = text("started"),
        /// Path that was measured.
        target: Option<String> = text("target"),
        /// Directory of the recording.
        path: String = text("path"),
        /// `complete`, `running`, `unfinished`, `interrupted`, `failed`, `damaged`, or `grid`: a
        /// directory of recordings.
        state: &'static str = text("state"),
        /// Reason why it is not complete, if there is one.
        why: Value = text("why").prose(),
        /// Tags that the user gave it, with spaces between them.
        tags: String = text("tags"),
        /// Note of the user.
        note: String = text("note").prose(),
    }
}

rows! {
    /// Recordings that were to be removed.
    pub(super) struct RemovedRow {
        /// Id of the recording or grid.
        id: String = text("ID"),
        /// Name of its directory.
        recording: String = text("recording"),
        /// Its start, as RFC 3339 in UTC.
        started_at: Option<String> = text("started"),
        /// Bytes of its files.
        bytes: Option<u64> = bytes("size"),
        /// `removed`, `would be removed` or `kept`.
        outcome: &'static str = text("outcome").answer(),
        /// Why it is kept.
        why: String = text("why").prose(),
    }
}

rows! {
    /// Figures of the recordings that have ended, as their manifests have them.
    pub(super) struct FigureRow {
        /// Id of the recording.
        id: String = text("ID"),
        /// Name of the figure.
        figure: String = text("figure"),
        /// Its value, in its unit; condemned if rules say so.
        value: Value = unmerged("value", Measure::OfRow),
        /// Its unit: `IOPS`, `MB/s`, `ns`.
        unit: String = unmerged("unit", Measure::Text),
        /// Title for people.
        title: String = unmerged("title", Measure::Text),
        /// Label of the phase that it was derived from.
        phase: String = unmerged("phase", Measure::Text),
    }
}

impl RecordingRow {
    pub fn of(run: &RunEntry) -> Self {
        let labels = run.labels.clone().unwrap_or_default();
        Self {
            id: run.id.clone(),
            verb: run.verb.clone(),
            started_at: run.started_at.map(|at| at.to_string()),
            target: run.target_path.clone(),
            path: run.path.display().to_string(),
            state: state_word(&run.state),
            why: happened(reason(&run.state)),
            tags: labels.tags.iter().cloned().collect::<Vec<_>>().join(" "),
            note: labels.note,
        }
    }
}

impl FigureRow {
    /// Returns a row for each figure of a recording.
    pub fn of(run: &RunEntry) -> impl Iterator<Item = Row> {
        run.summary.iter().map(|(name, it)| {
            let Figure { title, unit, estimate, phase, condemned_by } = it;
            let row = Self {
                id: run.id.clone(),
                figure: name.clone(),
                value: if estimate.value.is_finite() {
                    (*estimate).into()
                } else {
                    Missing::Unknown.into()
                },
                unit: unit.clone(),
                title: title.clone(),
                phase: phase.clone(),
            };
            Row::from(row).condemned_by(condemned_by)
        })
    }
}
