//! The command that drives a need on the storage that was sized for it.

use blockstone_size::hardware::{Demand, Redundancy};

/// Seconds that a run takes at least.
const SECONDS_MIN: f64 = 60.0;
/// And at most, where the averaging time is longer.
const SECONDS_MAX: f64 = 900.0;

/// Blocks that a transaction changes at most, so that its writes do not come in bursts.
const BLOCKS_MAX: f64 = 64.0;

/// Selects read one block. Updates read some blocks, change them and commit, which writes the log
/// once; commits that share such a write make it less. `log_share` is the part of the writes that
/// are of the log, 0 to 1; where it is unknown, each changed block has a commit of its own. `None`
/// without reads or writes.
pub fn command(
    demand: &Demand,
    log_share: Option<f64>,
    redundancy: Redundancy,
    averaging_s: Option<f64>,
) -> Option<String> {
    let (reads, writes) = (demand.reads_per_s?, demand.writes_per_s?);
    let blocks = log_share.map_or(1.0, |it| ((1.0 - it) / it).round().clamp(1.0, BLOCKS_MAX));
    let updates = writes / (blocks + 1.0);
    let read_by_updates = updates * blocks;
    let operations = (reads - read_by_updates).max(0.0) + updates;
    if operations <= 0.0 {
        return None;
    }
    // What the percentage loses by rounding, the rate makes up for.
    let percent = (updates / operations * 100.0).round();
    let of_update = 2.0 * blocks + 1.0;
    let requests = reads.max(read_by_updates) + writes;
    let rate = requests / (1.0 + (of_update - 1.0) * percent / 100.0);
    let seconds = averaging_s.unwrap_or(SECONDS_MIN).clamp(SECONDS_MIN, SECONDS_MAX).round();
    let redundancy = match redundancy {
        Redundancy::Normal | Redundancy::High => format!(" --redundancy {redundancy}"),
        _ => String::new(),
    };
    let work = if blocks > 1.0 { format!(" --update-work-unit {blocks:.0}") } else { String::new() };
    // An update reads its blocks first.
    let more = match read_by_updates > reads {
        true => " (it reads a block for each that it changes)",
        false => "",
    };
    Some(format!(
        "blockstone run --rate {:.0} --work-unit 1{work} --update-pct {percent:.0} --cache 16M \
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
        let normal = Redundancy::Normal;
        let text = command(&demand(4_000.0, 1_000.0), None, normal, Some(3_600.0)).unwrap();
        let wanted = "--rate 3968 --work-unit 1 --update-pct 13 --cache 16M --run-time 900s \
                      --redundancy normal PATH";
        assert!(text.ends_with(wanted), "{text}");
        let text = command(&demand(10.0, 40.0), None, Redundancy::External, None).unwrap();
        assert!(text.contains("--rate 20 ") && text.contains("--update-pct 100 "), "{text}");
        assert_eq!(command(&demand(0.0, 0.0), None, Redundancy::External, None), None);
    }

    #[test]
    fn a_tenth_of_the_writes_in_the_log_are_transactions_of_nine_blocks() {
        let demand = Demand {
            reads_per_s: Some(1_000.0),
            writes_per_s: Some(500.0),
            ..Demand::default()
        };
        let text = command(&demand, Some(0.1), Redundancy::External, None).unwrap();
        // 50 updates and 550 selects; with 8 % of updates 615 operations make 1,500 requests.
        let wanted = "--rate 615 --work-unit 1 --update-work-unit 9 --update-pct 8 ";
        assert!(text.contains(wanted), "{text}");
        let most = command(&demand, Some(0.9), Redundancy::External, None).unwrap();
        assert!(!most.contains("update-work-unit"), "{most}");
        let none = command(&demand, Some(0.0), Redundancy::External, None).unwrap();
        assert!(none.contains("--update-work-unit 64 "), "{none}");
    }
}
