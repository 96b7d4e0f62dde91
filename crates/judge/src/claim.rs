//! What somebody else states about storage: a rate, over which link, from how much data, on how
//! much memory. Nothing is measured: [`judge_claim`] says whether arithmetic allows it.

use blockstone_base::link::LinkKind;
use blockstone_base::named;
use blockstone_base::verdict::{Outcome, Verdict};

use crate::rules::{Evidence, judge};

/// The name of the figure that verdicts on a claim concern.
pub const RATE: &str = "rate_mbps";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Bytes a second as stated.
    pub rate: Option<f64>,
    /// Requests a second, and bytes of each.
    pub iops: Option<f64>,
    pub io_bytes: Option<f64>,
    /// Bytes that were moved, and the seconds that took.
    pub moved_bytes: Option<f64>,
    pub time_s: Option<f64>,
    /// Links side by side.
    pub links: Vec<Path>,
    /// Size of the files or devices that were read.
    pub data_bytes: Option<f64>,
    /// Main memory of the host.
    pub memory_bytes: Option<f64>,
    /// Whether the page cache was bypassed.
    pub direct: bool,
}

/// A number of equal links.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub count: u32,
    pub link: Speed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    Of(LinkKind),
    /// Bytes a second as stated.
    Stated(f64),
}

named! {
    /// What becomes of a claim.
    Answer {
        /// Nothing that was stated contradicts it.
        Possible = "possible",
        /// Main memory could have answered.
        Memory = "memory",
        /// More than the link carries.
        AboveLink = "above-link",
        /// Bits and bytes are confused.
        WrongUnit = "wrong-unit",
        /// Too little is stated to check anything.
        Unknown = "unknown",
    }
}

impl Claim {
    /// Bytes a second: as stated, else from requests, else from bytes and time.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.rate.or(self.requested_bytes_per_s()).or(self.moved_bytes_per_s())
    }

    pub fn requested_bytes_per_s(&self) -> Option<f64> {
        Some(self.iops? * self.io_bytes?)
    }

    /// By bytes and time. Bytes that are not stated are those of the data.
    pub fn moved_bytes_per_s(&self) -> Option<f64> {
        Some(self.moved_bytes.or(self.data_bytes)? / self.time_s?)
    }

    /// What all links carry, in bytes a second.
    pub fn link_bytes_per_s(&self) -> Option<f64> {
        let each = self.links.iter().map(|path| f64::from(path.count) * path.link.bytes_per_s());
        (!self.links.is_empty()).then(|| each.sum())
    }

    /// What all links are called, in bits a second.
    pub(crate) fn link_bits_per_s(&self) -> Option<f64> {
        let each = |path: &Path| match path.link {
            Speed::Of(kind) => Some(f64::from(path.count) * kind.nominal_bits_per_s()),
            Speed::Stated(_) => None,
        };
        let sum = self.links.iter().map(each).sum::<Option<f64>>()?;
        (!self.links.is_empty()).then_some(sum)
    }

    /// The links in words: `2 × Fibre Channel 2 Gb/s`.
    pub fn link(&self) -> String {
        self.links.iter().map(Path::to_string).collect::<Vec<_>>().join(" + ")
    }

    /// The size of the data; where it is not stated, the bytes that were moved.
    pub fn size_bytes(&self) -> Option<f64> {
        self.data_bytes.or(self.moved_bytes)
    }

    /// The part of the data that memory can hold; none without both.
    pub fn memory_share(&self) -> Option<f64> {
        Some((self.memory_bytes? / self.size_bytes()?).min(1.0))
    }
}

