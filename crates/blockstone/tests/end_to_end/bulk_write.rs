//! `blockstone run --profile bulk-write`.

use blockstone_testkit::run;
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

/// Returns the document of a run that created tables of 8 MiB for 4 s: at 10 MB/s there are enough
/// tables, and at any speed enough instants at which counters are read.
fn made(place: &Place, target: &str) -> Value {
    let mut command = place.command("run");
    command.current_dir(place.data()).args(["--profile", "bulk-write", "--json", "--target"]);
    command.args([target, "--scale=8M", "--cache=4M", "--run-time=4s"]);
    let ran = run(&mut command);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let step = |at: usize| document["tables"]["bulk-steps"][at]["count"].as_u64().unwrap();
    assert!(step(0) >= 4 && step(2) > 0, "{document:#}");
    assert!(
        (document["tables"]["bulk-write"][0]["rows_mean"].as_f64().unwrap() - 1024.0).abs() < 1e-9
    );
    for name in ["bulk_returned_mbps", "bulk_flushed_mbps", "bulk_rows_per_s"] {
        let figure = &document["figures"][name];
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{name}: {document:#}");
        assert!(figure["low"].is_number(), "{name}: {figure:#}");
    }
    let verdicts = document["verdicts"].as_array().unwrap();
    let unit = verdicts.iter().find(|verdict| verdict["rule"] == "work-unit").unwrap();
    assert_eq!(unit["outcome"], "pass", "{unit:#}");
    document
}

#[test]
fn tables_are_made_flushed_and_dropped_and_their_bytes_are_counted() {
    let place = Place::beside();
    let document = made(&place, "instance");
    let bytes = document["tables"]["bulk-write"][0]["bytes_mean"].as_f64().unwrap();
    assert!((bytes - f64::from(8 << 20)).abs() < 1.0, "a row a block: {bytes}");
    let waits = document["tables"]["database-time"].as_array().unwrap();
    for event in ["direct path write", "direct path sync"] {
        let wait = waits.iter().find(|wait| wait["event"] == event).unwrap();
        assert!(wait["waits"].as_u64().unwrap() > 0, "{wait:#}");
    }
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let document = made(&place, "sqlite:.");
    let bytes = document["tables"]["bulk-write"][0]["bytes_mean"].as_f64().unwrap();
    assert!(bytes >= f64::from(8 << 20) && bytes < f64::from(9 << 20), "{bytes}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let shown = run(place.command("report").arg("last"));
    for words in ["as returned", "with the flush", "Cost of a table", "create-table"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
}

#[test]
fn what_a_bulk_write_does_not_have_is_refused() {
    let place = Place::beside();
    for option in ["--readers=4", "--update-pct=20", "--rate=5", "--noise=redo", "--work-unit=8"] {
        let mut command = place.command("run");
        command.args(["--profile", "bulk-write", option]).arg(place.data());
        let name = option.split('=').next().unwrap();
        let error = refused(&place, &mut command);
        assert!(error.contains(&format!("make tables with {name}")), "{error}");
    }
}
