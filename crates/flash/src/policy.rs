//! Policies that decide which block is collected next.

use std::fmt;
use std::str::FromStr;

/// How a victim is chosen among the fully written blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block that was filled first.
    Fifo,
    /// The emptiest of this many blocks drawn at random (with replacement).
    Choices(u32),
    Random,
    /// The greatest age × stale ÷ (2 × valid) (Rosenblum and Ousterhout 1992).
    CostBenefit,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{text}`; write greedy, fifo, random, cost-benefit or d=N, such as d=10")]
pub struct PolicyError {
    text: String,
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let drawn = || text.strip_prefix("d=")?.parse().ok().filter(|d| (1..=1000).contains(d));
        match text {
            "greedy" => Ok(Self::Greedy),
            "fifo" => Ok(Self::Fifo),
            "random" => Ok(Self::Random),
            "cost-benefit" => Ok(Self::CostBenefit),
            _ => drawn().map(Self::Choices).ok_or_else(|| PolicyError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greedy => f.pad("greedy"),
            Self::Fifo => f.pad("fifo"),
            Self::Random => f.pad("random"),
            Self::CostBenefit => f.pad("cost-benefit"),
            Self::Choices(d) => f.pad(&format!("d={d}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for policy in
            [Policy::Greedy, Policy::Fifo, Policy::Random, Policy::CostBenefit, Policy::Choices(30)]
        {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for text in ["", "d=", "d=0", "d=-1", "lifo", "d=100000"] {
            assert!(text.parse::<Policy>().is_err(), "{text}");
        }
    }
}
