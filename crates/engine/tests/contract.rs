//! The contract of every engine, run over the registry: a newly registered engine is tested
//! automatically.

use blockstone_base::hint::Hint as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_engine::registry::{self, Entry};
use blockstone_engine::sim::Faults;
use blockstone_engine::{
    Length, Load, Medium, Outcome, SimDisk, SimSpec, Stamped, Stripes, Totals, start,
};
use blockstone_sys::file::{Access as OpenFor, BlockFile};
use blockstone_testkit::{Need, allowed};

const BLOCK: u64 = 8192;
const SPAN: u64 = 64 * BLOCK;
const LIMIT: Duration = Duration::from_secs(20);

/// Runs `test` for every engine available on this machine; a missing one is named and counted.
fn for_each_engine(test: impl Fn(&'static Entry, &Path)) {
    for entry in registry::ALL {
        let needs: &[Need] = if entry.name == "uring" { &[Need::Uring] } else { &[] };
        if allowed(&test, needs) {
            let dir = tempfile::tempdir().expect("the directory for temporary files is writable");
            test(entry, dir.path());
        }
    }
}

fn medium(entry: &Entry, dir: &Path) -> Medium {
    match entry.name {
        "null" => Medium::Nothing,
        "sim" => Medium::Simulated(SimDisk::new(SimSpec::new(SPAN, 1))),
        _ => Medium::File(Arc::new(created(dir))),
    }
}

fn created(dir: &Path) -> BlockFile {
    BlockFile::create_new(&dir.join("data"), false).expect("an empty directory takes a file")
}

fn spec(entry: &Entry, op: Op, access: Access, workers: u32) -> LoadSpec {
    LoadSpec {
        engine: entry.name.into(),
        op,
        read_pct: None,
        access,
        block_bytes: BLOCK,
        workers,
        depth_per_worker: entry.depth_max.min(4),
        span_bytes: SPAN,
        offset_bytes: 0,
        sync: None,
        flush_alone: false,
        direct: false,
        pacing: Pacing::Closed,
        seed: 7,
    }
}

fn stamped(spec: LoadSpec, medium: &Medium, length: Length) -> Load {
    let content = Arc::new(Stamped::new(0xb10c, BLOCK, 1));
    Load { content, length, checksum_every: 1, ..Load::new(spec, medium.clone()) }
}

fn assert_consistent(name: &str, outcome: &Outcome) {
    let Totals { completed_ops, latency_ns_sum, service_ns_sum, lag_ns_sum, .. } = outcome.totals;
    let count: u64 = outcome.histograms.iter().map(|h| h.latency.count()).sum();
    let sum_ns: u128 = outcome.histograms.iter().map(|h| h.latency.sum_ns()).sum();
    assert_eq!(count, completed_ops, "{name}: histograms hold every completion");
    assert_eq!(sum_ns, u128::from(latency_ns_sum), "{name}: and their latency");
    assert_eq!(latency_ns_sum, service_ns_sum + lag_ns_sum, "{name}: latency is lag and service");
    assert_eq!((outcome.stuck_workers, outcome.failed_workers), (0, 0), "{name}");
    assert_eq!(outcome.first_error, None, "{name}");
}

#[test]
fn a_layout_writes_every_block_once_and_reads_verify_it() {
    for_each_engine(|entry, dir| {
        let medium = medium(entry, dir);
        let layout = stamped(spec(entry, Op::Write, Access::Sequential, 3), &medium, Length::Once);
        let outcome = start(layout).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        assert_eq!(outcome.totals.completed_bytes, SPAN, "{}", entry.name);

        let read =
            stamped(spec(entry, Op::Read, Access::Random, 2), &medium, Length::Operations(100));
        let outcome = start(read).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        let totals = outcome.totals;
        assert_eq!((totals.completed_ops, totals.stamps_verified), (200, 200), "{}", entry.name);
        assert_eq!(totals.checksums_verified, 200, "{}", entry.name);
        // The null engine moves nothing, and verification must say so.
        let expected = if entry.name == "null" { 200 } else { 0 };
        assert_eq!(totals.mismatches, expected, "{}: {:?}", entry.name, outcome.first_mismatch);
        assert_eq!(outcome.first_mismatch.is_some(), expected > 0, "{}", entry.name);
    });
}

#[test]
fn every_way_to_commit_counts_one_operation_with_its_flush() {
    for_each_engine(|entry, dir| {
        let medium = medium(entry, dir);
        for sync in [SyncMethod::Dsync, SyncMethod::Fdatasync, SyncMethod::Fsync] {
            for access in [Access::Random, Access::Append] {
                let mut spec = spec(entry, Op::Commit, access, 2);
                spec.sync = Some(sync);
                let outcome =
                    start(stamped(spec, &medium, Length::Operations(5))).unwrap().wait(LIMIT);
                assert_consistent(entry.name, &outcome);
                assert_eq!(outcome.totals.completed_ops, 10, "{} {sync:?}", entry.name);
                if entry.name == "sim" {
                    let mean_ns = outcome.totals.latency_ns_sum / 10;
                    assert!(mean_ns >= 600_000, "a commit takes its write and its flush");
                }
            }
        }
    });
}

#[test]
fn an_append_ends_where_its_span_ends() {
    for_each_engine(|entry, dir| {
        let mut spec = spec(entry, Op::Commit, Access::Append, 3);
        spec.sync = Some(SyncMethod::Dsync);
        let load = stamped(spec, &medium(entry, dir), Length::Endless);
        let outcome = start(load).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        assert_eq!(outcome.totals.completed_bytes, SPAN, "{}", entry.name);
    });
}

#[test]
fn an_endless_load_stops_when_told_and_only_its_window_is_windowed() {
    for_each_engine(|entry, dir| {
        let medium = medium(entry, dir);
        let layout = spec(entry, Op::Write, Access::Sequential, 1);
        start(stamped(layout, &medium, Length::Once)).unwrap().wait(LIMIT);
        let running = start(Load::new(spec(entry, Op::Read, Access::Random, 2), medium)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        running.open_window();
        let before = running.totals();
        std::thread::sleep(Duration::from_millis(50));
        let after = running.totals();
        running.close_window();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!running.finished(), "{}", entry.name);
        let outcome = running.stop(LIMIT);
        assert_consistent(entry.name, &outcome);
        let windowed: u64 =
            outcome.histograms.iter().filter(|h| h.windowed).map(|h| h.latency.count()).sum();
        let counted = after.completed_ops - before.completed_ops;
        // Operations completed before the window opened and published after it: at most all in
        // flight.
        let edge = 8;
        assert!(windowed + edge >= counted, "{}: {windowed} of {counted}", entry.name);
        assert!(windowed < outcome.totals.completed_ops, "{}", entry.name);
    });
}

#[test]
fn sixty_four_workers_do_exactly_their_work() {
    for_each_engine(|entry, dir| {
        let medium = medium(entry, dir);
        let mut spec = spec(entry, Op::Write, Access::Sequential, 64);
        spec.depth_per_worker = 1;
        let outcome = start(stamped(spec, &medium, Length::Once)).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        assert_eq!(outcome.totals.completed_ops, 64, "{}", entry.name);
    });
}

#[test]
fn an_open_loop_keeps_its_rate_and_times_from_the_intended_start() {
    for_each_engine(|entry, dir| {
        let medium = medium(entry, dir);
        for poisson in [false, true] {
            let mut spec = spec(entry, Op::Write, Access::Random, 2);
            spec.pacing = Pacing::Open { rate_per_s: 2000.0, poisson };
            let load = stamped(spec, &medium, Length::Operations(100));
            let outcome = start(load).unwrap().wait(LIMIT);
            assert_consistent(entry.name, &outcome);
            assert_eq!((outcome.totals.completed_ops, outcome.overdue_ops), (200, 0));
            let service: u64 = outcome
                .histograms
                .iter()
                .map(|h| h.service.as_ref().expect("an open loop has two clocks").count())
                .sum();
            assert_eq!(service, 200, "{}", entry.name);
        }
    });
}

#[test]
fn failing_operations_are_counted_named_and_end_the_worker() {
    for_each_engine(|entry, dir| {
        // Beyond the end: files and the disk return short reads; null cannot fail.
        let medium = match medium(entry, dir) {
            Medium::Nothing => return,
            other => other,
        };
        let spec = spec(entry, Op::Read, Access::Random, 2);
        if let Medium::Simulated(disk) = &medium {
            disk.set_faults(Faults { eio_probability: 1.0, ..Faults::default() });
        }
        let outcome = start(Load::new(spec, medium)).unwrap().wait(LIMIT);
        let error = outcome.first_error.expect("a failure is named");
        assert!(error.contains("read of 8192 bytes at offset"), "{}: {error}", entry.name);
        assert_eq!((outcome.failed_workers, outcome.totals.completed_ops), (2, 0));
        assert!(outcome.totals.failed_ops >= 32, "{}", entry.name);
        assert_eq!(outcome.stuck_workers, 0, "{}", entry.name);
    });
}

#[test]
fn several_files_are_filled_verified_and_flushed_as_one() {
    for_each_engine(|entry, dir| {
        if !matches!(medium(entry, dir), Medium::File(_)) {
            return;
        }
        let names = ["a", "b", "c"].map(|name| dir.join(name));
        let new = |path: &PathBuf| Arc::new(BlockFile::create_new(path, false).unwrap());
        let medium = Medium::Files(Stripes::new(names.iter().map(new).collect()));
        let spec =
            LoadSpec { span_bytes: 7 << 20, ..spec(entry, Op::Write, Access::Sequential, 2) };
        let outcome = start(stamped(spec.clone(), &medium, Length::Once)).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        let sizes = names.each_ref().map(|path| std::fs::metadata(path).unwrap().len() >> 20);
        assert_eq!(sizes, [3, 2, 2], "{}", entry.name);

        let read = LoadSpec { op: Op::Read, access: Access::Random, ..spec.clone() };
        let running = start(stamped(read, &medium, Length::Operations(3_000))).unwrap();
        while !running.finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (shares, totals) = (running.shares(), running.totals());
        assert_eq!((totals.completed_ops, totals.mismatches), (6_000, 0));
        assert_eq!(shares.iter().map(|share| share.completed_ops).sum::<u64>(), 6_000);
        let latency: u64 = shares.iter().map(|share| share.latency_ns_sum).sum();
        assert_eq!(latency, totals.latency_ns_sum);
        let ops = |at: usize| shares[at].completed_ops as f64 / 6_000.0;
        assert!((ops(0) - 3.0 / 7.0).abs() < 0.05 && (ops(2) - 2.0 / 7.0).abs() < 0.05);

        let commit = LoadSpec { op: Op::Commit, sync: Some(SyncMethod::Fdatasync), ..spec };
        let outcome = start(stamped(commit, &medium, Length::Operations(20))).unwrap().wait(LIMIT);
        assert_consistent(entry.name, &outcome);
        assert_eq!((outcome.totals.completed_ops, outcome.first_error), (40, None));
    });
}

#[test]
fn writes_to_a_file_opened_for_reading_fail_with_their_cause() {
    for_each_engine(|entry, dir| {
        let path = dir.join("data");
        if !matches!(medium(entry, dir), Medium::File(_)) {
            return;
        }
        let file = BlockFile::open(&path, OpenFor::Read, false).unwrap();
        let spec = spec(entry, Op::Write, Access::Random, 1);
        let outcome = start(Load::new(spec, Medium::File(Arc::new(file)))).unwrap().wait(LIMIT);
        let error = outcome.first_error.unwrap();
        assert!(error.contains("write of 8192") && error.contains("Bad file"), "{error}");
    });
}

#[test]
fn contradictions_are_refused_before_anything_runs() {
    let entry = registry::find("psync").unwrap();
    let base = spec(entry, Op::Read, Access::Random, 1);
    let refused = |spec: LoadSpec, length| {
        let load = Load { length, ..Load::new(spec, Medium::Nothing) };
        let error = start(load).unwrap_err().told();
        assert!(error.contains("\nhint: "), "{error}");
    };
    refused(LoadSpec { engine: "aio".into(), ..base.clone() }, Length::Endless);
    refused(LoadSpec { workers: 0, ..base.clone() }, Length::Endless);
    refused(LoadSpec { depth_per_worker: 2, ..base.clone() }, Length::Endless);
    refused(LoadSpec { span_bytes: 4096, ..base.clone() }, Length::Endless);
    refused(LoadSpec { op: Op::Commit, ..base.clone() }, Length::Endless);
    let flush = LoadSpec { op: Op::Commit, flush_alone: true, ..base.clone() };
    refused(LoadSpec { sync: Some(SyncMethod::Dsync), ..flush.clone() }, Length::Endless);
    let pacing = Pacing::Open { rate_per_s: 10.0, poisson: true };
    refused(LoadSpec { sync: Some(SyncMethod::Fsync), pacing, ..flush }, Length::Endless);
    refused(LoadSpec { access: Access::Append, ..base.clone() }, Length::Endless);
    refused(LoadSpec { op: Op::Mixed, ..base.clone() }, Length::Endless);
    refused(LoadSpec { read_pct: Some(70), ..base.clone() }, Length::Endless);
    let pacing = Pacing::Open { rate_per_s: 0.0, poisson: true };
    refused(LoadSpec { pacing, ..base.clone() }, Length::Endless);
    refused(base.clone(), Length::Once);
    // No file for an engine that needs one: detected by the worker, reported by the start.
    refused(base, Length::Endless);
}
