//! `blockstone watch --db` as a user runs it, with what each user may see.

use std::collections::BTreeSet;
use std::process::Command;

use blockstone_testkit::{PostgresServer, ScratchDir, blockstone_binary, require, run};
use serde_json::Value;

use super::{Ended, Turn, keeps_to_its_schema, watch};

/// Sessions that sleep inside the database.
fn sleepers(server: &PostgresServer, count: usize) -> Vec<Ended> {
    let sleep = |_| server.session(&["SELECT pg_sleep(60)"]).map(Ended).unwrap();
    let all = (0..count).map(sleep).collect();
    std::thread::sleep(std::time::Duration::from_millis(500));
    all
}

/// The row of a view whose `key` is `text`.
fn row<'a>(document: &'a Value, view: &str, key: &str, text: &str) -> &'a Value {
    let rows = document["views"][view].as_array().unwrap_or_else(|| panic!("{document:#}"));
    let found = rows.iter().find(|row| row[key] == text);
    found.unwrap_or_else(|| panic!("no {text} in {view}: {rows:#?}"))
}

#[test]
fn a_database_is_watched_beside_its_host_and_replayed() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    let _sleepers = sleepers(&server, 2);
    let address = server.address();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let ran = run(&mut watch(&["--db", &address, "--record", dir, "--for", "3s"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");

    let overview = run(watch(&["--replay", dir, "--once"]).env("COLUMNS", "80")).stdout;
    for part in ["Load profile", "Host", "Disks"] {
        assert!(overview.contains(part), "{part} is not in {overview}");
    }
    assert!(overview.lines().count() <= 40, "{overview}");
    let text = run(watch(&["--replay", dir, "--once", "--all"]).env("COLUMNS", "120"));
    for part in ["Load profile", "Active sessions by wait", "PgSleep", "postgres/checkpointer"] {
        assert!(text.stdout.contains(part), "{part} is not in {}", text.stdout);
    }
    let document = run(Command::new(blockstone_binary()).args(["report", "--json", dir])).json();
    keeps_to_its_schema(&document);
    let asleep = row(&document, "active-sessions", "event", "PgSleep");
    let average = asleep["average_active_sessions"].as_f64().unwrap();
    assert!((1.8..=2.0).contains(&average), "{asleep:#}");
    let session = row(&document, "processes", "role", "postgres/session");
    assert!(session["cpu_share"].is_number(), "{session:#}");
}

/// Returns the names of roles that begin with `product`, without the part after the slash.
fn servers(document: &Value, product: &str) -> BTreeSet<String> {
    let rows = document["views"]["processes"].as_array().unwrap();
    let roles = rows.iter().filter_map(|row| row["role"].as_str()?.split('/').next());
    roles.filter(|name| name.starts_with(product)).map(str::to_owned).collect()
}

#[test]
fn two_servers_on_one_host_are_kept_apart() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let [first, second] = [(); 2].map(|()| PostgresServer::start(15, &["fsync=off"]).unwrap());
    let port = |server: &PostgresServer| {
        let address = server.address();
        address.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned()
    };
    let named = [&first, &second].map(|server| format!("postgres@{}", port(server)));
    let once = ["--once", "--json", "--for", "1s", "--no-bpf"];
    let found = servers(&run(&mut watch(&once)).json(), "postgres");
    // Servers of other tests may run too.
    assert!(named.iter().all(|name| found.contains(name)), "{found:?} {named:?}");
    assert!(!found.contains("postgres"), "{found:?}");
    // The server that is watched has the name of its product, whatever else runs.
    let found = servers(&run(watch(&once).args(["--db", &first.address()])).json(), "postgres");
    assert!(found.contains("postgres") && found.contains(&named[1]), "{found:?}");
    assert!(!found.contains(&named[0]), "{found:?}");
}

#[test]
fn the_writes_of_another_server_are_never_those_of_the_one_watched() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let [idle, busy] = [(); 2].map(|()| PostgresServer::start(15, &["fsync=off"]).unwrap());
    busy.run(&["CREATE TABLE t (i int, filler text)"]).unwrap();
    let insert = "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 50000) i";
    let _worker = Ended(busy.session(&[insert; 200]).unwrap());
    // Within the first second, in which the watch learns what runs on the host.
    let once = ["--once", "--json", "--for", "1s", "--interval", "500ms", "--no-bpf"];
    let document = run(watch(&once).args(["--db", &idle.address()])).json();
    let rows = document["views"]["processes"].as_array().unwrap();
    let written = |is_of: &dyn Fn(&str) -> bool| -> f64 {
        let of = rows.iter().filter(|row| row["role"].as_str().is_some_and(is_of));
        of.filter_map(|row| row["write_bytes_per_s"].as_f64()).sum()
    };
    let watched = written(&|role| role == "postgres" || role.starts_with("postgres/"));
    let others = written(&|role| role.starts_with("postgres@"));
    assert!(others > 1e6 && watched < others / 100.0, "{watched} beside {others}: {rows:#?}");
}

