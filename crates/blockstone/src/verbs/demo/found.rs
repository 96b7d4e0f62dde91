//! Ways to get a figure of the storage, and what was found in each.

use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Verdict;
use blockstone_judge::Findings;
use blockstone_record::manifest::{Group, Manifest};

/// The figure that all ways have.
pub const FIGURE: &str = "max_iops";
const THROTTLED: &str = "throttled";
const LATE_START: &str = "late-start";
/// Fewest reads a second that a cap leaves: windows of tenths of a second need some of them.
const CAP_LEAST: f64 = 50.0;
/// Half of the widest interval, as a share of the figure, with which the figure is one to rely on.
const HALF_WIDTH_MAX: f64 = 0.5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A file that was written in full, read past the page cache.
    Honest,
    /// A file that is one hole.
    Sparse,
    /// The honest file, read through the page cache, which holds it.
    PageCache,
    /// The honest file under a cap of a control group.
    Cap { reads_per_s: u64 },
    /// The honest file at a given rate, in place of a cap; says why no cap could be set.
    GivenRate { reads_per_s: u64, why: String },
}

/// The findings of one way that matter for its figure.
#[derive(Clone, Debug)]
pub struct Found {
    pub way: Way,
    /// Random reads a second; `None` if the measurement ended before.
    pub iops: Option<Estimate>,
    pub condemned_by: Vec<String>,
    pub verdicts: Vec<Verdict>,
    pub manifest: Manifest,
}

impl Way {
    pub const COUNT: usize = 4;

    pub fn name(&self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Sparse => "sparse",
            Self::PageCache => "page-cache",
            Self::Cap { .. } => "cap",
            Self::GivenRate { .. } => "given-rate",
        }
    }
}

impl Found {
    pub fn new(way: Way, manifest: Manifest, findings: Findings) -> Self {
        let given = findings.points.iter().find(|point| point.group == Group::OpenLoop);
        let most = findings.summary.iter().find(|(name, _)| name == FIGURE);
        let (iops, condemned_by) = match (&way, given, most) {
            (Way::GivenRate { .. }, given, _) => {
                given.map(|point| (point.iops, point.condemned_by.clone())).unzip()
            }
            (_, _, most) => {
                most.map(|(_, figure)| (figure.estimate, figure.condemned_by.clone())).unzip()
            }
        };
        let mut condemned_by = condemned_by.unwrap_or_default();
        // It condemns the latencies of a given rate, not the rate.
        condemned_by.retain(|rule| rule != LATE_START);
        Self { way, iops, condemned_by, verdicts: findings.verdicts, manifest }
    }

    /// Returns the figure, if nothing condemns it.
    pub fn sound(&self) -> Option<Estimate> {
        self.iops.filter(|_| self.condemned_by.is_empty())
    }

    /// Returns whether the interval of the figure is so wide that only its ends say anything.
    pub fn is_wide(&self) -> bool {
        self.iops.is_some_and(|iops| iops.relative_half_width() > HALF_WIDTH_MAX)
    }

    /// Returns the figure, if it would have been believed and is wrong: it is condemned, and not
    /// what the storage does.
    pub fn deceptive(&self) -> Option<Estimate> {
        let deceives = matches!(self.way, Way::Sparse | Way::PageCache);
        self.iops.filter(|_| deceives && !self.condemned_by.is_empty())
    }

    /// Returns the verdict on caps.
    pub fn throttled(&self) -> Option<&Verdict> {
        self.verdicts.iter().find(|it| it.rule == THROTTLED)
    }

    /// Returns the rules that warn about the figure, if it stands.
    pub fn warned_by(&self) -> impl Iterator<Item = &str> {
        self.verdicts.iter().filter(|it| self.warns(it)).map(|it| it.rule.as_str())
    }

    /// Returns the verdicts on the figure alone: failures concern it under the name of the way.
    /// Their advice is left out, because it names options of `calibrate`.
    pub fn of_figure(&self) -> impl Iterator<Item = Verdict> {
        let told = |it: &&Verdict| !it.failed() || it.condemns() || self.warns(it);
        self.verdicts.iter().filter(told).map(|it| {
            let concerns = if it.failed() { vec![self.way.name().to_owned()] } else { Vec::new() };
            let cause = if it.condemns() { it.cause.clone() } else { String::new() };
            Verdict { concerns, cause, next: String::new(), ..it.clone() }
        })
    }

    /// Returns whether Blockstone noticed what is wrong with the figure. Nothing is wrong with an
    /// honest one, and a rate that a load was given is not taken for a limit.
    pub fn is_noticed(&self) -> bool {
        match self.way {
            Way::Honest | Way::GivenRate { .. } => true,
            Way::Sparse | Way::PageCache => !self.condemned_by.is_empty(),
            Way::Cap { .. } => self.throttled().is_some_and(Verdict::warns),
        }
    }

    fn warns(&self, verdict: &Verdict) -> bool {
        let concerned = match self.way {
            // The cap holds for every window, whichever of them show it.
            Way::Cap { .. } if verdict.rule == THROTTLED => true,
            Way::GivenRate { .. } => false,
            _ => verdict.concerns.iter().any(|name| name == FIGURE),
        };
        verdict.warns() && concerned && self.condemned_by.is_empty()
    }
}

/// Returns a tenth of a rate with one digit, for a cap that no one can take for the storage.
pub fn tenth(iops: f64) -> u64 {
    let tenth = (iops / 10.0).max(CAP_LEAST);
    let unit = 10_f64.powf(tenth.log10().floor());
    ((tenth / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_a_tenth_with_one_digit_and_leaves_some_reads() {
        for (iops, expected) in
            [(12_345.0, 1_000), (35_683.0, 4_000), (999_000.0, 100_000), (120.0, 50), (0.0, 50)]
        {
            assert_eq!(tenth(iops), expected, "{iops}");
        }
    }
}
