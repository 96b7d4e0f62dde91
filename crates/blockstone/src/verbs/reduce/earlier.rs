//! The document of `reduce` in version 1, for scripts that were written for it. It will be removed
//! with the next release.

use blockstone_base::Verdict;
use blockstone_base::table::{Heading, Measure, Table, Value};
use blockstone_reduce::counter::{Run, Strip, StripBin};
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{
    BlockSample, CompressionFigures, Findings, GridFigures, Occurrences, Shift,
};
use blockstone_reduce::model::Model;
use blockstone_reduce::page::{Field, Rows};
use blockstone_reduce::scanned::{FileState, Scanned, ScannedFile, Skipped};
use blockstone_report::render::json;
use blockstone_report::{Block, Report};
use serde::{Serialize, Serializer};

use super::report::{tables, words};

/// The keys of the document. Files are named once, under `files`; elsewhere a file is given by its
/// index in that list.
#[derive(Serialize)]
struct ReduceDocument<'a> {
    tool_version: &'static str,
    summary: Summary,
    /// The model of an array that determines what is stored.
    model: &'a Model,
    /// All grids of blocks, by size and then by offset.
    results: Vec<Grid>,
    /// Compression of the model's blocks by each compressor, at each step of allocation, by class.
    compression: &'a [CompressionFigures],
    /// The ratio with fields of pages masked.
    masked: Vec<UnderMask>,
    /// The effect of each class of fields on the ratio at the model's block size.
    field_costs: Vec<FieldCost<'a>>,
    usage: Usage,
    /// The ratio that a sample of blocks would have shown.
    block_sample: Option<BlockSample>,
    /// Bytes of chunks ÷ bytes of distinct chunks.
    chunk_ratio: Option<f64>,
    /// Copies that are not aligned to blocks.
    shifts: &'a [Shift],
    matrix: Matrix<'a>,
    /// Number of contents by how often they occur.
    occurrences: Vec<Occurring>,
    /// Locations of copies: each file in parts of equal size, from beginning to end.
    strips: Vec<Bins>,
    /// The longest copies.
    runs: Vec<Copied>,
    verdicts: &'a [Verdict],
    /// Files, in the order in which they were read.
    files: Vec<File<'a>>,
    /// Paths that were found but not scanned.
    skipped: &'a [Skipped],
    scan: Scan<'a>,
}

/// The grid of the model's blocks.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    grid: Grid,
    /// Bytes of the blocks of the grid.
    bytes: u64,
    /// Bytes that the model stores for these blocks.
    stored_bytes: Option<u64>,
    /// Whether the figures cover every file from beginning to end.
    whole: bool,
}

/// All blocks = zero + unique + same-file + cross-file.
#[derive(Serialize)]
struct Grid {
    /// Size of a block, in bytes.
    block_size: u32,
    /// Offset of the first block in a file, in bytes.
    offset: u32,
    blocks: u64,
    /// Blocks that consist of zeros; they count as one content.
    zero_blocks: u64,
    #[serde(flatten)]
    unique_blocks: UniqueBlocks<Number>,
    /// Blocks whose content occurs earlier in the same file; null if that is not known.
    same_file_duplicates: Number,
    /// First blocks in a file with a content that another file has; null if that is not known.
    cross_file_duplicates: Number,
    /// Share of the hash space that was kept; 1 is all of it.
    share: f64,
    /// Contents that were kept.
    contents_kept: usize,
    contents_compressed: usize,
    /// Blocks that were drawn and compressed, if the model stores every block and not all contents
    /// were compressed: the ratio is that of these blocks. Otherwise 0.
    blocks_drawn: u64,
    /// Whether all contents were kept, so that nothing is estimated.
    exact: bool,
    #[serde(flatten)]
    dedup: DedupRatio,
    #[serde(flatten)]
    compression: CompressionRatio,
    #[serde(flatten)]
    reduction: ReductionRatio,
}

#[derive(Serialize)]
struct UnderMask {
    /// Size of a block, in bytes.
    block_size: u32,
    /// Offset of the first block in a file, in bytes.
    offset: u32,
    masked: Vec<Field>,
    #[serde(flatten)]
    dedup: DedupRatio<f64>,
}

#[derive(Serialize)]
struct FieldCost<'a> {
    field: Field,
    /// Name of the fields in the page formats that occur.
    called: &'a str,
    #[serde(flatten)]
    without: DedupRatioWithout<f64>,
    #[serde(flatten)]
    only: DedupRatioOnly<f64>,
}

