//! The page of any report as text; its script is tested in `browser`.

mod browser;
mod charts;
mod layout;
pub mod sample;

use blockstone_base::table::{Measure, Missing, Row, Table, Value, count, text};
use blockstone_base::verdict::{Outcome, Weight};
use blockstone_report::chart::{Axis, Chart, Color, Form, Layer, Level, Point};
use blockstone_report::picture::{Bar, Bars, Cell, CellKind, CellRow, Cells};
use blockstone_report::render::html;
use blockstone_report::{Block, Card, Report, Section};

/// Returns the page, with slashes unescaped.
pub fn page(report: &Report) -> String {
    html::page(report).unwrap().replace("&#x2f;", "/")
}

pub fn of_chart(chart: Chart) -> String {
    let sections = vec![Section::new("one", "One").with([chart])];
    page(&Report { sections, ..Report::default() })
}

#[test]
fn the_page_is_one_small_file_and_asks_the_network_for_nothing() {
    let page = page(&sample::report());
    assert!(page.contains("default-src 'none'"));
    for outside in ["http://", "https://", " src=", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "the page holds `{outside}`");
    }
    assert!(page.len() < 150_000, "{} bytes", page.len());
    let script = include_str!("../../templates/page.js");
    assert!(script.len() <= 29_500, "the script has {} bytes", script.len());
}

#[test]
fn the_page_says_which_tables_a_chosen_window_changes() {
    let shown = page(&sample::report());
    let changes = "changes these tables: The load, Where the time went, Disks, Latencies. ";
    assert!(shown.contains(changes));
    assert!(shown.contains("always of the whole recording: Every point measured, The machine."));
    let without = Report { timeline: None, ..sample::report() };
    assert!(!page(&without).contains("changes these tables"));
}

#[test]
fn a_stack_of_areas_is_drawn_as_it_was() {
    let axis = Axis::new("sessions", Measure::Count);
    let area = |ys: [Option<f64>; 4]| {
        Form::area(ys.into_iter().enumerate().map(|(n, y)| (n as f64 * 1e9, y)))
    };
    let mut chart = Chart::new("aas", "Sessions", Axis::time(), axis)
        .layer("CPU", Color::Cpu, area([Some(1.0), Some(2.0), Some(1.0), Some(1.0)]))
        .layer("User I/O", Color::UserIo, area([Some(3.0), Some(0.0), None, Some(2.0)]));
    chart.height = 122;
    chart.levels.push(Level { y: 2.0, name: "2 processors".to_owned() });
    let page = of_chart(chart);
    let start = page.find("<svg class=\"shapes\"").unwrap();
    let end = start + page[start..].find("</svg>").unwrap() + 6;
    let drawn = page[start..end].replace("/><", "/>\n<");
    assert_eq!(drawn.trim(), include_str!("expected/stack.svg").trim(), "\n{drawn}");
}

#[test]
fn hostile_texts_and_numbers_cannot_become_markup_or_break_a_chart() {
    const EVIL: &str = "</script><script>alert(1)</script>&\"'<!--";
    let mut report = sample::report();
    let evil = || EVIL.to_owned();
    report.headline.subject = evil();
    report.headline.text = evil();
    for texts in [&mut report.identity, &mut report.warnings, &mut report.notes] {
        texts.push(evil());
    }
    (report.recording, report.tool_version) = (evil(), Some(evil()));
    report.verdicts[1].evidence = evil();
    report.verdicts[2].rule = evil();
    report.cards[0].condemned_by.push(evil());
    report.cards[1].source = evil();
    let columns = [text("x", "x", EVIL), count("y", "y<", EVIL)].to_vec();
    let mut table = Table::new("evil", EVIL, columns).about(EVIL);
    table.push(Row::from([EVIL.into(), f64::NAN.into()]).condemned_by(&[evil()]));
    table.notes.push(evil());
    let names = Axis::names(EVIL, vec![evil(), evil()]);
    let odd = [f64::NAN, f64::INFINITY, -1e300, 1e300, 0.0];
    let points: Vec<Point> = odd.iter().map(|y| (*y, Some(*y)).into()).collect();
    let log = || Axis::new(EVIL, Measure::Count).log();
    let chart =
        |x: Axis, form: Form| Chart::new("odd", EVIL, x, log()).layer(EVIL, Color::Bad, form);
    let bar = |value| Bar { label: evil(), value, note: evil(), color: Color::Bad };
    let cell = Cell { kind: Some(0), text: evil() };
    let cells = Cells {
        title: EVIL.into(),
        kinds: vec![CellKind::new(EVIL, EVIL, Color::Bad)],
        rows: vec![CellRow { label: evil(), cells: vec![cell] }],
        is_grid: true,
        on_screen: 1,
        left_out: 1,
    };
    report.sections.push(Section::new("evil", EVIL).about(EVIL).with([
        Block::Table(table),
        chart(names, Form::Bars { points: points.clone(), stacked: true }).into(),
        chart(Axis::time(), Form::Dots(points.clone())).into(),
        chart(log(), Form::Area(points)).into(),
        Block::Text(evil()),
        Bars::new(EVIL, vec![bar(f64::NAN), bar(1.0)]).into(),
        cells.into(),
    ]));
    let page = page(&report);
    assert!(!page.contains("<script>alert"), "a text became a script");
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(page.matches("</script>").count(), 2, "its data and its script end where they do");
    let shapes = page.split("<svg class=\"shapes\"").skip(1);
    for shape in shapes.map(|rest| &rest[..rest.find("</svg>").unwrap()]) {
        assert!(!shape.contains("NaN") && !shape.contains("inf"), "{shape}");
    }
}

