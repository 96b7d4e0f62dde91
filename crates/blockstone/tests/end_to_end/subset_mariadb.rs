//! `blockstone subset` with a MariaDB server that is started once for all tests.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blockstone_testkit::{MariadbServer, Ran, blockstone_binary, require, run};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, failed_rules, keeps_to_its_schema, names, signal};

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

/// Returns all files of a directory with their contents.
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
    let keys = document["tables"]["keys"].as_array().unwrap();
    assert_eq!(keys.len(), KEYS, "{keys:#?}");
    keys.iter().map(|key| key["orphans"].as_u64().unwrap()).sum()
}

fn rows(document: &Value, table: &str) -> u64 {
    let tables = document["tables"]["tables"].as_array().unwrap();
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

/// Counts the orphans of each key that the server knows, without Blockstone.
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

/// Counts rows of `database` that are not in `other`, over all tables.
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
    // Rows must be equal to the last byte.
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

fn a_run_says_that_the_database_is_a_sample(server: &MariadbServer, place: &Place) {
    let mut command = Command::new(blockstone_binary());
    command.args(["run", "--target", &server.address("loaded"), "--block-size", "16K"]);
    command.args(["--run-time", "1s", "--scale", "1M", "--schemas", "1", "--threads", "1"]);
    let ran = run(command.arg("--runs-dir").arg(place.file("sample-runs")));
    let says = "the database is a sample: 1 % of mysql://";
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains(says), "{ran:#?}");
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

fn the_options_say_which_rows_are_taken(server: &MariadbServer, place: &Place) {
    let from = server.address("source");
    let keys = place.file("keys.toml");
    let key = "[[key]]\ntable = \"visit\"\ncolumns = [\"customer\"]\n\
               references = \"customer\"\nreferenced = [\"id\"]\n";
    std::fs::write(&keys, key).unwrap();
    let plan = |more: &[&str]| {
        let ran = subset(&[&["--from", &from, "--dry-run", "--json"], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()
    };
    let whole = plan(&["--whole", "customer"]);
    assert_eq!((rows(&whole, "customer"), rows(&whole, "country")), (3000, 20));
    let only = ["--percent", "0", "--where", "visit=id <= 7", "--keys", keys.to_str().unwrap()];
    let planned = plan(&only);
    assert_eq!((rows(&planned, "visit"), rows(&planned, "customer")), (7, 7));
    std::fs::write(&keys, format!("{key}when = {{ column = \"id\", is = \"3\" }}\n")).unwrap();
    let planned = plan(&only);
    assert_eq!((rows(&planned, "visit"), rows(&planned, "customer")), (7, 1));
    let followed = plan(&["--percent", "20", "--stratify"]);
    let capped = plan(&["--percent", "20", "--stratify", "--cap", "1"]);
    assert!(rows(&capped, "orders") < rows(&followed, "orders"));
    let ran = subset(&["--from", &from, "--dry-run", "--where", "visit=nothing > 1"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("condition of --where"), "{ran:#?}");
}

fn masks_keep_the_keys(server: &MariadbServer, place: &Place) {
    let from = server.address("source");
    let dir = place.file("masked");
    let masks = ["--mask", "customer.id=hash", "--mask", "note=hash", "--mask", "staff.id=hash"];
    json(&[&["--from", &from][..], &masks, &[dir.to_str().unwrap()]].concat());
    let loaded = json(&["load", dir.to_str().unwrap(), "--into", &make(server, "masked")]);
    assert_eq!(orphans(&loaded), 0);
    assert_eq!(counted_orphans(server, "masked"), (KEYS, 0));
    let known = "SELECT count(*), count(CASE WHEN id BETWEEN 1 AND 3000 THEN 1 END), \
                 count(CASE WHEN note LIKE 'tab\there%' THEN 1 END) FROM customer";
    let counts = ask(server, "masked", known);
    let (rows, rest) = counts.split_once('\t').unwrap();
    assert!(rows.parse::<u64>().unwrap() > 90 && rest == "0\t0", "{counts}");
}

fn tables_sampled_alone_lose_nine_parents_of_ten(server: &MariadbServer) {
    let from = server.address("source");
    // In the version before the newest, for scripts written for it.
    let document = subset(&["--from", &from, "--naive", "--percent", "10", "--json=1"]).json();
    assert_eq!(document["schema"], "blockstone.subset/1");
    assert_eq!(failed_rules(&document), ["orphans"]);
    assert!(document["directory"].is_null() && document["views"]["keys_alone"].is_array());
    let of_orders = document["tables"].as_array().unwrap().iter();
    let of_orders = of_orders.filter(|it| it["table"].as_str().unwrap().ends_with(".orders"));
    let of_orders: Vec<&Value> = of_orders.map(|it| &it["why"][0]).collect();
    assert!(of_orders.iter().all(|why| why["key"].is_null() && why["rows"].is_u64()));
    assert!(document["steps"][0]["seconds"].is_number() && document["seconds"].is_number());
    let keys = document["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["name"] == "orders_customer").unwrap();
    let share = key["orphans"].as_f64().unwrap() / key["rows"].as_f64().unwrap();
    let error = key["orphan_share_standard_error"].as_f64().unwrap();
    assert!((share - 0.9).abs() < 3.0 * error, "{share} ± {error}");
}

fn loading(place: &Place, into: &str) -> Child {
    let mut command = Command::new(blockstone_binary());
    command.args(["subset", "load"]).arg(place.file("two")).args(["--into", into]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn staged(server: &MariadbServer) -> String {
    let ask_staged = "SELECT count(*) FROM information_schema.SCHEMATA \
                      WHERE SCHEMA_NAME LIKE 'blockstone%'";
    ask(server, "", ask_staged)
}

fn a_killed_load_leaves_nothing_that_is_seen(server: &MariadbServer, place: &Place) {
    let into = make(server, "killed");
    let all = "SELECT (SELECT count(*) FROM information_schema.TABLES \
               WHERE TABLE_SCHEMA = 'DB') + (SELECT count(*) FROM information_schema.TRIGGERS \
               WHERE TRIGGER_SCHEMA = 'DB') + (SELECT count(*) FROM information_schema.ROUTINES \
               WHERE ROUTINE_SCHEMA = 'DB')";
    let whole = ask(server, "", &all.replace("DB", "source"));
    for wait_ms in [5, 15, 30, 60, 90, 120, 150, 200, 250, 300] {
        let mut child = loading(place, &into);
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        // The server completes the statement it was sent.
        while ask(server, "", "SELECT IS_FREE_LOCK('blockstone_subset_killed')") != "1" {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = ask(server, "", &all.replace("DB", "killed"));
        assert!(left == "0" || left == whole, "{left} of {whole} after {wait_ms} ms");
        if left == whole {
            ask(server, "", "DROP DATABASE killed");
            make(server, "killed");
        }
    }
    // The last killed load may have left its staging schema behind. A complete load removes it, so
    // that a staging schema seen below belongs to the load that is interrupted.
    json(&["load", place.file("two").to_str().unwrap(), "--into", &into]);
    ask(server, "", "DROP DATABASE killed");
    make(server, "killed");
    assert_eq!(staged(server), "0");
    let mut child = loading(place, &into);
    let mut ended = None;
    while staged(server) == "0" && ended.is_none() {
        ended = child.try_wait().unwrap();
    }
    let ended = ended.unwrap_or_else(|| {
        signal(&child, "INT");
        child.wait().unwrap()
    });
    assert!(matches!(ended.code(), Some(130 | 0)), "{ended:?}");
    assert_eq!(staged(server), "0");
    ask(server, "", "DROP DATABASE killed; CREATE DATABASE blockstone_subset_killed");
    make(server, "killed");
    ask(server, "blockstone_subset_killed", "CREATE TABLE own (n int)");
    let ran = subset(&["load", place.file("two").to_str().unwrap(), "--into", &into]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no load made"), "{ran:#?}");
    ask(server, "", "DROP TABLE blockstone_subset_killed.own");
    // An early kill leaves a staging schema without tables.
    json(&["load", place.file("two").to_str().unwrap(), "--into", &into]);
    assert_eq!(staged(server), "0");
}

fn a_load_that_fails_is_taken_back(server: &MariadbServer, place: &Place) {
    let whole = place.file("one");
    for (file, from, to, why) in [
        ("data/00009.part.txt", "\n", "\textra\n", "Row 1 was truncated"),
        ("data/00002.customer.txt", "it's", "its", "Data truncated for column 'mood'"),
        ("data/00001.country.txt", "C11\t", "C111\t", "rows reference rows that are not there"),
        ("schema-code.sql", "SIGNAL", "NOTHING", "error in your SQL syntax"),
    ] {
        let dir = place.file("damaged");
        let copied = run(Command::new("cp").arg("-r").arg(&whole).arg(&dir));
        assert_eq!(copied.code, Some(0));
        let path = dir.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let into = make(server, "taken_back");
        let ran = subset(&["load", dir.to_str().unwrap(), "--into", &into]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{file}: {ran:#?}");
        let left = "SELECT count(*) FROM information_schema.TABLES \
                    WHERE TABLE_SCHEMA = 'taken_back'";
        assert_eq!(ask(server, "", left), "0", "{file}");
        assert_eq!(staged(server), "0", "{file}");
        ask(server, "", "DROP DATABASE taken_back");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

fn a_key_that_the_source_breaks_is_said(server: &MariadbServer, place: &Place) {
    let from = make(server, "broken");
    ask(
        server,
        "broken",
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int, \
         CONSTRAINT held FOREIGN KEY (p) REFERENCES p (id)); INSERT INTO p VALUES (1), (2); \
         SET foreign_key_checks = 0; INSERT INTO c VALUES (1, 1), (2, 2), (3, 77)",
    );
    let dir = place.file("broken");
    let ran = subset(&["--from", &from, "--percent", "100", "--json", dir.to_str().unwrap()]);
    let orphans = &ran.json()["tables"]["keys"][0]["orphans"];
    assert_eq!((ran.code, &orphans["unmeasured"]), (Some(0), &"unknown".into()));
    let into = make(server, "broken_too");
    let ran = subset(&["load", dir.to_str().unwrap(), "--into", &into, "--json"]);
    assert_eq!((ran.code, &ran.json()["tables"]["keys"][0]["orphans"]), (Some(3), &Value::from(1)));
}

/// Tables of other engines, versioned ones, packages, invisible columns and periods.
fn what_is_special_is_taken_or_named(server: &MariadbServer, place: &Place) {
    let from = make(server, "special");
    ask(
        server,
        "special",
        "CREATE TABLE part (id int PRIMARY KEY) ENGINE = MyISAM; INSERT INTO part VALUES (1); \
         CREATE TABLE parts (id int PRIMARY KEY) ENGINE = MERGE UNION = (part); \
         CREATE TABLE word (id varchar(9) COLLATE utf8mb4_general_nopad_ci PRIMARY KEY, \
         hidden int INVISIBLE DEFAULT 7, INDEX (hidden)) WITH SYSTEM VERSIONING; \
         INSERT INTO word (id, hidden) VALUES ('é', 1), ('b', 2); UPDATE word SET hidden = 3; \
         CREATE TABLE timed (id int, s date, e date, \
         b timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE, \
         u timestamp(6) GENERATED ALWAYS AS ROW END INVISIBLE, \
         PERIOD FOR SYSTEM_TIME (b, u), PERIOD FOR p (s, e), \
         PRIMARY KEY (id, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING; \
         INSERT INTO timed (id, s, e) VALUES (1, '2026-01-01', '2026-02-01'); \
         CREATE TABLE refers (id int PRIMARY KEY, \
         word varchar(9) COLLATE utf8mb4_general_nopad_ci, \
         long_word int AS (id * 2) VIRTUAL, twice int AS (id * 2) STORED UNIQUE, other int, \
         of_other varchar(20) AS (concat('of ', other)) STORED, \
         CONSTRAINT refers_word FOREIGN KEY (word) REFERENCES word (id) ON DELETE SET NULL, \
         CONSTRAINT refers_other FOREIGN KEY (other) REFERENCES refers (id) ON DELETE CASCADE); \
         INSERT INTO refers (id, word) VALUES (1, 'E'), (2, 'B'); \
         SET sql_mode = 'ORACLE'; CREATE PACKAGE pack AS END",
    );
    let dir = place.file("special");
    let ran = subset(&["--from", &from, "--percent", "100", dir.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "elsewhere are not taken (1): parts (MRG_MyISAM).",
        "Packages are not taken (1): pack.",
        "so do their rows (2): timed, word.",
    ] {
        assert!(words.contains(said), "{said}: {ran:#?}");
    }
    let into = make(server, "special_too");
    let ran = subset(&["load", dir.to_str().unwrap(), "--into", &into, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let orphans = ran.json()["tables"]["keys"][0]["orphans"].clone();
    assert_eq!((orphans, rows_not_in(server, "special_too", "special")), (Value::from(0), 0));
    let hidden = "SELECT sum(hidden), (SELECT count(*) FROM timed), \
                  (SELECT sum(twice + long_word) FROM refers) FROM word";
    assert_eq!(ask(server, "special_too", hidden), "6\t1\t12");
    let nulled = place.file("special_null");
    let ran = subset(&[
        "--from",
        &from,
        "--percent",
        "100",
        "--null",
        "refers_word",
        nulled.to_str().unwrap(),
    ]);
    assert!(ran.code == Some(0) && ran.stdout.contains("NULL in all rows"), "{ran:#?}");
    let into = make(server, "special_null");
    assert_eq!(subset(&["load", nulled.to_str().unwrap(), "--into", &into]).code, Some(0));
    assert_eq!(ask(server, "special_null", "SELECT count(*), count(word) FROM refers"), "2\t0");
    ask(
        server,
        "special",
        "CREATE TABLE mood (m enum('a', 'b') PRIMARY KEY); \
         CREATE TABLE has (m enum('b', 'a'), CONSTRAINT has_m FOREIGN KEY (m) REFERENCES mood (m))",
    );
    let ran = subset(&["--from", &from, "--dry-run"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("number differently"), "{ran:#?}");
}

fn what_cannot_be_read_is_refused_in_one_line(server: &MariadbServer, place: &Place) {
    let grant = |table: &String| {
        let table = quoted(table);
        ask(server, "source", &format!("GRANT SELECT ON {table} TO reader@'127.0.0.1'"));
    };
    ask(server, "", "CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'right'");
    tables(server, "source").iter().filter(|table| *table != "country").for_each(grant);
    let from =
        |password: &str| server.address("source").replace("root@", &format!("reader:{password}@"));
    let command = |from: &str| {
        let mut command = Command::new(blockstone_binary());
        command.args(["subset", "--from", from]).arg(place.file("none"));
        command
    };
    let root = server.address("source");
    let (server_only, nothing) = (server.address(""), server.address("nothing"));
    for (from, why) in [
        (from("wrong"), "password"),
        (from("right"), "`country`"),
        (server_only, "names no database"),
        (nothing, "Unknown database"),
    ] {
        let error = refused(place, &mut command(&from));
        assert!(error.contains(why), "{error}");
    }
    ask(server, "source", "GRANT INSERT ON country TO reader@'127.0.0.1'");
    let error = refused(place, &mut command(&from("right")));
    assert!(error.contains("may not read `country`"), "{error}");
    ask(server, "source", "GRANT SELECT ON country TO reader@'127.0.0.1'");
    let ran = subset(&["--from", &from("right"), "--dry-run"]);
    assert!(ran.stdout.contains("single tables only"), "{ran:#?}");
    let error = refused(place, &mut command(&root.replace("mysql:", "oracle:")));
    assert!(error.contains("not supported"), "{error}");
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load"]).arg(place.file("one"));
    let error = refused(place, load.args(["--into", "postgres://nobody@127.0.0.1:1/none"]));
    assert!(error.contains("those of MariaDB"), "{error}");
    // A refused destination.
    make(server, "elsewhere");
    ask(server, "", "GRANT ALL ON elsewhere.* TO reader@'127.0.0.1'");
    let into = from("right").replace("/source", "/elsewhere");
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load"]).arg(place.file("one"));
    let error = refused(place, load.args(["--into", &into]));
    assert!(error.contains("make a database to load into"), "{error}");
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
    a_run_says_that_the_database_is_a_sample(&server, &place);
    the_options_say_which_rows_are_taken(&server, &place);
    masks_keep_the_keys(&server, &place);
    tables_sampled_alone_lose_nine_parents_of_ten(&server);
    a_killed_load_leaves_nothing_that_is_seen(&server, &place);
    a_load_that_fails_is_taken_back(&server, &place);
    a_key_that_the_source_breaks_is_said(&server, &place);
    what_is_special_is_taken_or_named(&server, &place);
    what_cannot_be_read_is_refused_in_one_line(&server, &place);
}
