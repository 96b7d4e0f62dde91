//! The tables; they contain everything that a chart shows.

use blockstone_base::row;
use blockstone_base::table::text;
use blockstone_base::table::{
    Heading, Measure, Merge, Table, Value, column, count, happened, share,
};
use blockstone_base::units::{Bytes, thousands};
use blockstone_reduce::compress::Codec;
use blockstone_reduce::counter::Run;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{
    Class, CompressionFigures, Findings, GridFigures, Occurrences, Shift,
};
use blockstone_reduce::scanned::{Scanned, Skipped};
use blockstone_report::block_size;

use super::words;

/// Most offsets that a line has room for.
const OFFSETS_MAX: usize = 4;
/// Most characters of a path that are shown.
const NAME_WIDTH: usize = 60;
/// Most files that the table names; the document names all.
const FILES_MAX: usize = 2000;

const fn to_one(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::ToOne, Merge::Never, doc)
}

const fn bytes(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::Bytes, Merge::Never, doc)
}

fn ratio(ratio: Option<Interval>) -> Value {
    ratio.map(|ratio| ratio.value).filter(|value| value.is_finite()).into()
}

/// Returns a missing value, and not zero, for a figure that is unknown.
fn known(value: f64) -> Value {
    Some(value).filter(|value| !value.is_nan()).into()
}

/// Returns both ends of an interval, or no values if the figure was counted exactly.
fn ends(interval: Option<Interval>) -> [Value; 2] {
    let sampled = interval.filter(|interval| !interval.is_exact());
    let end = |end: fn(Interval) -> f64| match sampled {
        Some(interval) => Value::Number(end(interval)),
        None => Value::default(),
    };
    [end(|i| i.low), end(|i| i.high)]
}

/// Lists deduplication by block size and offset; the kinds of blocks at the smallest offset.
pub fn offsets(findings: &Findings) -> Table {
    let mut offsets: Vec<u32> = findings.grids.iter().map(|g| g.grid.offset_bytes).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let more = offsets.len().saturating_sub(OFFSETS_MAX);
    offsets.truncate(OFFSETS_MAX);
    let mut columns = vec![text("block", "block", "Size of a block.")];
    columns.extend(offsets.iter().map(|&offset| {
        let key = format!("dedup_ratio_at_{offset}");
        let heading = format!("at {}", block_size(offset.into()));
        let doc = "Blocks ÷ different contents, the first block of a file at this offset.";
        Heading { merge: Merge::Never, ..Heading::new(key, heading, Measure::ToOne, doc) }
    }));
    columns.extend([
        share("zero", "zero", "Blocks of zeros ÷ all, at the smallest offset."),
        share("unique", "unique", "Blocks whose content is not in a block before them ÷ all."),
        share("same_file", "same-file", "Copies of a block of the same file ÷ all."),
        share("cross_file", "cross-file", "Copies of a block of another file ÷ all."),
    ]);
    let sampled = findings.grids.iter().any(|g| g.dedup_ratio.is_some_and(|r| !r.is_exact()));
    if sampled {
        columns.push(text("dedup_ratio_99_percent", "99 %", "Interval at the smallest offset."));
    }
    let title = if offsets.len() > 1 {
        "Deduplication by block size and offset; kinds of blocks at the first offset"
    } else {
        "Deduplication by block size, and kinds of blocks"
    };
    let mut table = Table::new("dedup", title, columns);
    for row in findings.grids.chunk_by(|a, b| a.grid.block_bytes == b.grid.block_bytes) {
        let first = &row[0];
        let mut cells = vec![Value::from(block_size(first.grid.block_bytes.into()))];
        cells.extend(offsets.iter().map(|&offset| {
            let found = row.iter().find(|figures| figures.grid.offset_bytes == offset);
            ratio(found.and_then(|figures| figures.dedup_ratio))
        }));
        cells.extend(words::parts(first).map(known));
        if sampled {
            let interval = first.dedup_ratio.filter(|ratio| !ratio.is_exact());
            let text = interval.map(|i| format!("{:.2}–{:.2}", i.low, i.high));
            cells.push(text.unwrap_or_default().into());
        }
        table.push(cells);
    }
    if more > 0 {
        table.notes.push(format!("{more} more offsets: --csv=grids"));
    }
    table
}