/// The model's blocks, split by whether their database ever used them.
#[derive(Serialize)]
struct Usage {
    used_blocks: Number,
    zero_blocks: Number,
    /// Blocks of pages that are formatted but empty.
    formatted_blocks: Number,
    never_used_part: f64,
    used_dedup_ratio: Option<f64>,
    used_compression_ratio: Option<f64>,
    used_reduction_ratio: Option<f64>,
    /// Bytes that would be stored if every block were used as the used ones are.
    bytes_when_full: Option<Number>,
    /// Rows of pages, if their format tells; null if no format does.
    rows: Option<Rows>,
}

/// Contents shared by each pair of files.
#[derive(Serialize)]
struct Matrix<'a> {
    files: &'a [u32],
    /// Contents of the file of the row that the file of the column has too.
    contents: Vec<Vec<Number>>,
}

/// Contents that occur `from` to `to` times.
#[derive(Serialize)]
struct Occurring {
    from: u32,
    to: u32,
    contents: Number,
    blocks: Number,
}

#[derive(Serialize)]
struct Bins {
    file: u32,
    blocks: u64,
    /// Blocks that are the first of their content, in each part.
    unique: Vec<u32>,
    /// Blocks whose content occurs earlier in the same file, in each part.
    same_file: Vec<u32>,
    /// Blocks with a content that another file has, in each part.
    cross_file: Vec<u32>,
    /// Blocks that consist of zeros, in each part.
    zero: Vec<u32>,
}

#[derive(Serialize)]
struct Copied {
    blocks: u64,
    bytes: u64,
    file: u32,
    start_block: u64,
    original: u32,
    original_start_block: u64,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    /// Bytes counted.
    bytes: u64,
    /// Bytes in holes, which were not read.
    hole_bytes: u64,
    /// Format of its pages, if it has one.
    format: Option<&'a str>,
    state: State,
    /// Growth of the file in bytes, negative if it shrank.
    changed_bytes: Option<i64>,
    /// Reason why it could not be read.
    why: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Complete,
    Pending,
    Grew,
    Shrank,
    Written,
    Unreadable,
}

#[derive(Serialize)]
struct Scan<'a> {
    elapsed_s: f64,
    cpu_s: f64,
    /// Bytes read from storage, not counting holes.
    read_bytes: u64,
    /// Peak memory of the process.
    memory_bytes: u64,
    /// Whether reads bypassed the page cache.
    direct: bool,
    /// Reason why the scan ended early, if it did.
    ended_by: Option<&'a str>,
    whole: bool,
}

/// A figure and both ends of its 99 % interval; all null if it is unknown.
macro_rules! interval {
    ($($name:ident { $value:ident, $low:ident, $high:ident } $about:literal;)+) => {$(
        #[derive(Serialize)]
        #[allow(clippy::struct_field_names, reason = "fields are keys of the document")]
        struct $name<T = Option<f64>> {
            #[doc = $about]
            $value: T,
            /// Lower end of its 99 % interval.
            $low: T,
            /// Upper end of its 99 % interval.
            $high: T,
        }

        impl<T: From<f64>> From<Interval> for $name<T> {
            fn from(from: Interval) -> Self {
                Self { $value: from.value.into(), $low: from.low.into(), $high: from.high.into() }
            }
        }

        impl From<Option<Interval>> for $name {
            fn from(from: Option<Interval>) -> Self {
                from.map_or(Self { $value: None, $low: None, $high: None }, Self::from)
            }
        }
    )+};
}

interval! {
    UniqueBlocks { unique_blocks, unique_blocks_low, unique_blocks_high }
        "Different contents that are not zeros: blocks that must be stored.";
    DedupRatio { dedup_ratio, dedup_ratio_low, dedup_ratio_high } "Blocks ÷ contents.";
    CompressionRatio { compression_ratio, compression_ratio_low, compression_ratio_high }
        "Bytes of contents ÷ bytes that the model stores for them.";
    ReductionRatio { reduction_ratio, reduction_ratio_low, reduction_ratio_high }
        "Bytes of blocks ÷ bytes stored.";
    DedupRatioWithout {
        dedup_ratio_without, dedup_ratio_without_low, dedup_ratio_without_high
    } "The ratio without this class and all before it.";
    DedupRatioOnly { dedup_ratio_only, dedup_ratio_only_low, dedup_ratio_only_high }
        "The ratio if this class alone were left.";
}

