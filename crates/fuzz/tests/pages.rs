//! Every kind of page in a real browser: the pointer on every chart, every button pressed, every
//! table sorted and filtered, every chart over time brushed. Text that appears must be words and
//! numbers, and shapes must stay within their chart. With `BLOCKSTONE_PAGES=DIR` the pages are kept
//! in DIR for inspection.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_fuzz::program::attacks::lay_fixtures;
use blockstone_testkit::{ScratchDir, blockstone_binary, browser, run};
use serde_json::Value;

/// A page of each kind, by the command that makes it from the fixtures.
const PAGES: &[&[&str]] = &[
    &["report", "run"],
    &["report", "calibrate"],
    &["report", "sqlite"],
    &["report", "recording"],
    &["report", "noise"],
    &["compare", "run", "sqlite"],
    &["compare", "recording@..3s", "recording@2s.."],
    &["size", "load"],
    &["trace", "sql.trc"],
    &["trace", "sql.trc", "--against", "sql.trc"],
    &["reduce", "tree", "pages"],
    &["offload", "account", "counters.csv"],
    &["offload", "model", "--cells", "2", "--scan-rate", "2G", "--consume-rate", "200M"],
    &["flash", "sim", "--raw", "2G", "--format-level", "44", "--drive-fills", "2"],
    &["flash", "sweep", "op=7,28", "policy=greedy"],
    &["flash", "cliff", "--raw", "576G", "--visible", "400G", "--write-rate", "50M"],
    &["flash", "fit", "log"],
    &["flash", "life", "--write-rate", "50M", "--endurance", "3000"],
    &["flash", "explain"],
    &["claim", "1 GB/s over 1GbE"],
    &["demo", "data"],
    &["check", "direct", "data"],
    &["copy", "--force", "file", "data"],
    &["runs"],
];

/// Pages that have nothing to plot.
const WITHOUT_CHARTS: &[&str] =
    &["flash life", "flash explain", "claim", "demo", "check direct", "copy", "runs"];

/// Widths of a window in pixels.
const WIDTHS: [u32; 2] = [1400, 500];

/// Widths of a terminal in columns. The demo measures for 25 s, so its text is made once.
fn columns(arguments: &[&str]) -> &'static [&'static str] {
    if arguments[0] == "demo" { &["80"] } else { &["80", "100", "120"] }
}

