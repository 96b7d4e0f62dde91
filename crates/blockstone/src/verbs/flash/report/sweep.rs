//! Report of a sweep: write amplification compared with its formula, and wear.

use std::collections::BTreeSet;

use blockstone_base::row;
use blockstone_base::table::{Heading, Measure, Row, Table, count, ratio, share, text};
use blockstone_flash::sweep::{Setting, Swept};
use blockstone_record::manifest::End;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::{Report, Section, percent};

use super::{base_report, documents};

const POINTS: &[Heading] = &[
    share("over_provisioning", "OP", "Raw ÷ visible − 1."),
    text("policy", "policy", "How the block to collect is chosen."),
    count("pages_per_block", "pages/block", "Pages of a block."),
    share("effective_spare", "spare", "The part of the usable capacity that is spare."),
    ratio("wa", "WA", "Programs ÷ host pages, simulated."),
    ratio("wa_analytic", "formula", "The same by formula."),
    count("wa_error_percent", "error, %", "Simulated − formula, of the formula."),
    count("iops_steady", "steady IOPS", "Writes of a page per second that the device sustains."),
    text("engine", "engine", "How pages were tracked."),
];

/// Returns the value of a column that is shown only if it varies.
type Of = fn(&Setting) -> f64;

const RESERVE: Heading = count("reserve_blocks", "reserve", "Free blocks kept for collection.");
const BAD: Heading = share("bad_blocks", "bad blocks", "The part of the blocks that is bad.");

const WEAR: &[Heading] = &[
    text("levelling", "levelling", "Erases that a block may lag behind."),
    share("over_provisioning", "OP", "Raw ÷ visible − 1."),
    text("policy", "policy", "How the block to collect is chosen."),
    count("pages_per_block", "pages/block", "Pages of a block."),
    count("erases_least", "least erases", "Of the block with the fewest, over the whole run."),
    count("erases_mean", "mean", "Of the mean block."),
    count("erases_most", "most", "Of the block with the most."),
    count("erases_spread", "spread", "Most − least."),
    ratio("wa", "WA", "Programs ÷ host pages."),
    share("levelled_share", "moved to level", "Pages that wear levelling moved ÷ all programs."),
];

/// Returns the report of a sweep, with the write rate that the device of the command line would
/// sustain.
pub fn sweep(points: &[Swept], iops: &[Option<f64>], seed: u64, signal: Option<&str>) -> Report {
    let is_varied = |of: fn(&Setting) -> bool| points.iter().any(|point| of(&point.setting));
    let levels = is_varied(|setting| setting.levelling.is_some());
    let mut extra: Vec<(Heading, Of)> = Vec::new();
    if is_varied(|setting| setting.reserve_blocks != 1) {
        extra.push((RESERVE, |setting| setting.reserve_blocks.into()));
    }
    if is_varied(|setting| setting.bad_blocks > 0.0) {
        extra.push((BAD, |setting| setting.bad_blocks));
    }
    let rows = points.iter().zip(iops).map(|(point, iops)| {
        let Setting { over_provisioning, policy, pages_per_block, .. } = point.setting;
        let (policy, error) = (policy.to_string(), point.wa_error.map(|error| error * 100.0));
        let mut row: Row = row![
            over_provisioning,
            policy,
            pages_per_block,
            point.effective_spare,
            point.wa,
            point.wa_analytic,
            error,
            *iops,
            point.engine
        ];
        row.cells.extend(extra.iter().map(|(_, of)| of(&point.setting).into()));
        row
    });
    let headings: Vec<Heading> =
        POINTS.iter().cloned().chain(extra.iter().map(|(heading, _)| heading.clone())).collect();
    let table = Table::new("points", "", headings).with(rows);
    let mut sections = vec![Section::new("points", "").with([table])];
    if levels {
        let wear = Section::new("wear", "Wear levelling").about(
            "The fewer erases a block may lag behind, the more evenly blocks wear, and the more \
             data is moved for it, which wears them all.",
        );
        sections.push(wear.with([wear_table(points)]).with([against_spread(points)]));
    }
    sections.push(Section::new("curve", "").with([against_formula(points)]));
    Report {
        sections,
        end: End::by(signal),
        ..base_report("flash-sweep", documents::sweep(points, iops, seed))
    }
}

fn spread(point: &Swept) -> u32 {
    point.erases_most - point.erases_least
}

