//! The page of a workload run.

mod forms;
mod ledger;

use blockstone_base::Estimate;
use blockstone_base::units::{format_ns, thousands, three_digits};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{Transfer, Transfers};
use blockstone_record::Recording;

use super::charts::Chart;
use super::table::Table;
use super::{Page, Section, cards, fill, identity, judged, tidy, timeline};
use crate::format::{self, microseconds, optional, percent};
use crate::terminal::{amount, workload};
use crate::{ReportError, awr, select};

/// Renders a run as one page of HTML.
///
/// # Errors
/// When the recorded series cannot be read.
pub fn page(recording: &Recording, findings: &RunFindings) -> Result<String, ReportError> {
    let manifest = &recording.manifest;
    let mut identity = identity::in_brief(manifest);
    identity.push(workload(manifest, findings));
    let mut sections = sections(recording, findings)?;
    tidy(&mut sections);
    let page = Page {
        verb: "run",
        path: manifest.target.path.clone(),
        identity,
        unfinished: select::unfinished(manifest),
        trustworthy: findings.trustworthy(),
        condemned_by: Vec::new(),
        headline: cards::run_headline(findings),
        families: cards::run_families(findings),
        verdicts: judged(&findings.verdicts),
        sections,
        tool_version: manifest.tool_version.clone(),
        recording: recording.dir.display().to_string(),
    };
    fill("report.html", &page)
}

fn sections(recording: &Recording, findings: &RunFindings) -> Result<Vec<Section>, ReportError> {
    let mut over_time = timeline::of_a_database(recording, findings)?;
    over_time.extend(timeline::chart(recording)?);
    let mut sections: Vec<Section> = findings.scan.iter().map(forms::scan).collect();
    sections.extend(findings.noise.iter().map(forms::noise));
    sections.extend(in_detail(recording, findings, over_time));
    Ok(sections)
}

/// What every run has: of several windows, the one that the findings are about.
fn in_detail(recording: &Recording, findings: &RunFindings, over_time: Vec<Chart>) -> Vec<Section> {
    vec![
        Section {
            id: "load-profile",
            title: "Load profile and database time",
            intro: "What the database did, and where its sessions spent their time: database time \
                    is CPU, run queue and waits, and the remainder is what these do not explain. \
                    Of a matrix of scans, this is the point with most bytes a second.",
            charts: Vec::new(),
            tables: vec![profile(findings), events(findings), classes(findings)],
        },
        Section {
            id: "time",
            title: "The run in time",
            intro: "Raw counters of every tick; a window lies inside each phase after the load.",
            charts: over_time,
            tables: Vec::new(),
        },
        Section {
            id: "io",
            title: "I/O by role and by disk",
            intro: "A mirrored write counts once for the role that sent it and on each disk that \
                    it went to. A database writer whose writes are larger than a block took \
                    neighbours together.",
            charts: Vec::new(),
            tables: vec![
                transfers("By role", &findings.roles),
                transfers("By disk", &findings.disks),
            ],
        },
        Section {
            id: "ledger",
            title: "Claimed, charged, done",
            intro: "What the database says it read and wrote, what the kernel charged to its \
                    processes, and what the device did in the same window. Reads that were claimed \
                    and not charged came from the page cache.",
            charts: Vec::new(),
            tables: vec![ledger::table(findings)],
        },
        Section {
            id: "latencies",
            title: "Latencies",
            intro: "Operations from their intended start, events as the database waited for them.",
            charts: Vec::new(),
            tables: vec![latencies(findings), laws(findings), efficiency(findings)],
        },
        Section {
            id: "awr-info",
            title: "awr_info",
            intro: "SLOB's columns, for the spreadsheets that hold them.",
            charts: Vec::new(),
            tables: vec![awr_info(recording, findings)],
        },
        Section {
            id: "identity",
            title: "What was measured, and with what",
            intro: "",
            charts: Vec::new(),
            tables: identity::tables(&recording.manifest),
        },
    ]
}

fn profile(findings: &RunFindings) -> Table {
    let columns = ["", "Per second", "95 % interval", "Per transaction"];
    let mut table = Table::of_numbers("Load profile", &columns);
    for row in &findings.load_profile {
        let ends = |estimate: &Estimate| {
            let (low, high) = (amount(estimate.low, row.unit), amount(estimate.high, row.unit));
            format!("{low} – {high}")
        };
        table.row(
            row.title,
            vec![
                amount(row.per_s.value, row.unit),
                ends(&row.per_s),
                optional(row.per_transaction, |value| amount(value, row.unit)),
            ],
        );
    }
    table
}