/// Returns the rows of a view that describe an instance.
fn of_instance<'a>(document: &'a Value, view: &str, instance: &str) -> Vec<&'a Value> {
    let rows = document["views"][view].as_array().unwrap_or_else(|| panic!("{document:#}"));
    rows.iter().filter(|row| row["instance"] == instance).collect()
}

#[test]
fn two_databases_in_one_watch_have_names_wherever_they_are_shown() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let [first, second] = [(); 2].map(|()| PostgresServer::start(15, &["fsync=off"]).unwrap());
    second.run(&["CREATE TABLE t (i int)"]).unwrap();
    let _sleepers = sleepers(&first, 2);
    let named = [&first, &second].map(|server| {
        let address = server.address();
        let port = address.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned();
        format!("postgres@{port}")
    });
    let [idle, busy] = [&named[0], &named[1]];
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("both");
    let dir = dir.to_str().unwrap();
    let addresses = [first.address(), second.address()];
    let both = ["--db", &addresses[0], "--db", &addresses[1]];
    let insert = "INSERT INTO t SELECT generate_series(1, 1000); SELECT pg_sleep(2)";
    let mut worker = Ended(second.session(&[insert; 4]).unwrap());
    let arguments = ["--record", dir, "--for", "3s", "--lines"];
    let ran = run(watch(&both).args(arguments));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.lines().any(|line| line.contains(idle) && line.contains("PgSleep")));
    worker.0.kill().unwrap();

    let document = run(Command::new(blockstone_binary()).args(["report", "--json", dir])).json();
    keeps_to_its_schema(&document);
    for name in &named {
        let size = &document["probes"][format!("database@{name}")][""]["buffer_cache_bytes"];
        assert!(size.as_f64() > Some(1e6), "{size}: {document:#}");
    }
    // A database that was watched is judged.
    let verdicts = document["verdicts"].as_array().unwrap();
    let rules: Vec<&str> = verdicts.iter().filter_map(|it| it["rule"].as_str()).collect();
    assert_eq!(rules, ["double-caching"], "{verdicts:#?}");
    let evidence = verdicts[0]["evidence"].as_str().unwrap();
    // On a busy machine there may be no time to examine all files.
    let known = ["in the page cache", "cachestat", "no look at the files"];
    assert!(known.iter().any(|text| evidence.contains(text)), "{evidence}");
    for view in ["load", "active-sessions", "sessions", "durability", "ledger"] {
        assert!(!of_instance(&document, view, idle).is_empty(), "{view}: {document:#}");
    }
    let average = |instance: &str| -> f64 {
        let rows = of_instance(&document, "active-sessions", instance).into_iter();
        rows.filter_map(|row| row["average_active_sessions"].as_f64()).sum()
    };
    assert!((1.8..=2.2).contains(&average(idle)), "{}", average(idle));
    assert!(average(busy) <= 1.2, "{}", average(busy));
    let shares = of_instance(&document, "active-sessions", idle).into_iter();
    let share: f64 = shares.filter_map(|row| row["db_time_share"].as_f64()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}: of its own database time");
    let processes = document["views"]["processes"].as_array().unwrap();
    for name in &named {
        let role = format!("{name}/session");
        assert!(processes.iter().any(|row| row["role"] == role.as_str()), "{role}: {processes:#?}");
    }
    let text = run(watch(&["--replay", dir, "--once", "--view", "load"]).env("COLUMNS", "100"));
    assert!(named.iter().all(|name| text.stdout.contains(name.as_str())), "{}", text.stdout);
    let only = format!("instance={busy}");
    let narrowed = ["--replay", dir, "--once", "--json", "--where", &only];
    let document = run(&mut watch(&narrowed)).json();
    assert!(of_instance(&document, "sessions", idle).is_empty(), "{document:#}");
    let twice = run(&mut watch(&["--db", &addresses[0], "--db", &addresses[0], "--once"]));
    assert!(twice.code == Some(2) && twice.stderr.contains("hint: "), "{twice:#?}");
}

#[test]
fn a_server_far_away_shows_what_sql_tells_and_says_what_is_missing() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let server = PostgresServer::start_apart(15, &["fsync=off"]).unwrap();
    let _sleepers = sleepers(&server, 2);
    let address = server.address();
    let ran = run(&mut watch(&["--db", &address, "--once", "--json", "--interval", "1s"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert!(ran.stderr.contains("is not on this host"), "{}", ran.stderr);
    let asleep = row(&document, "active-sessions", "event", "PgSleep");
    assert!(asleep["average_active_sessions"].as_f64().unwrap() > 1.5, "{asleep:#}");
    let read_time = row(&document, "load", "statistic", "read time (s)");
    assert_eq!(read_time["per_s"]["unmeasured"], "off", "{read_time:#}");
}
