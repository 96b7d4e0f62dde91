//! The contract of every probe of the registry, on this machine under load.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use blockstone_base::column::{Kind, Unit};
use blockstone_base::load;
use blockstone_probe::{Cell, Context, Roles, Row, Scope, registry};
use blockstone_sys::survey;
use blockstone_testkit::ScratchDir;

/// The host with all its devices, with this process among the watched ones.
fn host() -> Context {
    let roles = Roles::with(vec![std::process::id()], Vec::new());
    Context { root: "/".into(), scope: Scope::Host(roles) }
}

/// The devices beneath the disk's scratch directory.
fn target() -> Context {
    let root = Path::new("/");
    let scratch = ScratchDir::on_disk().unwrap();
    let target = survey::target(root, scratch.path()).unwrap();
    let devices = target.devices.into_iter().map(|device| device.name).collect();
    Context::of_target(root, devices)
}

#[test]
fn names_are_unique_and_end_with_their_unit() {
    let mut probes = HashSet::new();
    let always = registry::ALL.iter().map(|entry| entry.schema);
    for schema in always.chain(registry::ON_REQUEST.iter().copied()) {
        assert!(probes.insert(schema.probe), "two probes are named {}", schema.probe);
        let mut columns = HashSet::new();
        for column in schema.columns {
            let name = column.name;
            let place = format!("{}.{name}", schema.probe);
            assert!(columns.insert(name), "two columns are named {place}");
            let is_bucket = registry::is_bucket(name);
            let fits =
                |b: u8| b.is_ascii_lowercase() || b == b'_' || is_bucket && b.is_ascii_digit();
            assert!(name.bytes().all(fits), "{place}");
            match column.unit {
                Unit::Bytes => assert!(name == "bytes" || name.ends_with("_bytes"), "{place}"),
                Unit::Nanoseconds => assert!(name.ends_with("_ns"), "{place}"),
                Unit::Ppm => assert!(name.ends_with("_ppm"), "{place}"),
                Unit::Count | Unit::Text => {
                    assert!(!name.ends_with("_ns") && !name.ends_with("_bytes"), "{place}");
                }
            }
            assert!(column.doc.ends_with('.') && !column.source.is_empty(), "{place}");
        }
        assert!(!["t_ns", "phase", "object"].iter().any(|name| columns.contains(name)));
    }
}

#[test]
fn every_recorded_column_is_in_the_glossary() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/glossary.md");
    let glossary = std::fs::read_to_string(page).unwrap();
    let series = registry::ALL.iter().map(|entry| entry.schema).chain([
        &load::SERIES,
        &load::SHARES,
        &load::FLUSHES,
        &load::BUFFERED,
        &load::VISITS,
    ]);
    let series = series.chain(registry::ON_REQUEST.iter().copied());
    // The glossary has only one of a histogram's columns.
    let shown = ["ios_from_1024ns", "again_after_1024"];
    let is_bucket = |name: &str| registry::is_bucket(name) && !shown.contains(&name);
    let columns = series.flat_map(|schema| schema.columns);
    for column in columns.filter(|column| !is_bucket(column.name)) {
        assert!(glossary.contains(&format!("`{}`", column.name)), "{} is missing", column.name);
    }
}

#[test]
fn rows_fit_the_schema_and_say_what_they_leave_out() {
    let contexts = [host(), target()];
    let entries = contexts.iter().flat_map(|c| registry::of(c).map(move |entry| (entry, c)));
    for (entry, context) in entries {
        let mut probe = (entry.open)(context);
        assert_eq!(probe.schema(), entry.schema);
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        if rows.is_empty() {
            // There is no NFS mount, no NVMe disk, and no database that holds files open;
            // everything else is present on every machine.
            let may_lack = ["nfs", "nvme", "cached_files"];
            assert!(may_lack.contains(&entry.schema.probe), "{}", entry.schema.probe);
            continue;
        }
        let unmeasured: Vec<&str> = probe.unmeasured().iter().map(|(column, _)| *column).collect();
        for row in &rows {
            assert_eq!(row.cells.len(), entry.schema.columns.len());
        }
        for (index, column) in entry.schema.columns.iter().enumerate() {
            let missing = rows.iter().all(|row| row.cells[index] == Cell::Unmeasured);
            assert_eq!(missing, unmeasured.contains(&column.name), "{}", column.name);
        }
    }
}

#[test]
fn counters_never_fall_under_load() {
    let stop = AtomicBool::new(false);
    let scratch = ScratchDir::on_disk().unwrap();
    thread::scope(|scope| {
        for worker in 0..4 {
            let (stop, path) = (&stop, scratch.path().join(format!("file{worker}")));
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::fs::write(&path, vec![worker; 1 << 20]).unwrap();
                    std::fs::File::open(&path).unwrap().sync_all().unwrap();
                    // Threads that come and go must not take their share with them.
                    thread::spawn(|| std::hint::black_box((0..100_000).sum::<u64>()));
                }
            });
        }
        let context = host();
        for entry in registry::of(&context) {
            let mut probe = (entry.open)(&context);
            let mut last: Vec<Row> = Vec::new();
            for _ in 0..20 {
                let mut rows = Vec::new();
                probe.sample(&mut rows);
                for before in &last {
                    // A device or a group may have disappeared in the meantime.
                    let Some(now) = rows.iter().find(|row| row.object == before.object) else {
                        continue;
                    };
                    compare(entry.schema.columns, before, now);
                }
                last = rows;
                thread::sleep(Duration::from_millis(20));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn compare(columns: &[blockstone_base::Column], before: &Row, now: &Row) {
    for ((column, before), now) in columns.iter().zip(&before.cells).zip(&now.cells) {
        let (Cell::Value(before), Cell::Value(now)) = (before, now) else { continue };
        assert!(*now >= 0, "{} is {now}", column.name);
        assert!(column.kind != Kind::Counter || now >= before, "{}: {before}, {now}", column.name);
    }
}
