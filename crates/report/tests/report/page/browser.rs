//! The page in a real browser, driven by a script that this test adds: what it shows after a choice
//! must be what Rust computes, no script may fail, and nothing may be fetched. With
//! `BLOCKSTONE_PAGES=DIR` the pages are kept in DIR for inspection.

use std::path::PathBuf;

use blockstone_base::table::{Heading, Measure, Merge, Missing, Row, Table, Value};
use blockstone_report::chart::{Axis, Chart, Color, Form};
use blockstone_report::render::html;
use blockstone_report::{Began, Block, Report, Section, Sliced, Timeline, cell, slices};
use blockstone_testkit::browser;
use serde_json::{Value as Json, json};

use super::sample;

/// Runs `script` in the page and returns the object it makes.
pub fn run(report: &Report, name: &str, address: &str, script: &str) -> Json {
    let page = html::page(report).unwrap();
    if let Some(dir) = std::env::var_os("BLOCKSTONE_PAGES").map(PathBuf::from) {
        std::fs::write(dir.join(format!("{name}.html")), &page).unwrap();
    }
    let seen = browser::open(&page, (1280, 900), address, &format!("{HELPERS}{script}")).unwrap();
    assert_eq!(seen.complaint(), None);
    seen.result
}

const HELPERS: &str = r#"
const words = (cell) => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll(".badge").forEach((badge) => badge.remove());
  return copy.textContent.trim();
};
const rows = (id) => [...document.querySelector(`#table-${id} tbody`).rows].map((row) =>
  [...row.cells].map(words));
const turned = (id) => [rows(id).map(([, value]) => value)];
const key = (node, key, shiftKey = false) =>
  node.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
function drag(node, from, to) {
  const box = node.getBoundingClientRect();
  const at = (share) => ({ clientX: box.left + share * box.width, clientY: box.top + 40,
    button: 0, pointerId: 1, bubbles: true });
  node.dispatchEvent(new PointerEvent("pointerdown", at(from)));
  node.dispatchEvent(new PointerEvent("pointermove", at((from + to) / 2)));
  node.dispatchEvent(new PointerEvent("pointermove", at(to)));
  node.dispatchEvent(new PointerEvent("pointerup", at(to)));
}
"#;

/// Returns the rows of a window as the page has to show them.
fn expected(timeline: &Timeline, table: &Table, from_s: u64, to_s: u64) -> Vec<Vec<String>> {
    let (from, to) = (from_s * 1_000_000_000, to_s * 1_000_000_000);
    let several = slices(&timeline.of(table).unwrap().edges_ns, from, to).len() > 1;
    let shown = |row: &Row, (column, value): (&Heading, &Value)| match value {
        Value::Missing(Missing::Unknown) if several && column.merge == Merge::Never => {
            "–".to_owned()
        }
        value => cell(value, row.measure(column)),
    };
    let rows = timeline.window(table, from, to);
    let texts = |row: &Row| table.columns.iter().zip(&row.cells).map(|c| shown(row, c)).collect();
    rows.iter().map(texts).collect()
}

fn shown(json: &Json) -> Vec<Vec<String>> {
    serde_json::from_value(json.clone()).unwrap()
}

#[test]
fn tables_follow_the_window_as_rust_merges_them() {
    blockstone_testkit::require!(Chromium);
    let script = r#"
        const plot = document.querySelector("[data-chart='0']");
        const out = { before: rows("waits") };
        const load = rows("load");
        drag(plot, 18.1 / 30, 21.9 / 30);
        out.window = document.getElementById("window").textContent;
        out.stall = [rows("waits"), rows("disks"), turned("load"), rows("latencies")];
        out.address = location.hash;
        out.brushes = document.querySelectorAll(".brush:not([hidden])").length;
        const caption = (id) => document.querySelector(`#table-${id} caption`);
        out.windows = ["waits", "latencies"].map((id) => caption(id).dataset.window);
        out.whole = getComputedStyle(caption("points"), "::after").content;
        out.tip = document.getElementById("tip").innerText;
        key(plot, "Escape");
        out.after = rows("waits");
        out.loads = [load, rows("load")];
        key(plot, "ArrowRight");
        out.first = [rows("waits"), rows("disks"), turned("load"), rows("latencies")];
        key(plot, "ArrowRight");
        key(plot, "ArrowRight", true);
        out.wider = [rows("waits"), rows("disks"), turned("load"), rows("latencies")];
        out.warmup = caption("latencies").dataset.window;
        out.fetched = performance.getEntriesByType("resource").length;
        result(out);
    "#;
    let report = sample::report();
    let out = run(&report, "page-run", "", script);
    let (timeline, tables) = (sample::timeline(), sample::tables());
    for (name, from_s, to_s) in [("stall", 18, 22), ("first", 0, 1), ("wider", 1, 3)] {
        for (table, shown_rows) in tables.iter().zip(out[name].as_array().unwrap()) {
            let expected = expected(&timeline, table, from_s, to_s);
            let is_warmup = table.name == "latencies" && name != "stall";
            assert_eq!(expected.is_empty(), is_warmup);
            assert_eq!(shown(shown_rows), expected, "{name}: {}", table.name);
        }
    }
    assert_eq!(out["window"], "18 s – 22 s");
    assert_eq!(out["address"], "#?from=18&to=22");
    assert_eq!(out["windows"], json!(["18 s – 22 s", "17.5 s – 22.5 s"]));
    assert_eq!(out["warmup"], "not measured then");
    assert!(out["whole"].as_str().unwrap().contains("whole recording"));
    assert_eq!(out["brushes"], 3, "one on each chart over time");
    assert!(out["tip"].as_str().unwrap().contains("Concurrency"), "{}", out["tip"]);
    assert_eq!(out["before"], out["after"]);
    assert_eq!(out["loads"][0], out["loads"][1]);
    assert_eq!(out["fetched"], 0);
}

