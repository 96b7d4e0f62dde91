//! A watch of a database: the waits of its sessions, and a server that goes away and comes back.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Nanos;
use blockstone_record::{End, Recording};
use blockstone_testkit::{PostgresServer, require};
use blockstone_view::{Focus, History, Interval, Objects, Table, Value, objects, registry};
use blockstone_watch::{Destination, Settings, Watch, WatchOptions};

fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        other => panic!("{other:?}"),
    }
}

/// A watch of a database whose sessions are sampled at each tick.
fn settings(database: String, interval: Nanos) -> Settings {
    Settings {
        options: WatchOptions {
            interval_ns: interval,
            sample_ns: interval,
            db: vec![database.clone()],
            no_bpf: true,
            ..WatchOptions::default()
        },
        argv: Vec::new(),
        history: Nanos::millis(60_000),
        record: None,
        databases: vec![database],
        who: false,
        active_set: None,
    }
}

/// Three sleepers, all the time, at the top of all events.
fn sleepers_are_found_by_their_wait(whole: &Interval<'_>, focus: &Focus) {
    let table = |name: &str, interval: Interval<'_>| {
        registry::find(name).unwrap().table(&interval).unwrap()
    };
    let found = table("sampled-sessions", whole.only(focus));
    assert_eq!(found.rows.len(), 3, "{:?}", found.rows);
    assert!(found.rows.iter().all(|row| (0.9..=1.0).contains(&number(&row[1]))), "{found:?}");
    let top = table("top-events", *whole);
    assert_eq!(top.rows[0][0], Value::Text("Timeout:PgSleep".to_owned()), "{:?}", top.rows);
}

/// Returns all that an interval shows: its columns and the tables of every view.
fn document(interval: &Interval<'_>) -> (Objects, Vec<Table>) {
    let tables = registry::ALL.iter().filter_map(|view| view.table(interval));
    (objects(interval), tables.collect())
}

#[test]
fn sessions_are_seen_while_the_server_is_there_and_it_may_go_and_come_back() {
    require!(Root, Postgres);
    let mut server = PostgresServer::start(15, &["fsync=off"]).unwrap();
    let sleep = |_| server.session(&["SELECT pg_sleep(60)"]).unwrap();
    let mut sleepers: Vec<_> = (0..3).map(sleep).collect();
    thread::sleep(Duration::from_millis(500));
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("recording");
    let mut settings = settings(server.address(), Nanos::millis(250));
    settings.options.sample_ns = Nanos::millis(50);
    settings.record = Some(Destination { dir: dir.clone(), id: "db".to_owned() });
    let mut watch = Watch::start(&settings).unwrap();
    for _ in 0..6 {
        watch.wait_and_look().unwrap();
    }
    assert_eq!(watch.silent(), None);
    let whole = watch.history().whole().unwrap();
    let table = |name: &str| registry::find(name).unwrap().table(&whole).unwrap();
    let waits = table("active-sessions");
    let asleep = waits.rows.iter().find(|row| row[1] == Value::Text("PgSleep".to_owned())).unwrap();
    assert_eq!(asleep[0], Value::Text("Timeout".to_owned()));
    let average = number(&asleep[2]);
    assert!((2.9..=3.0).contains(&average), "{average} of 3: {:?}", waits.rows);
    assert_eq!(number(&asleep[4]).round() as u64, 3, "and no session of our own");
    assert_eq!(table("sessions").rows.len(), 3);
    let focus = registry::find("active-sessions").unwrap().focus(asleep).unwrap();
    sleepers_are_found_by_their_wait(&whole, &focus);
    let load = table("load");
    let has_row = |name: &str| load.rows.iter().any(|row| row[0] == Value::Text(name.to_owned()));
    assert!(has_row("commits") && has_row("redo (bytes)"), "{:?}", load.rows);
    let processes = table("processes");
    let is_role = |row: &[Value], role: &str| row[0] == Value::Text(role.to_owned());
    for role in ["postgres/checkpointer", "postgres/session"] {
        assert!(processes.rows.iter().any(|row| is_role(row, role)), "{:?}", processes.rows);
    }

    server.kill();
    let gone = Instant::now() + Duration::from_secs(20);
    while watch.silent().is_none() {
        assert!(Instant::now() < gone, "the loss of the server goes unnoticed");
        watch.wait_and_look().unwrap();
    }
    server.start_again().unwrap();
    let back = Instant::now() + Duration::from_secs(20);
    while watch.silent().is_some() {
        assert!(Instant::now() < back, "it is not found again: {:?}", watch.silent());
        watch.wait_and_look().unwrap();
    }
    for _ in 0..4 {
        watch.wait_and_look().unwrap();
    }
    let latest = watch.history().latest().unwrap();
    assert!(latest.moved("instance", "", "commits").is_ok());
    let last = document(&latest);
    watch.close(End::Complete).unwrap();
    for sleeper in &mut sleepers {
        let _ = sleeper.kill();
        let _ = sleeper.wait();
    }
    let recording = Recording::open(&dir).unwrap();
    let events = recording.events().unwrap();
    assert!(events.iter().any(|event| event.kind == "database-gone"), "{events:?}");
    let history = History::read(&recording).unwrap();
    assert_eq!(document(&history.latest().unwrap()), last, "a replay shows the same");
}

