//! A workload run as screen, document, page and line.

use blockstone_base::Capability;
use blockstone_judge::{RunFindings, find_run};
use blockstone_record::Recording;
use blockstone_record::manifest::{Manifest, NamedCapability};
use blockstone_record::testing::RecordingBuilder;
use blockstone_report::chart::{Chart, Color};
use blockstone_report::render::json::document as rendered;
use blockstone_report::render::terminal::{Style, text};
use blockstone_report::{Block, Report};
use serde_json::{Value, json};

use crate::calibrate::expect;
use crate::document::check;
use crate::run_fixture::{self, calibration, matrix, noise, readers, without_database};

struct Run {
    recording: Recording,
    findings: RunFindings,
    _dir: tempfile::TempDir,
}

fn found(fixture: &RecordingBuilder, calibration: Option<&Manifest>) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let recording = fixture.write(&dir.path().join("run"));
    let findings = find_run(&recording, calibration).unwrap();
    Run { recording, findings, _dir: dir }
}

fn healthy() -> Run {
    found(&run_fixture::healthy(), Some(&calibration()))
}

/// A run whose reads did not reach the storage.
fn condemned() -> Run {
    let mut fixture = run_fixture::healthy();
    fixture.set("process", "", "read_bytes", 8_190);
    found(&fixture, None)
}

impl Run {
    fn report(&self) -> Report {
        blockstone_cli::reports::run(&self.recording, &self.findings).unwrap()
    }

    fn document(&self) -> Value {
        rendered(&self.report())
    }
}

/// Reports of all forms of runs.
pub fn reports() -> Vec<Report> {
    let forms = [matrix(), noise(), readers()];
    let forms = forms.iter().map(|fixture| found(fixture, None).report());
    [healthy().report(), condemned().report()].into_iter().chain(forms).collect()
}

fn chart(report: &Report, name: &str) -> Option<Chart> {
    let mut blocks = report.sections.iter().flat_map(|section| &section.blocks);
    blocks.find_map(|block| match block {
        Block::Chart(chart) if chart.name == name => Some(chart.clone()),
        _ => None,
    })
}

fn screen(run: &Run) -> String {
    let screen = text(&run.report(), false, &Style { color: false, width: 100 });
    screen.replace(&run.recording.dir.display().to_string(), "RUN")
}

#[test]
fn the_screen_is_what_it_is() {
    let screen = screen(&healthy());
    assert!(screen.lines().count() <= 76, "{} lines", screen.lines().count());
    for line in screen.lines().skip(1) {
        assert!(line.chars().count() <= 100, "wider than the terminal: {line}");
    }
    expect("run.txt", &screen);
}

#[test]
fn a_matrix_is_a_table_of_reads_beside_the_waits_that_a_database_reports() {
    let screen = screen(&found(&matrix(), None));
    let end = screen.find("\n? ").unwrap();
    expect("run-scan.txt", &screen[..end]);
}

#[test]
fn noise_stands_before_what_the_sessions_did_without_it() {
    let screen = screen(&found(&noise(), None));
    let end = screen.find("Load profile").unwrap();
    expect("run-noise.txt", &screen[..end]);
}

#[test]
fn forms_of_runs_have_charts_of_their_own() {
    let forms = [
        ("run", healthy()),
        ("run-scan", found(&matrix(), None)),
        ("run-noise", found(&noise(), None)),
    ];
    let charts: [(&str, &[&str]); 2] = [
        ("run-scan", &["scan-throughput", "reads-and-reported-waits"]),
        ("run-noise", &["noisy-against-quiet"]),
    ];
    for (name, run) in &forms {
        let report = run.report();
        for (of, names) in &charts {
            for chart_name in *names {
                let there = chart(&report, chart_name).is_some();
                assert_eq!(there, of == name, "{chart_name} in {name}");
            }
        }
    }
}

#[test]
fn what_a_run_could_not_do_is_said() {
    let mut run = healthy();
    let why = Capability::degraded("no permission to raise a priority");
    let name = "background-priority".to_owned();
    run.recording.manifest.capabilities.push(NamedCapability { name, capability: why });
    let screen = screen(&run);
    assert!(screen.contains("- background-priority: no permission"), "{screen}");
}

#[test]
fn a_condemned_figure_is_struck_through_in_the_headline() {
    let screen = screen(&condemned());
    let headline = screen.lines().next().unwrap();
    assert!(headline.contains("~~6,000 reads/s~~"), "{headline}");
    assert!(headline.contains(" 800 writes/s"), "{headline}");
    assert!(screen.contains("✗ memory-test condemns"), "{screen}");
}

