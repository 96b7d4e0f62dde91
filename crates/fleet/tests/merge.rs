//! Recordings of ranks of known behaviour, merged.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::path::{Path, PathBuf};

use blockstone_base::LatencyHistogram;
use blockstone_base::column::Schema;
use blockstone_base::load::Op;
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_fleet::{FleetError, Options, merge};
use blockstone_record::manifest::{Phase, Rank};
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, point, schema};
use blockstone_record::{End, LatencyClock, Recording};

const LABEL: &str = "random-read/psync/x4";
static LOAD: Schema =
    schema("load", &counters(["completed_ops", "completed_bytes", "last_completed_ns"]));
static FLUSH: Schema = schema("flush", &counters(["unflushed_bytes"]));
static BLOCK: Schema = schema("block", &counters(["read_ios", "read_bytes"]));

/// A rank that reads for ten seconds after a warm-up of one.
struct Fake {
    rank: u32,
    host: &'static str,
    /// Identity of the machine; that of its host by default.
    boot: Option<&'static str>,
    /// Seconds after noon at which it began, by its clock.
    began_s: f64,
    ops_per_s: u64,
    clock_bound_ns: Option<u64>,
    latencies: Vec<(u64, u64)>,
}

impl Fake {
    fn new(rank: u32) -> Self {
        let latencies = vec![(100_000 + u64::from(rank) * 1_000, 990), (2_000_000, 10)];
        let clock_bound_ns = Some(1_000_000);
        Self {
            rank,
            host: "db1",
            boot: None,
            began_s: 0.0,
            ops_per_s: 1_000,
            clock_bound_ns,
            latencies,
        }
    }

    fn write(&self, root: &Path, ranks: u32, end: &End) -> PathBuf {
        let dir = root.join(format!("rank-{:04}", self.rank));
        let mut manifest = testing::manifest();
        manifest.id = format!("r{:05}", self.rank);
        self.host.clone_into(&mut manifest.host.hostname);
        manifest.host.boot_id = Some(self.boot.unwrap_or(self.host).to_owned());
        manifest.started_at = format!("2026-11-21T12:00:{:012.9}Z", self.began_s);
        let (rank, clock_bound_ns) = (self.rank, self.clock_bound_ns);
        manifest.rank = Some(Rank { rank, ranks, clock_bound_ns, ..Rank::default() });
        let mut recording = RecordingBuilder::new(manifest, &[&LOAD, &BLOCK, &FLUSH]);
        recording.add(point(LABEL), (SECOND_NS, 10 * SECOND_NS));
        let both = [self.ops_per_s, self.ops_per_s * 8192];
        let load = [self.ops_per_s, self.ops_per_s * 8192, SECOND_NS];
        let columns = ["completed_ops", "completed_bytes", "last_completed_ns"];
        recording.series("load", columns, &[("", load)]);
        recording.series("block", ["read_ios", "read_bytes"], &[("vda", both)]);
        recording.latencies("", Op::Read, LatencyClock::Intended, &self.latencies);
        recording.write(&dir);
        change(&dir, |manifest| manifest["end"] = serde_json::to_value(end).unwrap());
        dir
    }
}

fn change(dir: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join("manifest.json");
    let mut manifest = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    std::fs::write(&path, manifest.to_string()).unwrap();
}

fn written(fakes: &[Fake]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().unwrap();
    let ranks = fakes.len() as u32;
    let dirs = fakes.iter().map(|it| it.write(root.path(), ranks, &End::Complete)).collect();
    (root, dirs)
}

fn merged(root: &Path, dirs: &[PathBuf], options: Options) -> Recording {
    let out = root.join("merged");
    let merge = merge(dirs, options).unwrap();
    assert!(merge.write((&out, "merged"), &[], |_, _| true).unwrap());
    Recording::open(&out).unwrap()
}

fn all(recording: &Recording) -> LatencyHistogram {
    let mut sum = LatencyHistogram::new();
    recording.each_histogram(|row| sum.merge(&row.histogram)).unwrap();
    sum
}

fn window(recording: &Recording) -> &Phase {
    &recording.manifest.phases[0]
}

