//! A simulated flash device in all three renderings.

use blockstone_flash::preset;
use blockstone_flash::simulate::{Outcome, Phase, Plan, Rate, simulate};
use blockstone_report::terminal::Style;
use blockstone_report::{html, json, terminal};

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

/// Background collection beside active.
pub fn page() -> String {
    let (background, active) = (outcome(0.1), outcome(0.0));
    html::flash_page(&[("background", &background), ("active", &active)]).unwrap()
}

#[test]
fn the_document_has_its_figures_and_keeps_to_the_schema() {
    let outcome = outcome(0.0);
    let document = json::flash::simulation(&outcome, None);
    for key in
        ["wa", "wa_analytic", "effective_spare", "iops_fresh", "iops_steady", "cliff_drive_fills"]
    {
        assert!(document["summary"].get(key).is_some(), "{key}");
    }
    crate::json::check("flash-sim-1.json", &document);
    assert!(document["points"].as_array().unwrap().len() > 30);
}

#[test]
fn the_screen_keeps_to_its_width() {
    let outcome = outcome(0.0);
    let text = terminal::flash::simulation(&outcome, None, &Style { color: false, width: 100 });
    for line in text.lines() {
        assert!(line.chars().count() <= 110, "{line}");
    }
    assert!(text.contains("write amplification"));
}

#[test]
fn the_page_has_a_map_for_each_device() {
    let page = page();
    assert_eq!(page.matches("<canvas").count(), 2);
    assert!(page.contains("Latency of every request: active"));
}
