//! Maps: where in files copies are, and which files share contents.

use blockstone_base::table::Measure;
use blockstone_reduce::counter::{Strip, StripBin};
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use blockstone_report::chart::{Axis, Chart, Form, HeatCell, Point};
use blockstone_report::percent;

use super::charts::KINDS;
use super::words;

/// With more files, a row is too thin for a name.
const ROWS_MAX: usize = 160;
/// Most parts of a row; each is a few pixels wide.
const COLUMNS_MAX: usize = 120;
/// Up to this many files are drawn as areas, which show every mixture of blocks.
const AREAS_MAX: usize = 2;
const NAME_WIDTH: usize = 34;

/// Charts where copies are: areas for few files, a row each for many.
pub fn strips(findings: &Findings, scanned: &Scanned) -> Vec<Chart> {
    match findings.strips.len() {
        0 => Vec::new(),
        1..=AREAS_MAX => {
            let areas = findings.strips.iter().enumerate();
            areas.map(|(index, strip)| area(index, strip, scanned)).collect()
        }
        _ => vec![rows(&findings.strips, scanned)],
    }
}

/// Charts which share of a row's contents the file of the column has too.
pub fn matrix(findings: &Findings, scanned: &Scanned) -> Option<Chart> {
    let matrix = &findings.matrix;
    let count = matrix.files.len();
    if count < 2 {
        return None;
    }
    let names = words::names(scanned, matrix.files.iter().copied(), NAME_WIDTH);
    let mut cells = Vec::new();
    for (row, (contents, name)) in matrix.contents.iter().zip(&names).enumerate() {
        let all = contents[row];
        for (column, &both) in contents.iter().enumerate() {
            // A file shares everything with itself, which would outshine everything else.
            if row == column || all <= 0.0 || both <= 0.0 {
                continue;
            }
            let part = both / all;
            let text = format!("{} of {name}", percent(part));
            cells.push(cell(column as f64, row, part.clamp(0.0, 1.0), text));
        }
    }
    let mut about = "Of the contents of the file in the row, the part that the file in the column \
                     holds too; zeros left out."
        .to_owned();
    if count < scanned.files.len() {
        about.extend([" The ", &count.to_string(), " files that share most."]);
    }
    let height = 320.max(160 + if count > 24 { 13 } else { 26 } * count as u16);
    let axis = || Axis::names("", names.clone());
    let chart = Chart::new("shared", "Contents that files share", axis(), axis());
    let chart = chart.about(about).wide(height);
    // If no file shares anything, that is an answer too: an empty map.
    Some(chart.layer("held too", KINDS[0], Form::Heat(cells)))
}

/// A cell of a map whose rows and columns are names.
fn cell(column: f64, row: usize, heat: f64, text: String) -> HeatCell {
    let row = row as f64;
    HeatCell { x: (column - 0.5, column + 0.5), y: (row - 0.5, row + 0.5), heat, text }
}

/// Charts one file, with its blocks of each kind stacked.
fn area(index: usize, strip: &Strip, scanned: &Scanned) -> Chart {
    let bins = merged(strip, COLUMNS_MAX);
    let name = words::name(scanned, strip.file, NAME_WIDTH);
    let y = Axis::new("part of the blocks", Measure::Share);
    let chart =
        Chart::new(format!("along-{}", index + 1), format!("Along the file: {name}"), place(), y)
            .about("What the blocks are, from the beginning of the file to its end.");
    let kinds = words::PARTS.into_iter().zip(KINDS).enumerate();
    kinds.fold(chart, |chart, (kind, (name, color))| {
        if bins.iter().all(|blocks| blocks[kind] == 0) {
            return chart;
        }
        // Steps: each part extends from its beginning to its end.
        let points = bins.iter().enumerate().flat_map(|(bin, blocks)| {
            let part = blocks[kind] as f64 / blocks.iter().sum::<u64>().max(1) as f64;
            let at = |bin: usize| bin as f64 / bins.len() as f64;
            [at(bin), at(bin + 1)].map(|x| Point::from((x, Some(part))))
        });
        chart.layer(name, color, Form::Area(points.collect()))
    })
}

/// Charts a row for each file, with each part in the shade of the kind that most of its blocks
/// have.
fn rows(strips: &[Strip], scanned: &Scanned) -> Chart {
    let shown = words::largest(strips, ROWS_MAX);
    let names = words::names(scanned, shown.iter().map(|strip| strip.file), NAME_WIDTH);
    let mut cells = Vec::new();
    for (row, strip) in shown.iter().enumerate() {
        let kinds: Vec<Option<u8>> = resampled(strip).iter().map(most).collect();
        let mut from = 0;
        // Adjacent parts of one kind form one cell.
        for part in kinds.chunk_by(|a, b| a == b) {
            let to = from + part.len();
            let x = (from as f64 / COLUMNS_MAX as f64, to as f64 / COLUMNS_MAX as f64);
            from = to;
            let Some(kind) = part[0] else { continue };
            let y = (row as f64 - 0.45, row as f64 + 0.45);
            let text = words::PARTS[usize::from(kind)].to_owned();
            cells.push(HeatCell { x, y, heat: f64::from(kind) / 3.0, text });
        }
    }
    let row_height = match shown.len() {
        ..=24 => 24,
        25..=60 => 15,
        _ => 11,
    };
    let mut about = "Each part has the shade of what most of its blocks are, from palest to \
                     strongest: zeros, unique, same-file duplicates, cross-file duplicates; empty \
                     where none was kept."
        .to_owned();
    if strips.len() > shown.len() {
        let (shown, all) = (shown.len(), scanned.files.len());
        about.extend([format!(" The {shown} largest of {all} files.")]);
    }
    let height = 280.max(90 + row_height * shown.len() as u16);
    let names = Axis::names("", names);
    let title = "Where copies lie in each file";
    let chart = Chart::new("copies", title, place(), names).about(about).wide(height);
    chart.layer("kind", KINDS[0], Form::Heat(cells))
}

fn place() -> Axis {
    Axis::new("place in the file", Measure::Share)
}

/// Merges a strip into at most `columns` parts, by kind in the order of [`words::PARTS`].
fn merged(strip: &Strip, columns: usize) -> Vec<[u64; 4]> {
    let run = strip.bins.len().div_ceil(columns).max(1);
    strip.bins.chunks(run).map(sum).collect()
}

/// Returns exactly as many parts as a row has columns; those of a short file are wider than one.
fn resampled(strip: &Strip) -> Vec<[u64; 4]> {
    let bins = strip.bins.len();
    let part = |column: usize| {
        let from = column * bins / COLUMNS_MAX;
        let to = ((column + 1) * bins / COLUMNS_MAX).max(from + 1).min(bins);
        sum(strip.bins.get(from..to).unwrap_or_default())
    };
    (0..COLUMNS_MAX).map(part).collect()
}

fn sum(bins: &[StripBin]) -> [u64; 4] {
    bins.iter().fold([0; 4], |mut sum, bin| {
        let blocks = [bin.zero, bin.stored, bin.same_file, bin.cross_file];
        sum.iter_mut().zip(blocks).for_each(|(sum, blocks)| *sum += u64::from(blocks));
        sum
    })
}

fn most(blocks: &[u64; 4]) -> Option<u8> {
    let most = (0..4_u8).max_by_key(|&kind| blocks[usize::from(kind)])?;
    (blocks[usize::from(most)] > 0).then_some(most)
}
