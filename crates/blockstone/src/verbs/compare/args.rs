//! The options of `compare`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use blockstone_figures::compare::{Comparison, Row};
use clap::Args;

use crate::failure::Failure;
use crate::purpose::{NamesRecording, Purpose};

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(
    override_usage = "blockstone compare [OPTIONS] [A] <B>\n       \
                      blockstone compare [OPTIONS] <A>... --with <B>...",
    after_help = "\
Examples:
  blockstone compare last                    the last one with the one before
  blockstone compare run:last~1 run:last     the last two runs
  blockstone compare last~3 last --fail-if slower=5
  blockstone compare night@..2h night@2h..   before and after, in one recording
  blockstone compare old1 old2 old3 --with new1 new2 new3
  blockstone compare monday@09:00..10:00 tuesday@09:00..10:00

A difference is established if the interval of B ÷ A does not contain 1. Where a rule saw another
cause for it, it is called higher or lower, not faster or slower.

Of several recordings a side, the interval covers the variation between them. Recordings that
alternate (old1 new1 old2 new2 …) are also safe against slow changes on the machine."
)]
pub struct CompareArgs {
    /// The baseline: directories, beginnings of names or ids, `last`, `last~1`, `run:last`
    ///
    /// `night@10m..12m` is a part of the recording `night`. Without --with, the second recording is
    /// compared with the first; a single recording is compared with the previous one of the same
    /// path.
    #[arg(value_name = "A", required = true)]
    #[arg(add = Purpose::Input, add = NamesRecording)]
    first: Vec<String>,
    /// The recordings to compare with the baseline, one or more
    #[arg(long, value_name = "B", num_args = 1..)]
    #[arg(add = Purpose::Input, add = NamesRecording)]
    pub with: Vec<String>,
    /// Exit with code 1 if a headline figure of B is slower than in A
    ///
    /// `slower`, or `slower=5` for more than 5 %.
    #[arg(long, value_name = "slower[=PCT]")]
    pub fail_if: Option<FailIf>,
}

/// Condition under which a comparison fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailIf {
    pct: f64,
}

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, pct) = text.split_once('=').unwrap_or((text, "0"));
        let pct = pct.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
        match pct.filter(|pct| word == "slower" && (0.0..100.0).contains(pct)) {
            Some(pct) => Ok(Self { pct }),
            None => Err("write `slower`, or `slower=5` for more than 5 per cent".to_owned()),
        }
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pct {
            0.0 => f.write_str("slower"),
            pct => write!(f, "slower={pct}"),
        }
    }
}

impl FailIf {
    /// Whether a headline figure of B is worse by more than this, and the difference is
    /// established.
    pub fn is_exceeded(self, comparison: &Comparison) -> bool {
        let worse = comparison.rows.iter().filter(|row| row.is_headline());
        let mut worse = worse.filter(|row| row.is_worse() == Some(true));
        // For a rate as for a time, half as fast is 50 % slower.
        let by_pct = |row: &Row| {
            let ratio = row.ratio.map_or(0.0, |ratio| ratio.value);
            (1.0 - if ratio > 1.0 { 1.0 / ratio } else { ratio }) * 100.0
        };
        worse.any(|row| by_pct(row) > self.pct)
    }
}

impl CompareArgs {
    /// Returns the names of both sides; A is empty if it is the recording before B.
    pub fn sets(&self) -> Result<[&[String]; 2]> {
        match (self.first.as_slice(), self.with.as_slice()) {
            ([b], []) => Ok([&[], std::slice::from_ref(b)]),
            ([a, b], []) => Ok([std::slice::from_ref(a), std::slice::from_ref(b)]),
            (names, []) => bail!(Failure::new(
                format!("compare {}: the second set is missing", names.join(" ")),
                "name it with --with, as in A1 A2 --with B1 B2"
            )),
            (a, b) => Ok([a, b]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(first: &[&str], with: &[&str]) -> Result<[Vec<String>; 2]> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let args = CompareArgs { first: owned(first), with: owned(with), fail_if: None };
        args.sets().map(|sets| sets.map(<[String]>::to_vec))
    }

    #[test]
    fn two_names_are_two_sides_and_with_separates_sets() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(sets(&["a", "b"], &[]).unwrap(), [set(&["a"]), set(&["b"])]);
        assert_eq!(sets(&["a", "b"], &["c"]).unwrap(), [set(&["a", "b"]), set(&["c"])]);
        assert_eq!(sets(&["a"], &[]).unwrap(), [set(&[]), set(&["a"])], "with the one before");
        assert_eq!(sets(&["a"], &["b", "c"]).unwrap(), [set(&["a"]), set(&["b", "c"])]);
    }

    #[test]
    fn what_makes_it_fail_is_a_word_and_maybe_per_cent() {
        let written =
            [("slower", "slower"), ("slower=5", "slower=5"), ("slower=2.5%", "slower=2.5")];
        for (text, shown) in written {
            assert_eq!(text.parse::<FailIf>().unwrap().to_string(), shown);
        }
        for text in ["", "faster", "slower=", "slower=x", "slower=-1", "slower=100", "slower=NaN"] {
            assert!(text.parse::<FailIf>().is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_second_set_the_hint_names_with() {
        for first in [&["a", "b", "c"][..], &["a", "b", "c", "d"]] {
            let error = crate::testing::told(&sets(first, &[]).unwrap_err());
            assert!(error.contains("hint:") && error.contains("--with"), "{error}");
        }
    }
}
