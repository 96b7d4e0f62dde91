//! Complete runs on small data: everything that judging relies on is in the recording.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use blockstone_base::hint::Hint as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_base::column::Kind;
use blockstone_base::database;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_measure::{Live, Observer};
use blockstone_record::manifest::{End, Group, Stop};
use blockstone_record::{Recording, RunDir};
use blockstone_run::{
    DiskSetting, FormOptions, Noise, Profile, RunError, Settings, StorageOptions, prepare,
};
use blockstone_servers::{DatabaseOptions, Redundancy};
use blockstone_testkit::require;
use blockstone_workload::Wanted;
use blockstone_workload::noise::NoiseMode;

struct Silent;
impl Observer for Silent {}

/// Requests the end once the sessions run.
#[derive(Default)]
struct Impatient(bool);
impl Observer for Impatient {
    fn phase(&mut self, label: &str) {
        self.0 |= label == "connect";
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.0.then_some("SIGINT")
    }
}

fn settings(scratch: &Path, target: &str) -> Settings {
    let data = scratch.join("data");
    std::fs::create_dir_all(&data).unwrap();
    Settings {
        disks: vec![DiskSetting { path: data, failure_group: None }],
        destroy: Vec::new(),
        target: target.to_owned(),
        target_settings: Vec::new(),
        programs: None,
        form: FormOptions::default(),
        wanted: Wanted {
            schemas: Some(2),
            threads: Some(2),
            rows_per_schema: "8M".parse().ok(),
            update_pct: Some(20),
            scan_pct: Some(5),
            run_time_ns: Some(Nanos::millis(1500)),
            ..Wanted::default()
        },
        database: DatabaseOptions { cache_bytes: Bytes::mib(4), ..DatabaseOptions::default() },
        storage: StorageOptions::default(),
        seed: 42,
        rank: None,
        argv: vec!["test".into()],
        recording: RunDir { path: scratch.join("run"), id: "test".into() },
    }
}

