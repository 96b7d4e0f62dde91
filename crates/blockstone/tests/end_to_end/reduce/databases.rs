//! Files of real databases: the same rows, loaded by other transactions or into other servers.

use std::path::{Path, PathBuf};

use blockstone_testkit::{PostgresServer, require};
use serde_json::Value;

use super::{grids, masked, number, ratio, same, scanned};

/// So that rows stay as they were loaded: nobody cleans up behind them.
const SETTINGS: [&str; 2] = ["fsync=off", "autovacuum=off"];
const ROWS: u32 = 6000;

fn load(server: &PostgresServer, table: &str) -> PathBuf {
    let create = format!("CREATE TABLE {table} (id int, name text, amount numeric)");
    let insert = format!(
        "INSERT INTO {table} SELECT n, 'customer ' || md5(n::text), n * 1.07 \
         FROM generate_series(1, {ROWS}) n"
    );
    server.run(&[&create, &insert]).unwrap();
    server.file_of(table).unwrap()
}

const TRANSACTION: [&str; 4] = ["lsn", "checksum", "address", "transaction"];

/// The scan of files that hold the same rows, all of whose pages are known as such.
fn pages(files: &[PathBuf]) -> Value {
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let found = scanned(&[], &files);
    for file in found["files"].as_array().unwrap() {
        assert!(file["format"] == "PostgreSQL" && number(file, "bytes") > 400_000, "{file:#}");
    }
    found
}

#[test]
fn tables_loaded_by_other_transactions_differ_by_their_headers_alone() {
    require!(Root, Postgres);
    let server = PostgresServer::start(15, &SETTINGS).unwrap();
    let files: Vec<PathBuf> = (1..=4).map(|table| load(&server, &format!("t{table}"))).collect();
    server.run(&["CHECKPOINT"]).unwrap();
    let found = pages(&files);
    for (grid, row) in grids(&found) {
        if grid.1 == 0 {
            assert!((ratio(row, "dedup_ratio") - 1.0).abs() < f64::EPSILON, "{grid:?}: {row:#}");
        }
    }
    for ratio in masked(&found, &TRANSACTION) {
        same(ratio, 4.0);
    }
    for ratio in masked(&found, &["lsn", "checksum"]) {
        same(ratio, 1.0);
    }
    let costs = found["field_costs"].as_array().unwrap();
    let cost = costs.iter().find(|cost| cost["field"] == "transaction").unwrap();
    same(ratio(cost, "dedup_ratio_without"), 4.0);
    assert!(cost["called"].as_str().unwrap().contains("xmin"), "{cost:#}");
}

#[test]
fn the_same_load_into_two_servers_is_the_same_but_for_headers() {
    require!(Root, Postgres);
    let servers = [0, 1].map(|_| PostgresServer::start(15, &SETTINGS).unwrap());
    // The second has a past: its transactions and its log are further on.
    servers[1].run(&["CREATE TABLE past (n int)", "INSERT INTO past VALUES (1)"]).unwrap();
    let files: Vec<PathBuf> = servers.iter().map(|server| load(server, "t")).collect();
    for server in &servers {
        server.run(&["CHECKPOINT"]).unwrap();
    }
    let found = pages(&files);
    same(ratio(grids(&found)[&(8192, 0)], "dedup_ratio"), 1.0);
    for ratio in masked(&found, &TRANSACTION) {
        same(ratio, 2.0);
    }
}
