//! The keys of the document of a run in version 1. They will be removed with the next release.

use blockstone_judge::RunFindings;
use blockstone_judge::run::{
    BulkWrite, FIGURES, Noise, ScanEffect, ScanPoint, ScanSpread, Transactions,
};
use blockstone_record::Recording;
use blockstone_record::manifest::{FileEvidence, Stop};
use blockstone_report::render::json;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::recorded::earlier::{self, Common};
use crate::verbs::run::awr;

/// JSON document of a run.
#[derive(Serialize)]
struct RunDocument<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    window: Window<'a>,
    #[serde(flatten)]
    findings: &'a RunFindings,
    /// Transactions of an order-entry mix; null for any other run.
    transactions: Option<&'a Transactions>,
    /// Tables of a bulk write; null for any other run.
    bulk_write: Option<&'a BulkWrite>,
    /// Points of a matrix of scans, in the order in which they were measured; empty for any other
    /// run, as are the next two keys.
    scan: &'a [ScanPoint],
    /// Comparison of few and many sessions, for each read size.
    scan_effects: &'a [ScanEffect],
    /// Differences between read sizes, for each number of sessions.
    scan_spreads: &'a [ScanSpread],
    /// Effect of noise on the sessions; null if there was none.
    noise: Option<&'a Noise>,
    /// SLOB's columns, as lines of `name=value`.
    awr_info: String,
    /// Files or devices that served a database as disks, and their layout after loading.
    disk_files: &'a [FileEvidence],
    /// Files in which a database on this machine stores the rows that are visited, after loading.
    data_files: &'a [FileEvidence],
}

/// The window that all figures refer to.
#[derive(Serialize)]
struct Window<'a> {
    /// Label of its phase; empty if the run ended before it.
    label: &'a str,
    /// Duration in nanoseconds; zero if the run ended before it.
    duration_ns: u64,
    /// Number of sessions that ran.
    sessions: u64,
    /// Reason why the window closed.
    stop: Option<Stop>,
}

pub fn keys(recording: &Recording, findings: &RunFindings) -> Map<String, Value> {
    let scan = findings.scan.as_ref();
    json::keys(RunDocument {
        common: earlier::common(recording, &FIGURES, &findings.summary, &findings.verdicts),
        window: Window {
            label: &findings.label,
            duration_ns: findings.window_ns,
            sessions: findings.sessions,
            stop: findings.stop,
        },
        findings,
        transactions: findings.transactions.as_ref(),
        bulk_write: findings.bulk_write.as_ref(),
        scan: scan.map_or(&[], |scan| &scan.points),
        scan_effects: scan.map_or(&[], |scan| &scan.effects),
        scan_spreads: scan.map_or(&[], |scan| &scan.spreads),
        noise: findings.noise.as_ref(),
        awr_info: awr_info(recording, findings),
        disk_files: &recording.manifest.disk_files,
        data_files: &recording.manifest.data_files,
    })
}

/// Returns SLOB's headings and values as two lines.
fn awr_info(recording: &Recording, findings: &RunFindings) -> String {
    let (names, values): (Vec<&str>, Vec<String>) =
        awr::columns(recording, findings).into_iter().unzip();
    format!("{}\n{}\n", names.join("|"), values.join("|"))
}