#[test]
fn every_page_answers_to_the_mouse() {
    blockstone_testkit::require!(Chromium);
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path();
    lay_fixtures(dir);
    let mut faults = Vec::new();
    let mut pages = Vec::new();
    for arguments in PAGES {
        match page(dir, arguments) {
            Ok(page) => pages.push((arguments.join(" "), page)),
            Err(why) => faults.push(format!("{}: {why}", arguments.join(" "))),
        }
    }
    for (name, page) in &pages {
        let needs_none = WITHOUT_CHARTS.iter().any(|verb| name.starts_with(verb));
        if !page.contains("<figure") && !needs_none {
            faults.push(format!("{name}: no chart"));
        }
    }
    let views: Vec<(&str, u32)> =
        pages.iter().flat_map(|(_, page)| WIDTHS.map(|width| (&**page, width))).collect();
    let mut tips = 0;
    for (number, seen) in browser::open_each(&views, TOUR).unwrap().iter().enumerate() {
        let (name, width) = (&pages[number / WIDTHS.len()].0, views[number].1);
        let found = seen.result["faults"].as_array().unwrap().iter();
        let found = found.filter_map(Value::as_str).chain(seen.complaint());
        faults.extend(found.map(|fault| format!("{name} at {width}: {fault}")));
        tips += seen.result["tips"].as_u64().unwrap();
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(tips > 500, "{tips} tooltips");
}

/// Headings that are in the output of a command however narrow the terminal is.
const ANSWERS: &[(&str, &[&str])] =
    &[("compare run sqlite", &["A", "B", "B ÷ A", "result"]), ("trace sql.trc", &["text"])];

#[test]
fn text_keeps_to_the_width_and_has_its_answers() {
    let scratch = ScratchDir::on_disk().unwrap();
    lay_fixtures(scratch.path());
    let mut faults = Vec::new();
    for arguments in PAGES {
        for &width in columns(arguments) {
            let mut command = Command::new(blockstone_binary());
            command.current_dir(scratch.path()).args(*arguments).env("COLUMNS", width);
            let ran = run(&mut command);
            let name = arguments.join(" ");
            let most: usize = width.parse().unwrap();
            // Paths and commands are not broken.
            let wide = ran.stdout.lines().filter(|line| line.chars().count() > most);
            let wide = wide.filter(|line| !line.contains(['/', '`']));
            faults.extend(wide.map(|line| format!("{name} at {width}: {line}")));
            if ran.stdout.contains("not shown: \n") || ran.stdout.contains("not shown: ,") {
                faults.push(format!("{name} at {width}: hides columns without a name"));
            }
            let answers = ANSWERS.iter().filter(|(of, _)| *of == name);
            for heading in answers.flat_map(|(_, headings)| *headings) {
                if !ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(heading) {
                    faults.push(format!("{name} at {width}: no {heading}\n{}", ran.stdout));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the page that a command makes in the directory of the fixtures.
fn page(dir: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(blockstone_binary());
    let ran = run(command.current_dir(dir).args(arguments).args(["--html", "page.html"]));
    if !matches!(ran.code, Some(0 | 1 | 3)) {
        return Err(ran.stderr);
    }
    let page = fs::read_to_string(dir.join("page.html")).map_err(|error| error.to_string())?;
    if let Some(kept) = std::env::var_os("BLOCKSTONE_PAGES").map(PathBuf::from) {
        let name = arguments.join("-").replace(['/', ' '], "-");
        fs::write(kept.join(format!("{name}.html")), &page).map_err(|error| error.to_string())?;
    }
    Ok(page)
}

/// Script that visits everything on a page; returns the faults that show and the number of tooltips
/// that were read.
const TOUR: &str = r#"
const faults = new Set();
const wrong = /\[object|undefined|NaN|Infinity|^\s*$/;
const check = (where, words) => {
  if (wrong.test(words)) faults.add(`${where}: ${JSON.stringify(words)}`);
};
addEventListener("error", (event) => faults.add(`error: ${event.message}`));
Object.defineProperty(navigator, "clipboard",
  { value: { writeText: (words) => { check("copied", words); return Promise.resolve(); } } });
let tips = 0;
const tip = document.getElementById("tip");
const at = (box, x, y) => ({ clientX: box.left + x * box.width, clientY: box.top + y * box.height,
  button: 0, pointerId: 1, bubbles: true });
const plots = [...document.querySelectorAll(".plot")];
const titled = (plot) => plot.closest("figure").querySelector("h3").textContent;
for (const plot of plots) {
  plot.scrollIntoView();
  const box = plot.getBoundingClientRect();
  let values = 0;
  for (const x of [0.01, 0.2, 0.4, 0.5, 0.6, 0.8, 0.99]) {
    for (const y of [0.15, 0.45, 0.7]) {
      plot.dispatchEvent(new PointerEvent("pointermove", at(box, x, y)));
      tips += 1;
      check(`tooltip of ${titled(plot)}`, tip.querySelector("b")?.textContent ?? "");
      for (const line of tip.querySelectorAll("span")) {
        values += 1;
        check(`tooltip of ${titled(plot)}`, line.textContent);
      }
    }
  }
  plot.dispatchEvent(new PointerEvent("pointerleave", { bubbles: true }));
  // The cells of a map may be few.
  for (let n = 0; !values && n < 60 * 30; n += 1) {
    const place = at(box, (n % 60) / 60, Math.floor(n / 60) / 30);
    plot.dispatchEvent(new PointerEvent("pointermove", place));
    values = tip.querySelectorAll("span").length;
  }
  if (!values) faults.add(`no value under the pointer: ${titled(plot)}`);
  // Shapes stay within the drawing, and labels on the page and apart.
  const inner = plot.querySelector("svg.shapes").getBoundingClientRect();
  for (const shape of plot.querySelectorAll("svg.shapes path")) {
    const { left, right, top, bottom } = shape.getBoundingClientRect();
    if (left < inner.left - 2 || right > inner.right + 2 || top < inner.top - 2
      || bottom > inner.bottom + 2) faults.add(`drawn outside: ${titled(plot)}`);
  }
  const labels = [...plot.querySelectorAll("text.x"),
    ...plot.closest("figure").querySelectorAll(".names:not(.many) span")]
    .filter((label) => getComputedStyle(label).display !== "none");
  for (const label of plot.querySelectorAll("text")) {
    check(`label of ${titled(plot)}`, label.textContent);
  }
  const places = labels.map((label) => [label.getBoundingClientRect(), label]);
  places.sort((a, b) => a[0].left - b[0].left);
  places.forEach(([box, label], index) => {
    const next = places[index + 1];
    if (next && box.right > next[0].left + 1) {
      faults.add(`labels overlap: ${titled(plot)}: ${label.textContent} ${next[1].textContent}`);
    }
    if (box.left < -1 || box.right > innerWidth + 1) {
      faults.add(`label off the page: ${titled(plot)}: ${label.textContent}`);
    }
  });
  const across = plot.closest("figure").querySelector(".across")?.getBoundingClientRect();
  for (const label of plot.closest("figure").querySelectorAll(".names span")) {
    if (across && label.getBoundingClientRect().bottom > across.top - 1) {
      faults.add(`label at the title of the axis: ${titled(plot)}: ${label.textContent}`);
    }
  }
  const legend = [...plot.closest("figure").querySelectorAll(".legend i")].map((mark) => {
    const { borderTopColor, backgroundColor } = getComputedStyle(mark);
    return `${borderTopColor} ${backgroundColor} ${mark.className}`;
  });
  if (new Set(legend).size < legend.length) faults.add(`one colour twice: ${titled(plot)}`);
  if ("time" in plot.dataset) {
    for (const [name, x] of [["pointerdown", 0.3], ["pointermove", 0.5], ["pointermove", 0.7],
      ["pointerup", 0.7]]) plot.dispatchEvent(new PointerEvent(name, at(box, x, 0.5)));
    if (!document.getElementById("window").textContent) faults.add(`no window: ${titled(plot)}`);
    for (const table of document.querySelectorAll("table.windowed")) {
      check(`window of ${table.caption.textContent}`, table.caption.dataset.window);
    }
    plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }
}
// No chapter has the name of another, and none says a sentence twice.
const twice = (where, nodes) => {
  const words = [...nodes].map((node) => node.firstChild?.textContent.trim()).filter(Boolean);
  for (const word of words.filter((it, index) => words.indexOf(it) < index)) {
    faults.add(`${where} twice: ${word}`);
  }
};
twice("chapter", document.querySelectorAll("section > h2"));
for (const section of document.querySelectorAll("section")) {
  twice(`in ${section.id}`, section.querySelectorAll(".intro, .about"));
}
// The buttons of a table must not cover its text.
for (const bar of document.querySelectorAll(".toolbar")) {
  bar.scrollIntoView();
  const box = bar.getBoundingClientRect();
  const table = bar.closest(".block").querySelector("table");
  for (const node of [table.caption, ...table.tHead.rows[0].cells]) {
    const words = document.createRange();
    words.selectNodeContents(node);
    const { left, right, top, bottom } = words.getBoundingClientRect();
    const is_over = left < box.right && right > box.left && top < box.bottom && bottom > box.top;
    if (is_over && !node.matches("caption.same")) {
      faults.add(`buttons on words: ${table.caption.textContent}: ${node.textContent}`);
    }
  }
}
for (const button of document.querySelectorAll("button")) { button.click(); button.click(); }
for (const field of document.querySelectorAll("input[type=search]")) {
  for (const words of ["zz-none", ""]) {
    field.value = words;
    field.dispatchEvent(new Event("input"));
  }
}
for (const cell of document.querySelectorAll("td, th, .card, li")) {
  const words = cell.textContent;
  if (/\[object|undefined|NaN|Infinity/.test(words)) faults.add(`cell: ${words}`);
}
if (document.documentElement.scrollWidth > innerWidth + 1) {
  faults.add(`${document.documentElement.scrollWidth} pixels wide`);
}
result({ faults: [...faults].slice(0, 40), tips });
"#;
