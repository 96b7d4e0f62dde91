//! Subsets from and into versions of PostgreSQL other than that of the distribution.

use blockstone_testkit::PostgresServer;
use serde_json::Value;

use super::{Place, SOURCE, address, empty, json, lines, make, subset, whole_orphans};

/// Rows of each table, and their reasons.
fn rows(document: &Value) -> (Vec<[&Value; 3]>, &Value) {
    let (tables, why) = (&document["tables"]["tables"], &document["tables"]["why"]);
    let rows = tables.as_array().unwrap().iter();
    (rows.map(|it| ["table", "source_rows", "rows"].map(|key| &it[key])).collect(), why)
}

pub fn all_versions_take_the_same_rows(distributed: &PostgresServer, place: &Place) {
    let from = |server: &PostgresServer| {
        make(server, "versions", SOURCE, place);
        address(server, "versions")
    };
    let dir = place.file("version_15");
    let own = json(&["--from", &from(distributed), dir.to_str().unwrap()]);
    for major in [13, 14, 16, 17, 18] {
        let server = PostgresServer::start(major, &["fsync=off"]).unwrap();
        let from = from(&server);
        let planned = json(&["--from", &from, "--dry-run"]);
        assert_eq!(rows(&planned), rows(&own), "PostgreSQL {major}");
        let other = place.file(&format!("version_{major}"));
        if major < 15 {
            json(&["--from", &from, other.to_str().unwrap()]);
            assert_eq!(lines(&other), lines(&dir), "PostgreSQL {major}");
        } else {
            // The distribution's pg_dump is older than the server.
            let ran = subset(&["--from", &from, other.to_str().unwrap()]);
            assert!(ran.code == Some(2) && ran.stderr.contains("pg_dump"), "{ran:#?}");
            assert!(!other.exists());
        }
        if major == 18 {
            periods_are_covered(&server, place);
        }
        empty(&server, "loaded");
        let loaded = json(&["load", dir.to_str().unwrap(), "--into", &address(&server, "loaded")]);
        assert_eq!(whole_orphans(&loaded), 0, "PostgreSQL {major}");
        assert_eq!(loaded["rows"], own["rows"], "PostgreSQL {major}");
    }
}

/// A key with a period references rows that cover it together: all with the same other columns.
fn periods_are_covered(server: &PostgresServer, place: &Place) {
    let text = "CREATE EXTENSION btree_gist;
        CREATE TABLE price (product int, at daterange, PRIMARY KEY (product, at WITHOUT OVERLAPS));
        CREATE TABLE offer (id int PRIMARY KEY, product int, at daterange,
            FOREIGN KEY (product, PERIOD at) REFERENCES price (product, PERIOD at));
        INSERT INTO price
            SELECT p, daterange(date '2026-01-01' + d * 10, date '2026-01-11' + d * 10)
            FROM generate_series(1, 50) p, generate_series(0, 9) d;
        INSERT INTO offer SELECT p, p, daterange('2026-01-05', '2026-02-25')
            FROM generate_series(1, 50) p;
        CREATE TABLE unchecked (offer int REFERENCES offer NOT ENFORCED,
            twice int GENERATED ALWAYS AS (offer * 2) VIRTUAL);
        INSERT INTO unchecked VALUES (1), (99);";
    make(server, "periods", text, place);
    let from = address(server, "periods");
    let one = ["--percent", "0", "--where", "offer=id = 7"];
    let planned = json(&[&["--from", &from, "--dry-run"], &one[..]].concat());
    let tables = planned["tables"]["tables"].as_array().unwrap();
    let rows: Vec<u64> = tables.iter().map(|it| it["rows"].as_u64().unwrap()).collect();
    assert_eq!(rows, [1, 10, 0], "{tables:#?}");
}
