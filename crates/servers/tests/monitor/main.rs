//! The contract of every monitor, tested on every version of every server on this machine.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod server;
mod tls;

use blockstone_base::hint::Hint as _;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Kind, Reading, Schema, Unit, Unmeasured};
use blockstone_base::database::{DATABASE, INSTANCE, SESSION, SESSIONS, SQL};
use blockstone_servers::monitor::registry::ALL;
use blockstone_servers::monitor::{self, APPLICATION, Monitor};
use server::{Product, Server, Session};

/// Runs the suite on a product, in a separate module, if the machine has what it needs.
macro_rules! contract {
    ($module:ident, $product:expr $(, $need:ident)*) => {
        mod $module {
            contract!(@test $product, [$($need)*],
                readings_keep_to_their_schemas_and_counters_never_fall
                what_is_not_measured_is_explained
                a_known_load_is_seen
                sessions_are_seen_at_what_they_do
                what_sessions_wait_for_is_told_with_who_holds_it
                statements_and_single_sessions_are_told
                a_plain_user_learns_what_would_show_more
                a_server_that_came_back_is_watched_again
            );
        }
    };
    (@test $product:expr, $needs:tt, $($test:ident)*) => {
        $(contract!(@one $product, $needs, $test);)*
    };
    (@one $product:expr, [$($need:ident)*], $test:ident) => {
        #[test]
        fn $test() {
            $(blockstone_testkit::require!($need);)*
            super::$test($product);
        }
    };
}

contract!(postgres_13, super::Product::Postgres(13), Root, Postgres, PostgresVersions);
contract!(postgres_14, super::Product::Postgres(14), Root, Postgres, PostgresVersions);
contract!(postgres_15, super::Product::Postgres(15), Root, Postgres);
contract!(postgres_16, super::Product::Postgres(16), Root, Postgres, PostgresVersions);
contract!(postgres_17, super::Product::Postgres(17), Root, Postgres, PostgresVersions);
contract!(postgres_18, super::Product::Postgres(18), Root, Postgres, PostgresVersions);
contract!(mariadb, super::Product::Mariadb { performance_schema: true }, Root, Mariadb);
contract!(mariadb_without, super::Product::Mariadb { performance_schema: false }, Root, Mariadb);

#[test]
fn every_monitor_is_covered() {
    // The last one watches a run of Blockstone, which the end-to-end tests do.
    let covered = [&["postgres", "postgresql"][..], &["mysql", "mariadb"], &["run"]];
    assert_eq!(ALL.iter().map(|entry| entry.schemes).collect::<Vec<_>>(), covered);
}

type Rows = HashMap<(&'static str, String), Vec<Cell>>;

/// Returns all readings of a monitor at one moment.
fn look(monitor: &mut dyn Monitor) -> Vec<Reading> {
    let mut readings = Vec::new();
    monitor.counters(&mut readings).unwrap();
    monitor.sessions(&mut readings).unwrap();
    readings
}

fn rows(readings: Vec<Reading>) -> Rows {
    let count = readings.len();
    let rows: Rows = readings.into_iter().map(|r| ((r.probe, r.object), r.cells)).collect();
    assert_eq!(rows.len(), count, "an object is reported once");
    rows
}

fn column(schema: &Schema, name: &str) -> usize {
    schema.columns.iter().position(|column| column.name == name).expect(name)
}

fn schema(monitor: &dyn Monitor, probe: &str) -> &'static Schema {
    monitor.series().iter().find(|schema| schema.probe == probe).expect(probe)
}

/// Returns a number of the whole server; `None` if it is not measured.
fn total(rows: &Rows, name: &str) -> Option<i64> {
    let schemas = [&INSTANCE, &SQL, &DATABASE];
    let schema = schemas.into_iter().find(|s| s.columns.iter().any(|c| c.name == name)).unwrap();
    match rows[&(schema.probe, String::new())][column(schema, name)] {
        Cell::Value(value) => Some(value),
        _ => None,
    }
}

