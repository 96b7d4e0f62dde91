//! The contract of every target, tested on the whole registry.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod scans;

use blockstone_base::hint::Hint as _;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::column::{Cell, Reading, Schema};
use blockstone_base::database;
use blockstone_base::units::Bytes;
use blockstone_servers::registry::{self, ALL, Entry};
use blockstone_servers::{
    DatabaseOptions, Io, Loading, Operation, Place, Statement, TableStep, Target, TargetError,
    TargetSpec,
};

use scans::sessions_scan_as_the_registry_says;

const SCHEMAS: u32 = 2;
const ROWS: u64 = 300;
const SCAN_ROWS: u64 = 128;
const ORDER_ROWS: u64 = 20;

fn spec(dir: &Path) -> TargetSpec {
    let place =
        |name: &str| Place { path: dir.join(name), name: name.to_owned(), failure_group: None };
    TargetSpec {
        places: vec![place("a"), place("b")],
        schemas: SCHEMAS,
        rows: ROWS,
        scan_rows: SCAN_ROWS,
        order_rows: ORDER_ROWS,
        sessions: 4,
        options: DatabaseOptions { cache_bytes: Bytes::mib(4), ..DatabaseOptions::default() },
        seed: 3,
        ..TargetSpec::default()
    }
}

fn go_on(_: Loading) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A target under test.
struct Subject {
    entry: &'static Entry,
    address: &'static str,
    programs: Option<PathBuf>,
    io: Option<Io>,
}

impl Subject {
    fn of(text: &'static str) -> Self {
        let (_, address) = registry::parts(text);
        Self { entry: registry::find(text).unwrap(), address, programs: None, io: None }
    }

    fn name(&self) -> &'static str {
        self.entry.name
    }

    fn spec(&self, dir: &Path) -> TargetSpec {
        let (address, programs) = (self.address.to_owned(), self.programs.clone());
        // PostgreSQL checks for a deadlock only after a session has waited this long, by default 1
        // s.
        let soon = ("deadlock_timeout".to_owned(), "20ms".to_owned());
        let settings = if self.name() == "postgres" { vec![soon] } else { Vec::new() };
        let mut spec = TargetSpec { address, programs, settings, ..spec(dir) };
        spec.options.io = self.io;
        spec
    }

    /// Runs `test` with the target, set up and loaded, and shuts it down.
    fn with(&self, test: impl Fn(&'static str, &Arc<dyn Target>)) {
        self.with_spec(|_| (), test);
    }

    /// The same with a spec modified by `change`.
    fn with_spec(
        &self,
        change: impl Fn(&mut TargetSpec),
        test: impl Fn(&'static str, &Arc<dyn Target>),
    ) {
        let dir = directory();
        let mut spec = self.spec(dir.path());
        change(&mut spec);
        let target = (self.entry.open)(&spec, &mut go_on).unwrap();
        target.load(&mut go_on).unwrap();
        test(self.name(), &target);
        target.shutdown().unwrap();
        drop(target);
        remove(&spec);
        assert_eq!(left(dir.path()), 0, "{}", self.name());
    }
}

/// Runs the suite on a subject, in a separate module, if the machine has what it needs.
macro_rules! contract {
    ($module:ident, $subject:expr $(, $need:ident)*) => {
        mod $module {
            contract!(@test $subject, [$($need)*],
                statements_visit_exactly_the_rows_asked_for
                sessions_work_side_by_side_and_every_commit_is_counted
                transactions_do_what_they_say_and_commit_once
                transactions_that_meet_are_sent_again_until_they_are_done
                a_table_of_all_rows_is_made_flushed_and_dropped_again_and_again
                samples_keep_to_their_schemas_and_never_fall
                latencies_are_given_once
                what_is_demanded_is_enough
                sessions_scan_as_the_registry_says
                a_database_says_what_it_is_and_how_it_executes
                what_is_not_measured_is_explained
            );
        }
    };
    (@test $subject:expr, $needs:tt, $($test:ident)*) => {
        $(contract!(@one $subject, $needs, $test);)*
    };
    (@one $subject:expr, [$($need:ident)*], $test:ident) => {
        #[test]
        fn $test() {
            $(blockstone_testkit::require!($need);)*
            super::$test(&$subject);
        }
    };
}

contract!(instance, super::Subject::of("instance"));
contract!(null, super::Subject::of("null"));
contract!(sqlite, super::Subject::of("sqlite:."));
contract!(
    sqlite_direct,
    super::Subject { io: Some(super::Io::Direct), ..super::Subject::of("sqlite:.") }
);
contract!(postgres, super::Subject::of("postgres:scratch"), Postgres);
/// A version of PostgreSQL other than the distribution's.
fn postgres(major: u32) -> Subject {
    let programs = Some(blockstone_testkit::postgres_programs(major));
    Subject { programs, ..Subject::of("postgres:scratch") }
}

contract!(postgres_13, super::postgres(13), PostgresVersions);
contract!(postgres_14, super::postgres(14), PostgresVersions);
contract!(postgres_16, super::postgres(16), PostgresVersions);
contract!(postgres_17, super::postgres(17), PostgresVersions);
contract!(postgres_18, super::postgres(18), PostgresVersions);
contract!(mariadb, super::Subject::of("mariadb:scratch"), Mariadb);

/// Targets that need no server.
fn here() -> impl Iterator<Item = Subject> {
    ["instance", "sqlite:."].into_iter().map(Subject::of)
}

#[test]
fn every_target_is_a_subject() {
    // `mysql` is `mariadb` under the name of its protocol.
    let covered = ["instance", "null", "sqlite", "postgres", "mariadb", "mysql"];
    assert_eq!(ALL.iter().map(|entry| entry.name).collect::<Vec<_>>(), covered);
}

/// Creates a directory outside /tmp, which may be in memory, that a server of another user can
/// read.
fn directory() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    builder.permissions(open).prefix("blockstone-contract-").tempdir_in("/var/tmp").unwrap()
}

