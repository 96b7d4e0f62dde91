//! Charts of ratios: grids, kinds of blocks, compressors, masked fields, occurrences.

use blockstone_base::table::Measure;
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{Class, CompressionFigures, Findings};
use blockstone_reduce::grid::Grid;
use blockstone_reduce::mask::Mask;
use blockstone_reduce::page::Field;
use blockstone_report::block_size;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};

use super::words;

/// Colors of [`words::PARTS`], in every chart.
pub const KINDS: [Color; 4] = [Color::Grey, Color::Series(0), Color::Series(1), Color::Series(2)];

/// Charts deduplication by block size, with a bar for each offset.
pub fn dedup(findings: &Findings) -> Chart {
    let mut offsets: Vec<u32> = findings.grids.iter().map(|g| g.grid.offset_bytes).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut bars = Bars::default();
    for &offset in &offsets {
        let here = findings.grids.iter().filter(|g| g.grid.offset_bytes == offset);
        let points = here.filter_map(|figures| {
            Some((block_size(figures.grid.block_bytes.into()), figures.dedup_ratio?))
        });
        bars.add(format!("at offset {}", block_size(offset.into())), points);
    }
    let sampled = findings.grids.iter().any(|g| g.share < 1.0);
    let about = format!(
        "Blocks for each different content. Bars of one size that differ tell that copies lie at \
         distances that are no multiple of it.{}",
        if sampled { " Whiskers: 99 % confidence." } else { "" }
    );
    bars.chart("dedup-by-offset", "Deduplication by block size and offset", about, "block size")
}

pub fn kinds(findings: &Findings) -> Chart {
    let grids: Vec<_> = findings.grids.iter().filter(|g| g.blocks > 0).collect();
    let x = Axis::names("grid", grids.iter().map(|figures| words::grid(figures.grid)).collect());
    let y = Axis::new("part of the blocks", Measure::Share);
    let chart = Chart::new("kinds", "What the blocks are", x, y)
        .about("An array stores what is unique, and one block of zeros; the rest are references.");
    let parts: Vec<[f64; 4]> = grids.iter().map(|figures| words::parts(figures)).collect();
    let layers = words::PARTS.into_iter().zip(KINDS).enumerate();
    layers.fold(chart, |chart, (kind, (name, color))| {
        let points = parts.iter().enumerate();
        let points = points.map(|(at, parts)| (at as f64, Some(parts[kind])).into()).collect();
        chart.layer(name, color, Form::Bars { points, stacked: true })
    })
}

pub fn compression(findings: &Findings) -> [Chart; 2] {
    let (mut steps, mut classes) = (Bars::default(), Bars::default());
    let finest = findings.compression.iter().map(|figures| figures.granule_bytes).min();
    for row in findings.compression.chunk_by(|a, b| a.codec == b.codec) {
        let ratio = |figures: &CompressionFigures| figures.interval;
        let name = row[0].codec.to_string();
        let all = row.iter().filter(|figures| figures.class == Class::All);
        let by_step = all.map(|f| (block_size(f.granule_bytes.into()), ratio(f)));
        steps.add(name.clone(), by_step);
        let fine = row.iter().filter(|figures| Some(figures.granule_bytes) == finest);
        classes.add(name, fine.map(|figures| (figures.class.name().to_owned(), ratio(figures))));
    }
    let block = block_size(findings.model.block_bytes.into());
    let by_step = format!(
        "Blocks of {block}. The coarser the step, the more of what a compressor gains is lost to \
         rounding."
    );
    let by_class = format!(
        "Blocks of {block} in the finest step. What shrinks far more than the rest may be filler \
         or empty pages."
    );
    [
        steps.chart(
            "compression-by-step",
            "Compression by step of allocation",
            by_step,
            "step of allocation, bytes",
        ),
        classes.chart("compression-by-kind", "Compression by kind of content", by_class, ""),
    ]
}

