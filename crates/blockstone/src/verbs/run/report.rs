//! Report of a run of a workload: what its sessions got from the storage, where their time went,
//! and whether to believe it.

mod activity;
mod bulk_write;
mod earlier;
pub mod forms;
pub mod grid;
mod layers;
pub mod rows;
mod slices;
mod tables;
mod transactions;

use anyhow::Result;
use blockstone_base::table::{Rows as _, Text};
use blockstone_base::units::{Bytes, counted, format_ns};
use blockstone_judge::RunFindings;
use blockstone_judge::run::FIGURES;
use blockstone_record::Recording;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::RunParameters;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Card, Detail, Headline, Report, Section};
use blockstone_view::History;

use super::awr;
use crate::recorded::{self, Facts, FigurePlace, Groups};

/// Figures of the headline, and the words after each number.
const HEADLINE: [(&str, &str); 10] = [
    ("bulk_returned_mbps", "MB/s as returned"),
    ("bulk_flushed_mbps", "MB/s with its flush"),
    ("bulk_rows_per_s", "rows/s as returned"),
    ("transactions_per_s", "transactions/s"),
    ("read_iops", "reads/s"),
    ("read_latency_ns_p50", "p50 of a read"),
    ("read_latency_ns_p99", "p99 of a read"),
    ("commits_per_s", "commits/s"),
    ("commit_latency_ns_p50", "p50 of a commit"),
    ("commit_latency_ns_p99", "p99 of a commit"),
];

const GROUPS: &Groups = &[
    ("reads", &[("", "read_iops"), ("", "read_mbps"), ("r:w", "reads_per_write")]),
    (
        "a read",
        &[
            ("mean", "read_latency_ns_mean"),
            ("p50", "read_latency_ns_p50"),
            ("p99", "read_latency_ns_p99"),
        ],
    ),
    ("writes", &[("", "write_iops"), ("", "write_mbps"), ("redo", "redo_mbps")]),
    (
        "a write",
        &[
            ("dbwr", "dbwr_latency_ns_mean"),
            ("lgwr", "lgwr_latency_ns_mean"),
            ("ckpt", "ckpt_latency_ns_mean"),
        ],
    ),
    (
        "a wait",
        &[
            ("free buffer", "free_buffer_waits_ns_mean"),
            ("write complete", "write_complete_waits_ns_mean"),
        ],
    ),
    ("commits", &[("", "commits_per_s"), ("CPU", "cpu_ns_per_commit")]),
    (
        "a commit",
        &[
            ("mean", "commit_latency_ns_mean"),
            ("p50", "commit_latency_ns_p50"),
            ("p99", "commit_latency_ns_p99"),
        ],
    ),
    ("blocks", &[("visited", "logical_reads_per_s"), ("read", "physical_reads_per_s")]),
    ("per CPU-s", &[("", "physical_reads_per_cpu_s")]),
    (
        "transactions",
        &[
            ("", "transactions_per_s"),
            ("CPU", "cpu_ns_per_transaction"),
            ("blocks read", "physical_reads_per_transaction"),
        ],
    ),
    (
        "a new order",
        &[
            ("p50", "new_order_latency_ns_p50"),
            ("p90", "new_order_latency_ns_p90"),
            ("p99", "new_order_latency_ns_p99"),
        ],
    ),
    (
        "a bulk write",
        &[
            ("returned", "bulk_returned_mbps"),
            ("flushed", "bulk_flushed_mbps"),
            ("returned", "bulk_rows_per_s"),
        ],
    ),
    (
        "a table",
        &[
            ("mean", "table_latency_ns_mean"),
            ("p50", "table_latency_ns_p50"),
            ("p90", "table_latency_ns_p90"),
        ],
    ),
    (
        "a table's bytes",
        &[
            ("CPU/MB", "cpu_ns_per_table_mb"),
            ("read", "process_read_ratio"),
            ("written", "process_write_ratio"),
            ("device", "device_write_ratio"),
            ("redo", "redo_ratio"),
        ],
    ),
    (
        "a scan",
        &[("read", "scan_read_mbps"), ("", "scan_rows_per_s"), ("CPU/row", "cpu_ns_per_row")],
    ),
    ("all disks", &[("reads", "hardware_read_iops"), ("writes", "hardware_write_iops")]),
    (
        "sessions",
        &[
            ("", "operations_per_s"),
            ("active", "average_active_sessions"),
            ("remainder", "db_time_remainder_ratio"),
        ],
    ),
];

pub use layers::VIEWS;