/// Removes the places, as a run does with those it named.
fn remove(spec: &TargetSpec) {
    for place in &spec.places {
        let _ = std::fs::remove_file(&place.path).or(std::fs::remove_dir_all(&place.path));
    }
}

fn left(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

fn samples(target: &dyn Target) -> HashMap<(&'static str, String), Vec<Cell>> {
    let mut readings: Vec<Reading> = Vec::new();
    target.sample(true, &mut readings);
    let count = readings.len();
    let samples: HashMap<_, _> =
        readings.into_iter().map(|r| ((r.probe, r.object), r.cells)).collect();
    assert_eq!(samples.len(), count, "an object is sampled once");
    samples
}

fn statistic(target: &dyn Target, name: &str) -> i64 {
    let column = database::INSTANCE.columns.iter().position(|c| c.name == name).unwrap();
    match samples(target)[&("instance", String::new())][column] {
        Cell::Value(value) => value,
        ref other => panic!("{name} is {other:?}"),
    }
}

/// Returns the blocks accessed, if the target counts only those of its rows.
fn visits(target: &dyn Target) -> Option<i64> {
    if !target.describe().unwrap().server.is_empty() {
        return None; // It also accesses an index and its catalogue.
    }
    let column = database::INSTANCE.columns.iter().position(|c| c.name == "logical_reads").unwrap();
    match samples(target)[&("instance", String::new())][column] {
        Cell::Value(value) => Some(value),
        _ => None,
    }
}

fn statements_visit_exactly_the_rows_asked_for(subject: &Subject) {
    subject.with(|name, target| {
        let mut session = target.session(0).unwrap();
        for (first_key, rows) in [(0, 1), (0, 64), (ROWS - 64, 64), (17, 63)] {
            for schema in 0..SCHEMAS {
                let before = visits(target.as_ref());
                let select = Operation::Select { schema, first_key, rows };
                let executed = session.execute(&select).unwrap();
                assert_eq!((executed.rows, executed.commits), (rows.into(), 0), "{name}");
                if let Some((now, before)) = visits(target.as_ref()).zip(before) {
                    assert_eq!(now - before, i64::from(rows), "{name}: {select:?}");
                }
                let update = Operation::Update { schema, first_key, rows };
                let executed = session.execute(&update).unwrap();
                assert_eq!((executed.rows, executed.commits), (rows.into(), 1), "{name}");
            }
        }
        let executed = session.execute(&Operation::Scan { schema: 1 }).unwrap();
        assert_eq!((executed.rows, executed.commits), (SCAN_ROWS, 0), "{name}");
    });
}

fn sessions_work_side_by_side_and_every_commit_is_counted(subject: &Subject) {
    subject.with(|name, target| {
        let before = statistic(target.as_ref(), "commits");
        std::thread::scope(|scope| {
            for index in 0..4 {
                scope.spawn(move || {
                    let mut session = target.session(index).unwrap();
                    for n in 0..25 {
                        let first_key = u64::from(index * 25 + n) % (ROWS - 8);
                        let schema = n % SCHEMAS;
                        session.execute(&Operation::Update { schema, first_key, rows: 8 }).unwrap();
                    }
                });
            }
        });
        assert_eq!(statistic(target.as_ref(), "commits") - before, 100, "{name}");
    });
}

fn transactions_do_what_they_say_and_commit_once(subject: &Subject) {
    subject.with(|name, target| {
        let mut session = target.session(0).unwrap();
        let mut transact = |statements: &[Statement]| {
            let executed = session.transact(statements).unwrap();
            (executed.rows, executed.commits)
        };
        let (schema, number, first) = (1, 7, 0);
        let select = Statement::Select { schema, first_key: 3, rows: 5 };
        let insert = Statement::Insert { schema, number };
        let orders = Statement::Orders { schema, first, count: 12 };
        let delete = Statement::Delete { schema, number };
        let before = statistic(target.as_ref(), "commits");
        assert_eq!(transact(&[select, Statement::Update { schema, key: 3 }, insert]), (7, 1));
        let (rows, commits) = transact(&[orders, select]);
        assert_eq!(commits, 0, "{name}");
        if name != "null" {
            // One order, or the one block that holds it.
            assert_eq!(rows, 6, "{name}");
        }
        assert_eq!(transact(&[delete]), (1, 1), "{name}");
        if !target.describe().unwrap().server.is_empty() {
            assert_eq!(transact(&[orders]), (0, 0), "{name}: it is gone");
            assert_eq!(transact(&[Statement::Orders { schema: 0, first, count: 12 }]), (0, 0));
        }
        assert_eq!(statistic(target.as_ref(), "commits") - before, 2, "{name}");
    });
}

fn transactions_that_meet_are_sent_again_until_they_are_done(subject: &Subject) {
    subject.with(|name, target| {
        let before = statistic(target.as_ref(), "commits");
        std::thread::scope(|scope| {
            for index in 0..2 {
                scope.spawn(move || {
                    let mut session = target.session(index).unwrap();
                    for n in 0..20 {
                        // In opposite order, which is a deadlock with row locks.
                        let key = |step: u64| if index == 0 { step } else { 1 - step };
                        let update = |step| Statement::Update { schema: 0, key: key(step) };
                        let number = 2 * n + u64::from(index);
                        let insert = Statement::Insert { schema: 0, number };
                        let executed = session.transact(&[update(0), insert, update(1)]).unwrap();
                        assert_eq!((executed.rows, executed.commits), (3, 1), "{name}");
                    }
                });
            }
        });
        assert_eq!(statistic(target.as_ref(), "commits") - before, 40, "{name}");
        let mut session = target.session(0).unwrap();
        let all = Statement::Orders { schema: 0, first: 0, count: 60 };
        let found = session.transact(&[all]).unwrap().rows;
        if !target.describe().unwrap().server.is_empty() {
            assert_eq!(found, 40, "{name}: what was rolled back came once");
        }
    });
}

fn a_table_of_all_rows_is_made_flushed_and_dropped_again_and_again(subject: &Subject) {
    let copied = |spec: &mut TargetSpec| (spec.scan_rows, spec.copies) = (0, 2);
    subject.with_spec(copied, |name, target| {
        let block = DatabaseOptions::default().block_bytes.get();
        // InnoDB stores a second row next to each in its page; three rows of PostgreSQL fill a
        // page.
        let (rows, pages) = match name {
            "mariadb" => (2 * ROWS, ROWS),
            "postgres" => (ROWS, ROWS / 3),
            _ => (ROWS, ROWS),
        };
        let mut session = target.session(0).unwrap();
        for round in 0..2 {
            for (schema, table) in [(0, 0), (1, 1), (0, 1)] {
                let create = TableStep::Create { schema, table };
                let made = session.write_table(&create).unwrap();
                assert_eq!((made.rows, made.commits), (rows, 1), "{name}, round {round}");
                // PostgreSQL 16 and later extend a table by up to 64 pages at a time.
                let (least, most) = (pages * block, (pages + pages / 8 + 66) * block);
                assert!((least..=most).contains(&made.bytes), "{name}: {made:?}");
            }
            for (schema, table) in [(0, 0), (1, 1), (0, 1)] {
                for step in [TableStep::Flush { schema, table }, TableStep::Drop { schema, table }]
                {
                    let executed = session.write_table(&step).unwrap();
                    assert_eq!((executed.rows, executed.commits), (0, 0), "{name}: {step:?}");
                }
            }
        }
        let visited = session.execute(&Operation::Select { schema: 0, first_key: 0, rows: 64 });
        assert_eq!(visited.unwrap().rows, 64, "{name}: the rows are as they were");
    });
}

fn samples_keep_to_their_schemas_and_never_fall(subject: &Subject) {
    subject.with(|name, target| {
        let mut session = target.session(0).unwrap();
        let mut last = samples(target.as_ref());
        for first_key in 0..20 {
            session.execute(&Operation::Update { schema: 0, first_key, rows: 64 }).unwrap();
            let now = samples(target.as_ref());
            let blocked = now.contains_key(&(database::BLOCKED.probe, "session/futex".to_owned()));
            assert_eq!(blocked, name == "mariadb", "its threads are on this machine");
            for ((probe, object), cells) in &now {
                let mut known = database::ALL.iter().chain(database::OF_SESSIONS);
                let schema = known.find(|schema| schema.probe == *probe).unwrap();
                assert_eq!(cells.len(), schema.columns.len(), "{name}: {probe}");
                let Some(before) = last.get(&(*probe, object.clone())) else { continue };
                for ((column, now), before) in schema.columns.iter().zip(cells).zip(before) {
                    if let (Cell::Value(now), Cell::Value(before)) = (now, before) {
                        let level = column.kind == blockstone_base::Kind::Gauge;
                        assert!(level || now >= before, "{name}: {probe} {object} {}", column.name);
                    }
                }
            }
            last = now;
        }
    });
}

#[test]
fn counters_of_sessions_add_up_to_those_of_the_instance() {
    let (entry, dir) = (registry::find("instance").unwrap(), directory());
    let target = (entry.open)(&spec(dir.path()), &mut go_on).unwrap();
    target.load(&mut go_on).unwrap();
    let mut sessions = [0, 1].map(|number| target.session(number).unwrap());
    for (session, times) in sessions.iter_mut().zip([2, 3]) {
        for _ in 0..times {
            session.execute(&Operation::Update { schema: 0, first_key: 0, rows: 64 }).unwrap();
        }
    }
    let now = samples(target.as_ref());
    let value = |schema: &Schema, object: &str, column: &str| {
        let at = schema.columns.iter().position(|known| known.name == column).unwrap();
        match now.get(&(schema.probe, object.to_owned())).map(|cells| &cells[at]) {
            Some(Cell::Value(value)) => *value,
            other => panic!("{column} of {object} is {other:?}"),
        }
    };
    let of = |session, column| value(&database::SESSION_STATISTICS, session, column);
    assert_eq!(["1", "2"].map(|session| of(session, "commits")), [2, 3]);
    assert_eq!(["1", "2"].map(|session| of(session, "block_changes")), [128, 192]);
    let images = of("2", "full_page_images");
    assert_eq!(of("2", "redo_records"), 192 + 3 + images);
    let [first, second] = ["1", "2"].map(|session| of(session, "redo_bytes"));
    assert_eq!(first + second, statistic(target.as_ref(), "redo_bytes"), "all of it is durable");
    for column in ["logical_reads", "db_time_ns"] {
        let sum = of("1", column) + of("2", column);
        assert_eq!(sum, value(&database::INSTANCE, "", column), "{column}");
    }
    for column in ["read_ios", "read_ns"] {
        let sum = of("1", column) + of("2", column);
        assert_eq!(sum, value(&database::ROLE, "session", column), "{column}");
    }
    for column in ["waits", "time_ns"] {
        let each = now.keys().filter(|(probe, object)| {
            *probe == database::SESSION_EVENT.probe && object.ends_with("/log file sync")
        });
        let sum: i64 =
            each.map(|(_, object)| value(&database::SESSION_EVENT, object, column)).sum();
        assert_eq!(value(&database::EVENT, "session/log file sync", column), sum);
    }
    drop(sessions);
    target.shutdown().unwrap();
}

fn latencies_are_given_once(subject: &Subject) {
    subject.with(|name, target| {
        let mut session = target.session(0).unwrap();
        session.execute(&Operation::Update { schema: 0, first_key: 0, rows: 64 }).unwrap();
        drop(session);
        let sum = |taken: Vec<blockstone_servers::Latencies>| -> u64 {
            assert!(taken.iter().all(|one| one.histogram.count() > 0), "{name}: an empty one");
            taken.iter().map(|one| one.histogram.count()).sum()
        };
        let first = sum(target.take_latencies());
        // Background processes may have waited in the meantime.
        assert!(sum(target.take_latencies()) <= first, "{name}");
    });
}

#[test]
fn a_load_that_is_interrupted_says_so() {
    for subject in here() {
        let (entry, dir) = (subject.entry, directory());
        let target = (entry.open)(&subject.spec(dir.path()), &mut go_on).unwrap();
        let mut told = 0;
        let mut once = |_| {
            told += 1;
            ControlFlow::Break(())
        };
        let error = target.load(&mut once).unwrap_err();
        assert!(matches!(error, TargetError::Interrupted), "{}: {error}", entry.name);
        assert_eq!(told, 1, "{}: it goes on all the same", entry.name);
    }
}

/// Returns the error for a spec that is rejected before anything is written.
fn refused(entry: &Entry, spec: &TargetSpec) -> String {
    let error = (entry.demand)(spec).unwrap_err().told();
    assert!(error.contains("\nhint: "), "{}: {error}", entry.name);
    error
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let entry = registry::find("instance").unwrap();
    let spec = spec(Path::new("/nowhere"));
    let demand = (entry.demand)(&spec).unwrap();
    let data = u64::from(SCHEMAS) * (ROWS + SCAN_ROWS) * spec.options.block_bytes.get();
    assert!(demand.places.iter().map(|bytes| bytes.get()).sum::<u64>() > data);
    let error = refused(entry, &TargetSpec { sessions: 100_000, ..spec.clone() });
    assert!(error.contains("cache"), "{error}");
    let with = |change: fn(&mut DatabaseOptions)| {
        let mut spec = spec.clone();
        change(&mut spec.options);
        refused(entry, &spec)
    };
    let error = with(|options| options.redundancy = blockstone_servers::Redundancy::High);
    assert!(error.contains("high"), "{error}");
    let error = with(|options| options.block_bytes = Bytes(5000));
    assert!(error.contains("block"), "{error}");
    let error = with(|options| options.allocation_unit_bytes = Bytes::mib(3));
    assert!(error.contains("allocation unit"), "{error}");
}

fn what_is_demanded_is_enough(subject: &Subject) {
    let (entry, dir) = (subject.entry, directory());
    let spec = subject.spec(dir.path());
    let demand = (entry.demand)(&spec).unwrap();
    let target = (entry.open)(&spec, &mut go_on).unwrap();
    target.load(&mut go_on).unwrap();
    for (place, demanded) in spec.places.iter().zip(demand.places) {
        let taken = size(&place.path);
        assert!(taken <= demanded, "{}: {taken} of {demanded}", entry.name);
        // A disk of the group is laid out in full.
        assert!(taken == demanded || entry.name != "instance", "{taken} of {demanded}");
    }
    target.shutdown().unwrap();
}

fn a_database_says_what_it_is_and_how_it_executes(subject: &Subject) {
    subject.with(|name, target| {
        let described = target.describe().unwrap();
        if described.server.is_empty() {
            return; // The target is part of this program.
        }
        let kinds: Vec<_> = described.plans.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, Operation::KINDS, "{name}");
        let plan = |kind: &str| &described.plans.iter().find(|(of, _)| *of == kind).unwrap().1;
        for kind in ["select", "update"] {
            let text = plan(kind).to_lowercase();
            assert!(text.contains("index") && !text.contains("bitmap"), "{name}: {text}");
        }
        assert!(plan("scan").to_lowercase().contains("scan"), "{name}: {}", plan("scan"));
        assert!(!described.settings.is_empty(), "{name}");
        assert_eq!(target.describe().unwrap().plans, described.plans, "{name}");
    });
}

