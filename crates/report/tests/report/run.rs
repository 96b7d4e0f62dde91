//! A workload run as screen, document, page and line.

use blockstone_base::Capability;
use blockstone_judge::{RunFindings, find_run};
use blockstone_record::Recording;
use blockstone_record::manifest::{Manifest, NamedCapability};
use blockstone_report::json::run_json;
use blockstone_report::terminal::{Style, run_terminal};
use blockstone_report::{awr_info, html};
use serde_json::json;

use crate::json::check;
use crate::run_fixture::{RunFixture, calibration};

struct Run {
    recording: Recording,
    findings: RunFindings,
    _dir: tempfile::TempDir,
}

fn found(fixture: &RunFixture, calibration: Option<&Manifest>) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let recording = fixture.record(&dir.path().join("run"));
    let findings = find_run(&recording, calibration).unwrap();
    Run { recording, findings, _dir: dir }
}

fn healthy() -> Run {
    found(&RunFixture::healthy(), Some(&calibration()))
}

/// A run whose reads did not reach the storage.
fn condemned() -> Run {
    let mut fixture = RunFixture::healthy();
    fixture.set("process", "", "read_bytes", 8_190);
    found(&fixture, None)
}

/// The pages of runs by name, for the browser.
pub fn pages() -> Vec<(&'static str, String)> {
    let runs = [
        ("run", healthy()),
        ("run-scan", found(&RunFixture::matrix(), None)),
        ("run-noise", found(&RunFixture::noise(), None)),
    ];
    let page = |run: &Run| html::run_page(&run.recording, &run.findings).unwrap();
    runs.iter().map(|(name, run)| (*name, page(run))).collect()
}

fn screen(run: &Run) -> String {
    let style = Style { color: false, width: 100 };
    let screen = run_terminal(&run.recording, &run.findings, &style);
    screen.replace(&run.recording.dir.display().to_string(), "RUN")
}

#[test]
fn the_screen_is_what_it_is() {
    let expected = include_str!("expected/run.txt");
    let screen = screen(&healthy());
    assert_eq!(screen, expected, "\n{screen}");
    assert!(screen.lines().count() <= 60, "more than one screen");
}

#[test]
fn a_matrix_is_a_table_of_reads_beside_the_waits_that_a_database_reports() {
    let screen = screen(&found(&RunFixture::matrix(), None));
    let end = screen.find("\n? ").unwrap();
    assert_eq!(&screen[..end], include_str!("expected/run-scan.txt"), "\n{screen}");
}

#[test]
fn noise_stands_before_what_the_sessions_did_without_it() {
    let screen = screen(&found(&RunFixture::noise(), None));
    let expected = include_str!("expected/run-noise.txt");
    let end = screen.find("  load profile").unwrap();
    assert_eq!(&screen[..end], expected, "\n{screen}");
}

#[test]
fn forms_of_runs_have_sections_of_their_own() {
    let pages = pages();
    let plots: [(&str, &[&str]); 3] = [
        ("run", &[]),
        ("run-scan", &["scan-throughput", "reads-and-reported-waits"]),
        ("run-noise", &["noisy-against-quiet"]),
    ];
    for (name, page) in &pages {
        for (of, ids) in &plots {
            for id in *ids {
                let there = page.contains(&format!("data-plot=\"{id}\""));
                assert_eq!(there, of == name, "{id} in {name}");
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
    let without_database = found(&RunFixture::healthy().without_database(), None);
    let readers = found(&RunFixture::readers(), None);
    let matrix = found(&RunFixture::matrix(), None);
    let noise = found(&RunFixture::noise(), None);
    for run in [healthy(), condemned(), unfinished(), without_database, readers, matrix, noise] {
        check("run-1.json", &run_json(&run.recording, &run.findings));
    }
}

#[test]
fn scripts_find_what_they_were_promised() {
    let run = healthy();
    let document = run_json(&run.recording, &run.findings);
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
    let document = run_json(&run.recording, &run.findings);
    assert_eq!(document["summary"]["read_iops"], json!(null));
    assert_eq!(document["condemned"]["read_iops"]["by"], json!(["memory-test"]));
}

#[test]
fn the_page_has_its_charts_on_a_time_axis() {
    let pages = pages();
    let page = &pages[0].1;
    for id in ["the-database-over-time", "disks-over-time", "latencies-over-time"] {
        assert!(page.contains(&format!("data-plot=\"{id}\"")), "{id}");
    }
    assert!(page.contains("Blockstone run") && page.contains("db file sequential read"));
    let struck = condemned();
    let page = html::run_page(&struck.recording, &struck.findings).unwrap();
    assert!(page.contains("condemned: memory-test"));
}

#[test]
fn awr_info_has_the_columns_of_slob() {
    let run = healthy();
    let text = awr_info(&run.recording, &run.findings);
    let [head, values] = text.lines().collect::<Vec<_>>()[..] else { panic!("two lines") };
    assert!(head.starts_with("FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS"));
    assert_eq!(
        values,
        "run|16|10|0.80|15.60|1500|6400|6000|49.2|1200|12.3|2.40|2333|||10000|1500|\
         db file sequential read 60,000 89.7%"
    );
    assert_eq!(head.matches('|').count(), values.matches('|').count());
}