#[test]
fn a_mailed_address_restores_section_and_window() {
    blockstone_testkit::require!(Chromium);
    let script = r#"
        result({ rows: rows("disks"), window: document.getElementById("window").textContent,
            scrolled: scrollY > 100 });
    "#;
    let out = run(&sample::report(), "page-link", "#disks?from=5&to=9.5", script);
    let [_, disks, ..] = sample::tables();
    assert_eq!(shown(&out["rows"]), expected(&sample::timeline(), &disks, 5, 9));
    assert_eq!(out["window"], "5 s – 9 s");
    assert_eq!(out["scrolled"], true);
}

#[test]
fn recordings_are_read_by_the_clock() {
    let mut report = sample::report();
    // 2026-11-22 20:32:10 UTC, half an hour.
    report.began = Some(Began { unix_ns: 1_795_379_530_000_000_000, utc_offset_s: 3600 });
    for edge in &mut report.timeline.as_mut().unwrap().edges_ns {
        *edge *= 60;
    }
    let page = html::page(&report).unwrap();
    assert!(page.contains(">21:35:00</text>"), "ticks are round times of day");
    blockstone_testkit::require!(Chromium);
    let script = r#"result({ window: document.getElementById("window").textContent });"#;
    let out = run(&report, "page-clock", "#?from=60&to=180", script);
    assert_eq!(out["window"], "21:33:10 – 21:35:10 UTC+01:00");
}

#[test]
fn tables_sort_filter_and_copy() {
    blockstone_testkit::require!(Chromium);
    let script = r#"
        let copied = "";
        Object.defineProperty(navigator, "clipboard",
          { value: { writeText: (text) => { copied = text; return Promise.resolve(); } } });
        const block = document.getElementById("table-points");
        const press = (node) => node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        const heads = block.querySelectorAll("thead button");
        const out = {};
        press(heads[2]);
        out.down = rows("points").map((row) => row[2]);
        out.sort = heads[2].parentElement.getAttribute("aria-sort");
        press(heads[2]);
        out.up = rows("points").map((row) => row[2]);
        const field = block.querySelector("input");
        field.value = "cap_reached";
        field.dispatchEvent(new Event("input"));
        out.filtered = rows("points").length;
        const [csv, markdown] = block.querySelectorAll(".toolbar button");
        press(csv);
        out.csv = copied;
        press(markdown);
        out.markdown = copied;
        result(out);
    "#;
    let out = run(&sample::report(), "page-tables", "", script);
    let column = |name: &str| -> Vec<String> { serde_json::from_value(out[name].clone()).unwrap() };
    let (down, up) = (column("down"), column("up"));
    assert_eq!((&*down[0], &*down[15]), ("1.8 ms ±2 %", "n/v"));
    assert_eq!((&*up[0], &*up[15]), ("300 µs ±2 %", "n/v"), "missing cells stay last");
    assert_eq!((&out["sort"], &out["filtered"]), (&"descending".into(), &1.into()));
    let csv = "readers,iops,iops_low,iops_high,iops_samples,latency_ns_p99,latency_ns_p99_low,\
               latency_ns_p99_high,latency_ns_p99_samples,condemned_by\r\n\
               32,7407,7258.86,7518.1,12345,800000,784000,812000,12345,cap_reached\r\n";
    assert_eq!(out["csv"], csv);
    let markdown = out["markdown"].as_str().unwrap();
    assert!(
        markdown.starts_with("| readers | IOPS | p99 ↑ |")
            || markdown.starts_with("| readers | IOPS | p99 |"),
        "{markdown}"
    );
    assert!(markdown.contains("~~7,407~~"), "{markdown}");
}

