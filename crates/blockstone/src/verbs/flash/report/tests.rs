//! Tests of a simulated flash device in every rendering.

use blockstone_flash::dies::Suspend;
use blockstone_flash::preset;
use blockstone_flash::simulate::{Outcome, Phase, Plan, Rate, simulate};
use blockstone_report::render::terminal::{self, Style};
use blockstone_report::render::{csv, json};
use blockstone_report::{Block, Report};

use super::{given, simulation};

fn outcome(background: f64) -> Outcome {
    let mut device = preset::ALL[0].device();
    (device.raw_bytes, device.visible_bytes) = (18 << 30, 12 << 30);
    device.background = background;
    let mut workload: blockstone_flash::workload::Workload = "hot-cold".parse().unwrap();
    workload.reads = 0.3;
    let phase =
        |seconds: u64, rate| Phase { duration_ns: seconds * 1_000_000_000, pace: Rate::Open(rate) };
    let plan = Plan {
        phases: vec![phase(2, 20_000.0), phase(4, 0.0)],
        drive_fills: 1.0,
        scale: 4,
        points: 60,
        ..Plan::new(device, workload)
    };
    simulate(&plan, &|_| {}, &mut |_| true).unwrap()
}

/// Background collection compared with active collection.
fn two(background: &Outcome, active: &Outcome) -> Report {
    simulation(&[("background", background), ("active", active)], None, None)
}

fn chart_names(report: &Report) -> Vec<String> {
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let charts = blocks.filter_map(|block| match block {
        Block::Chart(chart) => Some(chart.name.to_string()),
        _ => None,
    });
    charts.collect()
}

#[test]
fn a_formula_says_of_which_device_and_load_it_is() {
    let said = given(&preset::ALL[0].device(), 200e6).join("\n");
    assert!(said.contains(" visible, ") && said.ends_with("the host writes 200 MB/s"), "{said}");
}

#[test]
fn the_document_has_its_figures_and_keeps_to_the_schema() {
    let outcome = outcome(0.0);
    let document = json::document(&simulation(&[("", &outcome)], None, None));
    let figures = &document["tables"]["figures"][0];
    for key in
        ["wa", "wa_analytic", "effective_spare", "iops_fresh", "iops_steady", "cliff_drive_fills"]
    {
        assert!(figures.get(key).is_some(), "{key}: {figures:#}");
    }
    crate::testing::keeps_to_its_schema(&document);
    let points = document["tables"]["over-time"].as_array().unwrap().len();
    assert!(points > 30);
    let earlier = json::earlier(&simulation(&[("", &outcome)], None, None));
    assert_eq!(earlier["points"].as_array().unwrap().len(), points);
    let report = two(&outcome, &outcome);
    let document = json::document(&report);
    crate::testing::keeps_to_its_schema(&document);
    let devices: Vec<_> = document["tables"]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["device"])
        .collect();
    assert_eq!(devices, ["background", "active"]);
    let earlier = json::earlier(&report);
    assert_eq!(earlier["active"]["summary"], earlier["summary"]);
    assert_eq!(earlier["active"]["schema"], "blockstone.flash-sim/1");
}

#[test]
fn screens_keep_to_their_width_and_show_every_device() {
    let (background, active) = (outcome(0.1), outcome(0.0));
    for width in [80, 100] {
        let style = Style { color: false, width };
        let alone = terminal::text(&simulation(&[("", &active)], None, None), false, &style);
        let both = terminal::text(&two(&background, &active), false, &style);
        for line in alone.lines().chain(both.lines()) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(alone.contains("Over-provisioning") && alone.contains("spare factor"), "{alone}");
        assert!(alone.contains("Write amplification") && alone.contains("write p99"), "{alone}");
        for said in ["background", "active", "write amplification, active"] {
            assert!(both.contains(said), "{said} in\n{both}");
        }
    }
}

#[test]
fn without_a_cliff_nothing_is_called_before_or_after_it() {
    let mut outcome = outcome(0.0);
    let style = Style { color: false, width: 100 };
    let mut said = |cliff: Option<f64>| {
        outcome.cliff_drive_fills = cliff;
        terminal::text(&simulation(&[("", &outcome)], None, None), false, &style)
    };
    let (with, without) = (said(Some(0.4)), said(None));
    assert!(with.contains("IOPS after the cliff") && with.contains("Before the cliff"), "{with}");
    assert!(!without.contains("the cliff") && without.contains("in the long run"), "{without}");
}

#[test]
fn the_factor_behind_an_erase_is_named_where_reads_wait_for_one() {
    let mut outcome = outcome(0.0);
    let mut said = |suspend| {
        outcome.plan.device.times.suspend = suspend;
        let style = Style { color: false, width: 100 };
        let text = terminal::text(&simulation(&[("", &outcome)], None, None), false, &style);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = said(Suspend::None);
    assert!(
        text.contains("A read takes 50 µs. If its die") && text.contains("60 × as long"),
        "{text}"
    );
    assert!(!said(Suspend::Erase).contains("60 ×"));
}

#[test]
fn the_page_has_the_charts_of_each_device() {
    let (background, active) = (outcome(0.1), outcome(0.0));
    let names = chart_names(&two(&background, &active));
    for name in [
        "cliff",
        "amplification",
        "write-tail",
        "erases",
        "requests-active",
        "block-map-background",
        "block-map-active",
        "pages-active",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    let alone = chart_names(&simulation(&[("", &active)], None, None));
    assert!(alone.contains(&"block-map".to_owned()) && !alone.contains(&"write-tail".to_owned()));
}

#[test]
fn heat_maps_are_small_enough_for_a_page() {
    let (background, active) = (outcome(0.1), outcome(0.0));
    let report = two(&background, &active);
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let cells: usize = blocks
        .map(|block| match block {
            Block::Chart(chart) => chart
                .layers
                .iter()
                .map(|layer| match &layer.form {
                    blockstone_report::chart::Form::Heat(cells) => cells.len(),
                    _ => 0,
                })
                .sum(),
            _ => 0,
        })
        .sum();
    assert!((500..5000).contains(&cells), "{cells}");
}

#[test]
fn every_table_is_csv_with_one_field_for_each_column() {
    let outcome = outcome(0.1);
    let report = two(&outcome, &outcome);
    assert!(csv::names(&report).contains(&"figures"));
    for table in report.tables() {
        let text = csv::table(table, csv::Texts::Raw);
        assert_eq!(text.lines().count(), table.rows.len() + 1, "{}", table.name);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
    }
}
