//! Report of a sweep: write amplification compared with its formula, and wear.

use std::collections::BTreeSet;

use blockstone_base::table::{Measure, Rows as _};
use blockstone_flash::sweep::{Setting, Swept};
use blockstone_record::manifest::End;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::{Detail, Report, Section, percent};

use super::super::earlier;
use super::rows::{SweepSummary, SweptRow, WearRow};
use super::{SWEEP, base_report};

/// Returns the report of a sweep, with the write rate that the device of the command line would
/// sustain.
pub fn sweep(points: &[Swept], iops: &[Option<f64>], seed: u64, signal: Option<&str>) -> Report {
    let rows = points.iter().zip(iops).map(|(point, iops)| SweptRow::of(point, *iops));
    let table = SweptRow::table("points", "", rows);
    let mut sections = vec![Section::new("points", "").with([table])];
    let wear = WearRow::table("wear", "", points.iter().map(WearRow::of));
    let wear = Section::new("wear", "Wear levelling").with([wear]);
    sections.push(if points.iter().any(|point| point.setting.levelling.is_some()) {
        wear.with([against_spread(points)]).about(
            "The fewer erases a block may lag behind, the more evenly blocks wear, and the more \
             data is moved for it, which wears them all.",
        )
    } else {
        Section { heading: "Wear".into(), ..wear }.detail(Detail::Page)
    });
    sections.push(Section::new("curve", "").with([against_formula(points)]));
    Report {
        sections,
        end: End::by(signal),
        scalars: Some(SweepSummary::table(
            "sweep",
            "Sweep",
            [SweepSummary { seed: seed.to_string() }],
        )),
        ..base_report(SWEEP, earlier::sweep)
    }
}

fn spread(point: &Swept) -> u32 {
    point.erases_most - point.erases_least
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