/// A count, written as a whole number, or an estimate, written with its fraction.
#[derive(Clone, Copy)]
struct Number(f64);

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            whole if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => {
                to.serialize_u64(whole as u64)
            }
            part => to.serialize_f64(part),
        }
    }
}

/// Gives the report the keys of version 1, and its tables the columns that they had.
pub fn restore(report: &mut Report, findings: &Findings, scanned: &Scanned) {
    report.first = json::keys(document(findings, scanned));
    for block in report.sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Table(table) = block {
            restore_table(table, findings, scanned);
            let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
            for cell in cells {
                if let Value::Estimate(estimate) = cell {
                    *cell = estimate.value.into();
                }
            }
        }
    }
}

fn restore_table(table: &mut Table, findings: &Findings, scanned: &Scanned) {
    match &*table.name {
        "grids" => add_ends(table, "reduction_ratio"),
        "fields" if has_estimates(table) => {
            add_ends(table, "dedup_ratio_without");
            add_ends(table, "dedup_ratio_only");
        }
        "compression" => {
            for (new, old) in COMPRESSION {
                rename(table, new, old);
            }
            let all = findings.compression.first().map(|figures| figures.contents as f64);
            add(table, "contents", |_| all.into());
        }
        "shifts" => rename(table, "copy_share", "part_of_copy"),
        "occurrences" => {
            add(table, "times", |row| words::times(&findings.occurrences[row]).into());
        }
        "files" => {
            let files = tables::ordered(scanned);
            add(table, "path", |row| files[row].1.path.as_str().into());
            replace(table, "state", |row| words::state(&files[row].1.state).into());
            replace(table, "format", |row| files[row].1.format.clone().unwrap_or_default().into());
        }
        _ => {}
    }
}

/// Columns of ratios, by class.
const COMPRESSION: [(&str, &str); 5] = [
    ("ratio_all", "all"),
    ("ratio_once", "occurs_once"),
    ("ratio_same_file", "same_file"),
    ("ratio_cross_file", "cross_file"),
    ("ratio_never_used", "never_used"),
];

fn has_estimates(table: &Table) -> bool {
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| matches!(cell, Value::Estimate(_)))
}

/// Adds both ends of the intervals of a column, which are missing where it was counted exactly.
fn add_ends(table: &mut Table, of: &str) {
    let Some(column) = table.column(of) else { return };
    let cells: Vec<Value> = table.rows.iter().map(|row| row.cells[column].clone()).collect();
    for is_high in [false, true] {
        let end = if is_high { "high" } else { "low" };
        add(table, &format!("{of}_{end}"), |row| match &cells[row] {
            Value::Estimate(estimate) if is_high => estimate.high.into(),
            Value::Estimate(estimate) => estimate.low.into(),
            _ => Value::default(),
        });
    }
}

fn add(table: &mut Table, key: &str, cell: impl Fn(usize) -> Value) {
    let heading = Heading::new(key.to_owned(), "", Measure::Text, "");
    table.columns.to_mut().push(heading);
    table.rows.iter_mut().enumerate().for_each(|(row, cells)| cells.cells.push(cell(row)));
}

fn replace(table: &mut Table, key: &str, cell: impl Fn(usize) -> Value) {
    let Some(column) = table.column(key) else { return };
    table.rows.iter_mut().enumerate().for_each(|(row, cells)| cells.cells[column] = cell(row));
}

fn rename(table: &mut Table, new: &str, old: &'static str) {
    if let Some(column) = table.column(new) {
        table.columns.to_mut()[column].key = old.into();
    }
}

fn document<'a>(findings: &'a Findings, scanned: &'a Scanned) -> ReduceDocument<'a> {
    let (bytes, stored_bytes) = words::in_and_stored(findings);
    let whole = scanned.is_whole();
    let row = |row: &Vec<f64>| row.iter().copied().map(Number).collect();
    ReduceDocument {
        tool_version: env!("CARGO_PKG_VERSION"),
        summary: Summary { grid: grid(findings.primary()), bytes, stored_bytes, whole },
        model: &findings.model,
        results: findings.grids.iter().map(grid).collect(),
        compression: &findings.compression,
        masked: masked(findings),
        field_costs: field_costs(findings),
        usage: usage(findings),
        block_sample: findings.block_sample,
        chunk_ratio: findings.chunk_ratio,
        shifts: &findings.shifts,
        matrix: Matrix {
            files: &findings.matrix.files,
            contents: findings.matrix.contents.iter().map(row).collect(),
        },
        occurrences: findings.occurrences.iter().map(occurring).collect(),
        strips: findings.strips.iter().map(bins).collect(),
        runs: findings.runs.iter().map(|run| copied(run, findings)).collect(),
        verdicts: &findings.verdicts,
        files: scanned.files.iter().map(file).collect(),
        skipped: &scanned.skipped,
        scan: Scan {
            elapsed_s: scanned.elapsed_s,
            cpu_s: scanned.cpu_s,
            read_bytes: scanned.read_bytes,
            memory_bytes: scanned.memory_bytes,
            direct: scanned.direct,
            ended_by: scanned.ended_by.as_deref(),
            whole,
        },
    }
}