/// Operations a second in the common window.
fn rate(recording: &Recording) -> f64 {
    let Phase { window_start_ns, window_end_ns, .. } = *window(recording);
    let load = recording.series("load").unwrap();
    let moved = load.delta(0, "", window_start_ns, window_end_ns, "completed_ops").unwrap();
    moved as f64 / ((window_end_ns - window_start_ns) as f64 / 1e9)
}

#[test]
fn counters_and_histograms_add_up_exactly() {
    let fakes: Vec<Fake> = (0..8).map(Fake::new).collect();
    let (root, dirs) = written(&fakes);
    let sum = merged(root.path(), &dirs, Options::default());
    let (from, to) = (window(&sum).window_start_ns, window(&sum).window_end_ns);
    assert_eq!((from, to), (SECOND_NS, 11 * SECOND_NS), "one host has one clock");
    let load = sum.series("load").unwrap();
    assert_eq!(load.delta(0, "", from, to, "completed_ops"), Some(8 * 10_000));
    let block = sum.series("block").unwrap();
    let of_host = block.delta(0, "vda", from, to, "read_ios");
    assert_eq!(of_host, Some(10_000), "the disk of a host is counted once");
    let mut union = LatencyHistogram::new();
    for dir in &dirs {
        union.merge(&all(&Recording::open(dir).unwrap()));
    }
    let merged = all(&sum);
    assert!(merged.buckets().eq(union.buckets()), "bit for bit");
    assert_eq!(merged.sum_ns(), union.sum_ns());
    let about = sum.manifest.merged.as_ref().unwrap();
    assert_eq!((about.ranks.len(), about.overlap_ratio), (8, 1.0));
    assert!(about.ranks.iter().all(|rank| rank.ops_per_s == Some(1_000.0)));
}

#[test]
fn instants_and_single_events_are_not_added() {
    let (root, dirs) = written(&[Fake::new(0), Fake::new(1)]);
    let sum = merged(root.path(), &dirs, Options::default());
    let (from, to) = (window(&sum).window_start_ns, window(&sum).window_end_ns);
    let load = sum.series("load").unwrap();
    assert_eq!(load.delta(0, "", from, to, "last_completed_ns"), None);
    assert_eq!(load.delta(0, "", from, to, "completed_ops"), Some(20_000));
    assert!(sum.manifest.probes.iter().all(|info| info.probe != "flush"));
    let left_out = &sum.manifest.merged.as_ref().unwrap().left_out;
    assert!(left_out[0].starts_with("flush: "), "{left_out:?}");
}

#[test]
fn a_recording_that_is_replaced_while_it_is_merged_is_refused() {
    let (root, dirs) = written(&[Fake::new(0), Fake::new(1)]);
    let merge = merge(&dirs, Options::default()).unwrap();
    let (_other, others) = written(&[Fake::new(7)]);
    std::fs::remove_dir_all(&dirs[1]).unwrap();
    std::fs::rename(&others[0], &dirs[1]).unwrap();
    let out = root.path().join("merged");
    let error = merge.write((&out, "merged"), &[], |_, _| true).unwrap_err().to_string();
    assert!(error.contains("it was replaced while it was read"), "{error}");
    assert!(!out.exists(), "nothing is written");
}

#[test]
fn only_the_time_that_all_windows_have_in_common_counts() {
    let late = Fake { began_s: 1.5, host: "db2", ..Fake::new(1) };
    let (root, dirs) = written(&[Fake::new(0), late]);
    let sum = merged(root.path(), &dirs, Options::default());
    let (from, to) = (window(&sum).window_start_ns, window(&sum).window_end_ns);
    assert_eq!((from, to), (2_501_000_000, 10_999_000_000), "less a millisecond for each clock");
    assert!((rate(&sum) / 2_000.0 - 1.0).abs() < 0.001, "{}", rate(&sum));
    let reads = sum.series("block").unwrap().delta(0, "vda", from, to, "read_ios").unwrap();
    let reads_per_s = reads as f64 / ((to - from) as f64 / 1e9);
    assert!((reads_per_s / 2_000.0 - 1.0).abs() < 0.001, "two hosts have two disks");
    let about = sum.manifest.merged.as_ref().unwrap();
    assert!((about.overlap_ratio - 0.8498).abs() < 1e-6, "{}", about.overlap_ratio);
    assert_eq!(about.clock_bound_ns, Some(2_000_000));
}

