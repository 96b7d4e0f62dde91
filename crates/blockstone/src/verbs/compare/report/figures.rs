//! The report of a comparison of figures.

use blockstone_base::Estimate;
use blockstone_base::table::{Measure, Row as Cells, Rows as _, Table};
use blockstone_figures::compare::{Comparison, Outcome, Row, Subject};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Report, Section};

use super::rows::{FigureLine, FigureRow, Summary};

/// Table of the document.
pub const TABLES: Tables = &[("rows", FigureRow::COLUMNS)];

/// Tables for people.
pub const FOR_PEOPLE: &[&str] = &["figures", "points"];

/// Points on a screen: those that differ most. The page, JSON and CSV contain all.
const POINTS: usize = 12;

pub fn report(comparison: &Comparison) -> Report {
    let (figures, mut points): (Vec<&Row>, Vec<&Row>) =
        comparison.rows.iter().partition(|row| row.key.figure.is_empty());
    points.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let differing = points.iter().take_while(|row| change(row) > 0.0).count().min(POINTS);
    let mut of_points = table("points", "Points that differ most", &points).on_screen(differing);
    if points.len() > differing {
        let others = super::counted(points[differing..].iter().copied(), ", ");
        of_points.notes.push(format!("Other numbers of single points: {others}."));
    }
    let mut of_figures = Section::new("figures", "Figures");
    of_figures = of_figures.with([table("figures", "Figures", &figures)]).with(chart(&figures));
    let of_points = Section::new("points", "Points that differ most").with([of_points]);
    let sections = vec![of_figures, of_points];
    let rows = Table::new("rows", "", FigureRow::COLUMNS);
    let rows = rows.with(comparison.rows.iter().filter_map(FigureRow::of));
    Report {
        scalars: Some(Summary::table("compare", "", [Summary::of(comparison)])),
        ..super::report("compare", comparison, sections, rows)
    }
}

/// Chart of the ratios with their intervals, for the page.
fn chart(rows: &[&Row]) -> Option<Chart> {
    let known = rows.iter().filter(|row| row.outcome != Outcome::Condemned);
    let known: Vec<(&&Row, Estimate)> = known.filter_map(|row| Some((row, row.ratio?))).collect();
    let names = known.iter().map(|(row, _)| row.title.clone()).collect();
    let of = |is_established: bool| -> Vec<Point> {
        let those = known.iter().enumerate();
        let those = those.filter(|(_, (row, _))| row.outcome.is_established() == is_established);
        let point = |(place, (_, ratio)): (usize, &(&&Row, Estimate))| Point {
            x: place as f64,
            y: Some(ratio.value),
            interval: Some((ratio.low, ratio.high)),
            condemned: false,
        };
        those.map(point).collect()
    };
    let ratio = Axis::new("B \u{f7} A", Measure::Ratio).log();
    let chart = Chart::new("ratios", "B \u{f7} A", Axis::names("", names), ratio)
        .wide(320)
        .about("With 95 % intervals. At 1\u{d7} both are alike.")
        .level(1.0, "alike")
        .layer("different", Color::Series(1), Form::Dots(of(true)))
        .layer("not established", Color::Grey, Form::Dots(of(false)));
    (!known.is_empty()).then_some(chart)
}

/// Returns the size of an established difference, the same for ½ as for 2; zero if there is none.
fn change(row: &Row) -> f64 {
    let established = row.outcome.is_established();
    row.ratio.filter(|_| established).map_or(0.0, |ratio| ratio.value.ln().abs())
}

fn table(name: &'static str, title: &'static str, rows: &[&Row]) -> Table {
    Table::new(name, title, FigureLine::COLUMNS).with(rows.iter().map(|row| cells(row)))
}