/// Charts the ladder of masks, and each class of fields alone.
pub fn fields(findings: &Findings) -> Vec<Chart> {
    let occurs = |field: &Field| findings.field_costs.iter().any(|cost| cost.field == *field);
    let known: Vec<Field> = Field::ALL.iter().copied().filter(occurs).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let first_offset = findings.primary().grid.offset_bytes;
    let under = |grid: Grid, mask: Mask| {
        let found = findings.masked.iter().find(|m| m.grid == grid && m.mask == mask);
        found.map(|masked| masked.dedup_ratio)
    };
    let mut ladder = Bars::default();
    for figures in findings.grids.iter().filter(|g| g.grid.offset_bytes == first_offset) {
        let start = figures.dedup_ratio.map(|ratio| ("unchanged".to_owned(), ratio));
        let steps = known.iter().filter_map(|&field| {
            let ratio = under(figures.grid, Mask::first(field.index() + 1))?;
            Some((format!("− {}", words::field(field)), ratio))
        });
        let name = format!("blocks of {}", block_size(figures.grid.block_bytes.into()));
        ladder.add(name, start.into_iter().chain(steps));
    }
    let mut alone = Bars::default();
    let primary = findings.primary();
    let nothing = under(primary.grid, Mask::ALL).map(|ratio| ("none left".to_owned(), ratio));
    let each = known.iter().filter_map(|&field| {
        let ratio = under(primary.grid, Mask::all_but(field))?;
        Some((format!("only {}", words::field(field)), ratio))
    });
    let all = primary.dedup_ratio.map(|ratio| ("all left".to_owned(), ratio));
    alone.add(String::new(), nothing.into_iter().chain(each).chain(all));
    let by_steps = "Each step sets one more class of fields to zero, from left to right. Where the \
                    bars rise, that class kept equal rows apart.";
    let by_class = "All fields but one class set to zero: how far that class alone would hold \
                    deduplication down.";
    vec![
        ladder.chart("masks", "Deduplication without header fields", by_steps.to_owned(), ""),
        alone.chart("fields-alone", "If one class of fields were left", by_class.to_owned(), ""),
    ]
}

pub fn occurrences(findings: &Findings) -> Chart {
    let names = findings.occurrences.iter().map(words::times).collect();
    let bars = |value: fn(&blockstone_reduce::findings::Occurrences) -> f64| {
        let points = findings.occurrences.iter().enumerate();
        let points = points.map(|(at, o)| (at as f64, Some(value(o))).into()).collect();
        Form::Bars { points, stacked: false }
    };
    let x = Axis::names("times that a content occurs", names);
    let y = Axis::new("how many", Measure::Count).log();
    Chart::new("how-often", "How often contents occur", x, y)
        .about(
            "On a logarithmic scale. Zeros are left out: they occur most often, and cost nothing \
             to find.",
        )
        .layer("contents", Color::Series(0), bars(|o| o.contents))
        .layer("blocks that they are", Color::Series(1), bars(|o| o.blocks))
}

/// Groups of bars of ratios, with whiskers if they were estimated.
#[derive(Default)]
struct Bars {
    groups: Vec<String>,
    layers: Vec<(String, Vec<Point>)>,
}

impl Bars {
    /// Adds one bar to every group that `points` names.
    fn add(&mut self, name: String, points: impl Iterator<Item = (String, Interval)>) {
        let mut bars = Vec::new();
        for (group, ratio) in points {
            let at = self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
                self.groups.push(group);
                self.groups.len() - 1
            });
            let interval = (!ratio.is_exact()).then_some((ratio.low, ratio.high));
            let y = Some(ratio.value).filter(|value| value.is_finite());
            bars.push(Point { x: at as f64, y, interval, condemned: false });
        }
        self.layers.push((name, bars));
    }

    fn chart(
        self,
        name: &'static str,
        title: &'static str,
        about: String,
        x: &'static str,
    ) -> Chart {
        let y = Axis::new("ratio", Measure::ToOne);
        let chart = Chart::new(name, title, Axis::names(x, self.groups), y).about(about);
        self.layers.into_iter().zip(0..).fold(chart, |chart, ((name, points), color)| {
            chart.layer(name, Color::Series(color), Form::Bars { points, stacked: false })
        })
    }
}