/// Lists the compression of the model's blocks: compressors by steps of allocation.
pub fn steps(findings: &Findings) -> Table {
    let all: Vec<&CompressionFigures> =
        findings.compression.iter().filter(|figures| figures.class == Class::All).collect();
    let mut granules: Vec<u32> = all.iter().map(|figures| figures.granule_bytes).collect();
    granules.sort_unstable();
    granules.dedup();
    let block = block_size(findings.model.block_bytes.into());
    let mut columns =
        vec![Heading::new("codec", format!("{block} rounded up to"), Measure::Text, "Compressor.")];
    columns.extend(granules.iter().map(|&granule| {
        let key = format!("ratio_in_steps_of_{granule}");
        let doc = "Bytes in ÷ bytes stored, each block rounded up to a multiple of this.";
        let heading = Bytes(granule.into()).to_string();
        Heading { merge: Merge::Never, ..Heading::new(key, heading, Measure::ToOne, doc) }
    }));
    let mut table = Table::new("steps", "", columns);
    for row in all.chunk_by(|a, b| a.codec == b.codec) {
        let ratio = |granule: &u32| {
            let found = row.iter().find(|figures| figures.granule_bytes == *granule);
            Value::from(found.map(|figures| figures.ratio))
        };
        let mut cells = vec![Value::from(row[0].codec.to_string())];
        cells.extend(granules.iter().map(ratio));
        table.push(cells);
    }
    table
}

const GRIDS: &[Heading] = &[
    text("grid", "grid", "Size of a block and offset of the first one in each file."),
    count("blocks", "blocks", "Blocks of the grid."),
    count("zero_blocks", "zero", "Blocks of zeros."),
    count("unique_blocks", "unique", "Blocks whose content is not in a block before them."),
    count("same_file_duplicates", "same-file duplicates", "Copies of a block of the same file."),
    count("cross_file_duplicates", "cross-file duplicates", "Copies of a block of another file."),
    to_one("dedup_ratio", "dedup", "Blocks ÷ different contents."),
    to_one("compression_ratio", "compression", "Bytes of contents ÷ bytes stored for them."),
    to_one("reduction_ratio", "reduction", "The product of both."),
    to_one("reduction_ratio_low", "99 % from", "Lower end of its interval where estimated."),
    to_one("reduction_ratio_high", "to", "Upper end of its interval."),
    share("share", "share of hash space", "Contents kept ÷ contents; all when exact."),
    count("contents_kept", "contents kept", "Different contents in the table."),
    count("contents_compressed", "compressed", "Contents that were compressed."),
];

pub fn grids(findings: &Findings) -> Table {
    let row = |figures: &GridFigures| {
        let [low, high] = ends(figures.reduction_ratio);
        row![
            words::grid(figures.grid),
            figures.blocks,
            figures.zero_blocks,
            known(figures.unique_blocks.value),
            known(figures.same_file_duplicates),
            known(figures.cross_file_duplicates),
            ratio(figures.dedup_ratio),
            ratio(figures.compression_ratio),
            ratio(figures.reduction_ratio),
            low,
            high,
            figures.share,
            known(figures.contents_kept as f64),
            known(figures.contents_compressed as f64)
        ]
    };
    Table::new("grids", "Every grid", GRIDS).with(findings.grids.iter().map(row))
}

const COMPRESSION: &[Heading] = &[
    text("codec", "compressor", "The compressor."),
    bytes("granule_bytes", "step", "What is stored is a multiple of it."),
    to_one("all", "all", "Of all contents."),
    to_one("occurs_once", "occurs once", "Of contents that occur once."),
    to_one("same_file", "repeats in a file", "Of contents that one file has several times."),
    to_one("cross_file", "repeats across files", "Of contents that several files have."),
    to_one("never_used", "never used", "Of formatted and empty pages."),
    count("contents", "contents", "How many were compressed."),
];

pub fn compression(findings: &Findings) -> Table {
    let mut table = Table::new("compression", "Compression of the model's blocks", COMPRESSION);
    for row in findings.compression.chunk_by(|a, b| key(a) == key(b)) {
        let ratio = |class: Class| {
            let found = row.iter().find(|figures| figures.class == class);
            happened(found.map(|figures| figures.ratio))
        };
        let (codec, granule) = key(&row[0]);
        let mut cells = vec![Value::from(codec.to_string()), f64::from(granule).into()];
        cells.extend(Class::ALL.iter().copied().map(ratio));
        cells.push((row[0].contents as f64).into());
        table.push(cells);
    }
    table
}

fn key(figures: &CompressionFigures) -> (Codec, u32) {
    (figures.codec, figures.granule_bytes)
}

const FIELDS: &[Heading] = &[
    text("field", "field", "A class of header fields."),
    text("called", "called", "The names of these fields in the database."),
    to_one("dedup_ratio_without", "without it and those above", "Set to zero with those above it."),
    to_one("dedup_ratio_only", "with it alone", "With all other classes set to zero."),
    to_one("dedup_ratio_without_low", "without: 99 % from", "Interval, if estimated."),
    to_one("dedup_ratio_without_high", "to", "The same."),
    to_one("dedup_ratio_only_low", "alone: 99 % from", "The same."),
    to_one("dedup_ratio_only_high", "to", "The same."),
];

