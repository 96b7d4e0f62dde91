//! Words, colours and labels, above all of charts.

use blockstone_base::table::{Measure, Table, count};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::{Report, Section};

use super::{of_chart, page};

fn chart(title: &'static str) -> Chart {
    Chart::new("one", title, Axis::new("time", Measure::Count), Axis::new("", Measure::Count))
}

fn line(ys: [f64; 2], dashed: bool) -> Form {
    let points = ys.iter().enumerate().map(|(x, y)| (x as f64, Some(*y)).into()).collect();
    Form::Line { points, dashed, marks: false }
}

#[test]
fn a_title_is_not_repeated_by_legend_or_axis() {
    let mut plain = chart("Reads a second").layer("reads", Color::Series(0), line([5.0; 2], false));
    plain.y.title = "reads a second".into();
    let page = of_chart(plain);
    assert!(!page.contains("class=\"legend\"") && !page.contains("<span class=\"axis\">"));
    let device = chart("Reads a second").layer("vda", Color::Series(0), line([5.0; 2], false));
    assert!(of_chart(device).contains("</i>vda</li>"));
}

#[test]
fn what_a_section_says_is_not_repeated_below_its_table() {
    let mut table = Table::new("load", "Load", vec![count("reads", "reads", "")]).about("Calls.");
    table.push([5.0.into()]);
    let sections = vec![Section::new("load", "Load").about("Calls.").with([table])];
    let page = page(&Report { sections, ..Report::default() });
    assert_eq!(page.matches(">Calls.<").count(), 1);
}

#[test]
fn a_dashed_line_may_share_the_colour_of_a_solid_one() {
    let chart = chart("Latencies")
        .layer("p50", Color::Series(0), line([1.0; 2], false))
        .layer("p99", Color::Series(0), line([2.0; 2], true))
        .layer("other", Color::Series(0), line([3.0; 2], false));
    let page = of_chart(chart);
    for entry in ["k0\"><i class=\"line\"></i>p50", "k0\"><i class=\"dashed\"></i>p99"] {
        assert!(page.contains(entry), "{entry}");
    }
    assert!(page.contains("k1\"><i class=\"line\"></i>other"));
}

#[test]
fn levels_hide_neither_lines_nor_names() {
    let chart = chart("Rates")
        .layer("takes", Color::Series(0), line([45.7e3; 2], false))
        .level(48.8e3, "required")
        .band(0.0, 1.0, "spare left");
    let page = of_chart(chart);
    let band = page.find(">spare left</text>").unwrap();
    let label = &page[page[..band].rfind("<text").unwrap()..band];
    assert!(label.ends_with("y=\"26\""), "{label}");
    assert!(page.find("class=\"s da k23\"").unwrap() < page.find("class=\"s k0\"").unwrap());
}

#[test]
fn things_that_are_counted_have_no_fractions() {
    let points: Vec<Point> = vec![(0.0, Some(2.0)).into()];
    let names = Axis::names("", vec!["< 256 µs".to_owned()]);
    let bars = Form::Bars { points, stacked: false };
    let chart = Chart::new("calls", "Calls", names, Axis::new("calls", Measure::Count)).layer(
        "read",
        Color::Series(0),
        bars,
    );
    let page = of_chart(chart);
    assert!(page.contains(">2</text>") && !page.contains(">1.5</text>"));
}

#[test]
fn code_is_set_as_code_and_a_document_is_named_in_words() {
    let notes = vec!["`flash fit <RUN>` says it; 5` remain".to_owned()];
    let page = page(&Report { verb: "flash-cliff".into(), notes, ..Report::default() });
    assert!(page.contains("<li><code>flash fit &lt;RUN&gt;</code> says it; 5` remain</li>"));
    assert!(page.contains("<h1>flash cliff</h1>") && !page.contains("flash-cliff"));
}
