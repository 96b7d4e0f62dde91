//! Properties that every report of a recording has.

use std::collections::BTreeSet;

use blockstone_base::Capability;
use blockstone_base::table::{Heading, Table};
use blockstone_record::manifest::End;
use blockstone_report::chart::{Chart, Scale};
use blockstone_report::render::{csv, html};
use blockstone_report::{Block, Detail, Report};

use crate::fixture::Fixture;
use crate::run;

pub fn calibration(fixture: &Fixture) -> Report {
    blockstone_cli::reports::calibration(&fixture.recording, &fixture.findings).unwrap()
}

fn all() -> Vec<Report> {
    let calibrations = Fixture::all();
    calibrations.iter().map(calibration).chain(run::reports()).collect()
}

fn charts(report: &Report) -> Vec<&Chart> {
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let charts = blocks.filter_map(|block| match block {
        Block::Chart(chart) => Some(chart),
        _ => None,
    });
    charts.collect()
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    for name in names {
        assert!(!name.is_empty() && seen.insert(name), "{name} is not a name of its own");
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(kebab), "{name} is not in kebab case");
    }
}

#[test]
fn sections_tables_charts_and_columns_have_names_of_their_own() {
    for report in all() {
        unique(report.sections.iter().map(|section| &*section.id));
        let on_page = report.sections.iter().filter(|part| part.detail != Detail::Terminal);
        let headings: Vec<&str> = on_page.map(|part| &*part.heading).collect();
        let distinct: BTreeSet<&str> = headings.iter().copied().collect();
        assert_eq!(distinct.len(), headings.len(), "{headings:?}");
        unique(report.tables().map(|table| &*table.name));
        unique(charts(&report).into_iter().map(|chart| &*chart.name));
        for table in report.tables() {
            let keys: BTreeSet<&str> = table.columns.iter().map(|c| &*c.key).collect();
            assert_eq!(keys.len(), table.columns.len(), "{} has a key twice", table.name);
            assert!(table.columns.iter().all(|c| !c.doc.is_empty()), "{}", table.name);
            // The first column may name the rows without saying what they are.
            let mut others = table.columns.iter().skip(1);
            let is_headed = |c: &Heading| !c.heading.is_empty();
            assert!(!others.clone().any(is_headed) || others.all(is_headed), "{}", table.name);
            assert!(
                csv::table(table, csv::Texts::Raw).lines().count() > table.rows.len(),
                "{}",
                table.name
            );
        }
    }
}

#[test]
fn every_row_has_a_cell_for_each_column() {
    let whole = |table: &Table| table.rows.iter().all(|row| row.len() == table.columns.len());
    for report in all() {
        for table in report.tables() {
            assert!(!table.rows.is_empty() && whole(table), "{}", table.name);
        }
    }
}

#[test]
fn every_chart_has_a_title_and_points_at_known_places() {
    for report in all() {
        assert!(charts(&report).len() >= 4, "{}", report.verb);
        for chart in charts(&report) {
            assert!(!chart.title.is_empty() && !chart.layers.is_empty(), "{}", chart.name);
            let points = || chart.layers.iter().flat_map(|layer| layer.form.points());
            assert!(points().any(|point| point.y.is_some()), "{}", chart.name);
            let finite = |y: Option<f64>| y.is_none_or(f64::is_finite);
            assert!(points().all(|p| p.x.is_finite() && finite(p.y)), "{}", chart.name);
            if let Scale::Names(names) = &chart.x.scale {
                assert!(points().all(|p| (p.x as usize) < names.len()), "{}", chart.name);
            }
        }
    }
}

#[test]
fn what_a_rule_condemns_is_marked_in_cards_tables_and_charts_and_is_no_headline() {
    let clean = calibration(&Fixture::clean());
    assert_eq!(clean.headline.figures.len(), 3);
    let report = calibration(&Fixture::condemned());
    assert!(!report.trustworthy() && report.headline.figures.is_empty());
    assert!(report.cards.iter().all(|card| card.condemned_by == ["memory-test"]));
    let of_points = ["random-reads", "given-rate", "commits", "mixed-reads", "rates", "latencies"];
    for name in of_points {
        let table = report.tables().find(|table| table.name == name).unwrap();
        assert!(table.rows.iter().all(|row| row.condemned_by == ["memory-test"]), "{name}");
    }
    for name in ["read-latency-against-iops", "cache-map", "commit-by-method", "large-reads"] {
        let of = |report: &Report, condemned: bool| {
            let charts = charts(report);
            let chart = charts.into_iter().find(|chart| chart.name == name).unwrap().clone();
            let mut points = chart.layers.iter().filter(|l| l.name != "knee");
            points.all(|layer| layer.form.points().iter().all(|p| p.condemned == condemned))
        };
        assert!(of(&clean, false) && of(&report, true), "{name}");
    }
}

