//! Places of things on the page, on the screen and on paper.

use std::borrow::Cow;

use blockstone_base::table::{Heading, Measure, Row, Table, count, text};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::picture::{Bar, Bars};
use blockstone_report::{Block, Report, Section};
use serde_json::json;

use super::browser::run;
use super::sample;

/// Script that applies the rules for paper to the screen.
const PAPER: &str = r#"
for (const rule of document.styleSheets[0].cssRules) {
  if (rule.media?.mediaText === "print") rule.media.mediaText = "all";
}
"#;

/// A record of one fact, without a title of its own.
fn record() -> Table {
    let columns = vec![text("outcome", "outcome", ""), count("iops", "IOPS", "")];
    let mut table = Table::new("figures", "", Cow::Owned::<[Heading]>(columns)).record();
    table.push(["at".into(), 24_236.0.into()]);
    table
}

/// Bars with names that are long for a third of the page.
fn bars(name: &'static str) -> Chart {
    let names: Vec<String> = (0..9).map(|n| format!("< {}.5 ms", 10 << n)).collect();
    let points: Vec<Point> = (0..9).map(|n| (f64::from(n), Some(3.0)).into()).collect();
    Chart::new(name, "Calls", Axis::names("time of a call", names), Axis::new("", Measure::Count))
        .layer("read", Color::Series(0), Form::Bars { points, stacked: false })
        .third()
}

#[test]
fn nothing_lies_on_something_else_and_no_gap_is_left() {
    blockstone_testkit::require!(Chromium);
    let mut report = sample::report();
    let unit = &mut report.headline.figures[0];
    (unit.unit, unit.words) =
        ("transactions/s".into(), "transactions of all five kinds of order entry/s".into());
    let figures = Section::new("all", "All figures").with([record()]);
    let calls = Section::new("calls", "Calls").with(["a", "b", "c"].map(bars));
    report.sections.extend([figures, calls]);
    let script = r##"
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(document.querySelector(".card.large .value").firstChild);
        const number = range.getBoundingClientRect().bottom;
        const lowest = [...document.querySelectorAll("#a .names span")].map((name) => {
          range.selectNodeContents(name);
          return range.getBoundingClientRect().bottom;
        });
        result({
          unit: box(".card.large .unit").top - number,
          record: box("#all tbody").top - box("#all h2").bottom,
          names: box("#a .across").top - Math.max(...lowest),
        });
    "##;
    let out = run(&report, "page-layout", "", script);
    let gap = |name: &str| out[name].as_f64().unwrap();
    assert!(gap("unit").abs() < 12.0, "{out}");
    assert!(gap("record") < 30.0, "{out}");
    assert!(gap("names") >= 2.0, "{out}");
}

#[test]
fn paper_keeps_together_what_belongs_together() {
    blockstone_testkit::require!(Chromium);
    let columns = {
        let times =
            (0..9).map(|n| Heading::new(format!("t{n}_ns"), "mean", Measure::Nanoseconds, ""));
        std::iter::once(text("statement", "statement", "")).chain(times).collect::<Vec<Heading>>()
    };
    let mut table = Table::new("times", "Times", Cow::Owned::<[Heading]>(columns));
    let long = "select the price of each order of a district that is not yet delivered".repeat(3);
    for _ in 0..3 {
        let times = (0..9).map(|_| 182e6.into());
        table.push(Row::from(std::iter::once((&*long).into()).chain(times).collect::<Vec<_>>()));
    }
    let bar = Bar {
        label: "block 0".to_owned(),
        value: 3.0,
        note: String::new(),
        color: Color::Series(0),
    };
    let picture = Block::Bars(Bars { bars: vec![bar], unit: "pages".into(), full: 4.0 });
    let sections = vec![
        Section::new("story", "Story").with(["1. Blocks.".to_owned()]).with([picture]),
        Section::new("times", "Times").with([table]),
    ];
    let script = r##"
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const style = getComputedStyle(document.querySelector("#table-times"));
        const cell = document.querySelector("#table-times td:last-child");
        const range = document.createRange();
        range.selectNodeContents(cell);
        result({
          story: box("#story").width === box("main").width,
          lines: range.getClientRects().length,
          block: style.breakInside,
        });
    "##;
    let report = Report { sections, ..Report::default() };
    let out = run(&report, "page-paper", "", &format!("{PAPER}{script}"));
    assert_eq!(out, json!({ "story": true, "lines": 1, "block": "avoid" }));
}