fn check(monitor: &dyn Monitor, rows: &Rows) {
    for ((probe, object), cells) in rows {
        let schema = schema(monitor, probe);
        assert_eq!(cells.len(), schema.columns.len(), "{probe}");
        for (column, cell) in schema.columns.iter().zip(cells) {
            let fits = match cell {
                Cell::Value(value) => column.unit != Unit::Text && *value >= 0,
                Cell::Text(_) => column.unit == Unit::Text,
                Cell::Unmeasured => true,
            };
            assert!(fits, "{probe} {object} {}: {cell:?}", column.name);
        }
    }
}

fn readings_keep_to_their_schemas_and_counters_never_fall(product: Product) {
    let server = Server::start(product, settings(product));
    let mut load = server.session();
    load.make_table();
    let mut monitor = monitor::open(&server.admin()).unwrap();
    let mut last = Rows::new();
    for round in 0..20 {
        load.run("UPDATE t SET v = v + 1");
        if round == 10 && product.is_postgres() {
            // The server resets its counters, but the watch continues.
            load.run("SELECT pg_stat_reset(), pg_stat_reset_shared('bgwriter')");
            load.run("CREATE DATABASE gone");
        } else if round == 12 && product.is_postgres() {
            load.run("DROP DATABASE gone");
        }
        let now = rows(look(monitor.as_mut()));
        check(monitor.as_ref(), &now);
        for ((probe, object), cells) in &now {
            let Some(before) = last.get(&(*probe, object.clone())) else { continue };
            let columns = schema(monitor.as_ref(), probe).columns;
            for ((column, now), before) in columns.iter().zip(cells).zip(before) {
                if let (Cell::Value(now), Cell::Value(before)) = (now, before) {
                    let level = column.kind == Kind::Gauge;
                    assert!(level || now >= before, "{probe} {object} {}", column.name);
                }
            }
        }
        last.extend(now);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a session that has done and reported some work, and is inside a call.
fn at_work(server: &Server) -> std::thread::JoinHandle<()> {
    let mut session = server.session();
    session.make_table();
    std::thread::sleep(Duration::from_millis(1100));
    session.ask("SELECT count(*) FROM t");
    let sleeping = std::thread::spawn(move || session.sleep(1.0));
    std::thread::sleep(Duration::from_millis(200));
    sleeping
}

/// Returns settings with which everything can be measured.
fn settings(product: Product) -> &'static [&'static str] {
    const OLD: [&str; 2] = ["track_io_timing=on", "shared_preload_libraries=pg_stat_statements"];
    const NEW: [&str; 3] = [OLD[0], OLD[1], "track_wal_io_timing=on"];
    match product {
        Product::Postgres(13) => &OLD,
        Product::Postgres(_) => &NEW,
        Product::Mariadb { .. } => &[],
    }
}

fn what_is_not_measured_is_explained(product: Product) {
    for settings in [settings(product), &[]] {
        let server = Server::start(product, settings);
        let mut monitor = monitor::open(&server.admin()).unwrap();
        let sleeping = at_work(&server);
        // Processes are not read again immediately.
        let mut seen = rows(look(monitor.as_mut()));
        seen.extend(rows(look(monitor.as_mut())));
        sleeping.join().unwrap();
        let missing = monitor.unmeasured();
        let why = |probe: &str, name: &str| {
            let found = missing.iter().filter(|(p, n, _)| (*p, *n) == (probe, name));
            let found: Vec<&Unmeasured> = found.map(|(_, _, why)| why).collect();
            assert!(found.len() < 2, "{probe} {name} has several reasons: {found:?}");
            found.first().copied()
        };
        for schema in [&INSTANCE, &SQL, &DATABASE] {
            let cells = &seen[&(schema.probe, String::new())];
            for (column, cell) in schema.columns.iter().zip(cells) {
                let why = why(schema.probe, column.name);
                assert_eq!(*cell == Cell::Unmeasured, why.is_some(), "{} {why:?}", column.name);
            }
        }
        // Columns without a value in any row must be explained as well.
        for schema in monitor.series() {
            for (index, column) in schema.columns.iter().enumerate() {
                let mut cells = seen.iter().filter(|((probe, _), _)| *probe == schema.probe);
                let measured = cells.any(|(_, cells)| cells[index] != Cell::Unmeasured);
                let why = why(schema.probe, column.name);
                let may_be_empty =
                    ["statement", "statement_text", "session"].contains(&schema.probe);
                assert!(
                    measured != why.is_some() || (may_be_empty && !measured),
                    "{} {}: {why:?}, measured: {measured}",
                    schema.probe,
                    column.name
                );
            }
        }
        if product.is_postgres() && settings.is_empty() {
            let off = why("database", "read_ns").unwrap();
            assert!(matches!(off, Unmeasured::Off(why) if why.contains("track_io_timing")));
            let off = why("statement", "calls").unwrap();
            assert!(matches!(off, Unmeasured::Off(why) if why.contains("CREATE EXTENSION")));
        }
        assert!(
            !missing.iter().any(|(_, _, why)| {
                matches!(why, Unmeasured::Off(why) if why.contains("in time"))
            })
        );
        let said = monitor.describe();
        assert!(said.is_local && said.pid == Some(server.pid()), "{said:?}");
        assert!(!said.settings.is_empty() && said.version.contains('.'), "{said:?}");
    }
}

/// Waits until an ended session has published its counts, and the server's statistics are current.
fn settle(monitor: &mut dyn Monitor) -> Rows {
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        look(monitor);
    }
    rows(look(monitor))
}

