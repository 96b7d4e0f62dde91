//! Charts of ratios: grids, kinds of blocks, compressors, masked fields, occurrences.

use blockstone_base::units::three_digits;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{Class, CompressionFigures, Findings, Occurrences};
use blockstone_reduce::grid::Grid;
use blockstone_reduce::mask::Mask;
use blockstone_reduce::page::{FIELDS, Field};
use plotly::common::{Anchor, Font, HoverInfo, Marker, Orientation, TextPosition};
use plotly::layout::{Axis, AxisType, BarMode, Layout, Legend, RangeMode, TraceOrder};
use plotly::{Bar, Trace};

use crate::format::block_size;
use crate::html::charts::{self, BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, RED};
use crate::reduce;

const COLORS: [&str; 6] = [BLUE, ORANGE, GREEN, PURPLE, RED, GREY];
/// Of [`reduce::PARTS`], in every chart.
pub const KINDS: [&str; 4] = [GREY, BLUE, ORANGE, PURPLE];
/// With more bars, numbers on them would touch.
const NUMBERED_BARS_MAX: usize = 18;

/// Deduplication by block size, a bar an offset.
pub fn dedup(findings: &Findings) -> Option<Chart> {
    let mut offsets: Vec<u32> = findings.grids.iter().map(|g| g.grid.offset_bytes).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut bars = Bars::new(findings.grids.len());
    for &offset in &offsets {
        let here = findings.grids.iter().filter(|g| g.grid.offset_bytes == offset);
        let points = here.filter_map(|figures| {
            Some((block_size(figures.grid.block_bytes.into()), figures.dedup_ratio?))
        });
        bars.add(format!("at offset {}", block_size(offset.into())), points);
    }
    let sampled = findings.grids.iter().any(|g| g.share < 1.0);
    let caption = format!(
        "Blocks for each different content. Bars of one size that differ tell that copies lie at \
         distances that are no multiple of it.{}",
        if sampled { " Whiskers: 99 % confidence." } else { "" }
    );
    bars.chart("Deduplication by block size and offset", caption, "block size")
}

/// What the blocks of every grid are.
pub fn kinds(findings: &Findings) -> Option<Chart> {
    // The first row of a chart of lying bars is its lowest.
    let grids: Vec<_> = findings.grids.iter().rev().filter(|g| g.blocks > 0).collect();
    if grids.is_empty() {
        return None;
    }
    let names: Vec<String> = grids.iter().map(|figures| reduce::grid(figures.grid)).collect();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (kind, (name, color)) in reduce::PARTS.into_iter().zip(KINDS).enumerate() {
        let parts: Vec<f64> = grids.iter().map(|g| reduce::parts(g)[kind] * 100.0).collect();
        let texts = parts.iter().zip(&names);
        let texts = texts.map(|(part, grid)| format!("{grid}: {part:.1} % {name}")).collect();
        let bar = Bar::new(parts, names.clone())
            .name(name)
            .orientation(Orientation::Horizontal)
            .hover_text_array(texts)
            .hover_info(HoverInfo::Text)
            .marker(Marker::new().color(color));
        traces.push(bar);
    }
    let layout = Layout::new()
        .bar_mode(BarMode::Stack)
        .legend(in_order())
        .x_axis(Axis::new().title("part of the blocks, %").range(vec![0.0, 100.0]))
        .y_axis(Axis::new().type_(AxisType::Category).auto_margin(true).dtick(1.0));
    let caption = "An array stores what is unique, and one block of zeros; the rest are \
                   references."
        .to_owned();
    let height = 340.max(100 + 20 * grids.len() as u32);
    Some(Chart::new("What the blocks are", caption, traces, layout).high(height))
}

/// A legend below the chart that names the parts as they lie, from the left.
pub fn in_order() -> Legend {
    Legend::new()
        .orientation(Orientation::Horizontal)
        .x(0.0)
        .y_anchor(Anchor::Top)
        .trace_order(TraceOrder::Normal)
}