/// Returns a report with thirty charts and forty tables; each number is one of the sample's.
pub fn large() -> Report {
    let mut report = sample::report();
    let (charts, tables): (Vec<Block>, Vec<Block>) = report
        .sections
        .iter()
        .flat_map(|section| section.blocks.clone())
        .filter(|block| matches!(block, Block::Chart(_) | Block::Table(_)))
        .partition(|block| matches!(block, Block::Chart(_)));
    let sample = report.timeline.take().unwrap();
    let mut timeline = Timeline { edges_ns: sample.edges_ns, tables: Vec::new() };
    let mut section = Section::new("large", "Large");
    for n in 0..30 {
        let Block::Chart(chart) = &charts[n % charts.len()] else { unreachable!() };
        section = section.with([Chart { name: format!("chart-{n}").into(), ..chart.clone() }]);
    }
    for n in 0..40 {
        let Block::Table(table) = &tables[1 + n % 2] else { unreachable!() };
        let table = Table { name: format!("t{n}").into(), ..table.clone() };
        let sliced = sample.tables[n % 2].clone();
        timeline.tables.push(Sliced { table: table.name.clone(), ..sliced });
        section = section.with([table]);
    }
    report.sections = vec![section];
    report.timeline = Some(timeline);
    report
}

/// Returns a report on a week of six instances: 210 slices, eight tables of ten columns, so a
/// hundred thousand numbers, and a chart of the instances for each table.
fn week() -> Report {
    const HOUR: u64 = 3_600_000_000_000;
    let keys = (0..10).map(|n| Heading::new(format!("c{n}"), format!("c{n}"), Measure::Count, ""));
    let name = Heading::new("instance", "instance", Measure::Text, "");
    let columns: Vec<Heading> = std::iter::once(name).chain(keys).collect();
    let value =
        |slice: usize, row: usize, n: usize| ((slice * 7 + row * 13 + n) % 997) as f64 * 1.25;
    let row = |slice: usize, row: usize| {
        let numbers = (0..10).map(|n| value(slice, row, n).into());
        let cells = std::iter::once(format!("db{row}").into()).chain(numbers);
        Row::from(cells.collect::<Vec<Value>>())
    };
    let rows = |slice| Some((0..6).map(|n| row(slice, n)).collect());
    let edges_ns: Vec<u64> = (0..=210).map(|n| n * HOUR).collect();
    let mut timeline = Timeline { edges_ns: edges_ns.clone(), ..Timeline::default() };
    let mut section = Section::new("week", "Week");
    for n in 0..8 {
        let mut chart =
            Chart::new(format!("chart{n}"), "AAS", Axis::time(), Axis::new("", Measure::Count));
        for instance in 0..6 {
            let points =
                (0..210).map(|slice| (slice as f64 * HOUR as f64, Some(value(slice, instance, n))));
            chart = chart.layer(
                format!("db{instance}"),
                Color::Series(instance as u8),
                Form::area(points),
            );
        }
        let mut table = Table::new(format!("t{n}"), "Instances", columns.clone());
        table.rows = (0..6).map(|n| row(0, n)).collect();
        timeline.tables.push(Sliced {
            table: table.name.clone(),
            edges_ns: edges_ns.clone(),
            rows: (0..210).map(rows).collect(),
        });
        section = section.with([chart]).with([table]);
    }
    Report { sections: vec![section], timeline: Some(timeline), ..Report::default() }
}

#[test]
fn a_week_of_six_instances_is_small_beside_its_data() {
    let report = week();
    let page = html::page(&report).unwrap();
    let start = page.find("id=\"data\">").unwrap();
    let data = page[start..].find("</script>").unwrap();
    assert!(page.len() - data < 300_000, "{} bytes beside {data} of data", page.len() - data);
    blockstone_testkit::require!(Chromium);
    let out = run(&report, "page-week", "", REDRAWS);
    assert_eq!(out["rows"], 6);
    println!(
        "{} + {data} bytes; milliseconds to merge, and to lay out: {}",
        page.len() - data,
        out["times"]
    );
}

/// Script that moves the window from the last slice on, then widens it.
const REDRAWS: &str = r#"
    const plot = document.querySelector("[data-time]");
    const times = [];
    for (let n = 0; n < 15; n += 1) {
      const start = performance.now();
      key(plot, "ArrowLeft", n > 3);
      const merged = performance.now();
      document.body.getBoundingClientRect();
      times.push([merged - start, performance.now() - start].map(Math.round));
    }
    result({ times, rows: rows("t0").length });
"#;

#[test]
fn a_large_page_is_small_and_answers_at_once() {
    let report = large();
    let bytes = html::page(&report).unwrap().len();
    assert!(bytes < 600_000, "{bytes} bytes");
    blockstone_testkit::require!(Chromium);
    let out = run(&report, "page-large", "", REDRAWS);
    assert!(out["rows"].as_u64().unwrap() > 3);
    // The time is printed, never asserted: it depends on the machine.
    println!("{bytes} bytes; milliseconds to merge, and to lay out: {}", out["times"]);
}
