//! `blockstone flash` as a script and as a careless user would run it.

use std::process::Command;

use blockstone_testkit::{ScratchDir, blockstone_binary, run};
use serde_json::{Value, json};

use super::{Turn, keeps_to_its_schema};

const HOUR_NS: f64 = 3600e9;

fn flash(arguments: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.arg("flash").args(arguments);
    command
}

fn document(arguments: &[&str]) -> Value {
    let ran = run(flash(arguments).arg("--json"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

#[test]
fn a_simulation_carries_its_summary_and_repeats() {
    let _turn = Turn::beside();
    let arguments =
        ["sim", "--raw", "20G", "--visible", "16G", "--drive-fills", "2", "--seed", "7"];
    let (one, two) = (document(&arguments), document(&arguments));
    assert_eq!(one, two, "the same seed gives the same bytes");
    let summary = &one["tables"]["figures"][0];
    for key in
        ["wa", "wa_analytic", "effective_spare", "iops_fresh", "iops_steady", "cliff_drive_fills"]
    {
        assert!(summary[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {summary:#}");
    }
    assert!((summary["over_provisioning"].as_f64().unwrap() - 0.25).abs() < 1e-12);
    assert!(summary["iops_fresh"].as_f64() > summary["iops_steady"].as_f64());
}

#[test]
fn every_verb_answers() {
    let _turn = Turn::beside();
    let sweep = document(&["sweep", "op=28,44", "pages-per-block=64"]);
    assert_eq!(sweep["tables"]["points"].as_array().unwrap().len(), 2);
    assert!(
        sweep["tables"]["points"][0]["wa_error_percent"].as_f64().unwrap().abs() < 0.5,
        "{sweep:#}"
    );
    let cliff =
        document(&["cliff", "--raw", "576G", "--format-level", "44%", "--write-rate", "50M"]);
    let hours = cliff["tables"]["cliff"][0]["time_to_cliff_ns"].as_f64().unwrap() / HOUR_NS;
    assert!((hours - 176.0 * 1024.0 / 50.0 / 3600.0).abs() < 0.05, "{hours}");
    let life = document(&["life", "--write-rate", "50M", "--wa", "2", "--endurance", "3000"]);
    assert!(life["tables"]["life"][0]["years"].as_f64().unwrap() > 0.1);
    assert!(!document(&["explain"])["tables"]["steps"].as_array().unwrap().is_empty());
    let rows = run(&mut flash(&["sweep", "op=28,44", "--csv"]));
    assert!(rows.stdout.starts_with("over_provisioning,policy,"), "{}", rows.stdout);
    assert_eq!(rows.stdout.lines().count(), 3);
    let story = run(&mut flash(&["explain"]));
    assert!(story.stdout.contains("read-only"), "{}", story.stdout);
}

#[test]
fn documents_of_version_1_are_printed_too() {
    let _turn = Turn::beside();
    let earlier = |arguments: &[&str]| run(flash(arguments).arg("--json=1")).json();
    let cliff = earlier(&["cliff", "--write-rate", "1M", "--background", "30"]);
    assert_eq!((&cliff["version"], &cliff["summary"]["outcome"]), (&json!(1), &json!("never")));
    assert!(cliff["cliff"]["seconds_to_cliff"].is_null(), "{cliff:#}");
    assert_eq!(cliff["tables"]["cliff"][0]["seconds_to_cliff"]["unmeasured"], "unknown");
    let sweep = earlier(&["sweep", "op=28,44", "pages-per-block=64"]);
    assert!(sweep["points"][0]["wa_error"].as_f64().unwrap().abs() < 0.005, "{sweep:#}");
    assert!(sweep["points"][1]["levelling"].is_null() && sweep["tables"]["wear"].is_null());
    let life = earlier(&["life", "--write-rate", "50M", "--wa", "2"]);
    assert_eq!(life["summary"]["years"], life["life"]["years"]);
    let steps = &earlier(&["explain"])["stories"][1]["steps"];
    assert_eq!(steps[0]["blocks"][4], json!(vec!["free"; 10]));
}

#[test]
fn a_sweep_of_levelling_shows_even_wear_against_amplification() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let page = scratch.path().join("page.html");
    let arguments = ["sweep", "levelling=none,30,6", "pages-per-block=16", "bad-blocks=1"];
    let load = ["--workload", "hot-cold=5/99", "--html", page.to_str().unwrap()];
    let swept = document(&[&arguments[..], &load].concat());
    let wear = swept["tables"]["wear"].as_array().unwrap();
    let of = |row: usize, key: &str| wear[row][key].as_f64().unwrap();
    assert_eq!((wear.len(), &wear[0]["levelling"]), (3, &json!({ "unmeasured": "off" })));
    assert!(of(2, "erases_spread") < of(1, "erases_spread"), "{wear:#?}");
    assert!(of(2, "wa") > of(1, "wa") && of(2, "erases_mean") > of(1, "erases_mean"), "{wear:#?}");
    assert_eq!(wear[1]["levelling"], 30);
    assert_eq!(swept["tables"]["points"][1]["bad_blocks"], 0.01);
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.contains("Even wear against write amplification"));
}

#[test]
fn the_cliff_comes_never_at_some_time_or_the_rate_is_too_high() {
    let _turn = Turn::beside();
    let summary = |options: &[&str]| {
        document(&[&["cliff"][..], options].concat())["tables"]["cliff"][0].clone()
    };
    let never = summary(&["--write-rate", "1M", "--background", "30"]);
    assert_eq!(never["outcome"], "no cliff", "{never:#}");
    for key in ["time_to_cliff_ns", "cliff_drive_fills"] {
        assert_eq!(never[key]["unmeasured"], "nothing happened", "{never:#}");
    }
    let at = summary(&["--write-rate", "50M"]);
    assert_eq!(at["outcome"], "cliff");
    let hours = at["time_to_cliff_ns"].as_f64().unwrap() / HOUR_NS;
    assert!((hours - 176.0 * 1024.0 / 50.0 / 3600.0).abs() < 0.05, "{hours}");
    let size = ["--raw", "576GB", "--visible", "400GB"];
    let too_slow = summary(&[&size[..], &["--write-rate", "200MB"]].concat());
    assert_eq!(too_slow["outcome"], "rate too high", "{too_slow:#}");
    let earliest = 176e9 / (too_slow["iops_fresh"].as_f64().unwrap() * 4096.0) / 3600.0;
    let hours = too_slow["time_to_cliff_ns"].as_f64().unwrap() / HOUR_NS;
    assert!((hours / earliest - 1.0).abs() < 0.01, "{hours} for {earliest}");
}

#[test]
fn gigabytes_are_those_of_data_sheets() {
    let _turn = Turn::beside();
    let of = |device: &[&str]| {
        let cliff = document(&[&["cliff", "--write-rate", "50MB"], device].concat());
        cliff["tables"]["cliff"][0]["over_provisioning"].as_f64().unwrap()
    };
    let sized = of(&["--raw", "1024GiB", "--visible", "960GB"]);
    let preset = of(&["--preset", "tlc"]);
    assert!((sized - preset).abs() < 0.001, "the same drive: {sized} and {preset}");
}

#[test]
fn options_that_no_formula_knows_are_refused() {
    let _turn = Turn::beside();
    for option in [
        &["--collect", "atomic"][..],
        &["--suspend", "erase"],
        &["--levelling", "2"],
        &["--placement", "pools"],
        &["--separate-moves"],
        &["--idle-after", "5ms"],
    ] {
        for verb in ["cliff", "life"] {
            let ran = run(flash(&[verb, "--write-rate", "1M"]).args(option));
            assert_eq!(ran.code, Some(2), "{verb} {option:?}: {ran:#?}");
            assert!(ran.stderr.contains("\nhint: "), "{}", ran.stderr);
        }
    }
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let trace = scratch.path().join("trace.csv");
    std::fs::write(&trace, "128166372003061629,h,0,Write,0,4096,9\n").unwrap();
    let trace = trace.to_str().unwrap();
    let cases: &[&[&str]] = &[
        &["sim", "--suspend", "both"],
        &["sim", "--placement", "pools"],
        &["sim", "--background", "10"],
        &["sim", "--rate", "1000", "--queue-depth", "4"],
        &["sim", "--reads", "100", "--run-time", "1s", "--drive-fills", "1"],
        &["sim", "--reads", "100", "--run-time", "1s", "--levelling", "2"],
        &["sim", "--trace", trace, "--drive-fills", "1"],
        &["sim", "--trace", trace, "--run-time", "1s"],
        &["sim", "--trace", trace, "--scale", "4"],
        &["sim", "--trace", trace, "--engine", "counts"],
        &["sim", "--trace", trace, "--suspend", "erase"],
        &["sweep", "op=44", "--visible", "300G"],
        &["sweep", "op=44", "--format-level", "7"],
        &["sweep", "pages-per-block=64", "--pages-per-block", "128"],
        &["sweep", "op=44", "--channel-rate", "500M"],
        &["sweep", "op=44", "--page-size", "16K"],
        &["life", "--write-rate", "1M", "--erase-time", "9ms"],
        &["life", "--write-rate", "1M", "--wa", "2", "--policy", "fifo"],
        &["life", "--write-rate", "1M", "--wa", "2", "--dies", "4"],
        &["fit", trace, "--dies", "4"],
        &["fit", trace, "--io-size", "8K"],
    ];
    for arguments in cases {
        let ran = run(&mut flash(arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{arguments:?}: {}", ran.stderr);
        assert!(lines[0].starts_with("error: use --"), "{arguments:?}: {}", ran.stderr);
        assert!(lines[1].starts_with("hint: "), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn throttled_writes_stand_beside_the_same_load_without() {
    let _turn = Turn::beside();
    let device = ["sim", "--raw", "6G", "--visible", "4G", "--collect", "atomic", "--reads", "50"];
    let load = ["--drive-fills", "2", "--throttle", "10000"];
    let both = document(&[&device[..], &load].concat());
    let tail = |device: &str, side: &str| {
        let mut rows = both["tables"]["latencies"].as_array().unwrap().iter();
        let row = rows.find(|row| row["device"] == device && row["direction"] == side).unwrap();
        row["latency_ns_p999"].as_u64().unwrap()
    };
    for side in ["read", "write"] {
        assert!(tail("throttled", side) < tail("unthrottled", side), "{both:#}");
    }
    let rates = both["tables"]["figures"].as_array().unwrap();
    assert!(rates[0]["throttled_writes"].as_u64() > Some(0) && rates[1]["throttled_writes"] == 0);
    assert_eq!(
        (&rates[0]["device"], &rates[1]["device"]),
        (&"throttled".into(), &"unthrottled".into())
    );
    let never = run(flash(&device).args(["--drive-fills", "0.1", "--throttle", "10000"]));
    assert!(never.stdout.contains("no write was throttled"), "{never:#?}");
    let refused = run(flash(&device).args(["--throttle", "10", "--background", "10"]));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

#[test]
fn a_curve_of_fio_is_fitted() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let log = scratch.path().join("curve_bw.1.log");
    let line = |second: u32| {
        let kib_per_s = if second < 200 { 200_000 } else { 100_000 };
        format!("{}, {kib_per_s}, 1, 4096, 0\n", second * 1000)
    };
    std::fs::write(&log, (1..1000).map(line).collect::<Vec<_>>().concat()).unwrap();
    let visible = ["--raw", "140G", "--visible", "100G"];
    let fit = document(&[&["fit", log.to_str().unwrap()][..], &visible].concat());
    let cliff = fit["tables"]["fit"][0]["cliff_drive_fills"].as_f64().unwrap();
    assert!((cliff - 200.0 * 200_000.0 / 1024.0 / 1024.0 / 100.0).abs() < 0.05, "{fit:#}");
    assert_eq!(fit["tables"]["fit"][0]["is_settled"], true);
}

#[test]
fn a_trace_is_replayed_and_its_bad_lines_are_counted() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let trace = scratch.path().join("trace.csv");
    let line = |n: u64| {
        let time = 128_166_372_003_061_629 + n * 10_000;
        format!("{time},h,0,Write,{},4096,9", n * 4096)
    };
    let mut text = (0..500).map(line).collect::<Vec<_>>().join("\n") + "\n";
    text.push_str("12816637,h,0\n");
    std::fs::write(&trace, &text).unwrap();
    let path = trace.to_str().unwrap();
    let device = ["--raw", "5G", "--visible", "4G", "--trace", path];
    let ran = document(&[&["sim"][..], &device].concat());
    assert_eq!(ran["trace_requests"], 500);
    assert_eq!(ran["tables"]["bad-lines"][0]["line"], 501);
    std::fs::write(&trace, text.replace("128166372", "9")).unwrap();
    let refused = run(flash(&["sim"]).args(device));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("line 1"), "{}", refused.stderr);
}

#[test]
fn what_makes_no_sense_is_refused_in_two_lines() {
    let _turn = Turn::beside();
    let cases: &[(&[&str], &str)] = &[
        (&["sim", "--raw", "400G", "--visible", "400G"], "bytes raw"),
        (&["sim", "--raw", "576G"], "--raw alone"),
        (&["sim", "--reserve", "100000"], "reserve"),
        (&["sim", "--rate", "0"], "greater than zero"),
        (&["sim", "--throttle", "0"], "greater than zero"),
        (&["sim", "--phase", "1s@0"], "idle"),
        (&["sim", "--phase", "0s@5"], "not a phase"),
        (&["sim", "--drive-fills", "nan"], "greater than zero"),
        (&["sim", "--reads", "100"], "reads"),
        (&["sim", "--scale", "0"], "scale"),
        (&["sim", "--scale", "1", "--raw", "700T", "--visible", "500T"], "pages"),
        (&["sim", "--scale", "1", "--raw", "15T", "--visible", "10T", "--workload", "oltp"], "MiB"),
        (&["sim", "--scale", "1", "--engine", "exact"], "the limit is 384 MiB"),
        (&["sim", "--memory", "8M"], "the limit is 8 MiB"),
        (&["sim", "--workload", "unifrom"], "unifrom"),
        (&["sim", "--trace", "/nowhere/at/all"], "/nowhere"),
        (&["sim", "--erase-time", "0us"], "erase time"),
        (&["sweep", "op=0"], "op=0"),
        (&["sweep", "op=7", "op=9"], "twice"),
        (&["sweep", "levelling=few"], "levelling=few"),
        (&["sweep", "background=10"], "a sweep has no time"),
        (&["cliff", "--write-rate", "0"], "write rate"),
        (&["cliff", "--write-rate", "100"], "`100` has no unit"),
        (&["life", "--write-rate", "1M", "--wa", "0.5"], "amplification"),
        (&["fit", "/nowhere"], "nowhere"),
    ];
    for (arguments, expected) in cases {
        let ran = run(&mut flash(arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{arguments:?}: {}", ran.stderr);
        assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{lines:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn the_page_holds_everything_itself() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let page = scratch.path().join("page.html");
    let arguments = ["sim", "--raw", "5G", "--visible", "4G", "--drive-fills", "1", "--html"];
    let ran = run(flash(&arguments).arg(&page));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let text = std::fs::read_to_string(page).unwrap();
    for part in ["The write cliff", "Latency of every request", "Blocks over time", "</html>"] {
        assert!(text.contains(part), "{part}");
    }
}
