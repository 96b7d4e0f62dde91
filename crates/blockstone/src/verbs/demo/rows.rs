//! Figures of a demonstration. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Missing, count, flag, ratio, text};

rows! {
    /// Single figures of a demonstration.
    pub(super) struct Summary {
        /// Random reads a second of a file that was written in full, past the page cache; without
        /// evidence if a rule condemns them.
        honest_iops: Result<Estimate, Missing> = count("honest"),
        /// The greatest figure that a rule condemns and that would have been believed.
        believed_iops: Result<Estimate, Missing> = count("believed"),
        /// Believed ÷ honest.
        believed_ratio: Result<Estimate, Missing> = ratio("believed ÷ honest"),
        /// Whether the honest figure stands and each of the others was noticed.
        shown: bool = flag("shown"),
    }
}

rows! {
    /// Ways to get a figure of the storage.
    pub(super) struct WayRow {
        /// `honest`, `sparse`, `page-cache`, and `cap` or, where this user may not set one,
        /// `given-rate`.
        way: &'static str = text("way"),
        /// Random reads a second.
        iops: Result<Estimate, Missing> = count("reads/s").answer(),
        /// This figure ÷ the honest one.
        honest_ratio: Result<Estimate, Missing> = ratio("÷ honest").plain(),
        /// Rules that warn about the figure, if none condemns it.
        warned_by: String = text("warned by"),
        /// Its recording, as in `blockstone report ID`.
        recording: String = text("recording"),
        /// The subject, and how it was read.
        what: String = text("what").prose(),
        /// Evidence of the rule that decides whether to believe it.
        seen: String = text("seen").prose(),
        /// The conclusion for a reader of such figures.
        lesson: String = text("lesson").prose(),
    }
}
