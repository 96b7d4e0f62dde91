//! Schemas with every feature that a key or a table may have: for each, a subset is complete,
//! repeatable, and part of a larger one, and the server proves what was loaded.

use blockstone_testkit::{PostgresServer, run};

use super::{Place, address, ask, empty, json, lines, make, whole_orphans};

/// Name and script of each schema.
const SCHEMAS: &[(&str, &str)] = &[
    ("every kind of key", include_str!("every_kind.sql")),
    ("films for rent", include_str!("rental.sql")),
    ("cycles that share tables", include_str!("cycles.sql")),
    ("a chain of 200 tables", include_str!("chain.sql")),
    ("a table that all reference", include_str!("domain.sql")),
    ("features of tables", include_str!("features.sql")),
    ("equal values that look different", include_str!("alike.sql")),
];

/// Counts keys, keys that are not validated, and orphans, the latter by a separate query per key.
const PROOF: &str = "
    DO $$ DECLARE k record; found bigint; sum bigint = 0; BEGIN
    FOR k IN SELECT c.conname, c.conrelid::regclass AS child, c.confrelid::regclass AS parent,
        (SELECT string_agg(format('p.%I = c.%I', pa.attname, ca.attname), ' AND ')
         FROM unnest(c.conkey, c.confkey) u(own, other)
         JOIN pg_attribute ca ON ca.attrelid = c.conrelid AND ca.attnum = own
         JOIN pg_attribute pa ON pa.attrelid = c.confrelid AND pa.attnum = other) AS equal,
        (SELECT string_agg(format('c.%I IS NOT NULL', attname), ' AND ')
         FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = ANY (c.conkey)) AS present
        FROM pg_constraint c WHERE c.contype = 'f' AND c.conparentid = 0
    LOOP
        EXECUTE format('SELECT count(*) FROM %s c WHERE %s AND NOT EXISTS
            (SELECT FROM %s p WHERE %s)',
            k.child, k.present, k.parent, k.equal) INTO found;
        sum = sum + found;
    END LOOP;
    PERFORM set_config('proof.orphans', sum::text, false);
    END $$;
    SELECT count(*), count(*) FILTER (WHERE NOT convalidated),
        current_setting('proof.orphans')
        FROM pg_constraint WHERE contype = 'f' AND conparentid = 0";

pub fn each_holds(server: &PostgresServer, place: &Place) {
    println!("| schema | tables | keys | rows | of 1 % | of 2 % | orphans |");
    for (at, (name, text)) in SCHEMAS.iter().enumerate() {
        let database = format!("schema_{at}");
        make(server, &database, text, place);
        let dirs = ["one", "again", "two"].map(|it| place.file(&format!("{database}_{it}")));
        let from = address(server, &database);
        let take = |percent, at: usize| {
            json(&["--from", &from, "--percent", percent, dirs[at].to_str().unwrap()])
        };
        let [one, again, two] = [take("1", 0), take("1", 1), take("2", 2)];
        let [first, second, larger] = dirs.each_ref().map(|dir| lines(dir));
        assert!(first == second && one["rows"] == again["rows"], "{name}");
        assert!(first.is_subset(&larger), "{name}: {:?}", first.difference(&larger).next());
        assert_eq!(whole_orphans(&one) + whole_orphans(&two), 0, "{name}");
        let copy = format!("{database}_loaded");
        empty(server, &copy);
        let loaded = json(&["load", dirs[0].to_str().unwrap(), "--into", &address(server, &copy)]);
        assert_eq!(whole_orphans(&loaded), 0, "{name}");
        let before = ask(server, &database, PROOF);
        assert_eq!(ask(server, &copy, PROOF), before, "{name}");
        let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conparentid = 0";
        let count = loaded["tables"]["keys"].as_array().unwrap().len();
        assert_eq!(ask(server, &database, keys), count.to_string(), "{name}");
        let tables = loaded["tables"]["tables"].as_array().unwrap();
        let sum = |key: &str| tables.iter().map(|it| it[key].as_u64().unwrap()).sum::<u64>();
        println!(
            "| {name} | {} | {count} | {} | {} | {} | {} |",
            tables.len(),
            sum("source_rows"),
            one["rows"],
            two["rows"],
            whole_orphans(&loaded)
        );
        assert_eq!(sum("rows"), one["rows"].as_u64().unwrap());
        assert!(one["rows"].as_u64().unwrap() > 50, "{name}");
    }
}

pub fn large_objects_come_with_their_rows(server: &PostgresServer, place: &Place) {
    let from = address(server, "schema_5");
    let dir = place.file("photos");
    json(&["--from", &from, "--percent", "0", "--whole", "photo", dir.to_str().unwrap()]);
    empty(server, "photos");
    json(&["load", dir.to_str().unwrap(), "--into", &address(server, "photos")]);
    empty(server, "photos_scripted");
    let mut script = super::psql(server, "photos_scripted");
    let ran = run(script.args(["--file", "load.sql"]).current_dir(&dir));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let content = "SELECT count(*), sum(length(lo_get(image))), \
        md5(string_agg(md5(lo_get(image)), '' ORDER BY id)), \
        (SELECT count(*) FROM pg_largeobject_metadata) FROM photo WHERE id <= 20";
    let before = ask(server, "schema_5", content);
    assert!(before.starts_with("20|10485790|") && before.ends_with("|20"), "{before}");
    assert_eq!(ask(server, "photos", content), before);
    assert_eq!(ask(server, "photos_scripted", content), before);
}
