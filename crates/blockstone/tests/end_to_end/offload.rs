//! `blockstone offload`: ledgers of counters and reports, and the balance of a machine.

mod engines;
mod examples;
mod servers;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_testkit::{Ran, ScratchDir, blockstone_binary, run};
use serde_json::Value;

use super::{Turn, failed_rules, keeps_to_its_schema};

/// The five runs of the documentation page.
const RUNS: &str = include_str!("../../../../docs/offload-counters.csv");

const GIB: f64 = 1_073_741_824.0;

const STATISTICS: [&str; 3] = [
    "physical read total bytes",
    "cell physical IO bytes eligible for predicate offload",
    "cell physical IO interconnect bytes",
];

fn offload(arguments: &[&str]) -> Ran {
    run(Command::new(blockstone_binary()).arg("offload").args(arguments))
}

fn document(arguments: &[&str], code: i32) -> Value {
    let ran = offload(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

fn file(dir: &ScratchDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Asserts equality to five digits.
#[track_caller]
fn near(value: &Value, wanted: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"));
    assert!((value / wanted - 1.0).abs() < 5e-5, "{value} is not {wanted}");
}

#[test]
fn five_runs_are_accounted_for() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let counters = file(&scratch, "counters.csv", RUNS);
    let account = document(&["account", text(&counters)], 0);
    let runs = account["tables"]["runs"].as_array().unwrap();
    let usual = account["tables"]["usual"].as_array().unwrap();
    let wanted: [(Option<f64>, f64, f64, f64); 5] = [
        (None, 613.76926, 575.62774, 0.938_03),
        (Some(103.31), 613.66460, 1.69941, 0.002_769_3),
        (Some(1766.85), 613.74708, 575.60576, 0.937_99),
        (Some(445.01), 613.75895, 575.63126, 0.938_03),
        (Some(102.79), 613.67767, 1.71248, 0.002_790_6),
    ];
    assert_eq!((runs.len(), usual.len()), (5, 5));
    for ((run, usual), (seconds, disk, wire, ratio)) in runs.iter().zip(usual).zip(wanted) {
        match seconds {
            Some(seconds) => near(&run["time_ns"], seconds * 1e9),
            None => assert_eq!(run["time_ns"]["unmeasured"], "unknown"),
        }
        near(&run["disk_bytes"], disk * GIB);
        near(&run["wire_bytes"], wire * GIB);
        near(&usual["returned_of_eligible"], ratio);
        assert_eq!(run["run"], usual["run"]);
        assert_eq!(run["mirror_copies"]["unmeasured"], "unknown");
        assert!(usual.get("condemned_by").is_none(), "{usual}");
    }
    near(&runs[1]["saved_of_all"], 0.997_22);
    assert_eq!(runs[3]["hosts"], 4);
    let printed = offload(&["account", text(&counters)]).stdout;
    let said = "assignment by selectivity; totals do not depend on it";
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(said), "{printed}");
    assert!(printed.contains("a sign of chained rows"), "{printed}");
}

#[test]
fn runs_that_were_measured_say_from_where_the_storage_binds() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let counters = file(&scratch, "counters.csv", RUNS);
    let from_counters = document(&["model", "--fit", text(&counters), "--cells", "6"], 0);
    let points = from_counters["tables"]["points"].as_array().unwrap();
    let binding = |hosts: usize| points[hosts - 1]["binding"].as_str().unwrap();
    assert_eq!((binding(1), binding(17), binding(18)), ("hosts", "hosts", "cells"));
    assert_eq!(points[17]["hosts"], 18);
    near(&points[0]["throughput_bytes_per_s"], 613.74708 * GIB / 1766.85);
    near(&points[17]["throughput_bytes_per_s"], 613.67767 * GIB / 102.79);
    let crossings = &from_counters["tables"]["crossings"];
    near(&crossings[0]["hosts"], 17.1871);
    near(&crossings[1]["hosts"], 17.3144);
    // The document of the ledger gives the same result as the counters, in either version.
    let from_document = ["--json=1", "--json"].map(|version| {
        let account = offload(&["account", text(&counters), version]).stdout;
        let account = file(&scratch, &format!("account{version}"), &account);
        let from_document = document(&["model", "--fit", text(&account), "--cells", "6"], 0);
        let found = from_document["tables"]["points"].as_array().unwrap();
        assert_eq!(found.len(), points.len());
        for (point, wanted) in found.iter().zip(points) {
            let rate = &wanted["throughput_bytes_per_s"];
            near(&point["throughput_bytes_per_s"], rate.as_f64().unwrap());
            assert_eq!(point["binding"], wanted["binding"]);
        }
        account
    });
    // Each step of what is returned is written differently.
    let steps = document(&["model", "--cells", "2", "--scan-rate", "2G"], 0);
    let steps = steps["tables"]["selectivity"].as_array().unwrap().iter();
    let percents = steps.map(|step| (step["returned"].as_f64().unwrap() * 1e3).round() as u64);
    let percents: Vec<u64> = percents.collect();
    assert!(percents.len() > 20 && percents.windows(2).all(|it| it[0] < it[1]), "{percents:?}");
    let account = &from_document[1];
    let page = scratch.path().join("page.html");
    let ran = offload(&["model", "--fit", text(account), "--html", text(&page)]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["hosts-chart", "selectivity-chart", "What one more brings", " returned, the "] {
        assert!(page.contains(part), "{part}");
    }
}

/// Returns a cluster report with these counters.
fn report(counters: &[(&str, &str)]) -> String {
    let row = |(name, total): &(&str, &str)| {
        format!("<tr><td>{name}</td><td>{total}</td><td>1.00</td></tr>\n")
    };
    let rows: String = counters.iter().map(row).collect();
    format!(
        "<html><head><title>AWR RAC Report for DB: LAKE, Snaps: 10-11</title></head><body>\n\
         <table summary=\"Database Summary\">\
         <tr><th>Id</th><th>Name</th><th>RAC</th><th>Begin</th><th>End</th></tr>\
         <tr><td>1</td><td>LAKE</td><td>YES</td><td>10</td><td>11</td></tr></table>\n\
         <table summary=\"Database Instances Included In Report\">\
         <tr><th>I#</th><th>Instance</th><th>Host</th><th>Begin Snap Time</th>\
         <th>End Snap Time</th><th>Release</th></tr>\
         <tr><td>1</td><td>lake1</td><td>h</td><td>14-May-24 10:00</td><td>14-May-24 11:00</td>\
         <td>19.0</td></tr></table>\n\
         <table summary=\"System Statistics (Global)\">\
         <tr><th>Statistic</th><th>Total</th><th>per Second</th></tr>\n\
         <tr><td>session logical reads</td><td>36,003,600</td><td>10,001.00</td></tr>\n{rows}\
         </table>\n<p>End of Report</body></html>\n"
    )
}

#[test]
fn a_report_of_which_little_is_eligible_is_struck_through() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let html = report(&[
        ("bytes sent via SQL*Net to client", "1,000,000,000"),
        ("cell num bytes in passthru during predicate offload", "5,000,000"),
        ("cell physical IO bytes eligible for predicate offload", "5,000,000,000"),
        ("cell physical IO bytes saved by storage index", "1,000,000,000"),
        ("cell physical IO interconnect bytes", "155,100,000,000"),
        ("cell physical IO interconnect bytes returned by smart scan", "100,000,000"),
        ("physical read total bytes", "100,000,000,000"),
        ("physical read total bytes optimized", "61,000,000,000"),
        ("physical write total bytes", "20,000,000,000"),
    ]);
    let report = file(&scratch, "awr.html", &html);
    let account = document(&["account", text(&report)], 3);
    let (run, usual) = (&account["tables"]["runs"][0], &account["tables"]["usual"][0]);
    assert_eq!(usual["condemned_by"], serde_json::json!(["ratio-misleading"]));
    assert_eq!(failed_rules(&account), ["ratio-misleading"]);
    near(&usual["returned_of_eligible"], 0.02);
    near(&run["saved_of_all"], 0.049);
    near(&run["mirror_copies"], 3.0);
    near(&run["time_ns"], 3600e9);
    let lines = account["tables"]["ledger"].as_array().unwrap();
    let lines = lines.iter().map(|row| (row["line"].as_str().unwrap(), row["bytes"].as_f64()));
    let lines: Vec<(&str, f64)> = lines.map(|(line, bytes)| (line, bytes.unwrap())).collect();
    assert_eq!(
        lines,
        [
            ("asked by the plan", 100e9),
            ("skipped: storage index", 1e9),
            ("read at the storage", 99e9),
            ("from flash", 60e9),
            ("from disk", 39e9),
            ("examined by the storage", 3.995e9),
            ("sent unfiltered", 5e6),
            ("not eligible", 95e9),
            ("returned", 100e6),
            ("on the wire", 155.1e9),
            ("writes with their copies", 60e9),
            ("rest", 0.0),
            ("to the client", 1e9),
        ]
    );
    let printed = offload(&["account", text(&report)]).stdout;
    assert!(printed.contains("3 copies of each write"), "{printed}");
}