/// Returns the growth of a column of PostgreSQL's `io`, over every kind of process and context.
fn reported(interval: &Interval, what: &str, column: &str) -> f64 {
    let objects = interval.objects("io");
    let of = objects.iter().filter(|object| object.split('/').nth(1) == Some(what));
    of.filter_map(|object| interval.moved("io", object, column).ok()).sum()
}

/// Returns the growth of a column of the kernel's counts of system calls, over all roles and files.
fn counted(interval: &Interval, file_type: &str, operation: &str, column: &str) -> f64 {
    let text = |object: &str, column: &str| interval.text("kernel_io", object, column);
    let objects = interval.objects("kernel_io");
    let is_meant = |object: &&&str| {
        text(object, "layer") == Some("system call")
            && text(object, "file_type") == Some(file_type)
            && text(object, "operation") == Some(operation)
    };
    let meant = objects.iter().filter(is_meant);
    meant.map(|object| interval.moved_from_zero("kernel_io", object, column).unwrap()).sum()
}

/// A statement has its text in live tables and in the recording, even if it ran before a watch that
/// is short.
#[test]
fn statements_that_ran_before_have_their_text() {
    require!(Root, Postgres);
    let loaded = ["shared_preload_libraries=pg_stat_statements", "fsync=off"];
    let server = PostgresServer::start(15, &loaded).unwrap();
    let before = "SELECT count(*) + 77 FROM generate_series(1, 1000)";
    server.run(&["CREATE EXTENSION pg_stat_statements", before]).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("recording");
    let mut watch = Watch::start(&Settings {
        record: Some(Destination { dir: dir.clone(), id: "db".to_owned() }),
        ..settings(server.address(), Nanos::millis(250))
    })
    .unwrap();
    let texts = |history: &History| -> Vec<String> {
        let whole = history.whole().unwrap();
        let rows = registry::find("statements").unwrap().table(&whole).unwrap().rows;
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        rows.iter().map(|row| text(&row[0])).collect()
    };
    for _ in 0..4 {
        watch.wait_and_look().unwrap();
        server.run(&[before]).unwrap();
    }
    watch.wait_and_look().unwrap();
    let live = texts(watch.history());
    assert!(live.iter().any(|text| text.contains("generate_series")), "{live:?}");
    watch.close(End::Complete).unwrap();
    let recorded = History::read(&Recording::open(&dir).unwrap()).unwrap();
    let recorded = texts(&recorded);
    assert!(recorded.iter().any(|text| text.contains("generate_series")), "{recorded:?}");
}

