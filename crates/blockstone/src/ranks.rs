//! The chapter on the ranks of a recording that was merged from several.

pub mod options;

use std::collections::BTreeSet;

use blockstone_base::rows;
use blockstone_base::stats;
use blockstone_base::table::{
    Missing, Rows as _, Table, Value, count, happened, share, text, time,
};
use blockstone_base::units::{counted, format_ns};
use blockstone_record::manifest::{Merged, MergedRank};
use blockstone_report::chart::Color;
use blockstone_report::format::{number, percent};
use blockstone_report::picture::{Cell, CellKind, CellRow, Cells};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Block, Report, Section};

/// Name of the chapter, its table and the key of the JSON document.
pub const RANKS: &str = "ranks";
/// Ranks that a terminal lists, the slowest first.
const ON_SCREEN: usize = 10;
/// Fewest ranks of which a picture shows more than the table.
const FEWEST: usize = 4;
/// Cells in a row of the picture, and rows.
const CELLS: usize = 50;
const ROWS: usize = 20;
/// Fewest ranks with percentiles.
const MANY: usize = 20;
/// Upper limits of a rank's rate ÷ the median, by the kinds of [`kinds`] but the last.
const KINDS: [f64; 4] = [0.5, 0.8, 1.2, 2.0];

rows! {
    /// The ranks, the slowest first.
    pub struct RankRow {
        /// Number of the rank.
        rank: u64 = count("rank"),
        /// Host that it ran on.
        host: String = text("host"),
        /// Its operations a second in the common window.
        ops_per_s: Value = count("ops/s"),
        /// Its operations a second ÷ the median of all ranks, if the rank is an outlier.
        outlier_ratio: Value = count("× median"),
        /// Mean latency of its operations.
        latency_ns_mean: Value = time("mean"),
        /// 99th percentile of the latency of its operations.
        latency_ns_p99: Value = time("p99"),
        /// Share of its window that is common to all ranks.
        overlap_ratio: f64 = share("overlap"),
        /// How far its wall clock may have been from UTC.
        clock_bound_ns: Value = time("clock ±"),
        /// Id of its recording.
        recording: String = text("recording"),
    }
}

/// The table that every merged recording has.
pub const TABLES: Tables = &[(RANKS, RankRow::COLUMNS)];

impl From<&MergedRank> for RankRow {
    fn from(it: &MergedRank) -> Self {
        let known = |value: Option<f64>| value.map_or(Missing::Unknown.into(), Value::from);
        Self {
            rank: it.rank.into(),
            host: it.host.clone(),
            ops_per_s: known(it.ops_per_s),
            outlier_ratio: happened(it.outlier_ratio),
            latency_ns_mean: known(it.latency_ns_mean),
            latency_ns_p99: known(it.latency_ns_p99.map(|ns| ns as f64)),
            overlap_ratio: it.overlap_ratio,
            clock_bound_ns: known(it.clock_bound_ns.map(|ns| ns as f64)),
            recording: it.recording.clone(),
        }
    }
}

/// Adds the chapter to the report of a merged recording, and what must be known before any figure.
pub fn add(report: &mut Report, merged: &Merged) {
    report.headline.subject = subject(merged);
    report.notes.extend(left_out(merged));
    report.warnings.extend(merged.missing.iter().map(|why| format!("partial: {why}")));
    let mut ranks: Vec<&MergedRank> = merged.ranks.iter().collect();
    ranks.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.rank.cmp(&b.rank)));
    let table = Table::new(RANKS, format!("Ranks in {}", merged.phase), RankRow::COLUMNS)
        .on_screen(ON_SCREEN)
        .with(ranks.iter().map(|rank| RankRow::from(*rank)));
    let mut blocks = vec![Block::Text(spread(&ranks, merged))];
    if ranks.len() >= FEWEST {
        blocks.push(Block::Cells(strip(merged)));
    }
    blocks.push(Block::Table(table));
    report.sections.push(Section::new(RANKS, "Ranks").with(blocks));
}

