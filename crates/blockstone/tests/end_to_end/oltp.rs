//! `blockstone run --profile oltp`.

use blockstone_testkit::run;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

#[test]
fn order_entry_has_its_mix_its_response_times_and_its_costs() {
    let place = Place::beside();
    let mut command = place.command("run");
    command.args(["--profile", "oltp", "--json", "--scale", "8M", "--cache", "4M"]);
    command.args(["--schemas", "2", "--sessions", "4", "--run-time", "2s"]);
    let ran = run(command.arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let kinds = document["tables"]["transactions"].as_array().unwrap();
    let names: Vec<&str> = kinds.iter().map(|kind| kind["transaction"].as_str().unwrap()).collect();
    assert_eq!(names, ["new-order", "payment", "order-status", "delivery", "stock-level"]);
    let count = |kind: usize| kinds[kind]["count"].as_u64().unwrap();
    assert!(count(0) > 0 && count(1) > 0, "{kinds:#?}");
    let rows = kinds[4]["rows_mean"].as_f64().unwrap_or(64.0);
    assert!((rows - 64.0).abs() < 1e-9, "a stock level visits a work unit: {kinds:#?}");
    let costs = document["tables"]["transaction-cost"].as_array().unwrap();
    for cost in ["Logical reads (blocks)", "DB time", "Redo size"] {
        assert!(costs.iter().any(|row| row["what"] == cost), "{cost}: {costs:#?}");
    }
    let [tps, operations] = ["transactions_per_s", "operations_per_s"]
        .map(|name| document["figures"][name]["value"].as_f64().unwrap());
    assert!(tps > 0.0 && tps.to_bits() == operations.to_bits(), "{tps} and {operations}");
    let rule = |name: &str| {
        let all = document["verdicts"].as_array().unwrap();
        all.iter().find(|verdict| verdict["rule"] == name).unwrap()["outcome"].clone()
    };
    assert_ne!(rule("work-unit"), "fail", "{document:#}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let shown = run(place.command("report").arg("last"));
    assert!(shown.stdout.contains("new-order") && shown.stdout.contains("Cost of a transaction"));
}

#[test]
fn what_order_entry_decides_by_itself_is_refused() {
    let place = Place::beside();
    for option in ["--readers=4", "--update-pct=20", "--hotspot=1M@0/3", "--scan-size=1M"] {
        let mut command = place.command("run");
        command.args(["--profile", "oltp", option]).arg(place.data());
        let name = option.split('=').next().unwrap();
        let error = refused(&place, &mut command);
        assert!(error.contains(&format!("send order entry with {name}")), "{error}");
    }
    let mut command = place.command("run");
    command.args(["--profile", "oltp", "--scale", "60"]).arg(place.data());
    let error = refused(&place, &mut command);
    assert!(error.contains("schema has only"), "{error}");
}