#[test]
fn a_clock_that_is_five_seconds_wrong_halves_the_window_and_not_the_rate() {
    let wrong = Fake { began_s: 5.0, host: "db2", ..Fake::new(1) };
    let (root, dirs) = written(&[Fake::new(0), wrong]);
    let sum = merged(root.path(), &dirs, Options::default());
    let about = sum.manifest.merged.as_ref().unwrap();
    assert!((about.overlap_ratio - 0.4998).abs() < 1e-6, "{}", about.overlap_ratio);
    assert!((rate(&sum) / 2_000.0 - 1.0).abs() < 0.01, "{}", rate(&sum));
}

#[test]
fn windows_without_common_time_are_refused() {
    let late = Fake { began_s: 12.5, ..Fake::new(1) };
    let (_root, dirs) = written(&[Fake::new(0), late]);
    let error = merge(&dirs, Options::default()).err().unwrap().to_string();
    assert!(error.contains("began 2.5 s after that of"), "{error}");
}

#[test]
fn containers_of_one_machine_share_its_disks_and_its_clock() {
    let one = Fake { host: "pod-0", boot: Some("node"), ..Fake::new(0) };
    let other = Fake { host: "pod-1", boot: Some("node"), ..Fake::new(1) };
    let (root, dirs) = written(&[one, other]);
    let sum = merged(root.path(), &dirs, Options::default());
    let (from, to) = (window(&sum).window_start_ns, window(&sum).window_end_ns);
    assert_eq!((from, to), (SECOND_NS, 11 * SECOND_NS), "one clock");
    let read = |probe: &str, object: &str, column: &str| {
        sum.series(probe).unwrap().delta(0, object, from, to, column)
    };
    assert_eq!(read("block", "vda", "read_ios"), Some(10_000), "one disk, counted once");
    assert_eq!(read("load", "", "completed_ops"), Some(20_000));
}

#[test]
fn hosts_of_one_name_are_not_one_machine() {
    let one = Fake { host: "localhost", boot: Some("a"), ..Fake::new(0) };
    let other = Fake { host: "localhost", boot: Some("b"), ..Fake::new(1) };
    let (root, dirs) = written(&[one, other]);
    let sum = merged(root.path(), &dirs, Options::default());
    assert_eq!(sum.manifest.merged.as_ref().unwrap().clock_bound_ns, Some(2_000_000));
    let (from, to) = (window(&sum).window_start_ns, window(&sum).window_end_ns);
    let reads = sum.series("block").unwrap().delta(0, "vda", from, to, "read_ios").unwrap();
    assert!(reads > 19_000, "two disks of one name: {reads}");
}

#[test]
fn the_verdicts_on_each_rank_are_kept() {
    let (root, dirs) = written(&[Fake::new(0), Fake::new(1)]);
    let verdict = |rule: &str, weight: Weight| Verdict {
        rule: rule.to_owned(),
        outcome: Outcome::Fail,
        weight,
        concerns: vec!["max_iops".to_owned()],
        evidence: String::new(),
        cause: String::new(),
        next: String::new(),
    };
    let both = [verdict("memory-backed", Weight::Condemns), verdict("unsteady", Weight::Warns)];
    change(&dirs[1], |manifest| manifest["verdicts"] = serde_json::to_value(both).unwrap());
    let sum = merged(root.path(), &dirs, Options::default());
    let ranks = &sum.manifest.merged.as_ref().unwrap().ranks;
    assert_eq!(ranks[1].condemned_by, ["memory-backed"]);
    assert_eq!(ranks[1].warned_by, ["unsteady"]);
    assert!(ranks[1].is_judged && !ranks[0].is_judged && ranks[0].condemned_by.is_empty());
}

