//! The command that drives a need on the storage that was sized for it.

use blockstone_size::hardware::{Demand, Redundancy};

/// Seconds that a run takes at least.
const SECONDS_MIN: f64 = 60.0;
/// And at most, where the averaging time is longer.
const SECONDS_MAX: f64 = 900.0;

/// Writes of a transaction that changes one block: the block, and the log at its commit. Commits
/// that share a write of the log make it less.
const WRITES_OF_UPDATE: f64 = 2.0;

/// Every operation reads a block, and as many of them change it as make the writes. `None` without
/// reads or writes.
pub fn command(
    demand: &Demand,
    redundancy: Redundancy,
    averaging_s: Option<f64>,
) -> Option<String> {
    let (reads, writes) = (demand.reads_per_s?, demand.writes_per_s?);
    let updates = writes / WRITES_OF_UPDATE;
    let rate = reads.max(updates);
    let update = if rate > 0.0 { (updates / rate * 100.0).round() } else { return None };
    let seconds = averaging_s.unwrap_or(SECONDS_MIN).clamp(SECONDS_MIN, SECONDS_MAX).round();
    let redundancy = match redundancy {
        Redundancy::Normal | Redundancy::High => format!(" --redundancy {redundancy}"),
        _ => String::new(),
    };
    // An update reads its block first.
    let more = if updates > reads { " (it reads a block for each that it changes)" } else { "" };
    Some(format!(
        "blockstone run --rate {:.0} --work-unit 1 --update-pct {update:.0} --cache 16M \
         --run-time {seconds:.0}s{redundancy} PATH{more}",
        rate.max(1.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_does_the_reads_and_writes_of_the_need() {
        let demand = |reads, writes| Demand {
            reads_per_s: Some(reads),
            writes_per_s: Some(writes),
            ..Demand::default()
        };
        let text = command(&demand(4_000.0, 1_000.0), Redundancy::Normal, Some(3_600.0)).unwrap();
        let wanted = "--rate 4000 --work-unit 1 --update-pct 13 --cache 16M --run-time 900s \
                      --redundancy normal PATH";
        assert!(text.ends_with(wanted), "{text}");
        let text = command(&demand(10.0, 40.0), Redundancy::External, None).unwrap();
        assert!(text.contains("--rate 20 ") && text.contains("--update-pct 100 "), "{text}");
        assert_eq!(command(&demand(0.0, 0.0), Redundancy::External, None), None);
    }
}
