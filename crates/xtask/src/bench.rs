//! `cargo xtask bench`: compares our costs with those of other tools that do the same, at the same
//! point on the same device, in turn, in one run. Goals are ratios or rates per processor, because
//! the machine's own speed drifts; nothing here ever fails a build. Each comparison is one file and
//! one line in the registry.

mod agreement;
mod engine;
mod flash;
mod instance;
mod pgio;
mod reduce;
mod registry;
mod side;
mod turns;
mod watch;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use blockstone_base::Bytes;

use self::registry::ALL;
use crate::goals;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The comparison
    #[arg(value_parser = goals::names(ALL))]
    name: String,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds that a side runs at a point [default: 4]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Rounds over all points; the medians count [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: Option<u32>,
    /// Size of the device and of the file [default: 1G]
    #[arg(long)]
    size: Option<Bytes>,
}

/// Duration, number of rounds and data size of a comparison.
#[derive(Clone, Copy, Debug)]
struct Extent {
    seconds: u32,
    rounds: u32,
    size: Bytes,
}

impl Options {
    fn extent(&self) -> Extent {
        Extent {
            seconds: self.seconds.unwrap_or(4),
            rounds: self.rounds.unwrap_or(5),
            size: self.size.unwrap_or(Bytes::gib(1)),
        }
    }
}

pub fn run(options: &Options) -> Result<ExitCode> {
    goals::run(ALL, &options.name, options, options.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Result<f64> {
    ensure!(!values.is_empty(), "compute a median: there are no values");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    Ok(if odd { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]).unwrap() - 2.0).abs() < 1e-12);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]).unwrap() - 2.5).abs() < 1e-12);
        assert!(median(Vec::new()).is_err());
    }
}
