//! The command that generates a need on the storage that was sized for it.

use std::fmt;

use blockstone_size::hardware::cache::{LogWrites, log_writes};
use blockstone_size::hardware::{Demand, Redundancy};

use super::Sized;
use super::args::SizeArgs;

/// Shortest time of a run, in seconds.
const SECONDS_MIN: f64 = 60.0;
/// Longest time of a run, in seconds, even if the averaging time is longer.
const SECONDS_MAX: f64 = 900.0;

/// Share of the visits that read: the cache of 16 MiB serves the rest of the rows' 1 GiB.
const MISSES: f64 = 1.0 - 16.0 / 1024.0;
/// Maximum number of blocks that a transaction changes, so that its writes do not come in bursts.
const BLOCKS_MAX: f64 = 64.0;

/// A load of the miniature instance that sends the requests of a need.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// Operations a second.
    pub rate_per_s: f64,
    /// Blocks that an update changes.
    blocks: f64,
    update_pct: f64,
    seconds: f64,
    redundancy: Redundancy,
    /// Whether updates read more blocks than the need reads.
    is_more: bool,
}

impl Drive {
    /// Returns the options of the run that do not depend on its rate.
    pub fn mix(&self) -> Vec<String> {
        let mut words = vec!["--work-unit".to_owned(), "1".to_owned()];
        if self.blocks > 1.0 && self.update_pct > 0.0 {
            words.extend(["--update-work-unit".to_owned(), format!("{:.0}", self.blocks)]);
        }
        let update_pct = format!("{:.0}", self.update_pct);
        words.extend(["--update-pct", &update_pct, "--cache", "16M"].map(str::to_owned));
        if matches!(self.redundancy, Redundancy::Normal | Redundancy::High) {
            words.extend(["--redundancy".to_owned(), self.redundancy.to_string()]);
        }
        words
    }

    pub fn rate(&self) -> String {
        format!("{:.0}", self.rate_per_s.max(1.0))
    }
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An update reads the blocks that it changes first.
        let more = if self.is_more { " (it reads a block for each that it changes)" } else { "" };
        let (rate, mix, seconds) = (self.rate(), self.mix().join(" "), self.seconds);
        write!(f, "blockstone run --rate {rate} {mix} --for {seconds:.0}s PATH{more}")
    }
}

/// Returns the load for the need that was sized.
pub fn of(sized: &Sized, args: &SizeArgs) -> Option<Drive> {
    let averaging =
        sized.need.as_ref().and_then(|it| it.most_averaging_s.or(Some(it.averaging_s.1)));
    let log_share = log_writes_of(sized, args).map(|it| it.redo_share);
    load(&sized.demand, log_share, args.need.redundancy(), averaging)
}

/// Writes of the data writers and of the log writer, as stated or over all observations.
pub fn log_writes_of(sized: &Sized, args: &SizeArgs) -> Option<LogWrites> {
    let stated = sized.demand.writes_per_s.zip(args.stated.redo_writes);
    let stated = stated.map(|(writes, redo)| (writes - redo, redo));
    let known = sized.sources.observations.iter().filter_map(|it| {
        let redo = it.redo_writes_per_s? * it.seconds;
        Some((it.writes_per_s? * it.seconds - redo, redo))
    });
    let observed = || known.reduce(|all, it| (all.0 + it.0, all.1 + it.1));
    let (data, redo) = stated.or_else(observed).filter(|it| it.1 > 0.0)?;
    log_writes(data, redo)
}

/// Selects visit one block. Updates visit some blocks, change them and commit; how many blocks, and
/// how many commits share a write of the log, follows from the commits and from the share of log
/// writes in all writes, 0 to 1. If commits are unknown, each writes the log once; if the share is
/// unknown, each changed block has a commit of its own. `None` without reads or writes.
pub fn load(
    demand: &Demand,
    log_share: Option<f64>,
    redundancy: Redundancy,
    averaging_s: Option<f64>,
) -> Option<Drive> {
    let (reads, writes) = (demand.reads_per_s?, demand.writes_per_s?);
    let log_writes = writes * log_share.unwrap_or(0.5);
    let commits = demand.commits_per_s.filter(|_| log_share.is_some()).unwrap_or(log_writes);
    let of_commit = |writes: f64| if commits > 0.0 { writes / commits } else { 1.0 };
    let blocks = of_commit(writes - log_writes).round().clamp(1.0, BLOCKS_MAX);
    let writes_of_update = blocks + of_commit(log_writes).min(1.0);
    let updates = writes / writes_of_update;
    let (visits, visits_of_updates) = (reads / MISSES, updates * blocks);
    let operations = (visits - visits_of_updates).max(0.0) + updates;
    if operations <= 0.0 {
        return None;
    }
    // The rate makes up for what the percentage loses by rounding.
    let percent = (updates / operations * 100.0).round();
    let of_select = MISSES;
    let of_update = blocks * MISSES + writes_of_update;
    let requests = visits.max(visits_of_updates) * MISSES + writes;
    let rate = requests / (of_select + (of_update - of_select) * percent / 100.0);
    let seconds = averaging_s.unwrap_or(SECONDS_MIN).clamp(SECONDS_MIN, SECONDS_MAX).round();
    Some(Drive {
        rate_per_s: rate,
        blocks,
        update_pct: percent,
        seconds,
        redundancy,
        is_more: visits_of_updates > visits,
    })
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
        let text =
            load(&demand(4_000.0, 1_000.0), None, normal, Some(3_600.0)).unwrap().to_string();
        let wanted = "--rate 4084 --work-unit 1 --update-pct 12 --cache 16M --redundancy normal \
                      --for 900s PATH";
        assert!(text.ends_with(wanted), "{text}");
        let text = load(&demand(10.0, 40.0), None, Redundancy::External, None).unwrap().to_string();
        assert!(text.contains("--rate 20 ") && text.contains("--update-pct 100 "), "{text}");
        assert_eq!(load(&demand(0.0, 0.0), None, Redundancy::External, None), None);
    }

    #[test]
    fn a_tenth_of_the_writes_in_the_log_are_transactions_of_nine_blocks() {
        let demand =
            Demand { reads_per_s: Some(1_000.0), writes_per_s: Some(500.0), ..Demand::default() };
        let text = load(&demand, Some(0.1), Redundancy::External, None).unwrap().to_string();
        // 50 updates and 550 selects; with 8 % of updates 621 operations make 1,500 requests.
        let wanted = "--rate 621 --work-unit 1 --update-work-unit 9 --update-pct 8 ";
        assert!(text.contains(wanted), "{text}");
        let most = load(&demand, Some(0.9), Redundancy::External, None).unwrap().to_string();
        assert!(!most.contains("update-work-unit"), "{most}");
        // 450 writes of blocks and 50 of the log by 100 commits, of which two share one.
        let demand = Demand { commits_per_s: Some(100.0), ..demand };
        let text = load(&demand, Some(0.1), Redundancy::External, None).unwrap().to_string();
        assert!(text.contains("--rate 651 --work-unit 1 --update-work-unit 5 "), "{text}");
    }
}
