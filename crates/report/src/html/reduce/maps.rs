//! Maps: where in files copies lie, and which files share contents.

use blockstone_reduce::counter::{Strip, StripBin};
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use plotly::common::{
    Anchor, ColorBar, ColorScale, ColorScaleElement, Font, Line, LineShape, Mode, ThicknessMode,
};
use plotly::layout::{Axis, AxisType, HoverMode, Layout};
use plotly::{HeatMap, Scatter, Trace};

use super::charts::{KINDS, in_order};
use crate::html::charts::{self, Chart};
use crate::reduce;

/// With more files, a row is too thin to have a name.
const ROWS_MAX: usize = 160;
/// Parts of a row; a bar of a few pixels each.
const COLUMNS_MAX: usize = 120;
/// Up to so many files have their blocks drawn as areas, which show every mixture.
const AREAS_MAX: usize = 2;
const NAME_WIDTH: usize = 34;

/// Where copies lie: areas for few files, a row each for many.
pub fn strips(findings: &Findings, scanned: &Scanned) -> Vec<Chart> {
    match findings.strips.len() {
        0 => Vec::new(),
        1..=AREAS_MAX => findings.strips.iter().map(|strip| area(strip, scanned)).collect(),
        _ => vec![rows(&findings.strips, scanned)],
    }
}

/// Which part of a row's contents the file in the column holds too.
pub fn matrix(findings: &Findings, scanned: &Scanned) -> Option<Chart> {
    let matrix = &findings.matrix;
    let count = matrix.files.len();
    if count < 2 {
        return None;
    }
    let names = labels(scanned, matrix.files.iter().copied());
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let part = |row: usize, column: usize| {
        let all = matrix.contents[row][row];
        // A file shares everything with itself, which would outshine all else.
        (row != column && all > 0.0).then(|| matrix.contents[row][column] / all * 100.0)
    };
    let cells =
        (0..count).rev().map(|row| (0..count).map(|column| part(row, column)).collect()).collect();
    let z: Vec<Vec<Option<f64>>> = cells;
    let upwards: Vec<String> = names.iter().rev().cloned().collect();
    let trace = HeatMap::new(names, upwards, z)
        .color_scale(ColorScale::Vector(charts::heat_scale()))
        .zmin(0.0)
        .zmax(100.0)
        .x_gap(1)
        .y_gap(1)
        .hover_template("%{y}<br>%{z:.1f} % of its contents are in<br>%{x}<extra></extra>")
        .color_bar(bar().title("held too").tick_suffix(" %"));
    let font = if count > 24 { 9 } else { 11 };
    // Names below each other need no more room than the cell above them.
    let angle = if count * longest > 120 { -45.0 } else { 0.0 };
    let axis = || {
        let font = Font::new().size(font);
        Axis::new().type_(AxisType::Category).auto_margin(true).tick_font(font).show_grid(false)
    };
    let layout =
        Layout::new().x_axis(axis().dtick(1.0).tick_angle(angle)).y_axis(axis().dtick(1.0));
    let mut caption = "Of the contents of the file in the row, the part that the file in the \
                       column holds too; zeros left out."
        .to_owned();
    if count < scanned.files.len() {
        let more = format!(" The {count} files that share most.");
        caption.push_str(&more);
    }
    let height = 320.max(160 + if count > 24 { 13 } else { 26 } * count as u32);
    Some(Chart::new("Contents that files share", caption, vec![trace], layout).wide(height))
}

/// One file, its blocks of each kind above each other.
fn area(strip: &Strip, scanned: &Scanned) -> Chart {
    let bins = merged(strip, COLUMNS_MAX);
    // Steps: each part from its beginning on, and the last one to the end of the file.
    let xs: Vec<f64> = (0..=bins.len()).map(|bin| bin as f64 / bins.len() as f64 * 100.0).collect();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (kind, (name, color)) in reduce::PARTS.into_iter().zip(KINDS).enumerate() {
        let part = |blocks: &[u64; 4]| {
            let all = blocks.iter().sum::<u64>().max(1);
            blocks[kind] as f64 / all as f64 * 100.0
        };
        let ys: Vec<f64> = bins.iter().chain(bins.last()).map(part).collect();
        if ys.iter().all(|&y| y == 0.0) {
            continue;
        }
        let trace = Scatter::new(xs.clone(), ys)
            .name(name)
            .mode(Mode::Lines)
            .stack_group("kinds")
            .fill_color(color)
            .show_legend(true)
            .hover_template("%{y:.1f} %")
            .line(Line::new().color(color).width(0.0).shape(LineShape::Hv));
        traces.push(trace);
    }
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .legend(in_order())
        .x_axis(place_axis())
        .y_axis(Axis::new().title("part of the blocks, %").range(vec![0.0, 100.0]));
    let name = reduce::name(scanned, strip.file, NAME_WIDTH);
    let caption = "What the blocks are, from the beginning of the file to its end.".to_owned();
    Chart::new(&format!("Along the file: {name}"), caption, traces, layout)
}

