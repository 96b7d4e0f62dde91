//! Locations of copies: a row of cells for each file, from its beginning to its end.

use blockstone_base::units::{Bytes, thousands};
use blockstone_reduce::counter::{Run, Strip, StripBin};
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use blockstone_reduce::sets::FileId;

use blockstone_report::picture::{Cell, CellKind, CellRow, Cells};

use super::charts::KINDS;
use super::words;

/// Number of files that are named on a screen, the largest ones.
const FILES_MAX: usize = 10;
/// Number of files on a page, whose size this limits.
const ROWS_MAX: usize = 100;
/// Cells of a row.
const CELLS: usize = 104;
const NAME_WIDTH: usize = 24;
/// Marks of [`words::PARTS`].
const MARKS: [&str; 4] = ["·", "█", "=", "x"];

/// Lists the first few files that equal another one from some block on to their ends. Empty if only
/// a part of the contents is known.
pub fn identical(findings: &Findings, scanned: &Scanned) -> Vec<String> {
    if findings.grids[findings.primary].share < 1.0 {
        return Vec::new();
    }
    let block_bytes = u64::from(findings.model.block_bytes);
    let blocks = |file: FileId| {
        scanned.files.get(file as usize).map(|file| file.bytes.div_ceil(block_bytes))
    };
    let mut runs: Vec<&Run> = findings.runs.iter().collect();
    runs.retain(|run| {
        run.file != run.original
            && run.start == run.original_start
            && blocks(run.file) == Some(run.start + run.blocks)
            && blocks(run.file) == blocks(run.original)
    });
    runs.sort_by_key(|run| (run.original, run.file));
    let name = |file| words::name(scanned, file, NAME_WIDTH);
    let line = |run: &&Run| match run.start {
        0 => format!("files {} and {} are identical", name(run.original), name(run.file)),
        start => format!(
            "files {} and {} are identical from block {} on ({})",
            name(run.original),
            name(run.file),
            thousands(start as i64),
            Bytes(start * block_bytes)
        ),
    };
    let mut lines: Vec<String> = runs.iter().take(FILES_MAX).map(line).collect();
    let more = runs.len().saturating_sub(FILES_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

/// Draws the largest files; without rows if no file has blocks.
pub fn cells(findings: &Findings, scanned: &Scanned) -> Cells {
    let kinds = words::PARTS.into_iter().zip(MARKS).zip(KINDS);
    let row = |strip: &&Strip| CellRow {
        label: words::name(scanned, strip.file, NAME_WIDTH),
        cells: kinds_of(strip, CELLS).map(|kind| Cell { kind, text: String::new() }).collect(),
    };
    let rows: Vec<CellRow> = words::largest(&findings.strips, ROWS_MAX).iter().map(row).collect();
    Cells {
        title: "each file".into(),
        kinds: kinds.map(|((name, mark), color)| CellKind::new(name, mark, color)).collect(),
        is_grid: false,
        on_screen: FILES_MAX,
        left_out: scanned.files.len().saturating_sub(rows.len()),
        rows,
    }
}

/// Returns of each of `count` parts the kind that most of its blocks are, as an index into
/// [`words::PARTS`]; `None` if none of its contents was kept.
fn kinds_of(strip: &Strip, count: usize) -> impl Iterator<Item = Option<usize>> {
    let bins = strip.bins.len();
    let part = move |index: usize| {
        let from = index * bins / count;
        let to = ((index + 1) * bins / count).max(from + 1).min(bins);
        strip.bins.get(from..to).unwrap_or_default()
    };
    (0..count).map(move |index| {
        let blocks = sum(part(index));
        (0..4).max_by_key(|&kind| blocks[kind]).filter(|&kind| blocks[kind] > 0)
    })
}

/// Returns the number of blocks of each kind, in the order of [`words::PARTS`].
pub fn sum(bins: &[StripBin]) -> [u64; 4] {
    bins.iter().fold([0; 4], |mut sum, bin| {
        let blocks = [bin.zero, bin.stored, bin.same_file, bin.cross_file];
        sum.iter_mut().zip(blocks).for_each(|(sum, blocks)| *sum += u64::from(blocks));
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_what_most_of_its_part_is() {
        let unique = StripBin { stored: 9, zero: 1, ..StripBin::default() };
        let copied = StripBin { cross_file: 8, same_file: 2, ..StripBin::default() };
        let empty = StripBin::default();
        let zero = StripBin { zero: 1, ..empty };
        let drawn = |bins, count| {
            let strip = Strip { file: 0, blocks: 40, bins };
            kinds_of(&strip, count).map(|kind| kind.map_or(" ", |kind| MARKS[kind])).collect()
        };
        let drawn: &dyn Fn(Vec<StripBin>, usize) -> String = &drawn;
        assert_eq!(drawn(vec![unique, copied, zero, empty], 4), "█x· ");
        assert_eq!(drawn(vec![unique, copied], 6), "███xxx");
        assert_eq!(drawn(vec![unique, unique, copied, zero, zero, zero], 2), "█·");
    }
}