#[test]
fn no_row_of_charts_has_a_hole() {
    let axis = || Axis::new("", Measure::Count);
    let widths = |charts: usize, third: bool| -> Vec<String> {
        let chart = |n: usize| {
            let line = Form::line([(0.0, Some(1.0))]);
            let chart =
                Chart::new(format!("c{n}"), "C", axis(), axis()).layer("", Color::Grey, line);
            if third { chart.third() } else { chart }
        };
        let sections = vec![Section::new("one", "One").with((0..charts).map(chart))];
        let page = page(&Report { sections, ..Report::default() });
        let classes = page.split("<figure class=\"chart ").skip(1);
        classes.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(widths(3, false), ["half", "half", "whole"]);
    assert_eq!(widths(5, true), ["third", "third", "third", "half", "half"]);
    assert_eq!(widths(3, true), ["third"; 3]);
}

#[test]
fn nothing_at_all_still_makes_a_page() {
    assert!(page(&Report::default()).contains("</html>"));
    let axis = || Axis::new("", Measure::Count);
    for x in [axis(), axis().log(), Axis::time(), Axis::names("", Vec::new())] {
        let mut chart = Chart::new("empty", "Empty", x, axis());
        let form = Form::line([]);
        // `layer` would leave it out.
        chart.layers.push(Layer { name: "a".to_owned(), color: Color::Grey, form });
        assert!(of_chart(chart).contains("<svg"));
    }
}

#[test]
fn headings_tables_and_charts_have_what_screen_readers_need() {
    let page = page(&sample::report());
    assert!(page.contains("<html lang=\"en\">"));
    assert_eq!(page.matches("<h1").count(), 1);
    assert_eq!(page.matches("<th>").count(), 0, "each heading cell has a scope");
    assert_eq!(page.matches("<table").count(), page.matches("<caption").count());
    let charts = page.matches("<figure").count();
    assert_eq!(page.matches("role=\"img\" aria-labelledby=").count(), charts);
    let mut last = 1;
    for level in
        page.match_indices("<h").filter_map(|(at, _)| page[at + 2..].chars().next()?.to_digit(10))
    {
        assert!(level <= last + 1, "h{level} after h{last}");
        last = level;
    }
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique");
    for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(ids.contains(&link), "#{link} leads nowhere");
    }
}

#[test]
fn condemned_numbers_are_struck_through_and_what_is_missing_says_why() {
    let page = page(&sample::report());
    assert!(page.contains("<p class=\"value\"><s>812</s>"));
    assert!(page.contains("title=\"condemned: hole\""));
    assert!(page.contains("<s>1,507</s>"));
    assert!(page.contains("title=\"not in this version\">n/v</td>"));
    assert!(page.contains("title=\"95 %: 1,210 – 1,253; 12,345 samples\">±2 %</small>"));
    assert!(page.contains("class=\"dot hole k0\""), "condemned points are hollow");
    let missing = Value::Missing(Missing::NotPermitted);
    assert_eq!(blockstone_report::cell(&missing, Measure::Count), "n/p");
}

#[test]
fn a_rule_that_concerns_most_figures_is_named_once_above_them() {
    let page_of = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("figure_{number}")).collect();
        let card = |name: &String| Card::exact(name.clone(), name.clone(), 1.0, "IOPS");
        let concerns: Vec<&str> = names.iter().map(String::as_str).collect();
        let rule = |name, concerns| sample::verdict(name, Outcome::Fail, Weight::Warns, concerns);
        page(&Report {
            cards: names.iter().map(card).collect(),
            verdicts: vec![rule("noisy", &concerns), rule("unsteady", &concerns[..1])],
            ..Report::default()
        })
    };
    let many = page_of(6);
    assert!(many.contains("noisy concerns 6 of 6 figures: <a href=\"#verdict-1\">"), "{many}");
    assert!(!many.contains("see: noisy") && many.contains("see: unsteady"));
    let few = page_of(3);
    assert!(!few.contains("concerns 3 of 3") && few.contains("see: noisy"));
}

#[test]
fn figures_stand_before_tables_and_after_a_chart() {
    let mut report = sample::report();
    report.sections.retain(|section| !section.blocks.is_empty());
    let at = |page: &str, part: &str| page.find(part).unwrap_or(usize::MAX);
    let is_chart = |section: &Section| matches!(section.blocks[0], Block::Chart(_));
    report.sections.sort_by_key(|section| !is_chart(section));
    let with_chart = page(&report);
    assert!(at(&with_chart, "<figure") < at(&with_chart, "class=\"group\""));
    report.sections.retain(|section| !is_chart(section));
    let without = page(&report);
    assert!(at(&without, "class=\"group\"") < at(&without, "<table"));
}

#[test]
fn the_text_of_the_terminal_stands_on_the_page() {
    let report = sample::report();
    let style = blockstone_report::render::terminal::Style { color: false, width: 100 };
    let text = blockstone_report::render::terminal::text(&report, true, &style);
    let line = text.lines().find(|line| line.contains("db file sequential read")).unwrap();
    assert!(page(&report).contains(line), "{line}");
}