#[test]
fn documents_keep_to_the_schema() {
    let unfinished = || {
        let mut run = healthy();
        run.recording.manifest.phases.truncate(1);
        run.findings = find_run(&run.recording, None).unwrap();
        run
    };
    let without_database = found(&without_database(), None);
    let readers = found(&readers(), None);
    let matrix = found(&matrix(), None);
    let noise = found(&noise(), None);
    for run in [healthy(), condemned(), unfinished(), without_database, readers, matrix, noise] {
        check("run", &run.document());
    }
}

#[test]
fn scripts_find_what_they_were_promised() {
    let run = healthy();
    let document = run.document();
    for (name, expected) in [
        ("read_iops", 6_000.0),
        ("write_iops", 800.0),
        ("hardware_read_iops", 6_000.0),
        ("hardware_write_iops", 1_600.0),
        ("commits_per_s", 300.0),
        ("physical_reads_per_cpu_s", 7_500.0),
    ] {
        let value = document["summary"][name].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-6, "{name}: {value}");
    }
    let wait = &document["waits"][0];
    assert_eq!(wait["event"], "db file sequential read");
    assert_eq!((&wait["count"], &wait["time_ns"]), (&json!(60_000), &json!(140_000_000_000_u64)));
    assert_eq!(document["roles"].as_array().unwrap().len(), 4);
    let run = condemned();
    let document = run.document();
    assert_eq!(document["summary"]["read_iops"], json!(null));
    assert_eq!(document["condemned"]["read_iops"]["by"], json!(["memory-test"]));
}

#[test]
fn the_first_picture_is_sessions_by_wait_class_with_reads_writes_and_commits_below() {
    let run = healthy();
    let report = run.report();
    let first = &report.sections[0];
    let names = first.blocks.iter().map(|block| match block {
        Block::Chart(chart) => chart.name.to_string(),
        _ => String::new(),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["active-sessions", "reads", "writes", "commits"]);
    let sessions = chart(&report, "active-sessions").unwrap();
    let level = &sessions.levels[0];
    assert!((level.y - f64::from(run.recording.manifest.host.cpus)).abs() < 1e-9);
    let colors: Vec<Color> = sessions.layers.iter().map(|layer| layer.color).collect();
    assert!(colors.starts_with(&[Color::Cpu]), "{colors:?}");
    assert!(colors.contains(&Color::UserIo) && colors.contains(&Color::Commit), "{colors:?}");
    // All that sessions did adds up to the database time: 15.6 of them were active.
    let layers = sessions.layers.iter().map(|layer| {
        let values: Vec<f64> = layer.form.points().iter().filter_map(|point| point.y).collect();
        values.iter().sum::<f64>() / values.len() as f64
    });
    let active: f64 = layers.sum();
    assert!((active / 15.6 - 1.0).abs() < 0.05, "{active}");
    let reads = chart(&report, "reads").unwrap();
    let y = reads.layers[0].form.points().iter().rev().find_map(|point| point.y).unwrap();
    assert!((y / 6_000.0 - 1.0).abs() < 0.05, "{y}");
    for name in ["role-reads", "disk-writes", "latencies-over-time", "processors"] {
        assert!(chart(&report, name).is_some(), "{name}");
    }
}

#[test]
fn slices_of_time_have_the_tables_that_the_page_shows() {
    let report = healthy().report();
    let timeline = report.timeline.as_ref().unwrap();
    assert!(timeline.edges_ns.is_sorted() && timeline.edges_ns.len() > 2);
    for (name, slices) in &timeline.tables {
        assert!(report.tables().any(|table| table.name == *name), "{name}");
        assert_eq!(slices.len() + 1, timeline.edges_ns.len(), "{name}");
    }
    assert!(timeline.tables.iter().any(|(name, _)| name == "load"));
}

#[test]
fn awr_info_has_the_columns_of_slob() {
    let run = healthy();
    let document = run.document();
    let text = document["awr_info"].as_str().unwrap();
    let [head, values] = text.lines().collect::<Vec<_>>()[..] else { panic!("two lines") };
    assert!(head.starts_with("FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS"));
    assert_eq!(
        values,
        "run|16|10|0.80|15.60|1500|6400|6000|49.2|1200|12.3|2.40|2333|||10000|1500|\
         db file sequential read 60,000 89.7%"
    );
    assert_eq!(head.matches('|').count(), values.matches('|').count());
}
