//! `blockstone subset` on a server of MariaDB, started once for all.

use std::path::Path;
use std::process::Command;

use blockstone_testkit::{MariadbServer, Ran, blockstone_binary, require, run};
use serde_json::Value;

use super::{Place, failed_rules, keeps_to_its_schema, names};

const SOURCE: &str = include_str!("subset_mariadb.sql");
const KEYS: usize = 10;

fn subset(arguments: &[&str]) -> Ran {
    run(Command::new(blockstone_binary()).arg("subset").args(arguments))
}

fn json(arguments: &[&str]) -> Value {
    let ran = subset(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

fn ask(server: &MariadbServer, database: &str, text: &str) -> String {
    server.ask(database, text).unwrap()
}

fn make(server: &MariadbServer, database: &str) -> String {
    ask(server, "", &format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"));
    server.address(database)
}

/// All files of a directory with what is in them.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in [dir.to_owned(), dir.join("data")] {
        for name in names(&dir) {
            let path = dir.join(&name);
            if path.is_file() {
                all.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    all
}

fn orphans(document: &Value) -> u64 {
    let keys = document["keys"].as_array().unwrap();
    assert_eq!(keys.len(), KEYS, "{keys:#?}");
    keys.iter().map(|key| key["orphans"].as_u64().unwrap()).sum()
}

fn rows(document: &Value, table: &str) -> u64 {
    let tables = document["tables"].as_array().unwrap();
    let table = format!("source.{table}");
    tables.iter().find(|it| it["table"] == table.as_str()).unwrap()["rows"].as_u64().unwrap()
}

fn tables(server: &MariadbServer, database: &str) -> Vec<String> {
    let ask_tables = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}' \
         AND TABLE_TYPE = 'BASE TABLE'"
    );
    ask(server, "", &ask_tables).lines().map(str::to_owned).collect()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Orphans of each key that the server knows, counted without Blockstone.
fn counted_orphans(server: &MariadbServer, database: &str) -> (usize, u64) {
    let keys = ask(
        server,
        "",
        &format!(
            "SELECT k.TABLE_NAME, k.REFERENCED_TABLE_NAME, \
             group_concat(concat('c.', k.COLUMN_NAME, ' = p.', k.REFERENCED_COLUMN_NAME) \
             SEPARATOR ' AND '), \
             group_concat(concat('c.', k.COLUMN_NAME, ' IS NOT NULL') SEPARATOR ' AND ') \
             FROM information_schema.KEY_COLUMN_USAGE k WHERE k.TABLE_SCHEMA = '{database}' \
             AND k.REFERENCED_TABLE_SCHEMA = '{database}' GROUP BY k.TABLE_NAME, \
             k.CONSTRAINT_NAME, k.REFERENCED_TABLE_NAME"
        ),
    );
    let count = |line: &str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [child, parent, equal, present] = parts[..] else { panic!("{line}") };
        let text = format!(
            "SELECT count(*) FROM {child} c LEFT JOIN {parent} p ON {equal} \
             WHERE {present} AND p.{} IS NULL",
            equal.split("p.").nth(1).unwrap().split(' ').next().unwrap()
        );
        ask(server, database, &text).parse::<u64>().unwrap()
    };
    (keys.lines().count(), keys.lines().map(count).sum())
}

/// Rows of `database` that are not in `other`, of all tables.
fn rows_not_in(server: &MariadbServer, database: &str, other: &str) -> u64 {
    let of = |table: &String| {
        let table = quoted(table);
        let text = format!(
            "SELECT count(*) FROM (SELECT * FROM {database}.{table} EXCEPT ALL \
             SELECT * FROM {other}.{table}) t"
        );
        ask(server, "", &text).parse::<u64>().unwrap()
    };
    tables(server, database).iter().map(of).sum()
}

fn a_subset_is_whole_repeatable_and_grows(server: &MariadbServer, place: &Place) {
    let from = server.address("source");
    let dirs = ["one", "again", "two"].map(|name| place.file(name));
    let text = |dir: &Path| dir.to_str().unwrap().to_owned();
    for (dir, percent) in dirs.iter().zip(["1", "1", "2"]) {
        let taken = json(&["--from", &from, "--percent", percent, &text(dir)]);
        assert_eq!(orphans(&taken), 0);
    }
    assert_eq!(files(&dirs[0]), files(&dirs[1]));
    let [one, two] = [("loaded", &dirs[0]), ("loaded_two", &dirs[2])].map(|(name, dir)| {
        let loaded = json(&["load", &text(dir), "--into", &make(server, name)]);
        assert_eq!(orphans(&loaded), 0);
        assert_eq!(failed_rules(&loaded), Vec::<String>::new());
        assert_eq!(counted_orphans(server, name), (KEYS, 0));
        for table in tables(server, name) {
            let count = ask(server, name, &format!("SELECT count(*) FROM {}", quoted(&table)));
            assert_eq!(count, rows(&loaded, &table).to_string(), "{table}");
        }
        loaded
    });
    assert!(one["rows"].as_u64() > Some(500) && one["rows"].as_u64() < two["rows"].as_u64());
    assert_eq!(tables(server, "loaded"), tables(server, "source"));
    assert_eq!(rows_not_in(server, "loaded", "source"), 0);
    assert_eq!(rows_not_in(server, "loaded", "loaded_two"), 0);
    // To the last byte.
    let copy = "CREATE TABLE copy LIKE source.customer; INSERT INTO copy (id, region, number, \
                country, mood, tags, note, flags, picture, born, seen, at, ratio, exact, shape, \
                extra, tiny, letter, serial) SELECT id, region, number, country, mood, tags, note, \
                flags, picture, born, seen, at, ratio, exact, shape, extra, tiny, letter, serial \
                FROM source.customer WHERE id IN (SELECT id FROM loaded.customer)";
    make(server, "copies");
    ask(server, "copies", &format!("SET sql_mode = ''; {copy}"));
    let sums = ask(server, "", "CHECKSUM TABLE copies.copy, loaded.customer");
    let sums: Vec<&str> = sums.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert!(sums[0] == sums[1] && sums[0] != "NULL", "{sums:?}");
}

fn what_runs_is_there_too(server: &MariadbServer, place: &Place) {
    let dir = place.file("one");
    make(server, "scripted");
    let script = std::fs::File::open(dir.join("load.sql")).unwrap();
    let ran = server.client("scripted").current_dir(&dir).stdin(script).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    for database in ["loaded", "scripted"] {
        assert_eq!(ask(server, database, "SELECT two FROM a_view LIMIT 1"), "2");
        let refused = server.ask(database, "INSERT INTO visit VALUES (-1, 1)").unwrap_err();
        assert!(refused.to_string().contains("ERROR 1644"), "{refused}");
        let next = "INSERT INTO note (text) VALUES ('x'); SELECT id FROM note WHERE text = 'x'";
        assert_eq!(ask(server, database, next), "70");
        let broken = "INSERT INTO staff VALUES (-1, 4000000000, NULL, NULL)";
        let refused = server.ask(database, broken).unwrap_err();
        assert!(refused.to_string().contains("ERROR 1452"), "{refused}");
    }
    assert_eq!(counted_orphans(server, "scripted"), (KEYS, 0));
    let definition = "SELECT count(*) FROM information_schema.VIEWS \
                      WHERE TABLE_SCHEMA = 'loaded' AND VIEW_DEFINITION LIKE '%source%'";
    assert_eq!(ask(server, "", definition), "0");
    let into = server.address("loaded");
    let again = subset(&["load", dir.to_str().unwrap(), "--into", &into]);
    assert!(again.code == Some(2) && again.stderr.contains("already"), "{again:#?}");
}

#[test]
fn a_sample_of_mariadb_has_all_that_its_keys_need() {
    require!(Root, Mariadb);
    let place = Place::beside();
    let server = MariadbServer::start(&["innodb-flush-log-at-trx-commit=0"]).unwrap();
    make(&server, "source");
    let source = place.scratch.path().join("source.sql");
    std::fs::write(&source, SOURCE).unwrap();
    let made = server.client("source").stdin(std::fs::File::open(&source).unwrap()).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
    a_subset_is_whole_repeatable_and_grows(&server, &place);
    what_runs_is_there_too(&server, &place);
}