/// Tables that only this verb has, apart from views. The columns of `scan` are those of scans of
/// the instance or of statements.
pub const TABLES: Tables = &[
    ("transactions", rows::TransactionRow::COLUMNS),
    ("transaction-cost", rows::CostRow::COLUMNS),
    ("scan", &[]),
    ("scan-whole", rows::WholeScanRow::COLUMNS),
    ("scan-waits", rows::StatementWaitRow::COLUMNS),
    ("scan-counts", rows::ScanCountRow::COLUMNS),
    ("scan-effects", rows::ScanEffectRow::COLUMNS),
    ("scan-spreads", rows::ScanSpreadRow::COLUMNS),
    ("scan-unmeasured", rows::UnmeasuredRow::COLUMNS),
    ("noise", rows::NoiseRow::COLUMNS),
    ("noise-writers", rows::WritersRow::COLUMNS),
    ("load-profile", rows::ProfileRow::COLUMNS),
    ("database-time", rows::EventRow::COLUMNS),
    ("background-events", rows::BackgroundRow::COLUMNS),
    ("classes", rows::ClassRow::COLUMNS),
    ("io-roles", rows::ROLES),
    ("io-disks", rows::DISKS),
    ("ledger", rows::LedgerRow::COLUMNS),
    ("ledger-unmeasured", rows::UnmeasuredRow::COLUMNS),
    ("plans", rows::PlanRow::COLUMNS),
    ("latencies", rows::LatencyRow::COLUMNS),
    ("littles-law", rows::LittlesLawRow::COLUMNS),
    ("efficiency", rows::EfficiencyRow::COLUMNS),
    ("bulk-write", rows::PaceRow::COLUMNS),
    ("bulk-steps", rows::StepRow::COLUMNS),
    ("bulk-cost", rows::CostRow::COLUMNS),
    (awr::TABLE, Facts::COLUMNS),
];

pub fn report(recording: &Recording, findings: &RunFindings) -> Result<Report> {
    let manifest = &recording.manifest;
    let history = History::read(recording)?;
    let (layers, mut timeline) = layers::layers(recording, &history);
    slices::add(&mut timeline, recording, &history, findings);
    let mut sections = vec![activity::section(recording, &history, findings)];
    let scanned = manifest.parameters::<RunParameters>().scan_bytes;
    sections.extend(findings.scan.iter().flat_map(|scan| forms::scan(scan, scanned)));
    sections.extend(findings.noise.iter().flat_map(forms::noise));
    sections.extend(findings.transactions.iter().flat_map(transactions::sections));
    sections.extend(findings.bulk_write.iter().flat_map(bulk_write::sections));
    sections.extend(database(findings));
    sections.push(activity::detail(recording, &history, findings)?);
    sections.extend(layers);
    sections.push(awr_info(recording, findings));
    sections.push(recorded::identity::section(manifest));
    sections.retain(|section| !section.blocks.is_empty());
    let base = recorded::report("run", recording, &FIGURES, &findings.summary, &findings.verdicts);
    let mut identity = [base.identity.clone(), vec![workload(manifest, findings)]].concat();
    identity
        .extend(recorded::scale(&findings.summary, &["hardware_read_iops", "hardware_write_iops"]));
    Ok(Report {
        headline: recorded::limited(headline(manifest, findings), manifest, &findings.verdicts),
        identity,
        cards: recorded::places(GROUPS).filter_map(|place| card(findings, place)).collect(),
        sections,
        scalars: Some(tables::summary(findings)),
        first: earlier::keys(recording, findings),
        timeline: Some(timeline),
        ..base
    })
}

/// Returns what the sessions got; for a matrix of scans, the highest throughput and its settings.
fn headline(manifest: &Manifest, findings: &RunFindings) -> Headline {
    if let Some(card) = findings.scan.as_ref().and_then(forms::fastest) {
        return recorded::headline(manifest, vec![card]);
    }
    // For a bulk write, requests and commits say less than its bytes.
    let shown = |(name, _): &&(&str, &str)| findings.bulk_write.is_none() || is_of_tables(name);
    let figures = HEADLINE
        .iter()
        .filter(shown)
        .filter_map(|(name, words)| {
            Some(Card {
                words: Text::Borrowed(*words),
                ..card(findings, FigurePlace::alone(name))?
            })
        })
        .collect();
    recorded::headline(manifest, figures)
}

/// Where the number of commits comes from: the load, not only the storage.
const COMMITS: &str = "an update is one commit";

fn is_of_tables(figure: &str) -> bool {
    figure.starts_with("bulk_")
}

/// Returns `None` if the workload did not do this at all, because it is then not a figure of the
/// workload.
fn card(findings: &RunFindings, place: FigurePlace<'_>) -> Option<Card> {
    let figure = findings.figure(place.name).filter(|figure| figure.estimate.samples > 0)?;
    let source = counted(figure.estimate.samples, "sample");
    Some(recorded::card(place, figure, source))
}