/// A row a file, each part in the colour of what most of its blocks are.
fn rows(strips: &[Strip], scanned: &Scanned) -> Chart {
    let shown = reduce::largest(strips, ROWS_MAX);
    let upwards = || shown.iter().rev().copied();
    let names = labels(scanned, upwards().map(|strip| strip.file));
    let row = |strip: &Strip| -> Vec<Option<u8>> { resampled(strip).iter().map(most).collect() };
    let z: Vec<Vec<Option<u8>>> = upwards().map(row).collect();
    let columns: Vec<f64> = (0..COLUMNS_MAX).map(|bin| middle(bin, COLUMNS_MAX)).collect();
    // Each colour from its number's lower half to its upper: no shades between them.
    let scale = KINDS.iter().enumerate().flat_map(|(kind, color)| {
        let from = kind as f64 / KINDS.len() as f64;
        let to = (kind + 1) as f64 / KINDS.len() as f64;
        [ColorScaleElement(from, (*color).to_owned()), ColorScaleElement(to, (*color).to_owned())]
    });
    let trace = HeatMap::new(columns, names, z)
        .color_scale(ColorScale::Vector(scale.collect()))
        .zmin(-0.5)
        .zmax(3.5)
        .y_gap(1)
        .hover_template("%{y}<br>at %{x:.0f} % of it<extra></extra>")
        .color_bar(bar().tick_vals(vec![0.0, 1.0, 2.0, 3.0]).tick_text(vec![
            "zero",
            "unique",
            "same-file<br>duplicate",
            "cross-file<br>duplicate",
        ]));
    let (font, row_height) = match shown.len() {
        ..=24 => (11, 24),
        25..=60 => (10, 15),
        _ => (8, 11),
    };
    let names_axis = Axis::new()
        .type_(AxisType::Category)
        .auto_margin(true)
        .dtick(1.0)
        .tick_font(Font::new().size(font))
        .show_grid(false);
    let layout = Layout::new().x_axis(place_axis().show_grid(false)).y_axis(names_axis);
    let mut caption =
        "Each part has the colour of what most of its blocks are; empty where none was kept."
            .to_owned();
    if strips.len() > shown.len() {
        let (shown, all) = (shown.len(), scanned.files.len());
        let more = format!(" The {shown} largest of {all} files.");
        caption.push_str(&more);
    }
    let height = 280.max(90 + row_height * shown.len() as u32);
    Chart::new("Where copies lie in each file", caption, vec![trace], layout).wide(height)
}

/// Names that plotly.js shows as they are.
fn labels(scanned: &Scanned, files: impl Iterator<Item = u32>) -> Vec<String> {
    let names = reduce::names(scanned, files, NAME_WIDTH);
    // A name that is a number would be one to the axis.
    names.iter().map(|name| format!("{} ", charts::inert(name))).collect()
}

fn bar() -> ColorBar {
    ColorBar::new()
        .thickness(12)
        .len_mode(ThicknessMode::Pixels)
        .len(180)
        .y(1.0)
        .y_anchor(Anchor::Top)
}

fn place_axis() -> Axis {
    Axis::new().title("place in the file, %").range(vec![0.0, 100.0])
}

/// The middle of a part, in percent of the file.
fn middle(bin: usize, bins: usize) -> f64 {
    (bin as f64 + 0.5) / bins as f64 * 100.0
}

/// Parts of at most so many columns, by kind in the order of [`reduce::PARTS`].
fn merged(strip: &Strip, columns: usize) -> Vec<[u64; 4]> {
    let run = strip.bins.len().div_ceil(columns).max(1);
    strip.bins.chunks(run).map(sum).collect()
}

/// Exactly as many parts as a row has columns; those of a short file are wider than one.
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

/// The kind that most are of.
fn most(blocks: &[u64; 4]) -> Option<u8> {
    let most = (0..4_u8).max_by_key(|&kind| blocks[usize::from(kind)])?;
    (blocks[usize::from(most)] > 0).then_some(most)
}