/// Returns the ranks and their hosts, in words.
pub fn subject(merged: &Merged) -> String {
    let hosts: BTreeSet<&str> = merged.ranks.iter().map(|rank| rank.host.as_str()).collect();
    let (ranks, hosts) = (merged.ranks.len() as u64, hosts.len() as u64);
    format!("{} on {}", counted(ranks, "rank"), counted(hosts, "host"))
}

fn left_out(merged: &Merged) -> Option<String> {
    let all = merged.left_out.join("; ");
    (!all.is_empty()).then(|| format!("Not merged: {all}."))
}

/// Unknown rates come first: they need a look.
fn rate(rank: &MergedRank) -> f64 {
    rank.ops_per_s.unwrap_or(-1.0)
}

fn overlap(ratio: f64) -> String {
    match percent(ratio) {
        all if all == percent(1.0) => "the windows are the same".to_owned(),
        part => format!("at least {part} of each window is common to all"),
    }
}

fn spread(ranks: &[&MergedRank], merged: &Merged) -> String {
    let rates: Vec<f64> = ranks.iter().filter_map(|rank| rank.ops_per_s).collect();
    let overlap = overlap(merged.overlap_ratio);
    let clocks = match merged.clock_bound_ns {
        None => "how far the clocks are apart is not known".to_owned(),
        Some(0) => "one clock".to_owned(),
        Some(ns) => {
            format!("clocks at most {} apart", format_ns(ns as f64))
        }
    };
    let (Some(least), Some(most)) = (rates.first(), rates.last()) else {
        return format!("{}; {overlap}; {clocks}.", counted(ranks.len() as u64, "rank"));
    };
    if rates.len() < MANY {
        return format!(
            "{}, {} to {} operations a second each; {overlap}; {clocks}.",
            counted(ranks.len() as u64, "rank"),
            number(*least, ""),
            number(*most, "")
        );
    }
    let at = |share: f64| number(rates[((rates.len() - 1) as f64 * share).round() as usize], "");
    format!(
        "{}, operations a second: lowest {}, 10th percentile {}, median {}, 90th percentile {}, \
         highest {}; {overlap}; {clocks}.",
        counted(ranks.len() as u64, "rank"),
        number(*least, ""),
        at(0.1),
        at(0.5),
        at(0.9),
        number(*most, ""),
    )
}

/// Returns a picture of all ranks in the order of their numbers, by rate ÷ median. A cell is one
/// rank; of very many ranks, the slowest of a few.
fn strip(merged: &Merged) -> Cells {
    let rates: Vec<f64> = merged.ranks.iter().filter_map(|rank| rank.ops_per_s).collect();
    let median = Some(stats::median(&rates)).filter(|median| *median > 0.0);
    let kind = |ranks: &[MergedRank]| {
        let slowest = ranks.iter().filter_map(|rank| rank.ops_per_s).min_by(f64::total_cmp);
        let ratio = slowest? / median?;
        Some(KINDS.iter().position(|limit| ratio < *limit).unwrap_or(KINDS.len()))
    };
    let each = merged.ranks.len().div_ceil(CELLS * ROWS).max(1);
    let row = |ranks: &[MergedRank]| {
        let cells = ranks.chunks(each).map(|few| Cell { kind: kind(few), text: String::new() });
        let first = ranks.first().map_or(0, |rank| rank.rank);
        CellRow { label: format!("from rank {first}"), cells: cells.collect() }
    };
    let title = match each {
        1 => "rate of each rank ÷ median".into(),
        _ => format!("rate of the slowest of {each} ranks ÷ median").into(),
    };
    Cells {
        title,
        kinds: kinds(),
        rows: merged.ranks.chunks(CELLS * each).map(row).collect(),
        is_grid: false,
        on_screen: ROWS,
        left_out: 0,
    }
}

fn kinds() -> Vec<CellKind> {
    vec![
        CellKind::new("under 0.5", "▁", Color::Bad),
        CellKind::new("0.5 to 0.8", "▃", Color::Commit),
        CellKind::new("0.8 to 1.2", "▅", Color::Series(0)),
        CellKind::new("1.2 to 2", "▆", Color::Series(2)),
        CellKind::new("2 and more", "█", Color::Series(3)),
    ]
}
