//! `blockstone run --matrix`: a grid of runs, shown as one.

use blockstone_testkit::{require, run};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema, names};

const SHORT: [&str; 6] = ["--scale", "8M", "--cache", "4M", "--run-time", "1s"];

fn figure(cell: &Value, name: &str) -> f64 {
    cell[name]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {cell:#}"))
}

fn cells(document: &Value) -> &Vec<Value> {
    document["tables"]["grid"].as_array().unwrap()
}

#[test]
fn every_combination_is_run_as_often_as_asked_and_shown_in_one_table() {
    let place = Place::beside();
    let mut command = place.command("run");
    let dir = place.scratch.path().join("grid");
    command.args(["--json", "--repeat", "2", "--out"]).arg(&dir).args(SHORT);
    command.args(["--matrix", "update=0,100", "target=instance,null"]);
    let ran = run(command.arg("--").arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let cells = cells(&document);
    assert_eq!(document["axes"][1]["values"], serde_json::json!(["instance", "null"]));
    for (cell, target) in cells[..2].iter().zip(["instance", "null"]) {
        assert_eq!((&cell["update"], &cell["target"]), (&"0".into(), &target.into()), "{cell:#}");
    }
    for cell in cells {
        assert_eq!(cell["runs"], 2, "{cell:#}");
        assert!(figure(cell, "operations_per_s") > 0.0);
    }
    assert!(figure(&cells[2], "commits_per_s") > 0.0, "updates commit");
    let writers = document["tables"]["grid-writers"].as_array().unwrap();
    assert_eq!((&writers[2]["update"], &writers[2]["target"]), (&"100".into(), &"instance".into()));
    assert!(figure(&writers[2], "lgwr_latency_ns_mean") > 0.0, "updates are logged");
    assert_eq!(names(&dir).iter().filter(|name| name.ends_with("-2")).count(), 4);
    let shown = run(place.command("report").arg(&dir));
    assert_eq!(shown.code, ran.code, "{shown:#?}");
    for word in ["update", "target", "null", "instance"] {
        assert!(shown.stdout.contains(word), "{word}: {}", shown.stdout);
    }
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("</html>"));
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn what_a_target_cannot_do_is_a_row_that_says_why() {
    let place = Place::beside();
    let mut command = place.command("run");
    command.current_dir(place.data()).args(["--json", "--repeat", "1"]).args(SHORT);
    command.args(["--profile", "oltp", "--schemas", "1", "--sessions", "2"]);
    command.args(["--matrix", "target=sqlite:.,null", "io=direct,buffered"]);
    let document = run(&mut command).json();
    keeps_to_its_schema(&document);
    let missed = document["tables"]["missed"].as_array().unwrap();
    let missed_settings: Vec<&str> =
        missed.iter().map(|row| row["settings"].as_str().unwrap()).collect();
    assert_eq!(missed_settings, ["target=null io=direct", "target=null io=buffered"]);
    let why = missed[0]["why"].as_str().unwrap();
    assert!(why.contains("reads and writes nothing"), "{why}");
    for (cell, complete) in cells(&document).iter().zip([1, 1, 0, 0]) {
        assert_eq!(cell["runs"], complete, "{cell:#}");
        assert!(complete == 0 || figure(cell, "transactions_per_s") > 0.0, "{cell:#}");
    }
    // Another place, without recordings; a test can have only one at a time.
    drop(place);
    require!(Tmpfs);
    let place = Place::beside();
    let error = refused(
        &place,
        place.command("run").args(["--io", "direct", "--target", "sqlite:/dev/shm"]),
    );
    assert!(error.contains("direct I/O of sqlite") && error.contains("no effect"), "{error}");
}

#[test]
fn a_combination_that_cannot_be_is_refused_before_the_first_run() {
    let place = Place::beside();
    let cases = [
        ("speed=1,2", "vary `speed`"),
        ("update", "NAME=VALUE"),
        ("update=1,,2", "a value is empty"),
        ("update=0,many", "set update to many"),
        ("update=0,101", "101"),
        ("sessions=8,7", "7 sessions over 4 schemas"),
        ("target=instance,oracle", "unknown target"),
    ];
    for (axis, expected) in cases {
        let mut command = place.command("run");
        command.args(SHORT).args(["--matrix", axis]).arg("--").arg(place.data());
        let what = refused(&place, &mut command);
        assert!(what.contains(expected), "{axis}: {what}");
    }
}

/// The settings that the run of a combination recorded.
fn recorded(dir: &std::path::Path, cell: &str) -> Value {
    let text = std::fs::read_to_string(dir.join(cell).join("manifest.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["settings"].clone()
}

#[test]
fn any_option_of_a_run_varies_and_leaves_the_others_as_they_were_given() {
    let place = Place::beside();
    let dir = place.scratch.path().join("grid");
    let mut command = place.command("run");
    command.args(["--json", "--repeat", "1", "--block-size", "4K", "--out"]).arg(&dir).args(SHORT);
    let axes = ["database-writers=1,2", "noise=none,redo:1", "torn-protection=none,full-page"];
    command.arg("--matrix").args(axes);
    let ran = run(command.arg("--").arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    let cells = cells(&document);
    assert_eq!(cells.len(), 8);
    let expected =
        [("database-writers", "2"), ("noise", "redo:1"), ("torn-protection", "full-page")];
    assert!(expected.iter().all(|(name, value)| cells[7][*name] == *value), "{:#}", cells[7]);
    let [first, last] = ["01-1", "08-1"].map(|cell| recorded(&dir, cell));
    for (parameters, writers, protection) in [(&first, 1, "none"), (&last, 2, "full-page")] {
        assert_eq!(parameters["database_writers"], writers, "{parameters:#}");
        assert_eq!(parameters["torn_protection"], protection);
        assert_eq!(parameters["block_bytes"], 4096, "not back to its default: {parameters:#}");
        assert_eq!(parameters["cache_bytes"], 4 << 20);
    }
}

#[test]
fn settings_of_a_database_vary() {
    let place = Place::beside();
    let dir = place.scratch.path().join("grid");
    let target = format!("sqlite:{}", place.data().display());
    let mut command = place.command("run");
    command.args(["--json", "--repeat", "1", "--target", &target, "--out"]).arg(&dir).args(SHORT);
    let ran = run(command.args(["--matrix", "pragma=synchronous=1,synchronous=2"]));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let of = |cell: &str| recorded(&dir, cell)["server_settings"]["synchronous"].clone();
    assert_ne!(of("01-1"), of("02-1"), "{:#}", recorded(&dir, "01-1"));
}