fn a_known_load_is_seen(product: Product) {
    let server = Server::start(product, &[settings(product), quiet(product)].concat());
    server.session().make_table();
    let mut monitor = monitor::open(&server.admin()).unwrap();
    let before = settle(monitor.as_mut());
    let mut load = server.session();
    load.use_table();
    for key in 0..100 {
        load.run("BEGIN");
        load.run(&format!("UPDATE t SET v = v + 1 WHERE k = {key}"));
        load.run("COMMIT");
    }
    load.run("BEGIN");
    load.run("DELETE FROM t WHERE k = 0");
    load.run("ROLLBACK");
    assert_eq!(load.ask("SELECT sum(v) FROM t"), "100");
    drop(load);
    let after = settle(monitor.as_mut());
    let grown = |name: &str| Some(total(&after, name)? - total(&before, name)?);
    // Versions before 15 do not tell when our own commits become visible.
    let exact = matches!(product, Product::Postgres(15..) | Product::Mariadb { .. });
    let commits = grown("commits").unwrap();
    // PostgreSQL also counts the query, and the start of a session.
    let expected = if product.is_postgres() { 102 } else { 100 };
    let slack = if exact { 0 } else { 12 };
    assert!((commits - expected).abs() <= slack, "{commits} commits");
    assert_eq!(grown("rollbacks"), Some(1));
    assert_eq!(grown("rows_updated"), Some(100));
    let read = grown("rows_read").unwrap();
    assert!(read >= 1000, "{read} rows read");
    assert!(grown("logical_reads").unwrap() >= 100);
    assert!(grown("redo_bytes").unwrap() >= 100 * 50);
    if let Some(flushes) = grown("redo_flushes") {
        assert!((100..=110).contains(&flushes), "{flushes} flushes for 100 commits");
    }
    if let Some(ns) = grown("db_time_ns") {
        assert!(ns > 0);
    }
    idle_costs_nothing(monitor.as_mut(), exact);
}

/// Checks that an idle server shows no activity: the monitor's own must be excluded.
fn idle_costs_nothing(monitor: &mut dyn Monitor, exact: bool) {
    let before = rows(look(monitor));
    for _ in 0..10 {
        let mut readings = Vec::new();
        monitor.sessions(&mut readings).unwrap();
        monitor.sessions(&mut readings).unwrap();
        assert!(!readings.iter().any(|r| r.cells.contains(&Cell::Text(APPLICATION.to_owned()))));
        monitor.counters(&mut Vec::new()).unwrap();
    }
    let after = rows(look(monitor));
    let grown = |name: &str| Some(total(&after, name)? - total(&before, name)?);
    for name in ["commits", "rows_updated", "statements", "rows_sent", "deadlocks"] {
        let slack = if exact { 0 } else { 12 };
        assert!(grown(name).unwrap_or(0) <= slack, "{name} grew by {:?}", grown(name));
    }
    assert!(grown("db_time_ns").unwrap_or(0) < 5_000_000, "{:?}", grown("db_time_ns"));
}

/// Returns settings that turn off the server's background activity.
fn quiet(product: Product) -> &'static [&'static str] {
    if product.is_postgres() { &["autovacuum=off"] } else { &[] }
}

