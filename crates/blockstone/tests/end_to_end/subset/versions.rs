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
        empty(&server, "loaded");
        let loaded = json(&["load", dir.to_str().unwrap(), "--into", &address(&server, "loaded")]);
        assert_eq!(whole_orphans(&loaded), 0, "PostgreSQL {major}");
        assert_eq!(loaded["rows"], own["rows"], "PostgreSQL {major}");
    }
}