fn scratch() -> tempfile::TempDir {
    // The build directory is on a real file system; /tmp may be in memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Creates a directory that a server of another user may enter.
fn open_scratch() -> tempfile::TempDir {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new().permissions(open).tempdir_in("/var/tmp").unwrap()
}

fn left(settings: &Settings) -> usize {
    std::fs::read_dir(&settings.disks[0].path).unwrap().count()
}

fn recorded(settings: &Settings, observer: &mut dyn Observer) -> Recording {
    let dir = prepare(settings).unwrap().run(observer).unwrap();
    assert_eq!(left(settings), 0, "the files are gone");
    Recording::open(&dir).unwrap()
}

/// Removes a disk while the sessions run, and restores it a second later.
struct Puller {
    disk: PathBuf,
    pulled: Option<Instant>,
    returned: bool,
    notes: Vec<String>,
}

impl Puller {
    fn file(&self) -> PathBuf {
        std::fs::read_dir(&self.disk).unwrap().next().unwrap().unwrap().path()
    }
}

impl Observer for Puller {
    fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    fn tick(&mut self, live: &Live<'_>) {
        let file = self.file();
        let elsewhere = file.with_extension("away");
        match self.pulled {
            None if live.label == "run" => {
                std::fs::rename(&file, elsewhere).unwrap();
                self.pulled = Some(Instant::now());
            }
            Some(pulled) if !self.returned && pulled.elapsed() > Duration::from_secs(1) => {
                std::fs::rename(&file, file.with_extension("tmp")).unwrap();
                self.returned = true;
            }
            _ => {}
        }
    }
}

#[test]
fn a_failure_group_may_go_and_come_back_during_a_run() {
    let scratch = scratch();
    let mut settings = settings(scratch.path(), "instance");
    let second = scratch.path().join("second");
    std::fs::create_dir(&second).unwrap();
    settings.disks.push(DiskSetting { path: second.clone(), failure_group: None });
    settings.database.redundancy = Redundancy::Normal;
    settings.wanted.run_time_ns = Some(Nanos::millis(8_000));
    let mut puller = Puller { disk: second, pulled: None, returned: false, notes: Vec::new() };
    let recording = recorded(&settings, &mut puller);
    let phase = &recording.manifest.phases[1];
    assert_eq!(recording.manifest.end, End::Complete, "{:?}", puller.notes);
    assert_eq!((phase.stop, &phase.first_error), (Stop::TimeLimit, &None));
    let noted = |what: &str| puller.notes.iter().any(|note| note.contains(what));
    assert!(noted("is offline") && noted("resynced and verified"), "{:?}", puller.notes);
    let events = recording.events().unwrap();
    let storage = events.iter().filter(|event| event.kind == "storage").count();
    assert_eq!(storage, 2, "{events:?}");
    let disks = recording.series("disk").unwrap();
    let window = (phase.window_start_ns, phase.window_end_ns);
    let of = |disk: &DiskSetting, column| {
        let name = disk.path.display().to_string();
        disks.delta(1, &name, window.0, window.1, column).unwrap()
    };
    assert_eq!(of(&settings.disks[0], "offline_ns"), 0);
    let away_ns = of(&settings.disks[1], "offline_ns");
    assert!((500_000_000..8_000_000_000).contains(&away_ns), "{away_ns}");
}

/// Returns settings for a run on the files in the directories of `made`.
fn reusing(made: &Settings, recording: &str) -> Settings {
    let file = |disk: &DiskSetting| {
        let kept = std::fs::read_dir(&disk.path).unwrap().next().unwrap().unwrap().path();
        DiskSetting { path: kept, failure_group: None }
    };
    let path = made.recording.path.with_file_name(recording);
    Settings {
        disks: made.disks.iter().map(file).collect(),
        wanted: Wanted {
            threads: Some(2),
            update_pct: Some(20),
            run_time_ns: made.wanted.run_time_ns,
            ..Wanted::default()
        },
        storage: StorageOptions::default(),
        seed: 7,
        recording: RunDir { path, id: recording.into() },
        ..made.clone()
    }
}

#[test]
fn what_a_run_kept_is_used_again_when_it_is_what_is_asked_for() {
    let scratch = scratch();
    let mut made = settings(scratch.path(), "instance");
    made.disks.push(DiskSetting { path: scratch.path().join("second"), failure_group: None });
    std::fs::create_dir(&made.disks[1].path).unwrap();
    made.database.redundancy = Redundancy::Normal;
    made.storage.keep = true;
    made.wanted.run_time_ns = Some(Nanos::millis(500));
    prepare(&made).unwrap().run(&mut Silent).unwrap();

    let again = reusing(&made, "again");
    // In a different order from their creation.
    let again = Settings { disks: again.disks.iter().rev().cloned().collect(), ..again };
    let dir = prepare(&again).unwrap().run(&mut Silent).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let manifest = &recording.manifest;
    assert_eq!(manifest.end, End::Complete);
    assert_eq!(manifest.settings["reused"], true);
    assert_eq!((&manifest.settings["schemas"], manifest.seed), (&2.into(), 42));
    let load = &manifest.phases[0];
    let disks = recording.series("disk").unwrap();
    for disk in &again.disks {
        assert!(disk.path.exists(), "what was kept stays");
        let name = disk.path.display().to_string();
        let of = |column| disks.delta(0, &name, load.start_ns, load.end_ns, column);
        assert!(of("write_bytes").unwrap_or(0) < 1 << 20, "nothing was loaded");
    }

    let refused = |change: fn(&mut Settings)| {
        let mut settings = reusing(&made, "refused");
        change(&mut settings);
        prepare(&settings).map(drop).unwrap_err().to_string()
    };
    let error = refused(|settings| settings.wanted.rows_per_schema = "4M".parse().ok());
    assert!(error.contains("made with --scale 1024, not 512"), "{error}");
    let error = refused(|settings| settings.database.redundancy = Redundancy::External);
    assert!(error.contains("--redundancy normal"), "{error}");
    let error = refused(|settings| settings.wanted.schemas = Some(3));
    assert!(error.contains("--schemas 2"), "{error}");
    let error = refused(|settings| settings.wanted.seed = Some(43));
    assert!(error.contains("--seed 42"), "{error}");
    let error = refused(|settings| {
        let plain = settings.recording.path.with_file_name("plain");
        std::fs::write(&plain, vec![7; 1 << 16]).unwrap();
        settings.disks = vec![DiskSetting { path: plain, failure_group: None }];
    });
    assert!(error.contains("no file is overwritten"), "{error}");
}

const TARGETS: [&str; 2] = ["instance", "null"];

#[test]
fn the_window_has_its_edges_in_every_series() {
    for target in TARGETS {
        let scratch = scratch();
        let recording = recorded(&settings(scratch.path(), target), &mut Silent);
        let manifest = &recording.manifest;
        assert_eq!(manifest.end, End::Complete);
        let groups: Vec<Group> = manifest.phases.iter().map(|phase| phase.group).collect();
        assert_eq!(groups, [Group::Load, Group::Workload]);
        let phase = &manifest.phases[1];
        let length_ns = phase.window_end_ns - phase.window_start_ns;
        assert!((1_500_000_000..2_500_000_000).contains(&length_ns), "{length_ns}");
        assert_eq!(phase.stop, Stop::TimeLimit);
        for info in &manifest.probes {
            let probe = info.probe.as_str();
            let series = recording.series(probe).unwrap();
            // Columns that the machine does not count have no edges.
            let mut columns = info.columns.iter().filter(|column| column.unmeasured.is_none());
            let Some(column) = columns.find(|column| column.kind != Kind::State) else { continue };
            let column = column.name.clone();
            for object in series.objects(1) {
                for edge_ns in [phase.window_start_ns, phase.window_end_ns] {
                    let value = series.value_at(1, object, edge_ns, &column);
                    assert!(value.is_some(), "{target}: {probe} {object} at {edge_ns}");
                }
            }
        }
    }
}

#[test]
fn counters_rows_and_histograms_agree() {
    for target in TARGETS {
        let scratch = scratch();
        let recording = recorded(&settings(scratch.path(), target), &mut Silent);
        let phase = &recording.manifest.phases[1];
        let operations = recording.series("operation").unwrap();
        let delta = |object: &str, column: &str| {
            let (from_ns, to_ns) = (phase.window_start_ns, phase.window_end_ns);
            operations.delta(1, object, from_ns, to_ns, column).unwrap()
        };
        let [selects, updates, scans] =
            ["select", "update", "scan"].map(|object| delta(object, "completed_ops"));
        let all = selects + updates + scans;
        assert!(all > 100, "{target}: {all}");
        let share = updates as f64 / all as f64;
        assert!((share - 0.2).abs() < 0.01, "{target}: {share} update");
        let share = scans as f64 / (selects + scans) as f64;
        assert!((share - 0.05).abs() < 0.01, "{target}: {share} of the selects scan");
        assert_eq!(delta("select", "rows"), selects * 64, "64 rows are 64, not 63");
        assert_eq!(delta("update", "commits"), updates);
        let rows = recording.histograms().unwrap();
        let windowed = rows.iter().filter(|row| row.windowed && row.role == "update");
        let latencies: u64 = windowed.map(|row| row.histogram.count()).sum();
        // Counters and latencies are read one after the other, while the sessions keep running.
        let most = 8 + updates / 10;
        assert!(latencies.abs_diff(updates) <= most, "{target}: {latencies} of {updates}");
    }
}

/// Returns settings for a small matrix of two sizes and two numbers of sessions.
fn matrix(scratch: &Path) -> Settings {
    let mut settings = settings(scratch, "instance");
    let run_time_ns = Some(Nanos::millis(500));
    settings.wanted = Wanted { scan_rows: "16M".parse().ok(), run_time_ns, ..Wanted::default() };
    settings.form = FormOptions {
        profile: Profile::Scan,
        scan_multiblock: Some(vec![4, 16]),
        scan_parallel: Some(vec![1, 3]),
        ..FormOptions::default()
    };
    settings
}

#[test]
fn a_matrix_has_a_phase_a_point_and_the_latency_of_every_read() {
    let scratch = scratch();
    let recording = recorded(&matrix(scratch.path()), &mut Silent);
    let manifest = &recording.manifest;
    assert_eq!(manifest.end, End::Complete);
    let labels: Vec<&str> = manifest.phases.iter().map(|phase| phase.label.as_str()).collect();
    assert_eq!(labels, ["load", "scan/m4p1", "scan/m16p1", "scan/m4p3", "scan/m16p3"]);
    let roles = recording.series("role").unwrap();
    for (index, phase) in manifest.phases.iter().enumerate().skip(1) {
        assert_eq!((phase.group, phase.stop), (Group::Scan, Stop::TimeLimit));
        let load = phase.load.as_ref().unwrap();
        let (from_ns, to_ns) = (phase.window_start_ns, phase.window_end_ns);
        let delta = |column| roles.delta(index as i32, "session", from_ns, to_ns, column).unwrap();
        let (ios, bytes) = (delta("read_ios"), delta("read_bytes"));
        assert!(ios > 10, "{}: {ios}", phase.label);
        // A part of the table is a whole number of reads of either size.
        assert_eq!(bytes, ios * load.block_bytes, "{}", phase.label);
        let rows = recording.histograms().unwrap();
        let here = rows.iter().filter(|row| row.phase == index as i32 && row.windowed);
        let reads: u64 = here
            .filter(|row| row.role == database::DIRECT_READ)
            .map(|row| row.histogram.count())
            .sum();
        assert!(reads.abs_diff(ios) <= 8 + ios / 10, "{}: {reads} of {ios}", phase.label);
    }
    let files = &manifest.disk_files;
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].map.hole_bytes, files[0].map.unwritten_bytes), (0, 0), "{files:?}");
    assert!(files[0].sample.as_ref().is_some_and(|sample| sample.zero_bytes == 0));
}