/// Samples until `seen` returns a value.
fn sampled<T>(monitor: &mut dyn Monitor, seen: impl Fn(&Rows) -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut readings = Vec::new();
        monitor.sessions(&mut readings).unwrap();
        readings.retain(|reading| reading.probe != "statement_text");
        let now = rows(readings);
        check(monitor, &now);
        if let Some(found) = seen(&now) {
            return found;
        }
        assert!(Instant::now() < until, "not seen: {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn text<'a>(monitor: &dyn Monitor, cells: &'a [Cell], name: &str) -> &'a str {
    match &cells[column(schema(monitor, "session"), name)] {
        Cell::Text(text) => text,
        other => panic!("{name} is {other:?}"),
    }
}

fn level(monitor: &dyn Monitor, rows: &Rows, name: &str) -> Option<i64> {
    let cells = rows.get(&("sessions", String::new()))?;
    match cells[column(schema(monitor, "sessions"), name)] {
        Cell::Value(value) => Some(value),
        _ => None,
    }
}

fn sessions_are_seen_at_what_they_do(product: Product) {
    let server = Server::start(product, settings(product));
    let mut monitor = monitor::open(&server.admin()).unwrap();
    let mut idle = server.session();
    idle.run("SELECT 1");
    let mut open = server.session();
    open.make_table();
    open.run("BEGIN");
    open.run("UPDATE t SET v = 7 WHERE k = 7");
    let mut sleepers: Vec<Session> = (0..5).map(|_| server.session()).collect();
    let numbers: Vec<String> = sleepers.iter_mut().map(Session::number).collect();
    let open_number = open.number();
    std::thread::scope(|scope| {
        for sleeper in &mut sleepers {
            scope.spawn(|| sleeper.sleep(5.0));
        }
        let monitor = monitor.as_mut();
        let seen = sampled(monitor, |rows| {
            let cells = |number: &String| rows.get(&("session", number.clone()));
            let class = column(&SESSION, "wait_class");
            let waits = |number: &String, for_what: &str| {
                cells(number).is_some_and(|cells| cells[class] == Cell::Text(for_what.to_owned()))
            };
            let sleeps = |number: &String| waits(number, "Timeout");
            // Includes the idle session; the one that checked whether the server answers may still
            // be closing.
            let totals = [7, 5, 1, 1, 0].map(Cell::Value).to_vec();
            // Right after its statement the open session may still be on the processor.
            let all = numbers.iter().all(sleeps) && waits(&open_number, "Client");
            (all && rows[&("sessions", String::new())] == totals).then(|| rows.clone())
        });
        for number in &numbers {
            let cells = &seen[&("session", number.clone())];
            assert_eq!(text(monitor, cells, "role"), "session");
            assert_eq!(text(monitor, cells, "state"), "active");
            let event = text(monitor, cells, "event").to_lowercase();
            assert!(event.contains("sleep"), "{event}");
            assert_ne!(text(monitor, cells, "query_id"), "");
        }
        let cells = &seen[&("session", open_number.clone())];
        assert_eq!(text(monitor, cells, "state"), "idle in transaction");
        assert_eq!(text(monitor, cells, "wait_class"), "Client");
        let own: Vec<_> = seen.keys().filter(|(probe, _)| *probe == "session").collect();
        assert!(own.len() >= 6, "{own:?}");
    });
}

fn what_sessions_wait_for_is_told_with_who_holds_it(product: Product) {
    let server = Server::start(product, settings(product));
    let mut monitor = monitor::open(&server.admin()).unwrap();
    let (mut holder, mut waiter) = (server.session(), server.session());
    holder.make_table();
    waiter.use_table();
    let (holds, waits) = (holder.number(), waiter.number());
    holder.run("BEGIN");
    holder.run("UPDATE t SET v = 1 WHERE k = 1");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waiter.run("UPDATE t SET v = 2 WHERE k = 1"));
        let monitor = monitor.as_mut();
        let (cells, waiting_for_locks) = sampled(monitor, |rows| {
            let cells = rows.get(&("session", waits.clone()))?;
            let class = column(&SESSION, "wait_class");
            let locked = cells[class] == Cell::Text("Lock".to_owned());
            let waiting = column(&SESSIONS, "waiting_for_locks");
            let count = rows[&("sessions", String::new())][waiting].clone();
            locked.then(|| (cells.clone(), count))
        });
        assert_eq!(text(monitor, &cells, "blockers"), holds);
        assert_eq!(waiting_for_locks, Cell::Value(1));
        holder.run("COMMIT");
        waiting.join().unwrap();
    });
}