/// Runs the command and returns the line that says what was refused.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let ran = offload(arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "one line what, one line hint: {ran:#?}");
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{ran:#?}");
    lines[0].to_owned()
}

#[test]
fn what_cannot_be_subtracted_is_refused() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let table = |before: [&str; 3], after: [&str; 3]| {
        let mut text = "time,instance,statistic,value\n".to_owned();
        for (time, values) in [(0, before), (10, after)] {
            for (name, value) in STATISTICS.iter().zip(values) {
                writeln!(text, "{time},1,{name},{value}").unwrap();
            }
        }
        text
    };
    let good = table(["0"; 3], ["1000", "990", "9"]);
    let cases = [
        (table(["1841.58", "1840", "1727.15"], ["1841.60", "1841", "43.18"]), "do not continue"),
        (good.replace("instance,", "").replace(",1,", ","), "no column `instance`"),
        (good.replacen(",1,", ",,", 1), "line 2: the instance is missing"),
        (good.replacen(STATISTICS[0], "43", 1), "the statistic is the number 43"),
        (table(["0"; 3], ["613.7", "658.8", "9"]), "as if GiB and GB were mixed"),
        (good.replace("990", "nan"), "is not a number of B"),
        (good.replace("10,1", "tomorrow,1"), "is not a time"),
        ("time,colour\n".to_owned(), "no column is called `colour`"),
        (String::new(), "it has no rows"),
    ];
    for (at, (content, expected)) in cases.iter().enumerate() {
        let path = file(&scratch, &format!("{at}.csv"), content);
        for verb in [&["account"][..], &["model", "--fit"]] {
            let what = refused(&[verb, &[text(&path)]].concat());
            assert!(what.contains(expected) && what.contains(".csv"), "{expected}: {what}");
        }
    }
    assert_eq!(offload(&["account", text(&file(&scratch, "good.csv", &good))]).code, Some(0));
    let named = file(&scratch, "named.csv", RUNS);
    let what = refused(&["account", text(&named), "--unit", "GB"]);
    assert!(what.contains("the files say their units"), "{what}");
    assert!(refused(&["account", "nowhere.csv"]).contains("nowhere.csv"));
}

#[test]
fn a_model_without_rates_is_refused() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    assert!(refused(&["model"]).contains("no rate is known"));
    let empty = file(&scratch, "empty.json", "{\"runs\": []}");
    assert!(refused(&["model", "--fit", text(&empty)]).contains("no run has a time"));
    let odd = file(
        &scratch,
        "odd.json",
        "{\"runs\": [{\"seconds\": -1, \"disk_bytes\": 5,
        \"wire_bytes\": 5, \"name\": \"x\"}]}",
    );
    assert!(refused(&["model", "--fit", text(&odd)]).contains("run \"x\": seconds is -1"));
    let counters = file(&scratch, "counters.csv", RUNS);
    let what = refused(&["model", "--fit", text(&counters), "--processors", "2"]);
    assert!(what.contains("no run has the processor time of both sides"), "{what}");
    let other = file(&scratch, "other.json", "{\"walks\": 3}");
    assert!(refused(&["model", "--fit", text(&other)]).contains("missing field `runs`"));
    assert!(refused(&["model", "--scan-rate", "fast"]).contains("fast"));
    assert!(refused(&["model", "--scan-rate", "1GB", "--returned", "0%"]).contains("0%"));
}
