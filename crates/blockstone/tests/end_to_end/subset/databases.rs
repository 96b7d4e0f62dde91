//! Objects of a database that do not come with its rows, rows that the user may not see, and keys
//! that are set to NULL.

use std::process::Command;

use blockstone_testkit::{PostgresServer, blockstone_binary};
use serde_json::Value;

use super::refused;
use super::{Place, address, ask, empty, json, make, subset, whole_orphans};

const DATABASE: &str = include_str!("database.sql");

fn rows(document: &Value, table: &str) -> u64 {
    let tables = document["tables"]["tables"].as_array().unwrap();
    tables.iter().find(|it| it["table"] == table).unwrap()["rows"].as_u64().unwrap()
}

pub fn what_is_left_out_is_named(server: &PostgresServer, place: &Place) {
    make(server, "database", DATABASE, place);
    let dir = place.file("database");
    let ran = subset(&["--from", &address(server, "database"), dir.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for said in [
        "come without rows (1): public.far.",
        "CREATE EXTENSION makes (1): public.settings.",
        "empty until they are refreshed (1): public.shadow.",
        "Event triggers are not taken (1): guard.",
        "not taken (1): elsewhere for admin.",
    ] {
        let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{said}: {ran:#?}");
    }
    for file in ["schema-before.sql", "schema-after.sql"] {
        let text = std::fs::read_to_string(dir.join(file)).unwrap();
        for word in ["secret", "\nCREATE EVENT", "a guard;"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    empty(server, "database_loaded");
    let into = address(server, "database_loaded");
    let loaded = json(&["load", dir.to_str().unwrap(), "--into", &into]);
    assert_eq!(whole_orphans(&loaded), 0);
    assert_eq!(ask(server, "database_loaded", "SELECT count(*) FROM pg_event_trigger"), "0");
}

pub fn keys_are_null_if_asked(server: &PostgresServer, place: &Place) {
    let from = address(server, "database");
    // Each tree references the one before it, so one per cent takes all before the last.
    let plan = |more: &[&str]| json(&[&["--from", &from, "--dry-run"], more].concat());
    let all = plan(&[]);
    assert!(rows(&all, "public.tree") > 1900);
    let adding = &all["tables"]["null"][0];
    assert_eq!((&adding["key"], &adding["figure"]), (&"tree_before_fkey".into(), &"exact".into()));
    let null = plan(&["--null", "tree_before_fkey"]);
    let saved = all["rows"].as_u64().unwrap() - null["rows"].as_u64().unwrap();
    assert_eq!(adding["saved_rows"].as_u64(), Some(saved));
    assert!(null["tables"]["null"].is_null());
    let ran = subset(&["--from", &from, "--dry-run"]);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "--null tree_before_fkey would save 1,9";
    assert!(words.contains(said), "{ran:#?}");
    let dir = place.file("whole");
    let ran = subset(&["--from", &from, dir.to_str().unwrap()]);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("would save at most 1,9"), "{ran:#?}");
    let dir = place.file("null");
    let taken = json(&["--from", &from, "--null", "tree.tree_before_fkey", dir.to_str().unwrap()]);
    assert_eq!(taken["rows"], null["rows"]);
    empty(server, "null_loaded");
    let loaded = json(&["load", dir.to_str().unwrap(), "--into", &address(server, "null_loaded")]);
    assert_eq!(whole_orphans(&loaded), 0);
    let nulls = "SELECT count(before), count(*) > 10, count(DISTINCT tenant) FROM tree";
    assert_eq!(ask(server, "null_loaded", nulls), "0|t|1");
    for (key, why) in
        [("leaf_tree_fkey", "tree is NOT NULL"), ("nothing", "there is no key nothing")]
    {
        let ran = subset(&["--from", &from, "--dry-run", "--null", key]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{ran:#?}");
    }
}

pub fn hidden_rows_are_refused(server: &PostgresServer, place: &Place) {
    let text = "CREATE ROLE sees LOGIN; CREATE ROLE owns LOGIN;
        CREATE TABLE open (id int PRIMARY KEY); CREATE TABLE shut (id int REFERENCES open);
        ALTER TABLE shut ENABLE ROW LEVEL SECURITY;
        CREATE POLICY few ON shut USING (id < 10);
        INSERT INTO open SELECT generate_series(1, 100); INSERT INTO shut SELECT id FROM open;
        GRANT SELECT ON open, shut TO sees;
        ALTER TABLE open OWNER TO owns; ALTER TABLE shut OWNER TO owns;
        GRANT CREATE ON SCHEMA public TO owns;";
    make(server, "hidden", text, place);
    let as_role =
        |name: &str, role: &str| address(server, name).replace("admin@", &format!("{role}@"));
    let dir = place.file("hidden");
    let mut command = Command::new(blockstone_binary());
    command.args(["subset", "--from", &as_role("hidden", "sees")]).arg(&dir);
    let error = refused(place, &mut command);
    assert!(error.contains("may hide rows of \"public\".\"shut\" from"), "{error}");
    // The owner sees all, unless it is forced; then it is not while a load counts rows.
    let from = as_role("hidden", "owns");
    assert_eq!(rows(&json(&["--from", &from, "--dry-run", "--whole", "shut"]), "public.shut"), 100);
    ask(server, "hidden", "ALTER TABLE shut FORCE ROW LEVEL SECURITY");
    let dir = dir.to_str().unwrap();
    json(&["--from", &address(server, "hidden"), "--whole", "shut", dir]);
    ask(server, "postgres", "CREATE DATABASE hidden_loaded OWNER owns");
    let loaded = json(&["load", dir, "--into", &as_role("hidden_loaded", "owns")]);
    assert_eq!((rows(&loaded, "public.shut"), whole_orphans(&loaded)), (100, 0));
    let forced = "SELECT relforcerowsecurity FROM pg_class WHERE relname = 'shut'";
    assert_eq!(ask(server, "hidden_loaded", forced), "t");
}

pub fn keys_that_cannot_be_compared_are_refused(server: &PostgresServer, place: &Place) {
    let text = "CREATE EXTENSION citext; CREATE TYPE name_of AS (a citext);
        CREATE TABLE named (id int PRIMARY KEY, name name_of UNIQUE, day date UNIQUE);
        CREATE TABLE refers (name name_of, at timestamptz REFERENCES named (day));";
    make(server, "incomparable", text, place);
    let from = address(server, "incomparable");
    let ran = subset(&["--from", &from, "--dry-run"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("time zone of a session"), "{ran:#?}");
    let key = "ALTER TABLE refers DROP CONSTRAINT refers_at_fkey, \
               ADD FOREIGN KEY (name) REFERENCES named (name)";
    ask(server, "incomparable", key);
    let ran = subset(&["--from", &from, "--dry-run"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("look different"), "{ran:#?}");
}

/// Types and collations that differ on both sides, which the server compares as those of the
/// referenced one.
pub fn other_collations_are_compared(server: &PostgresServer, place: &Place) {
    let text = "CREATE TABLE noun (word text COLLATE \"C\" PRIMARY KEY);
        CREATE TABLE verb (noun text COLLATE \"POSIX\" REFERENCES noun);
        INSERT INTO noun SELECT 'n' || i FROM generate_series(1, 500) i;
        INSERT INTO verb SELECT 'n' || i FROM generate_series(1, 500) i;
        CREATE TABLE place (code char(8) PRIMARY KEY);
        CREATE TABLE goes (code text REFERENCES place);
        INSERT INTO place SELECT 'P' || i FROM generate_series(1, 500) i;
        INSERT INTO goes SELECT 'P' || i || '  ' FROM generate_series(1, 500) i;";
    make(server, "collations", text, place);
    let dir = place.file("collations");
    let dir = dir.to_str().unwrap();
    json(&["--from", &address(server, "collations"), "--percent", "5", dir]);
    empty(server, "collations_loaded");
    let loaded = json(&["load", dir, "--into", &address(server, "collations_loaded")]);
    assert!(rows(&loaded, "public.verb") > 5 && rows(&loaded, "public.goes") > 5);
    assert_eq!(whole_orphans(&loaded), 0);
}