fn statements_and_single_sessions_are_told(product: Product) {
    let server = Server::start(product, settings(product));
    let mut load = server.session();
    load.make_table();
    if product.is_postgres() {
        load.run("CREATE EXTENSION pg_stat_statements");
    }
    let mut monitor = monitor::open(&server.admin()).unwrap();
    for key in 0..50 {
        load.run(&format!("UPDATE t SET v = v + 1 WHERE k = {key}"));
    }
    let mut readings = Vec::new();
    monitor.counters(&mut readings).unwrap();
    let texts: HashMap<String, String> = readings
        .iter()
        .filter(|reading| reading.probe == "statement_text")
        .map(|reading| match &reading.cells[0] {
            Cell::Text(text) => (reading.object.clone(), text.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        !texts.values().any(|text| text.contains("blockstone")),
        "ours are reported: {texts:?}"
    );
    if product != (Product::Mariadb { performance_schema: false }) {
        let update = texts.iter().find(|(_, text)| text.to_lowercase().starts_with("update"));
        let (id, _) = update.expect("the update is reported");
        let told = rows(readings);
        let cells = &told[&("statement", id.clone())];
        assert_eq!(cells[0], Cell::Value(50), "calls of {id}");
        assert_eq!(cells[2], Cell::Value(50), "rows of {id}");
        let mut again = Vec::new();
        monitor.counters(&mut again).unwrap();
        assert!(!again.iter().any(|row| row.probe == "statement_text" && row.object == *id));
    }
    // A session seen active has its own row at the next tick.
    std::thread::sleep(Duration::from_millis(1100));
    let number = load.number();
    let sleeping = std::thread::spawn(move || load.sleep(4.0));
    // A statement that never ended is reported by its session.
    let says_sleep = |reading: &Reading| match &reading.cells[0] {
        Cell::Text(text) => {
            reading.probe == "statement_text" && text.to_lowercase().contains("sleep")
        }
        _ => false,
    };
    let (mut told, started) = (Vec::new(), Instant::now());
    while !told.iter().any(says_sleep) {
        told.extend(look(monitor.as_mut()));
        assert!(started.elapsed() < Duration::from_secs(10), "the sleep is not reported");
        std::thread::sleep(Duration::from_millis(50));
    }
    let now = rows(look(monitor.as_mut()));
    let cells = &now[&("session_statistics", number)];
    let statistics = schema(monitor.as_ref(), "session_statistics");
    let cpu_ns = &cells[column(statistics, "cpu_ns")];
    assert!(matches!(cpu_ns, Cell::Value(1..)), "{cells:?}");
    if product == Product::Postgres(18) {
        let hits = &cells[column(statistics, "hits")];
        assert!(matches!(hits, Cell::Value(1..)), "{cells:?}");
    }
    let processes = monitor.processes();
    sleeping.join().unwrap();
    assert!(processes.iter().any(|(_, role)| role == "session"), "{processes:?}");
    assert!(processes.len() > 4, "{processes:?}");
    let workers = processes.iter().filter(|(_, role)| role == "io worker").count();
    assert_eq!(workers > 0, product == Product::Postgres(18), "{processes:?}");
}

fn a_plain_user_learns_what_would_show_more(product: Product) {
    let server = Server::start(product, settings(product));
    let mut admin = server.session();
    admin.make_table();
    if product.is_postgres() {
        admin.run("CREATE ROLE plain LOGIN; CREATE ROLE watcher LOGIN");
        admin.run("GRANT pg_monitor TO watcher");
    } else {
        admin.run("CREATE USER plain");
        admin.run("CREATE USER watcher");
        admin.run("GRANT PROCESS ON *.* TO watcher");
        admin.run("GRANT SELECT ON performance_schema.* TO watcher");
    }
    let mut plain = monitor::open(&server.address("plain")).unwrap();
    let seen = rows(look(plain.as_mut()));
    check(plain.as_ref(), &seen);
    assert!(total(&seen, "redo_bytes").is_some());
    assert_eq!(level(plain.as_ref(), &seen, "connected"), None);
    let missing = plain.unmeasured();
    let grant = |probe: &str| {
        missing.iter().any(|(known, _, why)| {
            *known == probe && matches!(why, Unmeasured::NotPermitted(why) if why.contains("GRANT"))
        })
    };
    assert!(grant("session") && grant("sessions"), "{missing:?}");
    let mut watcher = monitor::open(&server.address("watcher")).unwrap();
    let seen = rows(look(watcher.as_mut()));
    assert!(level(watcher.as_ref(), &seen, "connected") >= Some(2), "{seen:?}");
    let denied = watcher
        .unmeasured()
        .into_iter()
        .filter(|(_, _, why)| matches!(why, Unmeasured::NotPermitted(_)));
    assert_eq!(denied.count(), 0);
}

fn a_server_that_came_back_is_watched_again(product: Product) {
    let mut server = Server::start(product, settings(product));
    server.session().make_table();
    let mut monitor = monitor::open(&server.admin()).unwrap();
    let before = rows(look(monitor.as_mut()));
    server.kill();
    let error = monitor.counters(&mut Vec::new()).unwrap_err().told();
    assert!(error.contains("\nhint: "), "{error}");
    assert!(monitor.sessions(&mut Vec::new()).is_err());
    assert!(monitor.reconnect().is_err());
    server.start_again();
    monitor.reconnect().unwrap();
    let after = rows(look(monitor.as_mut()));
    for name in ["commits", "logical_reads", "redo_bytes"] {
        assert!(total(&after, name) >= total(&before, name), "{name} fell");
    }
    assert_eq!(monitor.describe().pid, Some(server.pid()));
}

#[test]
fn what_a_server_is_told_not_to_track_is_off() {
    blockstone_testkit::require!(Root, Postgres);
    let settings = ["track_counts=off", "wal_sync_method=open_datasync", "track_activities=off"];
    let server = Server::start(Product::Postgres(15), &settings);
    let mut load = server.session();
    let mut monitor = monitor::open(&server.admin()).unwrap();
    load.make_table();
    let seen = rows(look(monitor.as_mut()));
    let missing = monitor.unmeasured();
    for (probe, name, word) in [
        ("instance", "logical_reads", "track_counts"),
        ("database", "redo_flushes", "wal_sync_method"),
        ("database", "write_ns", "track_io_timing"),
        ("sessions", "active", "track_activities"),
    ] {
        let found = missing.iter().find(|(p, n, _)| (*p, *n) == (probe, name)).expect(name);
        assert!(matches!(&found.2, Unmeasured::Off(why) if why.contains(word)), "{found:?}");
    }
    assert_eq!(total(&seen, "logical_reads"), None);
    assert!(total(&seen, "commits").is_some());
    assert_eq!(level(monitor.as_ref(), &seen, "active"), None);
}

#[test]
fn flushes_of_redo_are_those_of_the_commits() {
    blockstone_testkit::require!(Root, Postgres, PostgresVersions);
    for major in [16, 17, 18] {
        let product = Product::Postgres(major);
        let settings = [settings(product), quiet(product), &["checkpoint_timeout=1h"]].concat();
        let server = Server::start(product, &settings);
        server.session().make_table();
        let mut monitor = monitor::open(&server.admin()).unwrap();
        let before = settle(monitor.as_mut());
        let mut load = server.session();
        for n in 0..1000 {
            load.run(&format!("UPDATE t SET v = v + 1 WHERE k = {}", n % 1000));
        }
        drop(load);
        let after = settle(monitor.as_mut());
        let grown = |name: &str| total(&after, name).unwrap() - total(&before, name).unwrap();
        let (commits, flushes) = (grown("commits"), grown("redo_flushes"));
        assert!((1000..=1002).contains(&commits), "PostgreSQL {major}: {commits} commits");
        assert!((990..=1010).contains(&flushes), "PostgreSQL {major}: {flushes} flushes");
        assert!(grown("redo_flush_ns") > 0 && grown("redo_write_ns") > 0);
        assert!(grown("redo_writes") >= 990);
    }
}