fn noise(writers: u32) -> FormOptions {
    FormOptions { noise: Some(Noise { mode: NoiseMode::Redo, writers }), ..FormOptions::default() }
}

#[test]
fn noise_has_a_window_of_its_own_beside_the_same_sessions() {
    let scratch = scratch();
    let settings = Settings { form: noise(2), ..settings(scratch.path(), "instance") };
    let recording = recorded(&settings, &mut Silent);
    let manifest = &recording.manifest;
    assert_eq!(manifest.end, End::Complete);
    let labels: Vec<&str> = manifest.phases.iter().map(|phase| phase.label.as_str()).collect();
    assert_eq!(labels, ["load", "quiet", "noisy"]);
    let noisy = &manifest.phases[2];
    assert!(manifest.phases[1].background.is_none());
    assert_eq!(noisy.background.as_ref().unwrap().workers, 2);
    let (from_ns, to_ns) = (noisy.window_start_ns, noisy.window_end_ns);
    let load = recording.series("load").unwrap();
    assert!(load.objects(1).is_empty(), "the first window is quiet");
    let written = |column| load.delta(2, "background", from_ns, to_ns, column).unwrap();
    let (ops, bytes) = (written("completed_ops"), written("completed_bytes"));
    assert!(ops > 10 && bytes == ops * (128 << 10), "{ops} writes, {bytes} bytes");
    let operations = recording.series("operation").unwrap();
    for phase in 1..=2 {
        let at = &manifest.phases[phase as usize];
        let (from_ns, to_ns) = (at.window_start_ns, at.window_end_ns);
        let delta = operations.delta(phase, "select", from_ns, to_ns, "completed_ops").unwrap();
        assert!(delta > 0, "{}: the sessions go on", at.label);
    }
    let rows = recording.histograms().unwrap();
    let background = rows.iter().filter(|row| row.role == "background");
    let seen: Vec<i32> = background.map(|row| row.phase).collect();
    assert!(!seen.is_empty() && seen.iter().all(|&phase| phase == 2), "{seen:?}");
}