fn wear_table(points: &[Swept]) -> Table {
    let row = |point: &Swept| {
        let Setting { over_provisioning, policy, pages_per_block, levelling, .. } = point.setting;
        let levelling = levelling.map_or_else(|| "none".to_owned(), |erases| erases.to_string());
        row![
            levelling,
            over_provisioning,
            policy.to_string(),
            pages_per_block,
            point.erases_least,
            point.erases_mean,
            point.erases_most,
            spread(point),
            point.wa,
            point.levelled_share
        ]
    };
    Table::new("wear", "", WEAR).with(points.iter().map(row))
}

/// Chart of the gain and the cost of wear levelling: a line for all points that differ only in the
/// levelling.
fn against_spread(points: &[Swept]) -> Chart {
    let x = Axis::new("erases between the most and the least worn block", Measure::Count);
    let y = Axis::new("write amplification", Measure::Ratio);
    let mut chart = Chart::new("wear", "Even wear against write amplification", x, y)
        .about("A point for each levelling: the further left, the more even; the higher, the more.")
        .wide(320);
    let group = |point: &Swept| {
        let spare = percent(point.setting.over_provisioning);
        format!("{}, over-provisioning {spare}", name(&point.setting))
    };
    let groups: Vec<String> = points.iter().map(group).collect();
    let mut names: Vec<&String> = Vec::new();
    for group in &groups {
        if !names.contains(&group) {
            names.push(group);
        }
    }
    for (color, group) in names.into_iter().enumerate() {
        let these = points.iter().zip(&groups).filter(|(_, other)| *other == group);
        let mut points: Vec<(f64, f64)> =
            these.map(|(point, _)| (f64::from(spread(point)), point.wa)).collect();
        points.sort_by(|a, b| b.0.total_cmp(&a.0));
        let points = points.into_iter().map(|(spread, wa)| Point::from((spread, Some(wa))));
        let form = Form::Line { points: points.collect(), dashed: false, marks: true };
        chart = chart.layer(group, Color::Series(color as u8), form);
    }
    chart
}

/// Names the settings other than spare and levelling.
fn name(setting: &Setting) -> String {
    let reserve = match setting.reserve_blocks {
        1 => String::new(),
        blocks => format!(", reserve {blocks}"),
    };
    let bad = match setting.bad_blocks {
        0.0 => String::new(),
        share => format!(", {} bad", percent(share)),
    };
    format!("{}, {} pages per block{reserve}{bad}", setting.policy, setting.pages_per_block)
}

/// Chart of write amplification over spare: a line for each policy and block size, with the formula
/// dashed. For a single spare, it has a bar for each.
fn against_formula(points: &[Swept]) -> Chart {
    let name = |point: &Swept| match point.setting.levelling {
        None => name(&point.setting),
        Some(levelling) => format!("{}, levelling {levelling}", name(&point.setting)),
    };
    let spares: BTreeSet<u64> =
        points.iter().map(|point| point.setting.over_provisioning.to_bits()).collect();
    let y = Axis::new("write amplification", Measure::Ratio);
    let about = "Simulated, and by formula where there is one.";
    let of = |x| Chart::new("wa", "Write amplification", x, y.clone()).about(about).wide(320);
    if spares.len() < 2 {
        let chart = of(Axis::names("", points.iter().map(name).collect()));
        let bars = |value: fn(&Swept) -> Option<f64>| Form::Bars {
            points: points.iter().enumerate().map(|(i, p)| (i as f64, value(p)).into()).collect(),
            stacked: false,
        };
        let chart = chart.layer("simulated", Color::Series(0), bars(|point| Some(point.wa)));
        return chart.layer("by formula", Color::Grey, bars(|point| point.wa_analytic));
    }
    let names: Vec<String> = points.iter().map(name).collect();
    let groups = names.chunk_by(|a, b| a == b).map(|group| group[0].clone());
    let mut chart = of(Axis::new("over-provisioning", Measure::Share));
    for (color, group) in groups.enumerate() {
        let mut these: Vec<&Swept> = points.iter().filter(|point| name(point) == group).collect();
        these.sort_by(|a, b| a.setting.over_provisioning.total_cmp(&b.setting.over_provisioning));
        let line = |value: fn(&Swept) -> Option<f64>| -> Vec<Point> {
            these.iter().map(|p| (p.setting.over_provisioning, value(p)).into()).collect()
        };
        let color = Color::Series(color as u8);
        let simulated = Form::Line { points: line(|p| Some(p.wa)), dashed: false, marks: true };
        chart = chart.layer(group.clone(), color, simulated);
        let points = line(|point| point.wa_analytic);
        let formula = Form::Line { points, dashed: true, marks: false };
        chart = chart.layer(format!("{group}, formula"), color, formula);
    }
    chart
}
