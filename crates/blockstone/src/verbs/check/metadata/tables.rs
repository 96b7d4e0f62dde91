//! The tables of `check metadata`.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Measure, Missing, Row, Rows, Text, Value, bytes, count, happened, text, time, unmerged,
};
use blockstone_base::verdict::Verdict;
use blockstone_check::metadata::findings::{
    CacheGrowth, Cell, Growth, MetadataFindings, Operation, Shape,
};
use blockstone_report::Section;
use blockstone_report::render::json::schema::Tables;

rows! {
    /// Cost of operations.
    struct CostRow {
        /// Operation; `/cold` at its end means that caches were dropped before it.
        operation: String = text("operation"),
        /// How the files lay.
        shape: &'static str = text("shape"),
        /// Files that there were.
        files: u64 = count("files").answer(),
        /// `storage`, `server`, `cached` or `unknown`.
        class: &'static str = text("from").answer(),
        /// Operations a second, of all ranks; of a listing, entries.
        ops_per_s: Option<Estimate> = count("ops/s"),
        /// Median latency of an operation or, for a listing, of a single call.
        latency_ns_p50: Result<u64, Missing> = time("p50"),
        /// Latency of an operation, 99th percentile.
        latency_ns_p99: Result<u64, Missing> = time("p99"),
        /// Processor time for an operation.
        cpu_ns_per_op: f64 = time("CPU"),
        /// Bytes fetched from storage for an operation.
        read_bytes_per_op: Option<f64> = bytes("read"),
        /// Writes of the device for an operation.
        write_ios_per_op: Option<f64> = unmerged("writes", Measure::Count),
    }
}

rows! {
    /// Operations with their evidence.
    struct DetailRow {
        /// Operation; with `/cold` after caches were dropped.
        operation: String = text("operation"),
        /// How the files lay.
        shape: &'static str = text("shape"),
        /// Files that there were.
        files: u64 = count("files"),
        /// Operations that succeeded; of a listing, its entries.
        operations: u64 = count("operations"),
        /// Error of the first that did not.
        error: Value = text("error"),
        /// Calls of which the latency was taken.
        calls: u64 = count("calls"),
        /// Median.
        latency_ns_p50: Result<u64, Missing> = time("p50"),
        /// 90th percentile.
        latency_ns_p90: Result<u64, Missing> = time("p90"),
        /// 99th percentile.
        latency_ns_p99: Result<u64, Missing> = time("p99"),
        /// 99.9th percentile.
        latency_ns_p999: Result<u64, Missing> = time("p99.9"),
        /// The longest.
        latency_ns_max: u64 = time("max"),
        /// Bytes that the kernel charged to this process as fetched from storage.
        read_bytes: Option<u64> = bytes("read"),
        /// Reads of the device, by any process.
        device_read_ios: Option<u64> = count("device reads"),
        /// Bytes read from the device, by any process.
        device_read_bytes: Option<u64> = bytes("device read"),
        /// Writes to the device, by any process.
        device_write_ios: Option<u64> = count("device writes"),
        /// Bytes written to the device, by any process.
        device_write_bytes: Option<u64> = bytes("device written"),
        /// Flushes of the device, by any process.
        device_flushes: Option<u64> = count("flushes"),
        /// Requests to the server of an NFS mount, for any process.
        rpcs: Option<u64> = count("requests"),
        /// Observations on which the class rests.
        evidence: String = text("evidence").prose(),
    }
}

rows! {
    /// Growth of the cost with the directory.
    struct GrowthRow {
        /// Operation, in one directory.
        operation: &'static str = text("operation"),
        /// `flat`, `linear` or `unknown`.
        class: &'static str = text("growth"),
        /// Power of the number of files with which the cost grew up to the largest number.
        exponent: Option<f64> = unmerged("power", Measure::Count),
        /// Processor time for an operation, by number of files.
        evidence: String = text("cost"),
    }
}

rows! {
    /// Memory of the kernel for files.
    struct MemoryRow {
        /// Its name in /proc/slabinfo.
        cache: String = text("cache"),
        /// Memory for a file.
        file_bytes: f64 = bytes("a file"),
        /// Memory for a million files: computed.
        million_bytes: f64 = bytes("1 M files"),
        /// Memory for two million files: computed.
        two_million_bytes: f64 = bytes("2 M files"),
        /// Memory for a hundred million files: computed.
        hundred_million_bytes: f64 = bytes("100 M files"),
    }
}

pub const TABLES: Tables = &[
    ("metadata", CostRow::COLUMNS),
    ("metadata-details", DetailRow::COLUMNS),
    ("metadata-growth", GrowthRow::COLUMNS),
    ("metadata-memory", MemoryRow::COLUMNS),
];

/// Rows on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 48;

