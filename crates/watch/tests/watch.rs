//! A watch of this machine: properties that hold for every view, and that a replay shows what was
//! seen.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::HashSet;

use blockstone_base::units::Nanos;
use blockstone_record::{End, Recording};
use blockstone_view::{
    History, Interval, Measure, Objects, Shape, Table, Value, objects, registry,
};
use blockstone_watch::{Destination, Settings, Watch, WatchOptions};

/// Returns all that an interval shows: its columns and the tables of every view.
fn document(interval: &Interval<'_>) -> (Objects, Vec<Table>) {
    let tables = registry::ALL.iter().filter_map(|view| view.table(interval));
    (objects(interval), tables.collect())
}

/// A watch of this process and the host around it.
fn settings(record: Option<Destination>) -> Settings {
    Settings {
        options: WatchOptions {
            interval_ns: Nanos::millis(100),
            pid: vec![std::process::id()],
            profile: true,
            ..WatchOptions::default()
        },
        argv: Vec::new(),
        history: Nanos::millis(60_000),
        record,
        databases: Vec::new(),
        who: false,
        active_set: Some(Vec::new()),
    }
}

fn looked(looks: usize) -> Watch {
    let mut watch = Watch::start(&settings(None)).unwrap();
    for _ in 0..looks {
        watch.wait_and_look().unwrap();
    }
    watch
}

#[test]
fn views_have_names_of_their_own_and_rows_as_wide_as_their_headings() {
    let watch = looked(2);
    let interval = watch.history().latest().unwrap();
    let mut names = HashSet::new();
    for view in registry::ALL {
        assert!(names.insert(view.name), "two views are called {}", view.name);
        let mut keys = HashSet::new();
        for column in view.columns {
            assert!(keys.insert(&column.key), "{} has {} twice", view.name, column.key);
            let unit = match column.measure {
                Measure::Nanoseconds => column.key.contains("_ns"),
                Measure::Bytes => column.key.contains("_bytes"),
                Measure::BytesPerS => column.key.ends_with("_bytes_per_s"),
                Measure::Share => column.key.ends_with("_share"),
                _ => !column.key.contains("_ns"),
            };
            assert!(unit && column.doc.ends_with('.'), "{}.{}", view.name, column.key);
        }
        let Some(table) = view.table(&interval) else { continue };
        for row in &table.rows {
            assert_eq!(row.len(), view.columns.len(), "{}: {row:?}", view.name);
        }
        assert!(view.shape == Shape::Table || table.rows.len() <= 1, "{}", view.name);
    }
}

#[test]
fn shares_of_processors_are_all_of_their_time() {
    let watch = looked(6);
    let interval = watch.history().whole().unwrap();
    let table = registry::find("host").unwrap().table(&interval).unwrap();
    let share = |value: &Value| match value {
        Value::Number(share) => *share,
        other => panic!("{other:?}"),
    };
    let sum: f64 = table.rows[0][..6].iter().map(share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}: {:?}", table.rows);
}

#[test]
fn a_replay_shows_to_the_last_digit_what_was_seen_live() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("night");
    let destination = Destination { dir: dir.clone(), id: "abc".to_owned() };
    let mut watch = Watch::start(&settings(Some(destination))).unwrap();
    let mut live = Vec::new();
    for _ in 0..8 {
        watch.wait_and_look().unwrap();
        live.extend(watch.history().latest().map(|interval| document(&interval)));
    }
    let whole = document(&watch.history().whole().unwrap());
    watch.close(End::Complete).unwrap();

    let recording = Recording::open(&dir).unwrap();
    assert_eq!((recording.manifest.verb.as_str(), &recording.warnings()[..]), ("watch", &[][..]));
    let history = History::read(&recording).unwrap();
    let ticks: Vec<u64> = history.ticks().collect();
    assert_eq!((ticks.len(), live.len()), (8, 7));
    for (edges, live) in ticks.windows(2).zip(&live) {
        assert_eq!(&document(&history.interval(edges[0], edges[1])), live);
    }
    assert_eq!(document(&history.whole().unwrap()), whole);
}

#[test]
fn what_watching_costs_is_seen() {
    let watch = looked(4);
    let interval = watch.history().whole().unwrap();
    assert_eq!(interval.moved("watch", "", "ticks"), Ok(3.0));
    let look_ns = interval.moved("watch", "", "look_ns").unwrap();
    assert!(look_ns > 0.0 && look_ns < interval.ns(), "{look_ns}");
}