#[test]
fn impossible_ranks_and_times_are_refused() {
    let (_root, dirs) = written(&[Fake::new(0), Fake::new(1)]);
    let text = std::fs::read(dirs[1].join("manifest.json")).unwrap();
    for (key, value, why) in [
        ("/rank/ranks", serde_json::json!(u32::MAX), "that it is rank 1 of 4294967295"),
        ("/rank/rank", 2.into(), "that it is rank 2 of 2"),
        ("/phases/0/end_ns", u64::MAX.into(), "are not in order"),
        ("/phases/0/window_end_ns", 0.into(), "are not in order"),
        ("/started_at", "1999-01-01T00:00:00Z".into(), "after that of"),
    ] {
        change(&dirs[1], |manifest| *manifest.pointer_mut(key).unwrap() = value);
        let error = merge(&dirs, Options::default()).err().unwrap().to_string();
        assert!(error.contains(why), "{key}: {error}");
        std::fs::write(dirs[1].join("manifest.json"), &text).unwrap();
    }
}

#[test]
fn a_rank_that_failed_early_does_not_stop_a_partial_merge() {
    let root = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = (0..3)
        .map(|rank| {
            let end = if rank == 0 { End::Running } else { End::Complete };
            Fake::new(rank).write(root.path(), 3, &end)
        })
        .collect();
    change(&dirs[0], |manifest| manifest["settings"] = serde_json::json!({}));
    let sum = merged(root.path(), &dirs, Options { partial: true, ..Options::default() });
    assert_eq!(sum.manifest.merged.as_ref().unwrap().ranks.len(), 2);
}

#[test]
fn a_rank_on_a_throttled_disk_is_an_outlier() {
    let mut fakes: Vec<Fake> = (0..4).map(Fake::new).collect();
    fakes[2].ops_per_s = 100;
    let (root, dirs) = written(&fakes);
    let sum = merged(root.path(), &dirs, Options::default());
    let ranks = &sum.manifest.merged.as_ref().unwrap().ranks;
    let outliers = ranks.iter().filter_map(|it| Some((it.rank, it.outlier_ratio?)));
    assert_eq!(outliers.collect::<Vec<_>>(), [(2, 0.1)]);
}

#[test]
fn ranks_of_different_loads_are_refused() {
    let (_root, dirs) = written(&[Fake::new(0), Fake::new(1)]);
    let path = dirs[1].join("manifest.json");
    let text = std::fs::read(&path).unwrap();
    for (key, value, why) in [
        ("/rank/plan", serde_json::json!("0000000000000000"), "its plan is not that of"),
        ("/rank/ranks", 3.into(), "its number of ranks is 3"),
        ("/settings/block_bytes", 4096.into(), "its setting block_bytes is 4096"),
        ("/tool_version", "0.2.0".into(), "its version is 0.2.0"),
        ("/verb", "watch".into(), "has no load"),
        ("/rank/rank", 0.into(), "rank 0 is also"),
    ] {
        change(&dirs[1], |manifest| *manifest.pointer_mut(key).unwrap() = value);
        let error = merge(&dirs, Options::default()).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
        std::fs::write(&path, &text).unwrap();
    }
    let twice = [dirs[0].clone(), dirs[0].clone()];
    let error = merge(&twice, Options::default()).err().unwrap();
    assert!(matches!(error, FleetError::Same { .. }), "{error}");
    let error = merge(&dirs[..1], Options::default()).err().unwrap();
    assert!(matches!(error, FleetError::TooFew { found: 1 }), "{error}");
    let nothing = tempfile::tempdir().unwrap();
    let error = merge(&[nothing.path().to_owned()], Options::default()).err().unwrap();
    assert!(matches!(error, FleetError::Record(_)), "what is wrong with it: {error}");
}

#[test]
fn a_missing_or_killed_rank_needs_consent() {
    let root = tempfile::tempdir().unwrap();
    let write = |rank, end: &End| Fake::new(rank).write(root.path(), 5, end);
    let mut dirs: Vec<PathBuf> = (0..3).map(|rank| write(rank, &End::Complete)).collect();
    dirs.push(write(3, &End::Running));
    let error = merge(&dirs, Options::default()).err().unwrap().to_string();
    assert!(error.contains("rank 4 has no recording here, and another rank"), "{error}");
    let sum = merged(root.path(), &dirs, Options { partial: true, ..Options::default() });
    let about = sum.manifest.merged.as_ref().unwrap();
    assert_eq!((about.ranks.len(), about.expected), (3, 5));
    let missing = ["rank 4 has no recording here", "rank 3 on db1 did not end"];
    assert_eq!(about.missing, missing);
}
