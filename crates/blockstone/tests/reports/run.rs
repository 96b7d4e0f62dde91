//! A workload run rendered as a screen, a document, a page and a line.

use blockstone_base::rng::Rng;
use blockstone_base::table::{Measure, Merge, Row, Table, Value as Cell};
use blockstone_base::{Capability, Estimate, LatencyHistogram};
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
use crate::run_fixture::{
    self, bulk_write, calibration, matrix, noise, order_entry, readers, without_database,
};

const SHARES: [u64; 5] = [45, 43, 4, 4, 4];

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

/// Returns the reports of all forms of runs.
pub fn reports() -> Vec<Report> {
    let forms = [matrix(), noise(), readers(), order_entry(SHARES), bulk_write()];
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
    assert!(screen.lines().count() <= 94, "{} lines", screen.lines().count());
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
fn a_bulk_write_says_both_paces_and_what_a_byte_took() {
    let screen = screen(&found(&bulk_write(), None));
    for words in ["as returned", "with the flush", "create-table", "Written by its processes"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
}

#[test]
fn noise_stands_before_what_the_sessions_did_without_it() {
    let screen = screen(&found(&noise(), None));
    let end = screen.find("Load profile").unwrap();
    expect("run-noise.txt", &screen[..end]);
}

#[test]
fn a_calibration_is_in_a_heading_if_there_is_one() {
    let heading = |run: &Run| {
        let sections = run.report().sections;
        sections.into_iter().find(|section| section.id == "laws").unwrap().heading
    };
    assert_eq!(heading(&found(&noise(), None)), "Little's law");
    assert_eq!(heading(&healthy()), "Little's law, and the calibration of this path");
}

#[test]
fn charts_over_time_show_which_window_has_noise() {
    let chart = chart(&found(&noise(), None).report(), "active-sessions").unwrap();
    let bands: Vec<&str> = chart.bands.iter().map(|band| &*band.name).collect();
    assert_eq!(bands, ["load", "quiet", "noisy"]);
}

#[test]
fn forms_of_runs_have_charts_of_their_own() {
    let forms = [
        ("run", healthy()),
        ("run-scan", found(&matrix(), None)),
        ("run-noise", found(&noise(), None)),
        ("run-oltp", found(&order_entry(SHARES), None)),
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
    assert!(headline.contains(" 300 commits/s"), "{headline}");
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
    let oltp = found(&order_entry(SHARES), None);
    let tables = found(&bulk_write(), None);
    let others = vec![without_database, readers, matrix, noise, oltp, tables];
    for run in [healthy(), condemned(), unfinished()].into_iter().chain(others) {
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
        let value = document["figures"][name]["value"].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-6, "{name}: {value}");
    }
    let wait = &document["tables"]["database-time"][2];
    assert_eq!(wait["event"], "db file sequential read");
    assert_eq!((&wait["waits"], &wait["time_ns"]), (&json!(60_000), &json!(140_000_000_000_u64)));
    assert_eq!(document["tables"]["io-roles"].as_array().unwrap().len(), 3);
    let run = condemned();
    let document = run.document();
    let figure = &document["figures"]["read_iops"];
    assert!(figure.get("value").is_none(), "{figure:#}");
    assert_eq!(figure["condemned_by"], json!(["memory-test"]));
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
    // The activities of sessions add up to the database time: 15.6 sessions were active.
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

/// Tables that change with the window chosen on the page of a run: those made of counters and
/// latencies.
const FOLLOW: [&str; 13] = [
    "load",
    "top-events",
    "disks",
    "host",
    "load-profile",
    "database-time",
    "classes",
    "background-events",
    "io-roles",
    "io-disks",
    "ledger",
    "littles-law",
    "latencies",
];

#[test]
fn slices_of_time_have_the_tables_that_the_page_shows() {
    let report = healthy().report();
    let timeline = report.timeline.as_ref().unwrap();
    assert!(timeline.edges_ns.is_sorted() && timeline.edges_ns.len() > 2);
    for sliced in &timeline.tables {
        assert!(report.tables().any(|table| table.name == sliced.table), "{}", sliced.table);
        assert_eq!(sliced.rows.len() + 1, sliced.edges_ns.len(), "{}", sliced.table);
        let ends = |edges: &[u64]| (edges.first().copied(), edges.last().copied());
        assert_eq!(ends(&sliced.edges_ns), ends(&timeline.edges_ns), "{}", sliced.table);
    }
    let follow: Vec<&str> = timeline.tables.iter().map(|sliced| &*sliced.table).collect();
    assert_eq!(follow, FOLLOW);
}

/// The healthy sessions, working intermittently, each object at times of its own; waits are counted
/// in different ticks from those that contain their time.
fn uneven(seed: u64) -> RecordingBuilder {
    const OBJECTS: &[(&str, &[&str], &[&str])] = &[
        (
            "instance",
            &[""],
            &[
                "logical_reads",
                "physical_reads",
                "physical_writes",
                "redo_bytes",
                "commits",
                "db_time_ns",
                "outside_sampled_ns",
                "outside_sampled_cpu_ns",
                "outside_sampled_blocked_ns",
            ],
        ),
        (
            "operation",
            &["select", "update"],
            &["completed_ops", "rows", "commits", "service_ns_sum"],
        ),
        ("role", &["session", "dbwr", "lgwr"], IO),
        ("disk", &["/d1", "/d2"], IO),
        ("process", &[""], &["read_bytes", "cpu_user_ns"]),
        ("block", &["vda"], &["read_bytes", "write_bytes"]),
        (
            "event",
            &[
                "session/db file sequential read",
                "session/log file sync",
                "session/CPU",
                "dbwr/db file parallel write",
                "lgwr/CPU",
            ],
            &["waits", "time_ns"],
        ),
    ];
    const IO: &[&str] =
        &["read_ios", "read_bytes", "read_ns", "write_ios", "write_bytes", "write_ns"];
    let mut run = run_fixture::healthy();
    let mut rng = Rng::new(seed, 0);
    for (probe, objects, columns) in OBJECTS {
        for object in *objects {
            let mut draw =
                || (0..100).map(|_| rng.below(7).saturating_sub(4)).collect::<Vec<u64>>();
            let mut work = draw();
            for (place, column) in columns.iter().enumerate() {
                if *probe == "event" {
                    work = draw();
                }
                // Sessions spend more time in calls than in waits.
                let calls = if *column == "db_time_ns" { 8 } else { 1 };
                let unit = calls * (1_000_000 + 37_000 * place as u64);
                let mut stands = 1_000;
                let steps = work.iter().map(|work| {
                    stands += work * unit;
                    stands
                });
                let numbers = std::iter::once(1_000).chain(steps).collect();
                run.last().read((probe, object), column, numbers);
            }
        }
    }
    for row in &mut run.last().histograms {
        let mut histogram = LatencyHistogram::new();
        for _ in 0..rng.below(400) {
            histogram.record(1_000 + (1 << rng.below(24)) + rng.below(1_000_000));
        }
        row.histogram = histogram;
    }
    run
}

fn names(table: &Table, row: &Row) -> Vec<Cell> {
    let cells = table.columns.iter().zip(&row.cells);
    cells.filter(|(column, _)| column.merge == Merge::Key).map(|(_, cell)| cell.clone()).collect()
}

/// Returns an estimated rate without the estimation: the count ÷ the window. `None` if the table
/// does not contain it.
fn plain(table: &Table, row: &Row, estimate: &Estimate) -> Option<f64> {
    let rate = |estimate: &Estimate| estimate.samples as f64 * 1e9 / estimate.duration_ns as f64;
    if table.name != "load-profile" {
        return Some(rate(estimate));
    }
    let commits = table.rows.iter().find(|row| row[0] == "Transactions".into())?;
    let Cell::Estimate(commits) = &commits[1] else { return None };
    Some(row[2].number()? * rate(commits))
}

/// Compares each table of findings, over all slices of its window, with the one that the page shows
/// first, and counts the numbers that agree. Views have a test of their own.
fn check_slices(run: &Run) -> usize {
    let report = run.report();
    let timeline = report.timeline.as_ref().unwrap();
    let phases = &run.recording.manifest.phases;
    let phase = phases.iter().find(|phase| phase.label == run.findings.label).unwrap();
    let mut compared = 0;
    for sliced in timeline.tables.iter().filter(|it| it.rows.iter().any(Option::is_none)) {
        let table = report.tables().find(|table| table.name == sliced.table).unwrap();
        let merged = timeline.window(table, phase.window_start_ns, phase.window_end_ns);
        assert_eq!(merged.len(), table.rows.len(), "{}", table.name);
        for row in &table.rows {
            let mut rows = merged.iter();
            let found = rows.find(|it| names(table, it) == names(table, row)).unwrap();
            for (index, column) in table.columns.iter().enumerate() {
                let what = format!("{} {} of {row:?}: {:?}", table.name, column.key, found[index]);
                let (whole, off) = match &row[index] {
                    Cell::Number(number) => (*number, 1e-6),
                    Cell::Estimate(estimate) if column.is_plain || estimate.is_lower_bound() => {
                        (estimate.value, 1e-3)
                    }
                    // For a rate that never changes, the estimate is off in its last unit.
                    Cell::Estimate(estimate) => match plain(table, row, estimate) {
                        Some(rate) => (rate, 1e-6),
                        None => (estimate.value, 1e-3),
                    },
                    cell => {
                        let same = *cell == found[index] || column.merge == Merge::Never;
                        assert!(same, "{what}");
                        continue;
                    }
                };
                if column.merge == Merge::Never {
                    continue;
                }
                compared += 1;
                let merged = found[index].number().unwrap_or_else(|| panic!("{what}"));
                let is_count = column.merge == Merge::Sum && column.measure == Measure::Count;
                let most = match column.merge {
                    _ if is_count => 0.0,
                    Merge::Quantile(_) => whole / 16.0 + 1.0,
                    // Scaled times are whole nanoseconds in each slice.
                    _ if whole.abs() < 1e3 => 1e-4,
                    _ => (whole * off).abs().max(100.0 * f64::from(column.measure == NS)),
                };
                assert!((merged - whole).abs() <= most, "{what}");
            }
        }
    }
    compared
}

const NS: Measure = Measure::Nanoseconds;

#[test]
fn slices_merge_into_the_tables_of_every_form_of_run() {
    let forms = [noise(), readers(), matrix(), without_database()];
    for form in [run_fixture::healthy()].into_iter().chain(forms) {
        assert!(check_slices(&found(&form, None)) > 20);
    }
}

#[test]
fn slices_of_uneven_work_merge_into_the_tables_of_its_window() {
    for seed in 0..4 {
        assert!(check_slices(&found(&uneven(seed), None)) > 150);
    }
}

#[test]
fn awr_info_has_the_columns_of_slob() {
    let run = healthy();
    let report = run.report();
    let text = blockstone_cli::reports::awr_info(&report).unwrap();
    let [head, values] = text.lines().collect::<Vec<_>>()[..] else { panic!("two lines") };
    assert!(head.starts_with("FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS"));
    assert_eq!(
        values,
        "run|16|10|0.80|15.60|1500|6400|6000|49.2|1200|12.3|2.40|2333|||10000|1500|\
         db file sequential read 60,000 89.7%"
    );
    assert_eq!(head.matches('|').count(), values.matches('|').count());
}
