//! `blockstone subset` with a PostgreSQL server that is started once for all tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use blockstone_testkit::{PostgresServer, Ran, blockstone_binary, require, run};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, failed_rules, keeps_to_its_schema, names};

mod databases;
mod interruptions;
mod schemas;
mod versions;

const SOURCE: &str = include_str!("subset/every_kind.sql");

/// An address of the server with another database.
fn address(server: &PostgresServer, name: &str) -> String {
    let address = server.address();
    let (server, _) = address.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

fn subset(arguments: &[&str]) -> Ran {
    run(Command::new(blockstone_binary()).arg("subset").args(arguments))
}

fn json(arguments: &[&str]) -> Value {
    let ran = subset(&[arguments, &["--json"]].concat());
    assert!(matches!(ran.code, Some(0)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

fn psql(server: &PostgresServer, name: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-XqAt", "--set=ON_ERROR_STOP=1"]).arg(address(server, name));
    psql
}

/// Returns what psql prints for a statement in a database.
fn ask(server: &PostgresServer, name: &str, text: &str) -> String {
    let ran = run(psql(server, name).args(["--command", text]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.stdout.trim_end().to_owned()
}

fn empty(server: &PostgresServer, name: &str) {
    ask(server, "postgres", &format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"));
}

/// Creates a database and runs a script in it.
fn make(server: &PostgresServer, name: &str, text: &str, place: &Place) {
    empty(server, name);
    let script = place.file(&format!("{name}.sql"));
    std::fs::write(&script, text).unwrap();
    let made = run(psql(server, name).arg("--file").arg(&script));
    assert_eq!(made.code, Some(0), "{made:#?}");
}

/// Lines of the data of all tables, sorted.
fn lines(dir: &Path) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for name in names(&dir.join("data")) {
        let text = std::fs::read_to_string(dir.join("data").join(&name)).unwrap();
        all.extend(text.lines().map(|line| (name.clone(), line.to_owned())));
    }
    all
}

fn whole_orphans(document: &Value) -> u64 {
    let keys = document["tables"]["keys"].as_array().unwrap();
    keys.iter().map(|key| key["orphans"].as_u64().unwrap()).sum()
}

fn percent(server: &PostgresServer, percent: &str, dir: &Path) -> Value {
    let from = address(server, "source");
    json(&["--from", &from, "--percent", percent, dir.to_str().unwrap()])
}

fn a_subset_is_whole_repeatable_and_grows(server: &PostgresServer, place: &Place) {
    let dirs = ["one", "again", "two"].map(|name| place.file(name));
    let one = percent(server, "1", &dirs[0]);
    percent(server, "1", &dirs[1]);
    percent(server, "2", &dirs[2]);
    let [one_lines, again, two] = dirs.each_ref().map(|dir| lines(dir));
    assert!(one_lines.len() > 100 && one_lines == again);
    assert!(one_lines.is_subset(&two) && two.len() > one_lines.len());
    assert_eq!(whole_orphans(&one), 0);
    let keys = one["tables"]["keys"].as_array().unwrap().len();
    assert_eq!(keys, 12, "{:#?}", one["tables"]["keys"]);
    ask(server, "postgres", "CREATE DATABASE loaded");
    let into = address(server, "loaded");
    let dir = dirs[0].to_str().unwrap();
    let loaded = json(&["load", dir, "--into", &into]);
    assert_eq!(whole_orphans(&loaded), 0);
    assert!(failed_rules(&loaded).is_empty());
    let invalid = "SELECT count(*) FILTER (WHERE NOT convalidated), count(*) FROM pg_constraint \
                   WHERE contype = 'f' AND conparentid = 0";
    assert_eq!(ask(server, "loaded", invalid), "0|12");
    for table in loaded["tables"]["tables"].as_array().unwrap() {
        let name = table["table"].as_str().unwrap();
        if name.chars().all(|it| it.is_ascii_lowercase() || it == '.') {
            let only = if name == "public.line" { "" } else { "ONLY " };
            let count = ask(server, "loaded", &format!("SELECT count(*) FROM {only}{name}"));
            assert_eq!(count, table["rows"].to_string(), "{name}");
        }
    }
    assert_eq!(ask(server, "loaded", "SELECT nextval('ticket')"), "71");
    let fires = "SELECT count(*) FROM pg_trigger WHERE tgname = 'refuse' AND tgenabled = 'O'";
    assert_eq!(ask(server, "loaded", fires), "1");
    let again = subset(&["load", dir, "--into", &into]);
    assert!(again.code == Some(2) && again.stderr.contains("already"), "{again:#?}");
    ask(server, "loaded", "CREATE EXTENSION pg_visibility");
    let frozen = "SELECT all_frozen > 0 FROM public.pg_visibility_map_summary('customer')";
    assert_eq!(ask(server, "loaded", frozen), "t");
    // The same with the script, run by psql.
    ask(server, "postgres", "CREATE DATABASE scripted");
    let mut script = psql(server, "scripted");
    let ran = run(script.args(["--file", "load.sql"]).current_dir(&dirs[0]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ask(server, "scripted", invalid), "0|12");
}

fn the_options_say_which_rows_are_taken(server: &PostgresServer, place: &Place) {
    let from = address(server, "source");
    let keys = place.runs().join("../keys.toml");
    let key = "[[key]]\ntable = \"visit\"\ncolumns = [\"customer\"]\n\
               references = \"customer\"\nreferenced = [\"id\"]\n";
    std::fs::write(&keys, key).unwrap();
    let rows = |document: &Value, table: &str| {
        let tables = document["tables"]["tables"].as_array().unwrap();
        tables.iter().find(|it| it["table"] == table).unwrap()["rows"].as_u64().unwrap()
    };
    let plan = |more: &[&str]| json(&[&["--from", &from, "--dry-run"], more].concat());
    let whole = plan(&["--whole", "customer"]);
    assert_eq!((rows(&whole, "public.customer"), rows(&whole, "public.country")), (3000, 20));
    let only =
        plan(&["--percent", "0", "--where", "visit=id <= 7", "--keys", keys.to_str().unwrap()]);
    assert_eq!((rows(&only, "public.visit"), rows(&only, "public.customer")), (7, 7));
    assert_eq!(rows(&only, "public.orders"), 0);
    std::fs::write(&keys, format!("{key}when = {{ column = \"id\", is = \"3\" }}\n")).unwrap();
    let only =
        plan(&["--percent", "0", "--where", "visit=id <= 7", "--keys", keys.to_str().unwrap()]);
    assert_eq!((rows(&only, "public.visit"), rows(&only, "public.customer")), (7, 1));
    let followed = plan(&["--percent", "5", "--stratify"]);
    let capped = plan(&["--percent", "5", "--stratify", "--cap", "1"]);
    assert!(rows(&capped, "public.orders") < rows(&followed, "public.orders"));
    for (more, why) in [
        (&["--whole", "nothing"][..], "no table nothing"),
        (&["--where", "visit"], "no `=`"),
        (&["--where", "visit=nothing > 1"], "nothing"),
        (&["--percent", "101"], "from 0 to 100"),
    ] {
        let ran = subset(&[&["--from", from.as_str(), "--dry-run"], more].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(why), "{ran:#?}");
    }
}

fn masks_keep_the_keys(server: &PostgresServer, place: &Place) {
    let from = address(server, "source");
    let key = place.runs().join("../key");
    std::fs::write(&key, [7; 32]).unwrap();
    let masks = ["--mask", "customer.id=hash", "--mask", "note=hash", "--mask", "name=hash"];
    let more = ["--percent", "3", "--mask-key", key.to_str().unwrap()];
    let dirs = ["masked", "masked_again"].map(|name| place.file(name));
    for dir in &dirs {
        json(&[&["--from", from.as_str()][..], &masks, &more, &[dir.to_str().unwrap()]].concat());
    }
    assert_eq!(lines(&dirs[0]), lines(&dirs[1]));
    let manifest = std::fs::read_to_string(dirs[0].join("subset.json")).unwrap();
    assert!(manifest.contains(r#""masks": "ff1-aes256""#), "{manifest}");
    ask(server, "postgres", "CREATE DATABASE masked");
    let into = address(server, "masked");
    let loaded = json(&["load", dirs[0].to_str().unwrap(), "--into", &into]);
    assert_eq!(whole_orphans(&loaded), 0);
    let known = "SELECT count(*), \
                 count(*) FILTER (WHERE id BETWEEN 1 AND 3000 OR id > 2147483647), \
                 count(*) FILTER (WHERE note LIKE E'tab\\there%'), \
                 count(*) FILTER (WHERE note NOT LIKE E'___\\t%\\n%\\\\ %') FROM customer";
    let counts = ask(server, "masked", known);
    let (rows, rest) = counts.split_once('|').unwrap();
    assert!(rows.parse::<u64>().unwrap() > 90 && rest == "0|0|0", "{counts}");
    for (masks, why) in [
        (&["customer.id=hash", "--mask", "orders.customer=null"][..], "would break the join"),
        (&["customer.number=null"], "part of a key"),
        (&["nothing=hash"], "no such column"),
    ] {
        let ran = subset(&[&["--from", from.as_str(), "--dry-run", "--mask"], masks].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{ran:#?}");
    }
}

#[test]
fn files_for_data_pump_are_written() {
    let place = Place::beside();
    let query = subset(&["oracle", "--query", "SHOP"]);
    assert!(query.code == Some(0) && query.stdout.contains("IN ('SHOP')"), "{query:#?}");
    let keys = place.file("keys.csv");
    let head = "OWNER,TABLE_NAME,CONSTRAINT_NAME,CONSTRAINT_TYPE,R_OWNER,R_CONSTRAINT_NAME,\
                POSITION,COLUMN_NAME\n";
    let rows = "S,P,PK,P,,,1,ID\nS,C,FK,R,S,PK,1,P_ID\n";
    std::fs::write(&keys, format!("{head}{rows}")).unwrap();
    let dir = place.file("export");
    let ran = subset(&["oracle", keys.to_str().unwrap(), dir.to_str().unwrap()]);
    assert!(ran.code == Some(0) && ran.stderr.contains("not tested with Oracle"), "{ran:#?}");
    assert_eq!(names(&dir).len(), 3);
    let odd = place.file("odd.csv");
    std::fs::write(&odd, [0xff, 0xfe]).unwrap();
    let (odd, dir) = (odd.to_str().unwrap(), dir.to_str().unwrap());
    for arguments in [["oracle", odd, "new"], ["oracle", dir, "new"], ["oracle", "/none", "new"]] {
        let error =
            refused(&place, Command::new(blockstone_binary()).arg("subset").args(arguments));
        assert!(error.contains(arguments[1]), "{error}");
    }
    let again = ["subset", "oracle", keys.to_str().unwrap(), dir];
    let error = refused(&place, Command::new(blockstone_binary()).args(again));
    assert!(error.contains("write the directory"), "{error}");
}

fn tables_sampled_alone_lose_nine_parents_of_ten(server: &PostgresServer) {
    let from = address(server, "source");
    let document = json(&["--from", &from, "--naive", "--percent", "10"]);
    assert_eq!(failed_rules(&document), ["orphans"]);
    let keys = document["tables"]["keys_alone"].as_array().unwrap();
    let key = keys.iter().find(|key| key["key"] == "orders_customer_fkey").unwrap();
    let share = key["orphans"].as_f64().unwrap() / key["rows"].as_f64().unwrap();
    let error = key["standard_error_share"].as_f64().unwrap();
    assert!((share - 0.9).abs() < 2.0 * error, "{share} ± {error}");
}

fn what_cannot_be_read_is_refused_in_one_line(server: &PostgresServer, place: &Place) {
    ask(
        server,
        "source",
        "CREATE ROLE reader LOGIN PASSWORD 'right'; \
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; REVOKE SELECT ON gift FROM reader",
    );
    let from = address(server, "source").replace("admin@", "reader:wrong@");
    let dir = place.file("none");
    let command = |from: &str| {
        let mut command = Command::new(blockstone_binary());
        command.args(["subset", "--from", from]).arg(&dir);
        command
    };
    let error = refused(place, &mut command(&from));
    assert!(error.contains("password"), "{error}");
    let right = from.replace("wrong", "right");
    let error = refused(place, &mut command(&right));
    assert!(error.contains("gift") || error.contains("COPY {child}"), "{error}");
    let error = refused(place, &mut command("oracle://root@localhost/x"));
    assert!(error.contains("not supported"), "{error}");
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load", "/nowhere", "--into", &right]);
    let error = refused(place, &mut load);
    assert!(error.contains("subset.json"), "{error}");
}

/// Tables large enough that the server draws their seeds and that the rows they need are requested
/// by key, with each kind of row identity among them.
const LARGE: &str = "
    CREATE TABLE maker (id uuid PRIMARY KEY, twin uuid UNIQUE);
    INSERT INTO maker SELECT md5(g::text)::uuid, md5((g + 1)::text)::uuid \
        FROM generate_series(1, 30000) g;
    CREATE TABLE part (number text, revision smallint, maker uuid NOT NULL REFERENCES maker,
        PRIMARY KEY (number, revision));
    INSERT INTO part SELECT 'part ' || g / 2, g % 2, md5((1 + g % 30000)::text)::uuid \
        FROM generate_series(0, 39999) g;
    CREATE TABLE used (number text, revision smallint, place int,
        FOREIGN KEY (number, revision) REFERENCES part, note text);
    INSERT INTO used SELECT 'part ' || g % 20000, g % 2, g, E'a\\tb' \
        FROM generate_series(1, 60000) g;
    ANALYZE";

fn a_run_says_that_the_database_is_a_sample(loaded: &str, place: &Place) {
    let mut command = Command::new(blockstone_binary());
    command.args(["run", "--target", loaded, "--run-time", "1s", "--scale", "1M"]);
    command.args(["--schemas", "1", "--threads", "1", "--runs-dir"]).arg(place.file("sample-runs"));
    let ran = run(&mut command);
    let says = "the database is a sample: 6 % of";
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains(says), "{ran:#?}");
}

fn seeds_are_drawn_by_the_server(server: &PostgresServer, place: &Place) {
    ask(server, "postgres", "CREATE DATABASE large");
    ask(server, "large", LARGE);
    let from = address(server, "large");
    let taken = |percent: &str, name: &str| {
        let dir = place.file(name);
        let document = json(&["--from", &from, "--percent", percent, dir.to_str().unwrap()]);
        assert_eq!(whole_orphans(&document), 0);
        (lines(&dir), document)
    };
    let (one, document) = taken("1", "large_one");
    for (table, least, most) in [("used", 450, 750), ("part", 600, 1700), ("maker", 600, 2500)] {
        let tables = document["tables"]["tables"].as_array().unwrap();
        let of = tables.iter().find(|it| it["table"] == format!("public.{table}")).unwrap();
        let rows = of["rows"].as_u64().unwrap();
        assert!((least..most).contains(&rows), "{table}: {rows}");
    }
    assert_eq!(document["tables"]["tables"][0]["source_rows"].as_u64(), Some(30_000));
    assert_eq!(one, taken("1", "large_again").0);
    // At six per cent, the rows of a table that nothing references are those that were drawn.
    let (six, _) = taken("6", "large_six");
    assert!(one.is_subset(&six));
    ask(server, "postgres", "CREATE DATABASE large_loaded");
    let into = address(server, "large_loaded");
    let loaded = json(&["load", place.file("large_six").to_str().unwrap(), "--into", &into]);
    assert_eq!(whole_orphans(&loaded), 0);
    a_run_says_that_the_database_is_a_sample(&into, place);
    let naive = json(&["--from", &from, "--naive", "--percent", "10"]);
    assert_eq!(naive["tables"]["tables"][2]["source_rows"].as_u64(), Some(60_000));
}

#[test]
fn every_feature_of_a_schema_comes_with_the_sample() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    schemas::each_holds(&server, &place);
    schemas::large_objects_come_with_their_rows(&server, &place);
    databases::what_is_left_out_is_named(&server, &place);
    databases::keys_are_null_if_asked(&server, &place);
    databases::hidden_rows_are_refused(&server, &place);
    databases::keys_that_cannot_be_compared_are_refused(&server, &place);
    databases::other_collations_are_compared(&server, &place);
}

#[test]
fn versions_of_the_server_take_the_same_rows() {
    require!(Root, Postgres, PostgresVersions);
    let place = Place::beside();
    let server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    versions::all_versions_take_the_same_rows(&server, &place);
}

#[test]
fn a_sample_has_all_that_its_keys_need() {
    require!(Root, Postgres);
    let place = Place::beside();
    let rules = place.scratch.path().join("hba");
    std::fs::write(
        &rules,
        "host all reader 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
    )
    .unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&rules, open).unwrap();
    let hba = format!("hba_file={}", rules.display());
    let server = PostgresServer::start(15, &["fsync=off", &hba]).unwrap();
    make(&server, "source", SOURCE, &place);
    a_subset_is_whole_repeatable_and_grows(&server, &place);
    the_options_say_which_rows_are_taken(&server, &place);
    masks_keep_the_keys(&server, &place);
    tables_sampled_alone_lose_nine_parents_of_ten(&server);
    seeds_are_drawn_by_the_server(&server, &place);
    interruptions::kills_leave_nothing_half_done(&server, &place);
    interruptions::a_full_disk_leaves_nothing_half_done(&server, &place);
    interruptions::what_changes_meanwhile_is_not_seen(&server, &place);
    what_cannot_be_read_is_refused_in_one_line(&server, &place);
}