pub fn sections(findings: &MetadataFindings, verdicts: &[Verdict]) -> Vec<Section> {
    if findings.cells.is_empty() {
        return Vec::new();
    }
    let about = "Rows marked `cached` were answered from memory, not from the storage.";
    let costs = CostRow::table("metadata", "Cost of names and inodes", []).on_screen(SCREEN_ROWS);
    let costs =
        costs.with(ordered(&findings.cells).map(|it| condemned(CostRow::of(it), it, verdicts)));
    let details = DetailRow::table("metadata-details", "Metadata in detail", []);
    let details = details.with(findings.cells.iter().map(|it| {
        let row = condemned(DetailRow::of(it), it, verdicts);
        row.spread(it.latency.buckets().collect())
    }));
    let growth = findings.growth.iter().map(GrowthRow::of);
    let growth = GrowthRow::table("metadata-growth", "Growth with the directory", growth);
    let memory = findings.memory.iter().map(MemoryRow::of);
    let memory = MemoryRow::table("metadata-memory", "Memory of the kernel for files", memory);
    let mut sections = vec![
        Section::of("metadata", costs).about(about),
        Section::of("metadata-growth", growth),
        Section::of("metadata-memory", memory),
        Section::page("metadata-details", "Metadata in detail").with([details]),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// Returns a row whose figures, but not the number of files, are condemned as the cell is.
fn condemned<R: Rows>(row: R, cell: &Cell, verdicts: &[Verdict]) -> Row {
    let is_concerned = |it: &&Verdict| it.condemns() && it.concerns.contains(&cell.case());
    let rules: Vec<String> =
        verdicts.iter().filter(is_concerned).map(|it| it.rule.clone()).collect();
    let row: Row = row.into();
    if rules.is_empty() {
        return row;
    }
    let figures =
        R::COLUMNS.iter().filter(|column| column.measure != Measure::Text && column.key != "files");
    let keys: Vec<Text> = figures.map(|column| column.key.clone()).collect();
    row.condemned_in(keys, &rules)
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

fn operation(cell: &Cell) -> String {
    let cold = if cell.cold { "/cold" } else { "" };
    format!("{}{cold}", cell.operation.name())
}

impl CostRow {
    fn of(cell: &Cell) -> Self {
        Self {
            operation: operation(cell),
            shape: cell.shape.name(),
            files: cell.files,
            class: cell.class.name(),
            ops_per_s: cell.ops_per_s,
            latency_ns_p50: quantile(cell, 0.5),
            latency_ns_p99: quantile(cell, 0.99),
            cpu_ns_per_op: cell.cpu_ns_per_op,
            read_bytes_per_op: cell.bytes_read.map(|bytes| cell.per_op(bytes)),
            write_ios_per_op: cell.moved.map(|moved| cell.per_op(moved.writes)),
        }
    }
}

impl DetailRow {
    fn of(cell: &Cell) -> Self {
        let moved = cell.moved;
        Self {
            operation: operation(cell),
            shape: cell.shape.name(),
            files: cell.files,
            operations: cell.operations,
            error: happened(cell.error.as_deref()),
            calls: cell.latency.count(),
            latency_ns_p50: quantile(cell, 0.5),
            latency_ns_p90: quantile(cell, 0.9),
            latency_ns_p99: quantile(cell, 0.99),
            latency_ns_p999: quantile(cell, 0.999),
            latency_ns_max: cell.latency.max_ns(),
            read_bytes: cell.bytes_read,
            device_read_ios: moved.map(|moved| moved.reads),
            device_read_bytes: moved.map(|moved| moved.read_bytes),
            device_write_ios: moved.map(|moved| moved.writes),
            device_write_bytes: moved.map(|moved| moved.write_bytes),
            device_flushes: moved.map(|moved| moved.flushes),
            rpcs: cell.rpcs,
            evidence: cell.evidence.clone(),
        }
    }
}

impl GrowthRow {
    fn of(growth: &Growth) -> Self {
        Self {
            operation: growth.operation.name(),
            class: growth.class.name(),
            exponent: growth.exponent,
            evidence: growth.evidence.clone(),
        }
    }
}

impl MemoryRow {
    fn of(growth: &CacheGrowth) -> Self {
        let each = growth.bytes_per_file;
        Self {
            cache: growth.cache.clone(),
            file_bytes: each,
            million_bytes: each * 1e6,
            two_million_bytes: each * 2e6,
            hundred_million_bytes: each * 1e8,
        }
    }
}

/// A latency quantile; missing if there are too few operations to bound it.
fn quantile(cell: &Cell, share: f64) -> Result<u64, Missing> {
    cell.latency.bounded_quantile_ns(share).ok_or(Missing::NoEvidence)
}