pub fn fields(findings: &Findings) -> Table {
    let costs = &findings.field_costs;
    let ratios = costs.iter().flat_map(|c| [c.dedup_ratio_without, c.dedup_ratio_only]);
    let sampled = ratios.into_iter().any(|ratio| !ratio.is_exact());
    let columns = if sampled { FIELDS } else { &FIELDS[..4] };
    let mut table = Table::new("fields", "", columns);
    for cost in costs {
        let mut row = vec![
            Value::from(cost.field.name()),
            cost.called.as_str().into(),
            ratio(Some(cost.dedup_ratio_without)),
            ratio(Some(cost.dedup_ratio_only)),
        ];
        row.extend(ends(Some(cost.dedup_ratio_without)));
        row.extend(ends(Some(cost.dedup_ratio_only)));
        row.truncate(columns.len());
        table.push(row);
    }
    table
}

const RUNS: &[Heading] = &[
    text("copy", "copy", "The file that repeats another or itself."),
    bytes("start_bytes", "begins at", "Where in it."),
    count("blocks", "blocks", "Blocks of the model in a row."),
    bytes("bytes", "bytes", "The same in bytes."),
    text("original", "original", "The file that was read first."),
    bytes("original_start_bytes", "begins at", "Where in it."),
];

pub fn runs(findings: &Findings, scanned: &Scanned) -> Table {
    let block_bytes = u64::from(findings.model.block_bytes);
    let name = |file| words::name(scanned, file, NAME_WIDTH);
    let row = |run: &Run| {
        let [start, bytes, original] =
            [run.start, run.blocks, run.original_start].map(|blocks| blocks * block_bytes);
        row![name(run.file), start, run.blocks, bytes, name(run.original), original]
    };
    let title = "The longest copies of consecutive blocks";
    Table::new("runs", title, RUNS).with(findings.runs.iter().map(row))
}

const SHIFTS: &[Heading] = &[
    text("copy", "copy", "The file that contains unaligned data of another."),
    count("shift_bytes", "shifted by bytes", "Distance between the bytes in the two files."),
    bytes("bytes", "bytes that match", "Bytes that both contain."),
    share("part_of_copy", "part of the copy", "The same, as a part of the copy."),
    text("original", "original", "The file that was read first."),
];

pub fn shifts(findings: &Findings, scanned: &Scanned) -> Table {
    let title = "Copies that are not aligned to 4K blocks";
    let name = |file| words::name(scanned, file, NAME_WIDTH);
    let row = |shift: &Shift| {
        let it = &shift.displacement;
        let moved = it.shift_bytes as f64;
        row![name(it.copy), moved, shift.bytes, shift.part_of_copy, name(it.original)]
    };
    Table::new("shifts", title, SHIFTS).with(findings.shifts.iter().map(row))
}

const OCCURRENCES: &[Heading] = &[
    text("times", "occurrences of a content", "Range."),
    count("contents", "contents", "Contents that occur this often."),
    count("blocks", "blocks", "Blocks with these contents."),
];

pub fn occurrences(findings: &Findings) -> Table {
    let row = |it: &Occurrences| row![times(it), it.contents.round(), it.blocks.round()];
    let title = "How often contents occur";
    Table::new("occurrences", title, OCCURRENCES).with(findings.occurrences.iter().map(row))
}

/// Formats a range as in `3–4`.
pub fn times(occurrences: &Occurrences) -> String {
    if occurrences.from == occurrences.to {
        return occurrences.from.to_string();
    }
    format!("{}–{}", occurrences.from, occurrences.to)
}

const FILES: &[Heading] = &[
    text("path", "file", "Its path."),
    bytes("bytes", "bytes", "Bytes counted."),
    bytes("hole_bytes", "holes", "Bytes that are not allocated, counted as zeros."),
    text("format", "pages of", "The database whose page format was recognised."),
    text("state", "state", "Whether it was read completely."),
];

/// Lists all files; those that the figures do not cover as they should come first.
pub fn files(scanned: &Scanned) -> Table {
    let mut table = Table::new("files", "Files", FILES);
    let mut files: Vec<_> = scanned.files.iter().collect();
    files.sort_by_key(|file| !file.state.is_partial());
    for file in files.iter().take(FILES_MAX) {
        table.push(row![
            file.path.as_str(),
            file.bytes,
            file.hole_bytes,
            file.format.clone().unwrap_or_default(),
            words::state(&file.state)
        ]);
    }
    if files.len() > FILES_MAX {
        let (some, all) = (thousands(FILES_MAX as i64), thousands(files.len() as i64));
        table.notes.push(format!("{some} of {all} files; --json lists all"));
    }
    table
}

const SKIPPED: &[Heading] =
    &[text("path", "path", "What was not scanned."), text("why", "why", "The reason.")];

pub fn skipped(scanned: &Scanned) -> Table {
    let row = |skipped: &Skipped| row![&skipped.path, &skipped.why];
    Table::new("skipped", "Skipped", SKIPPED).with(scanned.skipped.iter().map(row))
}
