//! Maps: where in files copies are, and which files share contents.

use blockstone_base::table::Measure;
use blockstone_reduce::counter::Strip;
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use blockstone_report::chart::{Axis, Chart, Form, HeatCell, Point};
use blockstone_report::percent;

use super::charts::KINDS;
use super::{strips, words};

/// Maximum number of parts of a file; each is a few pixels wide.
const COLUMNS_MAX: usize = 120;
/// Up to this many files are also drawn as areas, which show every mixture of blocks.
const AREAS_MAX: usize = 2;
const NAME_WIDTH: usize = 34;

/// Charts what the blocks of each file are, if the files are few.
pub fn areas(findings: &Findings, scanned: &Scanned) -> Vec<Chart> {
    if findings.strips.len() > AREAS_MAX {
        return Vec::new();
    }
    let strips = findings.strips.iter().enumerate();
    strips.map(|(index, strip)| area(index, strip, scanned)).collect()
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
    let x = Axis::new("place in the file", Measure::Share);
    let y = Axis::new("part of the blocks", Measure::Share);
    let chart = Chart::new(format!("along-{}", index + 1), format!("Along the file: {name}"), x, y)
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

/// Merges a strip into at most `columns` parts, by kind in the order of [`words::PARTS`].
fn merged(strip: &Strip, columns: usize) -> Vec<[u64; 4]> {
    let run = strip.bins.len().div_ceil(columns).max(1);
    strip.bins.chunks(run).map(strips::sum).collect()
}