fn what_is_not_measured_is_explained(subject: &Subject) {
    subject.with(|name, target| {
        let explained = target.describe().unwrap().unmeasured;
        if target.describe().unwrap().server.is_empty() {
            return; // The manifest of a run lists what the miniature instance lacks.
        }
        let mut session = target.session(0).unwrap();
        session.execute(&Operation::Select { schema: 0, first_key: 0, rows: 1 }).unwrap();
        let samples = samples(target.as_ref());
        for schema in [&database::INSTANCE, &database::SQL] {
            let cells = &samples[&(schema.probe, String::new())];
            for (column, cell) in schema.columns.iter().zip(cells) {
                let known = explained
                    .iter()
                    .any(|(probe, name, _)| (*probe, *name) == (schema.probe, column.name));
                assert_eq!(*cell == Cell::Unmeasured, known, "{name}: {}", column.name);
            }
        }
    });
}

/// Returns the bytes of a file, or of all files in a directory; zero if it does not exist.
fn size(path: &Path) -> Bytes {
    let Ok(found) = path.metadata() else { return Bytes(0) };
    if !found.is_dir() {
        return Bytes(found.len());
    }
    let inside = std::fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path()).get());
    Bytes(inside.sum())
}

#[test]
fn a_target_that_cannot_be_opened_leaves_nothing_behind() {
    for subject in here() {
        let (entry, dir) = (subject.entry, directory());
        let mut spec = subject.spec(dir.path());
        for place in &mut spec.places[usize::from(entry.name == "instance")..] {
            place.path = dir.path().join("nowhere/b");
        }
        (entry.open)(&spec, &mut go_on).unwrap_err();
        assert_eq!(left(dir.path()), 0, "{}", entry.name);
        if entry.name != "instance" {
            continue; // Opening it takes too little time to be interrupted.
        }
        spec.places[1].path = dir.path().join("b");
        let error = (entry.open)(&spec, &mut |_| ControlFlow::Break(())).unwrap_err();
        assert!(matches!(error, TargetError::Interrupted), "{}: {error}", entry.name);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{}", entry.name);
    }
}