#[test]
fn an_interrupted_matrix_or_noise_keeps_what_was_measured() {
    let scratch = scratch();
    let recording = recorded(&matrix(scratch.path()), &mut Impatient::default());
    let signal = "SIGINT".to_owned();
    assert_eq!(recording.manifest.end, End::Interrupted { signal: signal.clone() });
    let scratch = self::scratch();
    let settings = Settings { form: noise(1), ..settings(scratch.path(), "instance") };
    let recording = recorded(&settings, &mut Impatient::default());
    assert_eq!(recording.manifest.end, End::Interrupted { signal });
}

#[test]
fn loops_end_a_run_by_themselves() {
    let scratch = scratch();
    let mut settings = settings(scratch.path(), "null");
    settings.wanted.loops = Some(200_000);
    let recording = recorded(&settings, &mut Silent);
    let phase = &recording.manifest.phases[1];
    assert_eq!(phase.stop, Stop::WorkDone);
    let operations = recording.series("operation").unwrap();
    let done = |object| {
        let rows = operations.track(1, object, 0, u64::MAX / 2, "completed_ops");
        rows.last().unwrap().1
    };
    assert_eq!(done("select") + done("update") + done("scan"), 4 * 200_000);
}

#[test]
fn an_interruption_is_recorded_and_leaves_nothing_behind() {
    for target in TARGETS {
        let scratch = scratch();
        let settings = settings(scratch.path(), target);
        let recording = recorded(&settings, &mut Impatient::default());
        let signal = "SIGINT".to_owned();
        assert_eq!(recording.manifest.end, End::Interrupted { signal }, "{target}");
    }
}

/// Returns the planned operations in the manifest, and those sent: operations and rows of each
/// kind.
fn sent(seed: u64, target: &str) -> (String, Vec<[u64; 2]>) {
    sent_of(seed, target, Profile::Slob, &["select", "update", "scan"])
}