#[test]
fn the_kernel_counts_the_reads_and_flushes_that_postgresql_tells_of() {
    require!(Root, Postgres, PostgresVersions, Bpf);
    for major in [16, 17, 18] {
        let server =
            PostgresServer::start(major, &["shared_buffers=2MB", "autovacuum=off"]).unwrap();
        let rows = "SELECT g AS id, repeat('x', 900) AS v FROM generate_series(1, 40000) g";
        let table = format!("CREATE TABLE t AS {rows}");
        server.run(&[&table, "CREATE TABLE log (id int)", "VACUUM t", "CHECKPOINT"]).unwrap();
        let load = [
            "SELECT count(*) FROM t",
            "DO $$ BEGIN FOR i IN 1..600 LOOP INSERT INTO log VALUES (i); COMMIT; END LOOP; END $$",
        ];
        let mut settings = settings(server.address(), Nanos::millis(500));
        settings.options.no_bpf = false;
        let mut watch = Watch::start(&settings).unwrap();
        let settled = |watch: &mut Watch| {
            for _ in 0..6 {
                watch.wait_and_look().unwrap();
            }
            watch.history().ticks().next_back().unwrap()
        };
        let from_ns = settled(&mut watch);
        server.run(&load).unwrap();
        let to_ns = settled(&mut watch);
        let interval = watch.history().interval(from_ns, to_ns);
        let pairs = [
            (
                "bytes read",
                reported(&interval, "relation", "read_bytes"),
                counted(&interval, "data", "read", "bytes"),
            ),
            (
                "flushes of redo",
                interval.moved("database", "", "redo_flushes").unwrap(),
                counted(&interval, "redo", "flush", "ios"),
            ),
        ];
        for (what, reported, counted) in pairs {
            println!("PostgreSQL {major}, {what}: reported {reported}, counted {counted}");
            assert!(reported > 500.0, "PostgreSQL {major} reports {reported} {what}");
            assert!(
                (counted / reported - 1.0).abs() <= 0.01,
                "{what}: {reported} reported, {counted} counted"
            );
        }
        watch.close(End::Complete).unwrap();
    }
}

/// Stops all processes of a server, as if its storage hung, and resumes them when dropped.
struct Stopped(Vec<u32>);

impl Stopped {
    fn all(server: &PostgresServer) -> Self {
        let main = std::fs::read_to_string(server.dir().join("data/postmaster.pid")).unwrap();
        let main: u32 = main.lines().next().unwrap().parse().unwrap();
        let children = format!("/proc/{main}/task/{main}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        let all: Vec<u32> = std::iter::once(main).chain(children).collect();
        for pid in &all {
            signal(*pid, "STOP");
        }
        Self(all)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            signal(*pid, "CONT");
        }
    }
}

fn signal(pid: u32, name: &str) {
    let mut kill = std::process::Command::new("kill");
    kill.args([format!("-{name}"), pid.to_string()]).status().unwrap();
}

#[test]
fn a_server_that_hangs_does_not_delay_another() {
    require!(Root, Postgres);
    let [first, second] = [(); 2].map(|()| PostgresServer::start(15, &["fsync=off"]).unwrap());
    let mut settings = settings(first.address(), Nanos::millis(500));
    settings.options.sample_ns = Nanos::millis(100);
    settings.databases.push(second.address());
    let mut watch = Watch::start(&settings).unwrap();
    let names: Vec<String> = watch.servers().map(|server| server.instance.clone()).collect();
    let stopped = Stopped::all(&first);
    for _ in 0..6 {
        watch.wait_and_look().unwrap();
    }
    let known = |watch: &Watch, name: &str| {
        let latest = watch.history().latest().unwrap();
        latest.of_instance(name).moved("instance", "", "commits").is_ok()
    };
    // The stopped one sent nothing since; of the other, at least the tick before the last is
    // present.
    let last = watch.history().whole().unwrap();
    assert!(last.of_instance(&names[1]).moved("instance", "", "commits").is_ok());
    assert!(!known(&watch, &names[0]));
    drop(stopped);
    let back = Instant::now() + Duration::from_secs(20);
    while !known(&watch, &names[0]) {
        assert!(Instant::now() < back, "it is not heard again: {:?}", watch.silent());
        watch.wait_and_look().unwrap();
    }
    watch.close(End::Complete).unwrap();
}
