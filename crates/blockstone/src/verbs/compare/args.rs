//! The options of `compare`.

use anyhow::{Result, bail};
use clap::Args;

use crate::purpose::Purpose;

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(
    override_usage = "blockstone compare [OPTIONS] <A> <B>\n       \
                      blockstone compare [OPTIONS] <A>... --with <B>...",
    after_help = "\
Examples:
  blockstone compare 20260101-… last
  blockstone compare old1 old2 old3 --with new1 new2 new3
  blockstone compare night@..2h night@2h..         before and after, in one recording
  blockstone compare monday@9h..10h tuesday@9h..10h

Of several recordings a side, the interval covers the variation between them. Recordings that
alternate (old1 new1 old2 new2 …) are also safe against slow changes on the machine."
)]
pub struct CompareArgs {
    /// The baseline, one recording or several: the directory or id of a recording, or `last`;
    /// `night@10m..12m` is a part of the recording `night`. Without --with, the second recording
    /// is compared with the first
    #[arg(value_name = "A", required = true)]
    #[arg(add = Purpose::Input)]
    first: Vec<String>,
    /// The recordings that are compared with the baseline, one or several
    #[arg(long, value_name = "B", num_args = 1..)]
    #[arg(add = Purpose::Input)]
    pub with: Vec<String>,
}

impl CompareArgs {
    pub fn sets(&self) -> Result<[&[String]; 2]> {
        match (self.first.as_slice(), self.with.as_slice()) {
            ([a, b], []) => Ok([std::slice::from_ref(a), std::slice::from_ref(b)]),
            (names, []) => bail!(
                "compare {}: the second set is missing\n\
                 hint: name it with --with, as in A1 A2 --with B1 B2",
                names.join(" ")
            ),
            (a, b) => Ok([a, b]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(first: &[&str], with: &[&str]) -> Result<[Vec<String>; 2]> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let args = CompareArgs { first: owned(first), with: owned(with) };
        args.sets().map(|sets| sets.map(<[String]>::to_vec))
    }

    #[test]
    fn two_names_are_two_sides_and_with_separates_sets() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(sets(&["a", "b"], &[]).unwrap(), [set(&["a"]), set(&["b"])]);
        assert_eq!(sets(&["a", "b"], &["c"]).unwrap(), [set(&["a", "b"]), set(&["c"])]);
        assert_eq!(sets(&["a"], &["b", "c"]).unwrap(), [set(&["a"]), set(&["b", "c"])]);
    }

    #[test]
    fn without_a_second_set_the_hint_names_with() {
        for first in [&["a"][..], &["a", "b", "c"]] {
            let error = sets(first, &[]).unwrap_err().to_string();
            assert!(error.contains("hint:") && error.contains("--with"), "{error}");
        }
    }
}