impl Speed {
    pub fn bytes_per_s(self) -> f64 {
        match self {
            Self::Of(kind) => kind.bytes_per_s(),
            Self::Stated(bytes_per_s) => bytes_per_s,
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.count > 1 {
            write!(f, "{} × ", self.count)?;
        }
        match self.link {
            Speed::Of(kind) => kind.fmt(f),
            Speed::Stated(bytes_per_s) => write!(f, "{:.0} MB/s", bytes_per_s / 1e6),
        }
    }
}

/// The verdicts on a claim, and the answer that follows: memory explains a rate above the link, and
/// so does a wrong unit.
pub fn judge_claim(claim: &Claim) -> (Answer, Vec<Verdict>) {
    let verdicts = judge(&Evidence::Claim(claim)).mark(&mut [], &mut []);
    let failed = |rule: &str| verdicts.iter().any(|it| it.rule == rule && it.failed());
    let answer = if failed("memory-test") {
        Answer::Memory
    } else if failed("wrong-unit") {
        Answer::WrongUnit
    } else if failed("above-link") {
        Answer::AboveLink
    } else if verdicts.iter().any(|it| it.outcome == Outcome::Pass) {
        Answer::Possible
    } else {
        Answer::Unknown
    };
    (answer, verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Subject, registry};

    fn claim(rate: f64, gigabit_links: u32) -> Claim {
        let link = Speed::Of(LinkKind::FibreChannel { gigabits: 1.0 });
        let links = vec![Path { count: gigabit_links, link }];
        Claim { rate: Some(rate), links, ..Claim::default() }
    }

    /// For each rule a claim that passes, one that fails and one that leaves it open.
    fn cases() -> Vec<(&'static str, [Claim; 3])> {
        let large = Claim { data_bytes: Some(40e9), memory_bytes: Some(16e9), ..claim(90e6, 1) };
        let small = Claim { data_bytes: Some(31e9), ..large.clone() };
        let stated = |rate| Claim {
            rate: Some(rate),
            moved_bytes: Some(1e9),
            time_s: Some(10.0),
            ..Claim::default()
        };
        vec![
            ("memory-test", [large, small, claim(90e6, 1)]),
            (
                "above-link",
                [claim(90e6, 1), claim(103e6, 1), Claim { links: vec![], ..claim(1e6, 1) }],
            ),
            (
                "wrong-unit",
                [stated(100e6), stated(800e6), Claim { rate: Some(1e9), ..Claim::default() }],
            ),
        ]
    }

    #[test]
    fn every_rule_on_claims_passes_fails_and_is_left_open() {
        let cases = cases();
        for rule in registry::ALL {
            let tried = cases.iter().any(|(id, _)| *id == rule.id);
            assert_eq!(rule.applies_to().any(|it| it == Subject::Claim), tried, "{}", rule.id);
        }
        for (id, claims) in cases {
            let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive];
            for (claim, expected) in claims.iter().zip(outcomes) {
                let (_, verdicts) = judge_claim(claim);
                let verdict = verdicts.iter().find(|verdict| verdict.rule == id).unwrap();
                assert_eq!(verdict.outcome, expected, "{id}: {}", verdict.evidence);
                assert_eq!(verdict.condemns(), verdict.concerns == [RATE], "{id}");
            }
        }
    }

    #[test]
    fn memory_and_units_explain_what_is_above_the_link() {
        let answer = |claim: &Claim| judge_claim(claim).0;
        let memory = Claim { data_bytes: Some(1e9), memory_bytes: Some(16e9), ..claim(1.2e9, 2) };
        assert_eq!(answer(&memory), Answer::Memory);
        assert_eq!(answer(&Claim { direct: true, ..memory }), Answer::AboveLink);
        assert_eq!(answer(&claim(1e9, 1)), Answer::WrongUnit);
        assert_eq!(answer(&claim(450e6, 4)), Answer::AboveLink);
        assert_eq!(answer(&claim(400e6, 4)), Answer::Possible);
        assert_eq!(answer(&Claim { rate: Some(1e9), ..Claim::default() }), Answer::Unknown);
        assert_eq!(answer(&Claim::default()), Answer::Unknown);
    }
}
