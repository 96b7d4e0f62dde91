//! The tables; they contain everything that a chart shows.

use std::collections::HashMap;

use blockstone_base::table::{
    Heading, Measure, Merge, Rows as _, Table, Value, happened, share, text,
};
use blockstone_base::units::Bytes;
use blockstone_reduce::findings::{Class, CompressionFigures, Findings};
use blockstone_reduce::scanned::{Scanned, ScannedFile};
use blockstone_report::block_size;

use super::words;
use crate::verbs::reduce::rows::{
    self, ClassRow, CompressionRow, FieldRow, FileRow, FreeRow, GridRow, MaskedRow, OccurrenceRow,
    RunRow, SharedRow, ShiftRow, SkippedRow, StripRow,
};

/// Maximum number of offsets that a line has room for.
const OFFSETS_MAX: usize = 4;
/// Maximum number of files on the page; documents have all.
const FILES_MAX: usize = 2000;
/// Maximum number of rows on the page of what a chart shows.
const CHARTED_MAX: usize = 20;
/// Confidence of the intervals, in percent.
const CONFIDENCE: u8 = 99;

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
            let ratio = found.and_then(|figures| figures.dedup_ratio).map(|ratio| ratio.value);
            ratio.filter(|value| value.is_finite()).into()
        }));
        let known = |part: f64| Value::from(Some(part).filter(|part| !part.is_nan()));
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
            found.map_or_else(Value::default, |figures| rows::ratio(figures.interval))
        };
        let mut cells = vec![Value::from(row[0].codec.to_string())];
        cells.extend(granules.iter().map(ratio));
        table.push(cells);
    }
    sampled(table)
}

/// States the confidence of the intervals of a table, if it has any.
fn sampled(table: Table) -> Table {
    let mut table = table.confidence(CONFIDENCE);
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    if cells.any(|cell| matches!(cell, Value::Estimate(_))) {
        table.notes.push(format!("± is an interval of {CONFIDENCE} %."));
    }
    table
}

pub fn grids(findings: &Findings) -> Table {
    sampled(GridRow::table("grids", "Every grid", findings.grids.iter().map(GridRow::of)))
}

pub fn compression(findings: &Findings) -> Table {
    let key = |figures: &CompressionFigures| (figures.codec, figures.granule_bytes);
    let rows = findings.compression.chunk_by(|a, b| key(a) == key(b)).map(|row| {
        let ratio = |class: Class| {
            let found = row.iter().find(|figures| figures.class == class);
            happened(found.map(|figures| rows::ratio(figures.interval)))
        };
        CompressionRow {
            codec: row[0].codec.to_string(),
            granule_bytes: row[0].granule_bytes,
            ratio_all: ratio(Class::All),
            ratio_once: ratio(Class::Once),
            ratio_same_file: ratio(Class::SameFile),
            ratio_cross_file: ratio(Class::CrossFile),
            ratio_never_used: ratio(Class::NeverUsed),
        }
    });
    CompressionRow::table("compression", "Compression of the model's blocks", rows)
}

/// Lists the contents of each class, which are the same for all compressors and steps.
pub fn classes(findings: &Findings) -> Table {
    let all = &findings.compression;
    let is_first = |it: &&CompressionFigures| {
        (it.codec, it.granule_bytes) == (all[0].codec, all[0].granule_bytes)
    };
    let row =
        |it: &CompressionFigures| ClassRow { class: it.class.name(), contents: it.contents as f64 };
    let rows = all.iter().filter(is_first).map(row);
    ClassRow::table("classes", "Contents that were compressed", rows)
}

pub fn masked(findings: &Findings) -> Table {
    let rows = findings.masked.iter().map(MaskedRow::of);
    let title = "Deduplication with header fields set to zero";
    sampled(MaskedRow::table("masked", title, rows))
}

pub fn fields(findings: &Findings) -> Table {
    let rows = findings.field_costs.iter().map(FieldRow::of);
    sampled(FieldRow::table("fields", "", rows))
}

pub fn runs(findings: &Findings, names: &[String]) -> Table {
    let block_bytes = findings.model.block_bytes.into();
    let rows = findings.runs.iter().map(|run| RunRow::of(run, block_bytes, names));
    RunRow::table("runs", "The longest copies of consecutive blocks", rows)
}

pub fn shifts(findings: &Findings, names: &[String]) -> Table {
    let rows = findings.shifts.iter().map(|shift| ShiftRow::of(shift, names));
    ShiftRow::table("shifts", "Copies that are not aligned to 4K blocks", rows)
}

pub fn strips(findings: &Findings, names: &[String]) -> Table {
    let rows = findings.strips.iter().flat_map(|strip| StripRow::of(strip, names));
    StripRow::table("strips", "Kinds of blocks along each file", rows).on_page(CHARTED_MAX)
}

/// Lists the pairs of files that share contents, those that share most first.
pub fn shared(findings: &Findings, names: &[String]) -> Table {
    let matrix = &findings.matrix;
    let mut rows = Vec::new();
    for (row, (&file, contents)) in matrix.files.iter().zip(&matrix.contents).enumerate() {
        for (&other, &contents) in matrix.files.iter().zip(contents).skip(row + 1) {
            if contents > 0.0 {
                let (file, other) = (words::of(names, file), words::of(names, other));
                rows.push(SharedRow { file, other, contents });
            }
        }
    }
    rows.sort_by(|a, b| b.contents.total_cmp(&a.contents));
    SharedRow::table("shared", "Contents that two files share", rows).on_page(CHARTED_MAX)
}

pub fn occurrences(findings: &Findings) -> Table {
    let rows = findings.occurrences.iter().map(OccurrenceRow::of);
    OccurrenceRow::table("occurrences", "How often contents occur", rows)
}

/// Lists all files; those that the figures do not cover as they should come first.
pub fn files(findings: &Findings, scanned: &Scanned, names: &[String]) -> Table {
    let strips = findings.strips.iter().map(|strip| (strip.file as usize, strip.blocks));
    let blocks: HashMap<usize, u64> = strips.collect();
    let matrix = findings.matrix.files.iter().zip(&findings.matrix.contents).enumerate();
    // A file shares all of its contents with itself.
    let contents: HashMap<usize, f64> =
        matrix.map(|(row, (file, contents))| (*file as usize, contents[row])).collect();
    let rows = ordered(scanned).into_iter().map(|(index, file)| FileRow {
        blocks: blocks.get(&index).copied(),
        contents: contents.get(&index).copied(),
        ..FileRow::of(file, &names[index])
    });
    FileRow::table("files", "Files", rows).on_page(FILES_MAX)
}

/// Returns the files in the order of the table, with their indexes.
pub fn ordered(scanned: &Scanned) -> Vec<(usize, &ScannedFile)> {
    let mut files: Vec<_> = scanned.files.iter().enumerate().collect();
    files.sort_by_key(|(_, file)| !file.state.is_partial());
    files
}

pub fn free(scanned: &Scanned) -> Table {
    sampled(FreeRow::table("free_space", "Free space", scanned.free.iter().map(FreeRow::of)))
}

pub fn skipped(scanned: &Scanned) -> Table {
    SkippedRow::table("skipped", "Skipped", scanned.skipped.iter().map(SkippedRow::of))
}
