//! Files of real databases: the same rows, loaded by other transactions or into other servers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_testkit::{PostgresServer, Ran, ScratchDir, require, run};
use serde_json::Value;

use super::{Turn, grids, masked, number, ratio, rows, same, scanned};

/// Keeps rows as they were loaded: no vacuum cleans up behind them.
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

/// Scans files that hold the same rows, and checks that all are recognised as files of this
/// database.
fn pages(files: &[PathBuf], format: &str) -> Value {
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let found = scanned(&[], &files);
    for file in rows(&found, "files") {
        assert!(file["format"] == format && number(file, "bytes") > 400_000, "{file:#}");
    }
    found
}

#[test]
fn tables_loaded_by_other_transactions_differ_by_their_headers_alone() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let server = PostgresServer::start(15, &SETTINGS).unwrap();
    let files: Vec<PathBuf> = (1..=4).map(|table| load(&server, &format!("t{table}"))).collect();
    server.run(&["CHECKPOINT"]).unwrap();
    let found = pages(&files, "PostgreSQL");
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
    let costs = rows(&found, "fields");
    let cost = costs.iter().find(|cost| cost["field"] == "transaction").unwrap();
    same(ratio(cost, "dedup_ratio_without"), 4.0);
    assert!(cost["called"].as_str().unwrap().contains("xmin"), "{cost:#}");
}

#[test]
fn the_same_load_into_two_servers_is_the_same_but_for_headers() {
    require!(Root, Postgres);
    let _turn = Turn::beside();
    let servers = [0, 1].map(|_| PostgresServer::start(15, &SETTINGS).unwrap());
    // The second has a history: its transactions and its log are further along.
    servers[1].run(&["CREATE TABLE past (n int)", "INSERT INTO past VALUES (1)"]).unwrap();
    let files: Vec<PathBuf> = servers.iter().map(|server| load(server, "t")).collect();
    for server in &servers {
        server.run(&["CHECKPOINT"]).unwrap();
    }
    let found = pages(&files, "PostgreSQL");
    same(ratio(grids(&found)[&(8192, 0)], "dedup_ratio"), 1.0);
    for ratio in masked(&found, &TRANSACTION) {
        same(ratio, 2.0);
    }
}

const TABLES: u64 = 4;

/// Statements, one per line, for a server that only sets up its database: it needs no port, and
/// ends after them.
fn statements() -> String {
    let table = |number| {
        format!(
            "CREATE TABLE t{number} (id int NOT NULL PRIMARY KEY, name varchar(100) NOT NULL, \
             amount decimal(12, 2) NOT NULL) ENGINE = InnoDB;\n\
             INSERT INTO t{number} WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s \
             WHERE n < {ROWS}) SELECT n, concat('customer ', md5(n)), n * 1.07 FROM s;\n"
        )
    };
    let tables: String = (1..=TABLES).map(table).collect();
    // All pages are written and the undo log is emptied before the end.
    format!(
        "CREATE DATABASE d;\nUSE d;\nSET max_recursive_iterations = 100000;\n{tables}\
         SET GLOBAL innodb_fast_shutdown = 0;\n"
    )
}

fn succeeded(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn innodb_tables_differ_by_headers_and_by_the_page_that_names_them() {
    require!(Root, Mariadb);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let (data, script) = (scratch.path().join("data"), scratch.path().join("script.sql"));
    let mut install = Command::new("mariadb-install-db");
    install.args(["--no-defaults", "--user=root", "--skip-test-db"]);
    install.arg("--auth-root-authentication-method=normal").env("TMPDIR", scratch.path());
    succeeded(&run(install.arg(format!("--datadir={}", data.display()))));
    fs::write(&script, statements()).unwrap();
    let mut server = Command::new("mariadbd");
    server.args(["--no-defaults", "--user=root", "--bootstrap"]).env("TMPDIR", scratch.path());
    server.arg(format!("--datadir={}", data.display()));
    let output = server.stdin(File::open(&script).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files: Vec<PathBuf> =
        (1..=TABLES).map(|table| data.join(format!("d/t{table}.ibd"))).collect();
    let found = pages(&files, "InnoDB");
    let plain = |size| ratio(grids(&found)[&(size, 0)], "dedup_ratio");
    let without_headers = masked(&found, &TRANSACTION);
    for (size, masked) in [(16384, without_headers[2]), (32768, without_headers[3])] {
        let blocks = number(grids(&found)[&(size, 0)], "blocks");
        // The first page of a table contains its number outside the headers; all others are the
        // same.
        same(masked, blocks as f64 / (blocks / TABLES + TABLES - 1) as f64);
        assert!(plain(size) < 1.1, "{:#}", grids(&found)[&(size, 0)]);
    }
    assert!(without_headers[..2].iter().all(|&ratio| ratio > 3.5), "{without_headers:?}");
}