#[test]
fn of_two_points_in_a_row_only_the_condemned_one_is_struck() {
    let mut fixture = Fixture::clean();
    let of = |report: &Report, name: &str| {
        report.tables().find(|table| table.name == name).unwrap().clone()
    };
    let before = calibration(&fixture);
    for label in ["random-read/uring/d8", "commit/fsync/append/8K/x1"] {
        let point = fixture.findings.points.iter_mut().find(|p| p.label == label).unwrap();
        point.condemned_by = vec!["hole".to_owned()];
    }
    let after = calibration(&fixture);
    for name in ["random-reads", "commits"] {
        let (before, after) = (of(&before, name), of(&after, name));
        assert_eq!(after.rows.len(), before.rows.len(), "{name}");
        let condemned: Vec<_> =
            after.rows.iter().filter(|row| !row.condemned_by.is_empty()).collect();
        assert_eq!(condemned.len(), 1, "{name}");
        // The point is in the right half of the row.
        let middle = after.columns.len() / 2;
        for column in 0..after.columns.len() {
            let struck = after.condemns(condemned[0], column);
            let is_number = condemned[0][column].number().is_some();
            assert_eq!(struck, is_number && column > middle, "{name}: {column}");
        }
    }
    let page = html::page(&after).unwrap();
    for row in page.lines().filter(|line| line.contains("data-condemned=")) {
        let (struck, stands): (Vec<&str>, Vec<&str>) =
            row.split("<td").skip(1).partition(|cell| cell.contains("<s>"));
        assert!(!struck.is_empty() && !stands.is_empty(), "{row}");
        assert!(!row.contains("<th scope=\"row\" class=\"n\"><s>"), "{row}");
    }
}

#[test]
fn texts_from_the_recording_cannot_become_markup() {
    const EVIL: &str = "/tmp/<script>alert(1)</script>&\"'";
    let mut fixture = Fixture::clean();
    let manifest = &mut fixture.recording.manifest;
    EVIL.clone_into(&mut manifest.target.path);
    EVIL.clone_into(&mut manifest.host.hostname);
    EVIL.clone_into(&mut manifest.file.as_mut().unwrap().path);
    manifest.argv = vec![EVIL.to_owned()];
    manifest.settings.insert(EVIL.to_owned(), EVIL.into());
    manifest.target.direct_io.capability = Capability::degraded(EVIL);
    manifest.target.devices[0].model = Some(EVIL.to_owned());
    manifest.end = End::Failed { error: EVIL.to_owned(), hint: Some(EVIL.to_owned()), errno: None };
    manifest.phases[3].note = Some(EVIL.to_owned());
    EVIL.clone_into(&mut fixture.findings.verdicts[0].evidence);
    for label in ["random-read/psync/x1", "cache-map/4M"] {
        let point = fixture.findings.points.iter_mut().find(|p| p.label == label).unwrap();
        point.condemned_by = vec![EVIL.to_owned()];
        point.label.push_str(EVIL);
    }
    fixture.findings.summary[0].1.condemned_by = vec![EVIL.to_owned()];
    let page = html::page(&calibration(&fixture)).unwrap();
    assert!(!page.contains("<script>alert"), "a path became a script");
    assert!(page.contains("&lt;script"));
}

#[test]
fn an_unfinished_recording_says_so() {
    for (end, words) in [
        (End::Interrupted { signal: "SIGTERM".to_owned() }, "Interrupted by SIGTERM"),
        (
            End::Failed { error: "write vda: EIO".to_owned(), hint: None, errno: Some(5) },
            "Failed (write vda: EIO)",
        ),
        (End::Running, "Not finished"),
    ] {
        let mut fixture = Fixture::interrupted();
        fixture.recording.manifest.end = end;
        let report = calibration(&fixture);
        assert!(report.warnings[0].contains(words), "{words}");
        assert!(html::page(&report).unwrap().contains(words), "{words}");
    }
}

#[test]
fn nothing_measured_still_renders() {
    let mut fixture = Fixture::interrupted();
    fixture.findings.points.clear();
    fixture.findings.summary.clear();
    fixture.findings.verdicts.clear();
    fixture.recording.manifest.phases.clear();
    fixture.recording.manifest.file = None;
    let report = calibration(&fixture);
    assert!(html::page(&report).unwrap().contains("ended before it was measured"));
}