fn workload(manifest: &Manifest, findings: &RunFindings) -> String {
    let run: RunParameters = manifest.parameters();
    let copies = run.redundancy.map(|copies| format!("redundancy {copies}"));
    let mut parts = vec![run.target.unwrap_or_else(|| "run".to_owned())];
    let disks = run.disks.map_or(0, |disks| disks.len());
    parts.extend((disks > 1).then(|| format!("{disks} disks")));
    if run.profile.as_deref() == Some("scan") {
        parts.extend(run.scan_bytes.map(|size| format!("one table of {size}")));
        parts.extend(run.scan_slots.map(|n| counted(n.into(), "read") + " in flight per session"));
        parts.extend(copies);
        parts.push(format!("windows of {}", format_ns(findings.window_ns as f64)));
        return parts.join(" · ");
    }
    parts.push(if let (Some(readers), Some(writers)) = (run.readers, run.writers) {
        [counted(readers.into(), "reader"), counted(writers.into(), "writer")].join(", ")
    } else {
        let schemas = run.schemas.map_or("– schemas".to_owned(), |n| counted(n.into(), "schema"));
        format!("{} on {schemas}", counted(findings.sessions, "session"))
    });
    match run.profile.as_deref() {
        Some("oltp") => parts.push("order entry".to_owned()),
        Some("bulk-write") => parts.push("bulk write".to_owned()),
        _ => {
            parts
                .extend(run.work_unit.map(|rows| counted(rows.into(), "block") + " per operation"));
            parts.extend(run.update_pct.filter(|&pct| pct > 0).map(|_| COMMITS.to_owned()));
        }
    }
    parts.extend(run.update_pct.map(|n| format!("{n} % updates")));
    parts.extend(run.scan_pct.filter(|&n| n > 0).map(|n| format!("{n} % scans")));
    if let (Some(rows), Some(schemas), Some(Bytes(block))) =
        (run.rows_per_schema, run.schemas, run.block_bytes)
    {
        let rows = rows.saturating_mul(schemas.into());
        parts.push(Bytes(rows.saturating_mul(block)).to_string());
    }
    parts.extend(run.cache_bytes.map(|cache| format!("cache {cache}")));
    parts.extend(run.page_cache_bytes.map(|most| format!("page cache {most}")));
    parts.extend(copies);
    let window = format_ns(findings.window_ns as f64);
    parts.push(match findings.noise {
        Some(_) => format!("window without noise {window}"),
        None => format!("window {window}"),
    });
    parts.join(" · ")
}

/// Returns the sections that every run has; with several windows, those of the window that the
/// findings are about. A matrix fills a screen on its own, so details of one of its points appear
/// only on the page.
fn database(findings: &RunFindings) -> Vec<Section> {
    let scans = findings.scan.is_some();
    let screen = if scans { Detail::Page } else { Detail::Screen };
    let terminal = if scans { Detail::Page } else { Detail::Terminal };
    let disks = if findings.disks.len() > 1 { screen } else { Detail::Page };
    let laws = match findings.efficiency.len() {
        0 => "Little's law",
        _ => "Little's law, and the calibration of this path",
    };
    vec![
        Section::of("load-profile", tables::profile(findings)).detail(screen).about(if scans {
            "Activity of the database. This and all tables below are of the point with the most \
             bytes per second."
        } else {
            "Activity of the database in the window."
        }),
        Section::of("database-time", tables::database_time(findings)).detail(screen).about(
            "How the sessions spent their time: database time is CPU, run queue and waits; the \
             remainder is not explained by these.",
        ),
        Section::page("classes", "Wait classes and background processes")
            .with([tables::classes(findings), tables::background(findings)]),
        Section::of("io-roles", tables::roles(findings)).detail(screen).about(
            "A mirrored write counts once, for the role that sent it. If writes of the database \
             writer are larger than a block, it coalesced neighbouring blocks.",
        ),
        Section::of("io-disks", tables::disks(findings))
            .with(tables::range_of_disks(&findings.disks))
            .detail(disks)
            .about("A mirrored write counts on each disk it was sent to."),
        Section::of("ledger", tables::ledger(findings)).detail(screen).about(
            "Bytes that the database reports as read and written, bytes that the kernel charged \
             to its processes, and bytes that the device moved in the same window. Reads that \
             were claimed but not charged came from the page cache.",
        ),
        Section::of("latencies", tables::latencies(findings)).detail(screen).about(
            "Operations are timed from their intended start, events as the database \
                    waits for them.",
        ),
        Section::new("laws-in-words", "").detail(terminal).with(tables::sentences(findings)),
        Section::page("ledger-details", "Behind the ledger").with(tables::ledger_details(findings)),
        Section::page("laws", laws)
            .with([tables::littles_law(findings), tables::efficiency(findings)]),
    ]
}

fn awr_info(recording: &Recording, findings: &RunFindings) -> Section {
    let mut facts = Facts::new(awr::TABLE, "awr_info");
    for (column, value) in awr::columns(recording, findings) {
        facts.add(column, value);
    }
    Section::new("awr-info", "awr_info")
        .about("SLOB's columns, for spreadsheets made for SLOB's results.")
        .detail(Detail::Page)
        .with([facts.table()])
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, GROUPS, HEADLINE};
    use crate::recorded::places;

    #[test]
    fn the_unit_of_a_headline_figure_fits_into_its_card() {
        for (figure, words) in HEADLINE {
            assert!(words.len() <= 24, "{figure}: `{words}` breaks on the page");
        }
    }

    #[test]
    fn every_figure_has_one_place() {
        let mut placed: Vec<&str> = places(GROUPS).map(|place| place.name).collect();
        let mut known = FIGURES.to_vec();
        placed.sort_unstable();
        known.sort_unstable();
        assert_eq!(placed, known);
    }
}
