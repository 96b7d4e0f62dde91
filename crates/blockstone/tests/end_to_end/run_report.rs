//! The output of a run, what it stores, and what `report` prints from that.

mod forms;

use blockstone_testkit::run;
use serde_json::Value;

use super::{Place, keeps_to_its_schema, names};

const SMALL: [&str; 8] =
    ["--scale", "8M", "--run-time", "2s", "--cache", "4M", "--update-pct", "20"];

#[test]
fn one_run_gives_figures_report_line_and_listing() {
    let place = Place::beside();
    let ran = run(place.command("run").arg("--json").args(SMALL).arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    assert_eq!(document["schema"], "blockstone.run/2");
    keeps_to_its_schema(&document);
    let figures = &document["figures"];
    for name in ["commits_per_s", "hardware_read_iops", "physical_reads_per_cpu_s"] {
        // A tmpfs condemns its figures.
        let figure = &figures[name];
        let number = figure["value"].as_f64().or(figure["condemned"]["value"].as_f64());
        assert!(number.is_some_and(|number| number > 0.0), "{name}: {figure:#}");
    }
    let waits = document["tables"]["database-time"].as_array().unwrap();
    let sync = waits.iter().find(|wait| wait["event"] == "log file sync").unwrap();
    assert!(sync["waits"].as_u64().unwrap() > 0);
    let passed = |rule: &str| {
        let verdicts = document["verdicts"].as_array().unwrap();
        verdicts.iter().any(|verdict| verdict["rule"] == rule && verdict["outcome"] == "pass")
    };
    assert!(passed("failed-session") && passed("work-unit"), "{:#}", document["verdicts"]);

    let id = names(&place.runs()).pop().unwrap();
    let again = run(place.command("report").args(["--json", "last"]));
    assert_eq!((again.code, &again.json()["figures"]), (ran.code, figures));
    let line = run(place.command("report").args(["--awr-info", "last"]));
    let lines: Vec<&str> = line.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{line:#?}");
    assert!(
        lines[0].starts_with("FILE|SESSIONS|ELAPSED|") && lines[1].starts_with(&id),
        "{line:#?}"
    );
    let page = std::fs::read_to_string(place.runs().join(&id).join("report.html")).unwrap();
    assert!(page.contains("Load profile") && page.contains("log file sync"));
    let kept: Value = serde_json::from_str(
        &std::fs::read_to_string(place.runs().join(&id).join("manifest.json")).unwrap(),
    )
    .unwrap();
    assert!(kept["summary"]["read_iops"]["value"].as_f64().is_some(), "kept for the listing");
    let compared = run(place.command("compare").args(["--json", "last", "last"]));
    assert_eq!(compared.json()["faster"], 0);
}