fn events(findings: &RunFindings) -> Table {
    let columns =
        ["Event", "Role", "Class", "Waits", "Time", "Mean µs", "% DB time", "Active on average"];
    let mut table = Table::of_numbers("Events", &columns);
    for wait in findings.waits.iter().filter(|wait| wait.time_ns > 0) {
        table.row(
            wait.event.clone(),
            vec![
                wait.role.clone(),
                wait.class.to_owned(),
                thousands(wait.count as i64),
                format_ns(wait.time_ns as f64),
                optional(wait.ns_mean, microseconds),
                optional(wait.db_time_ratio, percent),
                format!("{:.2}", wait.average_active),
            ],
        );
    }
    if let Some(db_time) = &findings.db_time {
        let lines = [
            ("remainder", db_time.remainder_ns, db_time.remainder_ratio),
            ("database time", db_time.db_time_ns as f64, 1.0),
        ];
        for (head, ns, ratio) in lines {
            let active = ns / findings.window_ns.max(1) as f64;
            let (empty, active) = (String::new(), format!("{active:.2}"));
            let cells = [
                "session".to_owned(),
                empty.clone(),
                empty.clone(),
                format_ns(ns),
                empty,
                percent(ratio),
                active,
            ];
            table.row(head, cells.into());
        }
    }
    table
}

fn classes(findings: &RunFindings) -> Table {
    let columns = ["Wait class", "Time", "% DB time", "Average active sessions"];
    let mut table = Table::of_numbers("Average active sessions by class", &columns);
    for class in &findings.classes {
        table.row(
            class.class,
            vec![
                format_ns(class.time_ns as f64),
                percent(class.db_time_ratio),
                format!("{:.2}", class.average_active_sessions),
            ],
        );
    }
    table
}

fn transfers(caption: &str, all: &[Transfers]) -> Table {
    let columns = [
        "",
        "Reads",
        "Reads/s",
        "Mean size KiB",
        "Service µs",
        "Writes",
        "Writes/s",
        "Mean size KiB",
        "Service µs",
    ];
    let mut table = Table::of_numbers(caption, &columns);
    let cells = |one: &Transfer| {
        [
            thousands(one.ios as i64),
            optional(one.iops, |iops| {
                format!("{} {}", three_digits(iops.value), format::plus_minus(&iops))
            }),
            optional(one.bytes_mean, |bytes| three_digits(bytes / 1024.0)),
            optional(one.service_ns_mean, microseconds),
        ]
    };
    for one in all {
        table.row(one.name.clone(), [cells(&one.reads), cells(&one.writes)].concat());
    }
    table
}

fn latencies(findings: &RunFindings) -> Table {
    let columns = [
        "",
        "Role",
        "Count",
        "Mean µs",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99.9 µs",
        "p99.99 µs",
        "Max µs",
    ];
    let mut table = Table::of_numbers("Percentiles by operation and event", &columns);
    for row in &findings.latencies {
        let mut cells =
            vec![row.role.clone(), thousands(row.count as i64), microseconds(row.ns_mean)];
        let told = |(_, ns)| optional(ns, |ns: Estimate| microseconds(ns.value));
        cells.extend(row.quantiles().map(told));
        cells.push(microseconds(row.ns_max as f64));
        table.row(row.name.clone(), cells);
    }
    table
}

fn laws(findings: &RunFindings) -> Table {
    let columns = [
        "Little's law",
        "Sessions",
        "Per second",
        "Expected µs",
        "Measured µs",
        "Measured ÷ expected",
    ];
    let mut table = Table::of_numbers("Sessions ÷ rate = latency", &columns);
    for law in &findings.littles_law {
        table.row(
            law.what,
            vec![
                law.sessions.to_string(),
                three_digits(law.per_s),
                microseconds(law.expected_ns),
                microseconds(law.measured_ns),
                percent(law.ratio),
            ],
        );
    }
    table
}

fn efficiency(findings: &RunFindings) -> Table {
    let columns = ["Figure", "Calibrated", "Calibration", "Run ÷ calibration", "95 % interval"];
    let mut table = Table::of_numbers("Against the calibration of this path", &columns);
    for row in &findings.efficiency {
        table.row(
            row.figure,
            vec![
                format::quantity(row.calibrated.value, &row.unit),
                row.calibration.clone(),
                percent(row.ratio.value),
                format!("{} – {}", percent(row.ratio.low), percent(row.ratio.high)),
            ],
        );
    }
    table
}

fn awr_info(recording: &Recording, findings: &RunFindings) -> Table {
    let mut table = Table::of_texts("One line a run", &["Column", "Value"]);
    for (column, value) in awr::columns(recording, findings) {
        table.row(column, vec![value]);
    }
    table
}