fn cells(row: &Row) -> Cells {
    let Subject::Measured { label, unit, .. } = &row.key.subject else { return Cells::default() };
    let figure = match row.key.figure.as_str() {
        "iops" => "IOPS",
        "mb_per_s" => "MB/s",
        "latency_ns_p50" => "p50",
        "latency_ns_p99" => "p99",
        other => other,
    };
    let (measure, unit) = match unit.as_str() {
        "ns" => (Measure::Nanoseconds, ""),
        unit => (Measure::Count, unit),
    };
    let name = if row.is_headline() { &row.title } else { label };
    let figure = format!("{name} {figure}").trim_end().to_owned();
    let [a, b, ratio, outcome] = super::cells(row);
    let line = FigureLine { figure, a, b, ratio, outcome, unit: unit.to_owned() };
    Cells::from(line).of(measure).condemned_by(&row.condemned_by)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blockstone_base::Estimate;
    use blockstone_figures::compare::{Figure, Key, Recorded, Source};
    use blockstone_report::render::terminal::Style;
    use blockstone_report::render::{csv, html, json, terminal};

    use super::*;

    /// Makes a recording whose figures are given by label, figure and value.
    fn source(id: &str, minute: u8, figures: &[(&str, &str, f64)]) -> Source {
        let recorded = Recorded {
            recording: format!("runs/{id}"),
            id: id.to_owned(),
            started_at: format!("2026-01-02T03:{minute:02}:05.5Z"),
            host: "db1".to_owned(),
            target: "/data".to_owned(),
            device: Some("vda".to_owned()),
            block_bytes: Some(if minute == 9 { 4_096 } else { 8_192 }),
            span_bytes: None,
            direct: Some(true),
            trustworthy: id != "other",
            from_ns: None,
            to_ns: None,
            facts: BTreeMap::default(),
        };
        let figure = |(label, figure, value): &(&str, &str, f64)| {
            let lower_is_faster = label.contains("latency");
            let unit = if lower_is_faster { "ns" } else { "IOPS" }.to_owned();
            let subject = Subject::Measured { label: (*label).to_owned(), unit, lower_is_faster };
            let (value, low, high) = (*value, value * 0.9, value * 1.1);
            Figure {
                key: Key { subject, figure: (*figure).to_owned() },
                title: (*label).to_owned(),
                estimate: Estimate { value, low, high, samples: 9, duration_ns: 1 },
                condemned_by: label
                    .starts_with("cached")
                    .then(|| "memory-test".into())
                    .into_iter()
                    .collect(),
                warned_by: Vec::new(),
                doubted: false,
                drift_ratio: 0.0,
                load: None,
            }
        };
        Source { recorded, figures: figures.iter().map(figure).collect() }
    }

    fn comparison() -> Comparison {
        let figures = [
            ("read_iops", "", 2_000.0),
            ("commit_latency_ns_p50", "", 2_000.0),
            ("cached_iops", "", 2_000.0),
            ("read/1", "iops", 2_000.0),
            ("read/2", "iops", 2_000.0),
            ("read/3", "iops", 2_000.0),
            ("read/4", "iops", 2_000.0),
        ];
        let ratios = [1.0, 2.0, 3.0, 1.01, 1.5, 0.25];
        let scaled: Vec<_> = figures
            .iter()
            .zip(ratios)
            .map(|((l, f, value), ratio)| (*l, *f, value * ratio))
            .collect();
        Comparison::of(&[source("one", 4, &figures)], &[source("other", 9, &scaled)])
    }

    #[test]
    fn the_document_keeps_to_its_schema_and_counts_every_row() {
        let document = json::document(&report(&comparison()));
        crate::testing::keeps_to_its_schema(&document);
        let counts = Outcome::ALL.map(|it| document[it.key().replace('-', "_")].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), 7);
        assert_eq!(document["tables"]["rows"].as_array().unwrap().len(), 7);
    }

    #[test]
    fn a_screen_shows_the_points_that_differ_most_first_and_counts_the_rest() {
        let style = Style { color: false, width: 100 };
        let text = terminal::text(&report(&comparison()), false, &style);
        for words in [
            "2 slower",
            "B is not trustworthy: other",
            "block size (bytes) differs",
            "not interleaved",
            "condemned: memory-test",
            "A /data on vda · db1 · 2026-01-02T03:04:05Z · one",
            "Other numbers of single points: 1 not established, 1 on one side",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        let [largest, other] = ["read/3", "read/2"].map(|label| text.find(label).unwrap());
        assert!(largest < other && !text.contains("read/1"), "{text}");
    }

    #[test]
    fn every_recording_of_a_set_is_named_and_counted() {
        let set = |ids: [(&str, u8); 2]| ids.map(|(id, at)| source(id, at, &[("iops", "", 5.0)]));
        let (a, b) = (set([("one", 1), ("two", 3)]), set([("three", 2), ("four", 4)]));
        let report = report(&Comparison::of(&a, &b));
        let ids: Vec<_> = report.identity.iter().map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(ids, ["one", "two", "three", "four"].map(Some));
        assert!(report.notes[0].contains("were interleaved"), "{:?}", report.notes);
        let document = json::document(&report);
        let recordings = document["tables"]["recordings"].as_array().unwrap();
        let sides: Vec<_> = recordings.iter().map(|it| [&it["side"], &it["id"]]).collect();
        assert_eq!(sides, [["a", "one"], ["a", "two"], ["b", "three"], ["b", "four"]]);
        assert_eq!(document["tables"]["rows"][0]["n_b"], 2);
        let first = json::earlier(&report);
        assert_eq!((&first["a"]["id"], &first["a"]["n"]), (&"one".into(), &2.into()));
        assert_eq!(first["b"]["recordings"][1]["id"], "four");
        assert_eq!(first["rows"][0]["n_b"], 2);
    }

    #[test]
    fn the_page_and_csv_have_every_point() {
        let report = report(&comparison());
        let page = html::page(&report).unwrap().replace("&#x2f;", "/");
        assert!(page.contains("read/1") && page.contains("slower"));
        let points = report.tables().find(|table| table.name == "points").unwrap();
        assert_eq!(csv::table(points, csv::Texts::Raw).lines().count(), 5);
    }
}
