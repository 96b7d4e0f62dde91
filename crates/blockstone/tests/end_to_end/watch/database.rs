//! `blockstone watch --db` as a user runs it, with what each may see.

use std::collections::BTreeSet;
use std::process::Command;

use blockstone_testkit::{PostgresServer, ScratchDir, blockstone_binary, require, run};
use serde_json::Value;

use super::{Ended, keeps_to_its_schema, watch};

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
    let server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    let _sleepers = sleepers(&server, 2);
    let address = server.address();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let ran = run(&mut watch(&["--db", &address, "--record", dir, "--for", "3s"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");

    let text = run(watch(&["--replay", dir, "--once"]).env("COLUMNS", "120"));
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

/// The names of roles that begin with `product`, without what stands behind the slash.
fn servers(document: &Value, product: &str) -> BTreeSet<String> {
    let rows = document["views"]["processes"].as_array().unwrap();
    let roles = rows.iter().filter_map(|row| row["role"].as_str()?.split('/').next());
    roles.filter(|name| name.starts_with(product)).map(str::to_owned).collect()
}

#[test]
fn two_servers_on_one_host_are_kept_apart() {
    require!(Root, Postgres);
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
    // The one that is watched has the name of its product, whatever runs beside it.
    let found = servers(&run(watch(&once).args(["--db", &first.address()])).json(), "postgres");
    assert!(found.contains("postgres") && found.contains(&named[1]), "{found:?}");
    assert!(!found.contains(&named[0]), "{found:?}");
}

#[test]
fn a_server_far_away_shows_what_sql_tells_and_says_what_is_missing() {
    require!(Root, Postgres);
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
