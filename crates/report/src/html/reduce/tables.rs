//! The tables: nothing a chart shows is missing here.

use blockstone_base::units::{Bytes, thousands};
use blockstone_reduce::compress::Codec;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{Class, CompressionFigures, Findings};
use blockstone_reduce::scanned::Scanned;

use crate::format::percent;
use crate::html::table::Table;
use crate::reduce;

use super::charts::times;

/// Of a path, so many characters.
const NAME_WIDTH: usize = 60;
/// Files that the page names; the document names all.
const FILES_MAX: usize = 2000;
/// Longer tables begin folded.
const ROWS_OPEN: usize = 20;

/// Every grid with its counts and ratios.
pub fn grids(findings: &Findings) -> Table {
    let columns = [
        "Grid",
        "Blocks",
        "Zero",
        "Unique",
        "Same-file duplicates",
        "Cross-file duplicates",
        "Dedup",
        "Compression",
        "Reduction",
        "99 % interval",
        "Share of hash space",
        "Contents kept",
        "Compressed",
    ];
    let mut table = Table::of_numbers("Every grid", &columns);
    // What is not known is no zero.
    let known = |value: f64| (!value.is_nan()).then(|| thousands(value.round() as i64));
    let count = |value| known(value).unwrap_or_else(|| "–".to_owned());
    for figures in &findings.grids {
        let cells = vec![
            count(figures.blocks as f64),
            count(figures.zero_blocks as f64),
            count(figures.unique_blocks.value),
            count(figures.same_file_duplicates),
            count(figures.cross_file_duplicates),
            reduce::value(figures.dedup_ratio),
            reduce::value(figures.compression_ratio),
            reduce::value(figures.reduction_ratio),
            interval(figures.reduction_ratio),
            share(figures.share),
            count(figures.contents_kept as f64),
            count(figures.contents_compressed as f64),
        ];
        table.row(reduce::grid(figures.grid), cells);
    }
    table
}

/// Compressors by step and class.
pub fn compression(findings: &Findings) -> Table {
    let columns = [
        "Compressor, step",
        "All",
        "Occurs once",
        "Repeats in a file",
        "Repeats across files",
        "Never used",
        "Contents",
    ];
    let mut table = Table::of_numbers("Compression of the model's blocks", &columns);
    for row in findings.compression.chunk_by(|a, b| key(a) == key(b)) {
        let ratio = |class: Class| {
            let found = row.iter().find(|figures| figures.class == class);
            found.map_or_else(|| "–".to_owned(), |figures| reduce::ratio(figures.ratio))
        };
        let (codec, granule) = key(&row[0]);
        let mut cells: Vec<String> = Class::ALL.into_iter().map(ratio).collect();
        cells.push(thousands(row[0].contents as i64));
        table.row(format!("{codec}, {}", Bytes(granule.into())), cells);
    }
    table
}

fn key(figures: &CompressionFigures) -> (Codec, u32) {
    (figures.codec, figures.granule_bytes)
}

/// What each class of header fields costs.
pub fn fields(findings: &Findings) -> Table {
    let columns =
        ["Field", "Without it and those above", "", "If it alone were left", "", "Called"];
    let mut table = Table::of_numbers("Cost of header fields at the model's block size", &columns);
    for cost in &findings.field_costs {
        let (without, only) = (cost.dedup_ratio_without, cost.dedup_ratio_only);
        let cells = vec![
            reduce::ratio(without.value),
            interval(Some(without)),
            reduce::ratio(only.value),
            interval(Some(only)),
            cost.called.clone(),
        ];
        table.row(cost.field.name(), cells);
    }
    table
}

/// The longest copies.
pub fn runs(findings: &Findings, scanned: &Scanned) -> Table {
    let columns = ["Copy", "Begins at", "Blocks", "Bytes", "Original", "Begins at"];
    let mut table = Table::of_numbers("The longest copies of blocks behind each other", &columns);
    let block_bytes = u64::from(findings.model.block_bytes);
    let bytes = |blocks: u64| Bytes(blocks * block_bytes).to_string();
    for run in &findings.runs {
        let cells = vec![
            bytes(run.start),
            thousands(run.blocks as i64),
            bytes(run.blocks),
            reduce::name(scanned, run.original, NAME_WIDTH),
            bytes(run.original_start),
        ];
        table.row(reduce::name(scanned, run.file, NAME_WIDTH), cells);
    }
    folded(table)
}

/// Copies between the blocks.
pub fn shifts(findings: &Findings, scanned: &Scanned) -> Table {
    let columns = ["Copy", "Shifted by bytes", "Bytes that match", "Part of the copy", "Original"];
    let caption = "Copies that no block of 4K can match: they lie between the blocks";
    let mut table = Table::of_numbers(caption, &columns);
    for shift in &findings.shifts {
        let displacement = &shift.displacement;
        let cells = vec![
            thousands(displacement.shift_bytes),
            Bytes(shift.bytes).to_string(),
            percent(shift.part_of_copy),
            reduce::name(scanned, displacement.original, NAME_WIDTH),
        ];
        table.row(reduce::name(scanned, displacement.copy, NAME_WIDTH), cells);
    }
    folded(table)
}

/// How many contents occur how often.
pub fn occurrences(findings: &Findings) -> Table {
    let columns = ["Times that a content occurs", "Contents", "Blocks"];
    let mut table = Table::of_numbers("How often contents occur", &columns).folded();
    for occurrences in &findings.occurrences {
        let cells = vec![
            thousands(occurrences.contents.round() as i64),
            thousands(occurrences.blocks.round() as i64),
        ];
        table.row(times(occurrences), cells);
    }
    table
}

/// Every file; those that are not in the figures as they should be come first.
pub fn files(scanned: &Scanned) -> Table {
    let columns = ["File", "Bytes", "Of them holes", "Pages of", "State"];
    let count = scanned.files.len();
    let caption = if count > FILES_MAX {
        format!("Files: {} of {}", thousands(FILES_MAX as i64), thousands(count as i64))
    } else {
        "Files".to_owned()
    };
    let mut table = Table::of_numbers(caption, &columns);
    let mut files: Vec<_> = scanned.files.iter().collect();
    files.sort_by_key(|file| !file.state.is_partial());
    for file in files.into_iter().take(FILES_MAX) {
        let cells = vec![
            Bytes(file.bytes).to_string(),
            Bytes(file.hole_bytes).to_string(),
            file.format.clone().unwrap_or_default(),
            reduce::state(&file.state),
        ];
        table.row(file.path.clone(), cells);
    }
    folded(table)
}

/// What was not scanned.
pub fn skipped(scanned: &Scanned) -> Table {
    let mut table = Table::of_texts("Skipped", &["Path", "Why"]);
    for skipped in &scanned.skipped {
        table.row(skipped.path.clone(), vec![skipped.why.clone()]);
    }
    folded(table)
}

fn folded(table: Table) -> Table {
    if table.rows.len() > ROWS_OPEN { table.folded() } else { table }
}

/// Both ends; empty where there is one number only.
fn interval(interval: Option<Interval>) -> String {
    let sampled = interval.filter(|interval| !interval.is_exact());
    sampled.map_or_else(String::new, |i| format!("{:.2} – {:.2}", i.low, i.high))
}

fn share(share: f64) -> String {
    if share >= 1.0 { "all".to_owned() } else { format!("1/{}", thousands((1.0 / share) as i64)) }
}