fn grid(figures: &GridFigures) -> Grid {
    Grid {
        block_size: figures.grid.block_bytes,
        offset: figures.grid.offset_bytes,
        blocks: figures.blocks,
        zero_blocks: figures.zero_blocks,
        unique_blocks: figures.unique_blocks.into(),
        same_file_duplicates: Number(figures.same_file_duplicates),
        cross_file_duplicates: Number(figures.cross_file_duplicates),
        share: figures.share,
        contents_kept: figures.contents_kept,
        contents_compressed: figures.contents_compressed,
        blocks_drawn: figures.blocks_drawn,
        exact: figures.share >= 1.0,
        dedup: figures.dedup_ratio.into(),
        compression: figures.compression_ratio.into(),
        reduction: figures.reduction_ratio.into(),
    }
}

fn masked(findings: &Findings) -> Vec<UnderMask> {
    let masked = findings.masked.iter().map(|masked| UnderMask {
        block_size: masked.grid.block_bytes,
        offset: masked.grid.offset_bytes,
        masked: masked.mask.fields().collect(),
        dedup: masked.dedup_ratio.into(),
    });
    masked.collect()
}

fn field_costs(findings: &Findings) -> Vec<FieldCost<'_>> {
    let costs = findings.field_costs.iter().map(|cost| FieldCost {
        field: cost.field,
        called: &cost.called,
        without: cost.dedup_ratio_without.into(),
        only: cost.dedup_ratio_only.into(),
    });
    costs.collect()
}

fn usage(findings: &Findings) -> Usage {
    let usage = &findings.usage;
    Usage {
        used_blocks: Number(usage.used_blocks),
        zero_blocks: Number(usage.zero_blocks),
        formatted_blocks: Number(usage.formatted_blocks),
        never_used_part: usage.never_used_part(),
        used_dedup_ratio: usage.used_dedup_ratio,
        used_compression_ratio: usage.used_compression_ratio.map(|ratio| ratio.value),
        used_reduction_ratio: usage.used_reduction_ratio(),
        bytes_when_full: usage.bytes_when_full.map(|bytes| Number(bytes.round())),
        rows: (usage.rows.row_pages > 0).then_some(usage.rows),
    }
}

fn occurring(occurrences: &Occurrences) -> Occurring {
    let Occurrences { from, to, contents, blocks } = *occurrences;
    Occurring { from, to, contents: Number(contents), blocks: Number(blocks) }
}

fn bins(strip: &Strip) -> Bins {
    let column = |count: fn(&StripBin) -> u32| strip.bins.iter().map(count).collect();
    Bins {
        file: strip.file,
        blocks: strip.blocks,
        unique: column(|bin| bin.stored),
        same_file: column(|bin| bin.same_file),
        cross_file: column(|bin| bin.cross_file),
        zero: column(|bin| bin.zero),
    }
}

fn copied(run: &Run, findings: &Findings) -> Copied {
    Copied {
        blocks: run.blocks,
        bytes: run.blocks * u64::from(findings.model.block_bytes),
        file: run.file,
        start_block: run.start,
        original: run.original,
        original_start_block: run.original_start,
    }
}

fn file(file: &ScannedFile) -> File<'_> {
    let (state, changed_bytes, why) = match &file.state {
        FileState::Complete => (State::Complete, None, None),
        FileState::Pending => (State::Pending, None, None),
        FileState::Grew { bytes } => (State::Grew, Some(*bytes as i64), None),
        FileState::Shrank { bytes } => (State::Shrank, Some(-(*bytes as i64)), None),
        FileState::Written => (State::Written, None, None),
        FileState::Unreadable { why } => (State::Unreadable, None, Some(why.as_str())),
    };
    File {
        path: &file.path,
        bytes: file.bytes,
        hole_bytes: file.hole_bytes,
        format: file.format.as_deref(),
        state,
        changed_bytes,
        why,
    }
}
