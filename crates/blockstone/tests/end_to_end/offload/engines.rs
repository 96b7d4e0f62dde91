//! `offload run` and `offload generate`, with the servers that are installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_sys::{account, child};
use blockstone_testkit::{blockstone_binary, require, run};
use serde_json::Value;

use super::super::bad_input::refused;
use super::super::{Place, keeps_to_its_schema, signal};

fn command(place: &Place, verb: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("offload");
    command.arg(verb).args(arguments);
    command
}

pub fn measured(place: &Place, arguments: &[&str]) -> Value {
    let mut command = command(place, "run", arguments);
    let ran = run(command.arg("--json").arg(place.data()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!(place.left_in_data(), Vec::<String>::new(), "nothing is left");
    document
}

pub fn number(run: &Value, key: &str) -> f64 {
    run[key].as_f64().unwrap_or_else(|| panic!("{key} of {run}"))
}

#[test]
fn cells_send_what_passes_the_filter_and_sockets_count_what_the_interface_does() {
    require!(Postgres);
    let place = Place::beside();
    let arguments = ["--cells", "1,2", "--scale", "4M", "--repeat", "1", "--cache", "1M"];
    let document = measured(&place, &arguments);
    let rows = document["rows"].as_u64().unwrap();
    assert_eq!(rows, (4_f64 * 1_048_576.0 / 83.4) as u64);
    let [runs, evidence, plans, rounds] = ["engines", "evidence", "plans", "rounds"]
        .map(|table| document["tables"][table].as_array().unwrap());
    assert_eq!((runs.len(), rounds.len()), (10, 10), "{document:#}");
    for (run, (counted, plan)) in runs.iter().zip(evidence.iter().zip(plans)) {
        assert_eq!((&run["run"], &run["run"]), (&counted["run"], &plan["run"]));
        // Each block of the table is accessed once; opening a session accesses one more, which may
        // be counted late.
        let more = (number(run, "disk_bytes") - number(run, "table_bytes")) / 8192.0;
        assert!((0.0..=2.0).contains(&(more / number(run, "cells"))), "{run:#}");
        assert!(number(run, "host_cpu_ns") > 0.0 && number(run, "cell_cpu_ns") > 0.0, "{run:#}");
        let (wire, received) = (number(run, "wire_bytes"), number(run, "received_bytes"));
        assert!(wire > received, "headers come on top: {run:#}");
        let busiest = run["bound_by"].as_str().unwrap();
        assert!(["hosts", "cells", "processors"].contains(&busiest), "{run:#}");
        assert!((0.0..1.5).contains(&number(run, "bound_share")), "{run:#}");
        if child::is_superuser() {
            let apart = wire / number(counted, "interface_bytes") - 1.0;
            assert!(apart.abs() < 0.005, "{apart} in {run:#}");
        } else {
            assert_eq!(counted["interface_bytes"]["unmeasured"], "nothing happened");
        }
        let sent = plan["remote"].as_str().unwrap();
        let filtered = run["query"] != "full ingest" && run["pushdown"] == true;
        assert_eq!(sent.contains("WHERE"), filtered, "{run:#}");
        assert_eq!(sent.contains("count(*)"), filtered && run["query"] == "count", "{run:#}");
    }
    let received = |query: &str, pushdown: bool| {
        let wanted = |run: &&Value| run["query"] == query && run["pushdown"] == pushdown;
        runs.iter().find(wanted).map(|run| number(run, "received_bytes")).unwrap()
    };
    let (full, filtered) = (received("full ingest", true), received("filtered ingest", true));
    // 0.284 % of the rows match; each answer has a header.
    assert!((filtered / full - 0.002_845).abs() < 0.001, "{filtered} of {full}");
    assert!((received("filtered ingest", false) / full - 1.0).abs() < 0.02);
    assert!(received("count", true) < 1000.0 && received("count", false) > full / 10.0);
    let rules = document["verdicts"].as_array().unwrap();
    let outcome = |rule: &str| {
        rules.iter().find(|it| it["rule"] == rule).map(|it| it["outcome"].clone()).unwrap()
    };
    assert_eq!(outcome("not-offloaded"), "pass");
    // Processor time is counted, so it is known what bound the runs.
    assert_ne!(outcome("bound-by-host"), "inconclusive");
    let expected = if child::is_superuser() { "pass" } else { "inconclusive" };
    assert_eq!(outcome("wire-disagrees"), expected);
}

#[test]
fn a_model_is_fitted_on_the_runs_of_cells() {
    require!(Postgres);
    let place = Place::beside();
    let arguments = ["--cells", "1,2,3", "--scale", "1M", "--repeat", "1"];
    let document = measured(&place, &arguments);
    let predictions = document["tables"]["predicted"].as_array().unwrap();
    assert_eq!(predictions.len(), 5, "{document:#}");
    for prediction in predictions {
        assert_eq!(prediction["cells"], 3);
        assert!(number(prediction, "predicted_ns") > 0.0, "{prediction:#}");
        assert!(!prediction["binding"].as_str().unwrap().is_empty());
    }
    let file = place.file("runs.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let model = run(command(&place, "model", &["--json", "--cells", "3", "--fit"]).arg(&file));
    assert_eq!(model.code, Some(0), "{model:#?}");
    keeps_to_its_schema(&model.json());
}

/// Waits for the server process in a directory whose name contains `part`, and returns it.
fn server(place: &Place, part: &str) -> (u32, PathBuf) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        for name in place.left_in_data().iter().filter(|name| name.contains(part)) {
            let data = place.file(name).join("data");
            let pid = std::fs::read_to_string(data.join("postmaster.pid")).ok();
            if let Some(pid) = pid.and_then(|text| text.lines().next()?.parse().ok()) {
                return (pid, data);
            }
        }
        assert!(Instant::now() < until, "no server of {part}: {:?}", place.left_in_data());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(place: &Place) -> Child {
    let mut command = command(place, "run", &["--cells", "2", "--scale", "64M"]);
    // Its messages must not depend on how long it took.
    command.env("BLOCKSTONE_PROGRESS", "none");
    command.arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a backend of a server is serving the host.
fn is_scanned(postmaster: u32) -> bool {
    let backends = account::children(Path::new("/"), postmaster);
    backends.iter().any(|it| it.title.contains("127.0.0.1(") && !it.title.contains("idle"))
}

#[test]
fn a_cell_that_is_killed_in_a_scan_ends_the_run_with_one_line() {
    require!(Postgres);
    let place = Place::beside();
    let child = start(&place);
    let (pid, _) = server(&place, "cell2");
    let until = Instant::now() + Duration::from_mins(1);
    while !is_scanned(pid) {
        assert!(Instant::now() < until, "no scan of the host");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Kill its backends together with it.
    let backends = account::children(Path::new("/"), pid);
    for victim in std::iter::once(pid).chain(backends.iter().map(|it| it.pid)) {
        let _ = child::signal(victim, child::Signal::KILL);
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("cell 2 of 2 ended"), "{said}");
    assert!(lines[1].starts_with("hint: "), "{said}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn ctrl_c_ends_servers_and_removes_their_files() {
    require!(Postgres);
    let place = Place::beside();
    let child = start(&place);
    let (pid, data) = server(&place, "cell1");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    assert!(account::working_in(Path::new("/"), &data).is_empty());
    let found = account::process(Path::new("/"), pid);
    assert!(found.is_none_or(|it| !it.title.contains("postgres")));
}

/// The signal arrives at moments in which a server starts that no client will connect to any more.
#[test]
fn ctrl_c_is_heard_while_servers_start() {
    require!(Postgres);
    let place = Place::beside();
    for wait_ms in [0, 10, 20, 40, 80, 160] {
        let child = start(&place);
        let until = Instant::now() + Duration::from_mins(1);
        let log = |dir: &String| place.data().join(dir).join("server.log").exists();
        while !place.left_in_data().iter().any(log) {
            assert!(Instant::now() < until, "no server starts");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait_ms));
        signal(&child, "INT");
        let asked = Instant::now();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "after {wait_ms} ms: {said}");
        // A single server takes a moment to end; the time limit for its start is a minute.
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        assert_eq!(place.left_in_data(), Vec::<String>::new());
    }
}

#[test]
fn a_killed_run_leaves_nothing_to_the_next() {
    require!(Postgres);
    let place = Place::beside();
    let mut child = start(&place);
    server(&place, "cell1");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(place.left_in_data(), Vec::<String>::new());
    // The kernel ends its servers; a moment later their directories have no owner process.
    std::thread::sleep(Duration::from_secs(3));
    let arguments = ["--cells", "1", "--scale", "1M", "--repeat", "1"];
    measured(&place, &arguments);
}

#[test]
fn what_cannot_be_run_is_refused_with_a_hint() {
    let place = Place::beside();
    let data = place.data();
    let cases: &[(&[&str], &str)] = &[
        (&["--cells", "2,1"], "ascend"),
        (&["--cells", "0"], "0"),
        (&["--cells", "65"], "65"),
        (&["--scale", "900T"], "are free"),
        (&["--scale", "2000T"], "1 PiB"),
        (&["--scale", "1B"], "must have a row"),
        (&["--scale", "100K", "--cells", "4"], "without rows"),
        (&["--pg-bin", "/nowhere"], "find initdb"),
    ];
    for (arguments, said) in cases {
        let error = refused(&place, command(&place, "run", arguments).arg(&data));
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    let nowhere = refused(&place, &mut command(&place, "run", &["/nowhere/at/all"]));
    assert!(nowhere.contains("/nowhere/at/all"), "{nowhere}");
}

#[test]
fn the_same_seed_makes_the_same_rows() {
    let place = Place::beside();
    let files = ["a.csv", "b.csv", "c.csv"].map(|name| place.file(name));
    for (file, seed) in files.iter().zip(["1", "1", "2"]) {
        let arguments = ["--scale", "1M", "--seed", seed, "--json"];
        let ran = run(command(&place, "generate", &arguments).arg(file));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        keeps_to_its_schema(&ran.json());
        assert_eq!(ran.json()["rows"], 12_572);
    }
    let [one, again, other] = files.each_ref().map(|file| std::fs::read_to_string(file).unwrap());
    assert!(one == again && one != other);
    assert_eq!(one.lines().count(), 12_573, "with a line of names");
    let own = |line: &&str| line.starts_with("4777") || line.starts_with("3333");
    let own = one.lines().filter(own).count();
    assert!((35..=36).contains(&own), "{own} of 12,572 rows are 0.284 %");
    let copy = ["--scale", "1M", "--format", "copy", "-"];
    let piped = run(&mut command(&place, "generate", &copy));
    assert_eq!(piped.code, Some(0));
    let lines: Vec<String> = piped.stdout.lines().map(|it| it.replace('\t', ",")).collect();
    let first: Vec<&str> = one.lines().skip(1).collect();
    assert_eq!(lines, first, "the same rows in another format");
}

#[test]
fn a_file_that_holds_something_is_not_written_over() {
    let place = Place::beside();
    let file = place.file("kept.csv");
    std::fs::write(&file, "mine").unwrap();
    let path = file.to_str().unwrap();
    for (arguments, said) in [
        (vec![path], "not empty"),
        (vec!["--scale", "900T", "/dev/shm/huge.csv"], "are free"),
        (vec!["--scale", "2000T", "new.csv"], "1 PiB"),
        (vec!["/nowhere/at/all.csv"], "/nowhere"),
    ] {
        let error = refused(&place, &mut command(&place, "generate", &arguments));
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let schema = run(Command::new(blockstone_binary()).args(["offload", "generate", "--schema"]));
    assert!(schema.stdout.starts_with("CREATE TABLE all_card_trans (\n"), "{schema:#?}");
}
