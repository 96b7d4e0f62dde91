//! Reads that memory answered.

use blockstone_base::verdict::Weight;

use super::{Judgement, RunCase, RunRule, all_figures, megabytes, percent, read_figures};
use crate::run::ledger::has_server;

pub(super) const RULE: RunRule = RunRule {
    id: "memory-test",
    weight: Weight::Condemns,
    doc: "Physical reads that completed without the storage: the kernel charged far fewer bytes \
          to this process than the database read from its disks, or the file system lives in \
          memory.",
    threshold: "More than 10 % of the bytes are missing (as for a calibration), where at least \
                10 MB were read.",
    cause: "The page cache, a hole of the file or a file system in memory answered.",
    next: "Run on a file system that supports direct I/O, on the storage itself. A database that \
           reads through the page cache needs a --scale several times larger than memory, or \
           direct I/O of its own: --mariadb-conf innodb_flush_method=O_DIRECT, or from \
           PostgreSQL 16 on --pg-conf debug_io_direct=data.",
    check,
};

const MISSING_RATIO_MAX: f64 = 0.10;
const ENOUGH_BYTES: u64 = 10_000_000;

fn check(case: &RunCase) -> Judgement {
    if let Some(memory) = case.in_memory() {
        let evidence = format!("{memory} keeps files in main memory");
        return Judgement::fail(evidence, all_figures());
    }
    let Some(reads) = case.findings.ledger.iter().find(|row| row.what == "reads") else {
        return Judgement::inconclusive("there is no account of the reads");
    };
    let Some(bytes) = reads.claimed.value() else {
        return Judgement::inconclusive("the target does not say what it read");
    };
    let Some(charged) = reads.process.value() else {
        return Judgement::inconclusive("what the kernel charged for reads was not measured");
    };
    if case.manifest.target.devices.is_empty() {
        return Judgement::inconclusive(format!(
            "{} has no block device beneath it here, so the kernel counts none of its I/O",
            case.file_system()
        ));
    }
    if bytes < ENOUGH_BYTES {
        return Judgement::inconclusive(format!("only {} were read", megabytes(bytes)));
    }
    let share = charged as f64 / bytes as f64;
    let evidence = format!(
        "{} read from the disks as {} has it, {} of it charged to {} by the kernel ({}); {} came \
         from the page cache",
        megabytes(bytes),
        if has_server(case.window) { "the database" } else { "the instance" },
        megabytes(charged),
        if has_server(case.window) { "its processes" } else { "this process" },
        percent(share),
        percent((1.0 - share).max(0.0))
    );
    if 1.0 - share > MISSING_RATIO_MAX {
        Judgement::fail(evidence, read_figures())
    } else {
        Judgement::pass(evidence)
    }
}