fn sent_of(seed: u64, target: &str, profile: Profile, kinds: &[&str]) -> (String, Vec<[u64; 2]>) {
    let scratch = open_scratch();
    let mut settings = Settings { seed, ..settings(scratch.path(), target) };
    settings.form.profile = profile;
    settings.wanted.loops = Some(40);
    let recording = recorded(&settings, &mut Silent);
    let series = recording.series("operation").unwrap();
    let last = |object, column| {
        let track = series.track(1, object, 0, u64::MAX / 2, column);
        track.last().map_or(0, |&(_, value)| value)
    };
    let done = kinds.iter().map(|object| ["completed_ops", "rows"].map(|name| last(object, name)));
    let checksum = recording.manifest.settings["schedule_checksum"].as_str().unwrap().to_owned();
    (checksum, done.collect())
}

#[test]
fn the_same_seed_sends_the_same_blocks_again_and_to_every_target() {
    let first = sent(1, "null");
    assert_eq!(first.1.iter().map(|[operations, _]| operations).sum::<u64>(), 4 * 40);
    for target in TARGETS {
        for _ in 0..2 {
            assert_eq!(sent(1, target), first, "{target}");
        }
        assert_ne!(sent(2, target).0, first.0, "{target}: another seed, other blocks");
    }
}

#[test]
fn the_same_seed_visits_the_same_rows_in_every_database() {
    require!(Root, Postgres, Mariadb);
    let first = sent(1, "null");
    for target in ["sqlite:.", "postgres:scratch", "mariadb:scratch"] {
        assert_eq!(sent(1, target), first, "{target}");
        assert_ne!(sent(2, target).0, first.0, "{target}: another seed, other blocks");
    }
}

/// Like [`sent`], for transactions whose rows do not depend on orders of others, which are created
/// and deleted.
fn transacted(target: &str) -> (String, Vec<[u64; 2]>) {
    sent_of(1, target, Profile::Oltp, &["new-order", "payment", "stock-level"])
}

#[test]
fn the_same_seed_sends_the_same_transactions_to_every_target() {
    require!(Root, Postgres, Mariadb);
    let first = transacted("null");
    assert!(first.1.iter().all(|[operations, _]| *operations > 0), "{first:?}");
    for target in ["instance", "sqlite:.", "postgres:scratch", "mariadb:scratch"] {
        assert_eq!(transacted(target), first, "{target}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    type Change = fn(&mut Settings);
    let cases: &[(Change, &str)] = &[
        (|s| s.target = "oracle".to_owned(), "unknown target"),
        (|s| s.disks.clear(), "no disk is named"),
        (|s| s.disks[0].path = "/nowhere".into(), "/nowhere"),
        (|s| s.destroy.push("/dev/null".into()), "not one of the disks"),
        (|s| s.wanted.run_time_ns = Some(Nanos(0)), "no time"),
        (|s| s.wanted.rows_per_schema = "63".parse().ok(), "the schema has only 63"),
        (|s| s.wanted.update_pct = Some(101), "percentage"),
        (|s| s.form = noise(0), "noise of 0 writers"),
        (|s| s.form = noise(65), "1 to 64"),
        (
            |s| s.form = FormOptions { noise_write_bytes: Some(Bytes(5000)), ..noise(1) },
            "power of two from 4K to 1M",
        ),
        (
            |s| s.form = FormOptions { noise_area_bytes: Some(Bytes::kib(1500)), ..noise(1) },
            "whole MiB",
        ),
        (|s| s.form.profile = Profile::Scan, "scan null: this target has no rows"),
    ];
    for (change, expected) in cases {
        let scratch = scratch();
        let mut settings = settings(scratch.path(), "null");
        let data = settings.disks[0].path.clone();
        change(&mut settings);
        let error = prepare(&settings).unwrap_err().told();
        assert!(error.contains(expected) && error.contains("\nhint: "), "{error}");
        assert_eq!(std::fs::read_dir(data).unwrap().count(), 0);
        assert!(!settings.recording.path.exists());
    }
}

#[test]
fn a_file_is_no_disk() {
    let scratch = scratch();
    let mut settings = settings(scratch.path(), "null");
    let file = scratch.path().join("foreign.dat");
    std::fs::write(&file, b"precious").unwrap();
    settings.disks[0].path.clone_from(&file);
    assert!(matches!(prepare(&settings), Err(RunError::NotADisk { .. })));
    assert_eq!(std::fs::read(file).unwrap(), b"precious");
}