/// Compressors by step, and by what they compress.
pub fn compression(findings: &Findings) -> Vec<Chart> {
    let count = findings.compression.len();
    let mut steps =
        Bars::new(findings.compression.iter().filter(|f| f.class == Class::All).count());
    let mut classes = Bars::new(count / 4);
    let finest = findings.compression.iter().map(|figures| figures.granule_bytes).min();
    for row in findings.compression.chunk_by(|a, b| a.codec == b.codec) {
        let ratio = |figures: &CompressionFigures| Interval::exact(figures.ratio);
        let name = row[0].codec.to_string();
        let all = row.iter().filter(|figures| figures.class == Class::All);
        steps.add(
            name.clone(),
            all.map(|figures| (block_size(figures.granule_bytes.into()), ratio(figures))),
        );
        let fine = row.iter().filter(|figures| Some(figures.granule_bytes) == finest);
        classes.add(name, fine.map(|figures| (in_lines(figures.class.name()), ratio(figures))));
    }
    let block = block_size(findings.model.block_bytes.into());
    let by_step = format!(
        "Blocks of {block}. The coarser the step, the more of what a compressor gains is rounded \
         away."
    );
    let by_class = format!(
        "Blocks of {block} in the finest step. What shrinks far more than the rest may be filler \
         or empty pages."
    );
    [
        steps.chart("Compression by step of allocation", by_step, "step of allocation, bytes"),
        classes.chart("Compression by kind of content", by_class, ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The ladder of masks, and each class of fields alone.
pub fn fields(findings: &Findings) -> Vec<Chart> {
    let occurs = |field: &Field| findings.field_costs.iter().any(|cost| cost.field == *field);
    let known: Vec<Field> = FIELDS.into_iter().filter(occurs).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let first_offset = findings.primary().grid.offset_bytes;
    let plain = findings.grids.iter().filter(|g| g.grid.offset_bytes == first_offset);
    let under = |grid: Grid, mask: Mask| {
        let found = findings.masked.iter().find(|m| m.grid == grid && m.mask == mask);
        found.map(|masked| masked.dedup_ratio)
    };
    let mut ladder = Bars::new(plain.clone().count() * (known.len() + 1));
    for figures in plain {
        let start = figures.dedup_ratio.map(|ratio| ("as it is".to_owned(), ratio));
        let steps = known.iter().filter_map(|field| {
            let ratio = under(figures.grid, Mask::first(field.index() + 1))?;
            Some((format!("− {}", below(*field)), ratio))
        });
        let name = format!("blocks of {}", block_size(figures.grid.block_bytes.into()));
        ladder.add(name, start.into_iter().chain(steps));
    }
    let mut alone = Bars::new(known.len() + 2);
    let primary = findings.primary();
    let nothing = under(primary.grid, Mask::ALL).map(|ratio| ("none left".to_owned(), ratio));
    let each = known.iter().filter_map(|&field| {
        Some((format!("only<br>{}", below(field)), under(primary.grid, Mask::all_but(field))?))
    });
    let all = primary.dedup_ratio.map(|ratio| ("all left".to_owned(), ratio));
    alone.add(String::new(), nothing.into_iter().chain(each).chain(all));
    let by_steps = "Each step sets one more class of fields to zero, from left to right. Where the \
                    bars rise, that class kept equal rows apart.";
    let by_class = "All fields but one class set to zero: how far that class alone would hold \
                    deduplication down.";
    [
        ladder.chart("Deduplication without header fields", by_steps.to_owned(), ""),
        alone.chart("If one class of fields were left", by_class.to_owned(), ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How many contents occur how often.
pub fn occurrences(findings: &Findings) -> Option<Chart> {
    if findings.occurrences.is_empty() {
        return None;
    }
    let names: Vec<String> = findings.occurrences.iter().map(times).collect();
    let bars = |name: &str, color: &'static str, values: Vec<f64>| {
        Bar::new(names.clone(), values).name(name).marker(Marker::new().color(color))
    };
    let contents = findings.occurrences.iter().map(|o| o.contents).collect();
    let blocks = findings.occurrences.iter().map(|o| o.blocks).collect();
    let traces: Vec<Box<dyn Trace>> =
        vec![bars("contents", BLUE, contents), bars("blocks that they are", ORANGE, blocks)];
    let most = findings.occurrences.iter().map(|o| o.blocks).fold(10.0, f64::max);
    let layout = Layout::new()
        .bar_mode(BarMode::Group)
        .x_axis(Axis::new().type_(AxisType::Category).title("times that a content occurs"))
        .y_axis(
            Axis::new()
                .type_(AxisType::Log)
                .title("how many")
                .range(vec![-0.3, most.log10() + 0.2])
                .dtick(1.0)
                .tick_format("~s"),
        );
    let caption = "On a logarithmic scale. Zeros are left out: they occur most often, and cost \
                   nothing to find."
        .to_owned();
    Some(Chart::new("How often contents occur", caption, traces, layout))
}

/// A class of fields in one or two lines.
fn below(field: Field) -> String {
    reduce::field(field).replace(' ', "<br>")
}

/// A ratio in the room above a bar.
fn number(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.2}") } else { three_digits(ratio) }
}

/// The last words of a name below its first, so that names lie level beside each other.
fn in_lines(name: &str) -> String {
    name.replacen(' ', "<br>", 1)
}

/// `3–4`.
pub fn times(occurrences: &Occurrences) -> String {
    if occurrences.from == occurrences.to {
        return occurrences.from.to_string();
    }
    format!("{}–{}", occurrences.from, occurrences.to)
}

/// Groups of bars of ratios, with whiskers where they were estimated.
struct Bars {
    traces: Vec<Box<dyn Trace>>,
    are_numbered: bool,
    most: f64,
}

impl Bars {
    /// Of about so many bars.
    fn new(count: usize) -> Self {
        Self { traces: Vec::new(), are_numbered: count <= NUMBERED_BARS_MAX, most: 1.0 }
    }

    /// One bar in every group.
    fn add(&mut self, name: String, points: impl Iterator<Item = (String, Interval)>) {
        let (names, ratios): (Vec<String>, Vec<Interval>) = points.unzip();
        if names.is_empty() {
            return;
        }
        let color = COLORS[self.traces.len() % COLORS.len()];
        let texts = names.iter().zip(&ratios).map(|(group, ratio)| {
            let (value, certainty) = (reduce::ratio(ratio.value), reduce::certainty(ratio));
            let sampled = if ratio.is_exact() { String::new() } else { format!("<br>{certainty}") };
            format!("{} {name}<br>{value}{sampled}", group.replace("<br>", " "))
        });
        self.most = ratios.iter().map(|ratio| ratio.high).fold(self.most, f64::max);
        let mut bar = Bar::new(names.clone(), ratios.iter().map(|ratio| ratio.value).collect())
            .hover_text_array(texts.collect())
            .hover_info(HoverInfo::Text)
            .marker(Marker::new().color(color));
        bar =
            if name.is_empty() { bar.show_legend(false) } else { bar.name(name).show_legend(true) };
        if ratios.iter().all(Interval::is_exact) {
            if self.are_numbered {
                let numbers = ratios.iter().map(|ratio| number(ratio.value)).collect();
                bar = bar.text_array(numbers).text_position(TextPosition::Outside).text_angle(0.0);
            }
        } else {
            let ends = ratios.iter().map(|ratio| (ratio.value, Some((ratio.low, ratio.high))));
            bar = bar.error_y(charts::errors(ends));
        }
        self.traces.push(bar);
    }

    /// The chart; none if there are no bars.
    fn chart(self, title: &str, caption: String, x: &str) -> Option<Chart> {
        if self.traces.is_empty() {
            return None;
        }
        let x = match x {
            // Words, which plotly.js would rather turn than let touch.
            "" => Axis::new().tick_angle(0.0).tick_font(Font::new().size(10)),
            title => Axis::new().title(title),
        };
        let layout =
            Layout::new().bar_mode(BarMode::Group).x_axis(x.type_(AxisType::Category)).y_axis(
                Axis::new()
                    .title("ratio")
                    .tick_suffix(":1")
                    .range_mode(RangeMode::ToZero)
                    .range(vec![0.0, self.most * 1.12]),
            );
        Some(Chart::new(title, caption, self.traces, layout))
    }
}
