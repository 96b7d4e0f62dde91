//! The tables of `check metadata`.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Missing, Row, Table, Value, bytes, count, text, time, unmerged,
};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Verdict;
use blockstone_check::metadata::findings::{Cell, Growth, MetadataFindings, Operation, Shape};
use blockstone_report::Section;

const COSTS: &[Heading] = &[
    text("operation", "operation", "What was done; /cold after caches were dropped."),
    text("shape", "shape", "How the files lay."),
    text("files", "files", "Files that there were."),
    text("class", "from", "storage, server, cached or unknown."),
    count("ops_per_s", "ops/s", "Operations a second, of all ranks; of a listing, entries."),
    time("latency_ns_p50", "p50", "Of an operation; of a listing, of a call."),
    time("latency_ns_p99", "p99", "Likewise."),
    time("cpu_ns", "CPU", "Processor time for an operation."),
    bytes("read_bytes", "read", "Bytes fetched from storage for an operation."),
    unmerged("write_ios", "writes", Measure::Count, "Writes of the device for an operation."),
];

const DETAILS: &[Heading] = &[
    text("case", "case", "Operation, shape and number of files."),
    count("operations", "operations", "Those that succeeded; of a listing, its entries."),
    text("error", "error", "What the kernel answered to the first that did not."),
    count("calls", "calls", "Calls of which the latency was taken."),
    time("latency_ns_p50", "p50", "Median."),
    time("latency_ns_p90", "p90", "90th percentile."),
    time("latency_ns_p99", "p99", "99th percentile."),
    time("latency_ns_p999", "p99.9", "99.9th percentile."),
    time("latency_ns_max", "max", "The longest."),
    bytes("bytes_read", "read", "Bytes that the kernel charged to this process as fetched."),
    count("device_read_ios", "device reads", "Of the device, for whomever."),
    bytes("device_read_bytes", "device read", "Likewise."),
    count("device_write_ios", "device writes", "Likewise."),
    bytes("device_write_bytes", "device written", "Likewise."),
    count("device_flushes", "flushes", "Likewise."),
    count("rpcs", "requests", "To the server of an NFS mount, for whomever."),
    text("evidence", "evidence", "What the class rests on."),
];

const GROWTH: &[Heading] = &[
    text("operation", "operation", "In one directory."),
    text("class", "growth", "flat, linear or unknown."),
    unmerged(
        "exponent",
        "power",
        Measure::Count,
        "By which power of the number of files the cost grew up to the last size.",
    ),
    text("evidence", "cost", "Processor time for an operation."),
];

const MEMORY: &[Heading] = &[
    text("cache", "cache", "Its name in /proc/slabinfo."),
    bytes("file_bytes", "a file", "Memory for a file."),
    bytes("million_bytes", "1 M files", "As many times as much: computed."),
    bytes("two_million_bytes", "2 M files", "Likewise."),
    bytes("hundred_million_bytes", "100 M files", "Likewise."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("metadata", COSTS),
    ("metadata-details", DETAILS),
    ("metadata-growth", GROWTH),
    ("metadata-memory", MEMORY),
];

/// Rows on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 48;

pub fn sections(findings: &MetadataFindings, verdicts: &[Verdict]) -> Vec<Section> {
    if findings.cells.is_empty() {
        return Vec::new();
    }
    let condemned = |cell: &Cell| -> Vec<String> {
        let is_concerned = |it: &&Verdict| it.condemns() && it.concerns.contains(&cell.case());
        let concerned = verdicts.iter().filter(is_concerned);
        concerned.map(|it| it.rule.clone()).collect()
    };
    let about = "Rows marked `cached` were answered from memory, not from the storage.";
    let costs = Table::new("metadata", "Cost of names and inodes", COSTS).on_screen(SCREEN_ROWS);
    let rows = ordered(&findings.cells).map(|it| cost(it).condemned_by(&condemned(it)));
    let costs = costs.with(rows);
    let details = Table::new("metadata-details", "Metadata in detail", DETAILS);
    let details =
        details.with(findings.cells.iter().map(|it| detail(it).condemned_by(&condemned(it))));
    let growth = Table::new("metadata-growth", "Growth with the directory", GROWTH);
    let memory = Table::new("metadata-memory", "Memory of the kernel for files", MEMORY);
    let mut sections = vec![Section::of("metadata", costs).about(about)];
    if !findings.growth.is_empty() {
        let growth = growth.with(findings.growth.iter().map(grown));
        sections.push(Section::of("metadata-growth", growth));
    }
    if !findings.memory.is_empty() {
        let memory = memory.with(findings.memory.iter().map(|cache| {
            let each = cache.bytes_per_file;
            row![cache.cache.as_str(), each, each * 1e6, each * 2e6, each * 1e8]
        }));
        sections.push(Section::of("metadata-memory", memory));
    }
    sections.push(Section::page("metadata-details", "Metadata in detail").with([details]));
    sections
}

/// Cells by descending number of files per shape, then in the order of operations.
fn ordered(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    let place = |cell: &Cell| {
        let shape = Shape::ALL.iter().position(|it| *it == cell.shape);
        let operation = Operation::ALL.iter().position(|it| *it == cell.operation);
        (shape, std::cmp::Reverse(cell.files), operation, !cell.cold)
    };
    let mut ordered: Vec<&Cell> = cells.iter().collect();
    ordered.sort_by_key(|cell| place(cell));
    ordered.into_iter()
}

fn cost(cell: &Cell) -> Row {
    let cold = if cell.cold { "/cold" } else { "" };
    row![
        format!("{}{cold}", cell.operation.name()),
        cell.shape.name(),
        thousands(cell.files as i64),
        cell.class.name(),
        cell.ops_per_s,
        quantile(cell, 0.5),
        quantile(cell, 0.99),
        cell.cpu_ns_per_op,
        cell.bytes_read.map(|bytes| cell.per_op(bytes)),
        cell.moved.map(|moved| cell.per_op(moved.writes))
    ]
}

fn detail(cell: &Cell) -> Row {
    let moved = cell.moved;
    let row = row![
        cell.case(),
        cell.operations,
        cell.error.as_deref().unwrap_or_default(),
        cell.latency.count(),
        quantile(cell, 0.5),
        quantile(cell, 0.9),
        quantile(cell, 0.99),
        quantile(cell, 0.999),
        cell.latency.max_ns(),
        cell.bytes_read,
        moved.map(|moved| moved.reads),
        moved.map(|moved| moved.read_bytes),
        moved.map(|moved| moved.writes),
        moved.map(|moved| moved.write_bytes),
        moved.map(|moved| moved.flushes),
        cell.rpcs,
        cell.evidence.as_str()
    ];
    row.spread(cell.latency.buckets().collect())
}

fn grown(growth: &Growth) -> Row {
    row![growth.operation.name(), growth.class.name(), growth.exponent, growth.evidence.as_str()]
}

/// A latency quantile; a dash if there are too few operations to bound it.
fn quantile(cell: &Cell, share: f64) -> Value {
    let ns = cell.latency.bounded_quantile_ns(share);
    ns.map_or(Value::from(Missing::NoEvidence), Value::from)
}
