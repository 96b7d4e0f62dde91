//! `blockstone run` as a user runs it: on directories and devices, refused, interrupted, killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, require, run};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, failed_rules, names, phases, signal};

const SMALL: [&str; 6] = ["--scale", "8M", "--run-time", "2s", "--cache", "8M"];

/// A small run with `--json`.
fn small(place: &Place) -> Command {
    let mut command = place.command("run");
    command.arg("--json").args(SMALL);
    command
}

/// Starts a long run and waits until its sessions are working.
pub(super) fn start(place: &Place, path: &Path) -> Child {
    let mut command = place.command("run");
    // More data than cache, and no writes: a write would undo the truncation of the loop device.
    command.args(["--scale", "8M", "--cache", "2M", "--update-pct", "0", "--run-time", "60s"]);
    let child = place.start(command.arg(path), |manifest| phases(manifest) > 0);
    // Clients that follow the run find its socket once the files have been examined; all later
    // reads are those of sessions.
    wait_until(|| {
        names(&place.runs())
            .pop()
            .is_some_and(|run| place.runs().join(run).join("live.sock").exists())
    });
    let looked_at = read_bytes(&child);
    wait_until(|| read_bytes(&child) > looked_at + (1 << 20));
    child
}

fn wait_until(is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < patience, "the sessions do not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the bytes that the kernel charges to `child` for reads from storage.
fn read_bytes(child: &Child) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn a_run_on_several_directories_leaves_a_recording_and_nothing_else() {
    let place = Place::beside();
    let dirs = ["a", "b", "c"].map(|name| place.file(name));
    for dir in &dirs {
        std::fs::create_dir(dir).unwrap();
    }
    let page = place.file("page.html");
    let command = &mut small(&place);
    let ran = run(command.args(["--redundancy", "high", "--html"]).arg(&page).args(&dirs));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let manifest = place.manifest().unwrap();
    assert_eq!(manifest["end"]["state"], "complete");
    assert_eq!(manifest["settings"]["disks"].as_array().unwrap().len(), 3);
    // Wherever the recording is named, it is named after all of them.
    let all = dirs.each_ref().map(|dir| dir.display().to_string()).join(", ");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains(&format!("<title>Blockstone run · {}", all.replace('/', "&#x2f;"))));
    let report = run(place.command("report").arg("last")).stdout;
    let headline = report.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    assert_eq!(headline, format!("{all}:"));
    assert_eq!(
        run(place.command("runs").arg("--json")).json()["tables"]["recordings"][0]["target"],
        all
    );
    for dir in &dirs {
        assert_eq!(names(dir), Vec::<String>::new());
    }
}

#[test]
fn kept_files_stay() {
    let place = Place::beside();
    let ran = run(small(&place).arg("--keep").arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let left = place.left_in_data();
    assert!(left.len() == 1 && left[0].ends_with("-disk0.dat"), "{left:?}");
}

/// Returns the command for a run of updates on a file that an earlier run kept.
fn on_kept(place: &Place, kept: &Path, arguments: &[&str]) -> Command {
    let mut command = place.command("run");
    command.args(["--cache", "8M", "--update-pct", "100"]).args(arguments).arg(kept);
    command
}

/// Keeps the file of a run, and kills a second run that updates rows of it.
fn keep_and_kill(place: &Place) -> PathBuf {
    let ran = run(small(place).arg("--keep").arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let kept = place.data().join(&place.left_in_data()[0]);
    let mut again = on_kept(place, &kept, &["--run-time", "60s"]);
    let mut child = place.start(&mut again, |manifest| {
        manifest["settings"]["reused"] == true && phases(manifest) > 0
    });
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, "KILL");
    child.wait().unwrap();
    kept
}

#[test]
fn kept_files_are_used_again_also_after_a_run_on_them_was_killed() {
    let place = Place::beside();
    let kept = keep_and_kill(&place);
    let again = |arguments: &[&str]| on_kept(&place, &kept, arguments);
    let ran = run(&mut again(&["--run-time", "1s", "--json"]));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(ran.stderr.contains("recovered the files of an earlier run"), "{ran:#?}");
    assert_eq!(place.left_in_data().len(), 1, "the kept file stays, and no other");
    let what = run(&mut again(&["--scale", "4M"]));
    assert_eq!(what.code, Some(2));
    assert!(what.stderr.contains("made with --scale 1024"), "{what:#?}");
}

/// Flips a bit in the second-to-last chunk of redo in the file of an instance: a chunk may be as
/// large as half the log buffer, and earlier ones may be before the checkpoint.
fn damage_redo(file: &Path) {
    const BLOCK: usize = 4096;
    let mut bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let blocks = || (0..bytes.len()).step_by(BLOCK);
    let data = blocks().find(|at| bytes[*at..].starts_with(b"bstnblk1")).unwrap();
    let magic = u64::from_le_bytes(*b"bstnredo") ^ word(data + 40);
    // Redo blocks by the position of their chunk.
    let chunks: BTreeMap<u64, usize> =
        blocks().filter(|at| word(*at) == magic).map(|at| (word(at + 16), at)).collect();
    let at = *chunks.values().rev().nth(1).unwrap();
    bytes[at + 100] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn redo_that_was_damaged_is_refused_unless_the_loss_is_accepted() {
    let place = Place::beside();
    let ran = run(small(&place).args(["--keep", "--accept-loss"]).arg(place.data()));
    assert_eq!(ran.code, Some(2), "there is nothing to lose: {ran:#?}");
    let kept = keep_and_kill(&place);
    let again = |arguments: &[&str]| on_kept(&place, &kept, arguments);
    damage_redo(&kept);
    let ran = run(&mut again(&["--run-time", "1s"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("is damaged, and intact redo with"), "{ran:#?}");
    assert!(ran.stderr.contains("--accept-loss"), "{ran:#?}");
    let ran = run(&mut again(&["--run-time", "1s", "--accept-loss"]));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(ran.stderr.contains("lost all commits of the earlier run behind"), "{ran:#?}");
    let ran = run(&mut again(&["--run-time", "1s"]));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(!ran.stderr.contains("lost all commits"), "{ran:#?}");
}

#[test]
fn a_mirrored_device_that_fails_costs_no_error() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = || {
        LoopDevice::create(DeviceSpec {
            size: Bytes::mib(512),
            file_system: Some(FileSystem::Ext4),
            ..DeviceSpec::default()
        })
        .unwrap()
    };
    let (whole, failing) = (device(), device());
    let mounts = [&whole, &failing].map(|device| device.mount_point().unwrap());
    let mut command = place.command("run");
    command.args(["--scale", "8M", "--cache", "2M", "--redundancy", "normal", "--run-time", "6s"]);
    let mut child = place.start(command.args(&mounts), |manifest| phases(manifest) > 0);
    std::thread::sleep(Duration::from_secs(4));
    failing.fail_beyond(Bytes::mib(64)).unwrap();
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    let manifest = place.manifest().unwrap();
    assert_eq!(manifest["end"]["state"], "complete");
    assert!(manifest["phases"][1]["first_error"].is_null(), "{manifest}");
    let ran = run(place.command("report").args(["--json", "last"]));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(failed_rules(&document).contains(&"degraded".to_owned()), "{document}");
}

#[test]
fn a_device_is_used_when_named_twice_and_is_empty_afterwards() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec { size: Bytes::mib(256), ..DeviceSpec::default() });
    let device = device.unwrap();
    let what = refused(&place, place.command("run").args(SMALL).arg(device.device()));
    assert!(what.contains("would destroy"), "{what}");
    let twice = || {
        let mut command = small(&place);
        command.arg(device.device()).arg("--destroy").arg(device.device());
        command
    };
    // The backing file of a device without a file system holds random data.
    let what = refused(&place, &mut twice());
    assert!(what.contains("not empty"), "{what}");
    let wiped = run(Command::new("blkdiscard").arg("-z").arg(device.device()));
    assert_eq!(wiped.code, Some(0), "{wiped:#?}");
    for _ in 0..2 {
        let ran = run(&mut twice());
        assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = Place::beside();
    let data = place.data();
    let cases: &[(&[&str], &str)] = &[
        (&["--scale", "63"], "the schema has only 63"),
        (&["--scale", "80Q"], "80Q"),
        (&["--scale", "900T"], "are free"),
        (&["--sessions", "12288", "--scale", "8M"], "a cache of 16384 blocks serves 2048"),
        (&["--sessions", "7"], "7 sessions over 4 schemas"),
        (&["--cache", "100K"], "a cache of 100 KiB"),
        (&["--block-size", "12K"], "12 KiB"),
        (&["--redundancy", "normal"], "normal"),
        (&["--redundancy", "twice"], "twice"),
        (&["--allocation-unit", "3M"], "3 MiB"),
        (&["--database-writers", "99"], "99 database writers"),
        (&["--update-pct", "101"], "101"),
        (&["--update-pct", "half"], "half"),
        (&["--hotspot", "8M"], "8M@16M/3"),
        (&["--hotspot", "8M@1G/3", "--scale", "8M"], "hot range"),
        (&["--think", "1s"], "100ms..500ms/10"),
        (&["--think", "1s..2s/3", "--rate", "5"], "cannot be used with"),
        (&["--readers", "4", "--update-pct", "50"], "cannot be used with"),
        (&["--scan-size", "8M"], "no select scans it"),
        (&["--update-work-unit", "4", "--update-pct", "0"], "no operation updates"),
        (&["--threads", "4", "--sessions", "8"], "cannot be used with"),
        (&["--loops", "0"], "--loops to 0"),
        (&["--run-time", "0s"], "no time"),
        (&["--run-time", "30"], "30"),
        (&["--obfuscate", "2"], "0 to 1"),
        (&["--failure-group", "a"], "NAME=PATH"),
        (&["--destroy", "/dev/null"], "not one of the disks"),
        (&["--conf", "/nowhere/slob.conf"], "/nowhere/slob.conf"),
        (&["--require", "flux-capacitor"], "no such capability"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, place.command("run").args(*arguments).arg(&data));
        assert!(what.contains(expected), "{arguments:?}: {what}");
    }
    std::fs::write(place.file("somebody.dat"), vec![7; 65536]).unwrap();
    let what = refused(&place, place.command("run").arg(place.file("somebody.dat")));
    assert!(what.contains("no file is overwritten"), "{what}");
    let what = refused(&place, place.command("run").arg("--out").arg(&data).arg(&data));
    assert!(what.contains("directory under test"), "{what}");
}

#[test]
fn settings_of_slob_are_taken_and_what_has_no_counterpart_is_named() {
    let place = Place::beside();
    let conf = place.scratch.path().join("slob.conf");
    let text = "UPDATE_PCT=30\nSCALE=8M\nRUN_TIME=1\nTHREADS_PER_SCHEMA=3\nWORK_UNIT=16\n\
                DATABASE_STATISTICS_TYPE=awr\n";
    std::fs::write(&conf, text).unwrap();
    let mut command = place.command("run");
    command.arg("--conf").arg(&conf).args(["--schemas", "2", "--work-unit", "32", "--json"]);
    let ran = run(command.arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(ran.stderr.contains("DATABASE_STATISTICS_TYPE=awr has no counterpart"), "{ran:#?}");
    let settings = &place.manifest().unwrap()["settings"];
    assert_eq!(settings["update_pct"], 30);
    assert_eq!(settings["sessions"], 6);
    assert_eq!(settings["work_unit"], 32, "the command line goes before the file");
    assert_eq!(settings["run_time_ns"], 1_000_000_000);
}

#[test]
fn a_signal_closes_the_recording_and_removes_the_files() {
    for name in ["INT", "TERM"] {
        let place = Place::beside();
        let mut child = start(&place, &place.data());
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(place.left_in_data(), Vec::<String>::new(), "no file is left");
        let manifest = place.manifest().unwrap();
        assert_eq!(manifest["end"]["signal"], format!("SIG{name}"));
        assert_eq!(manifest["phases"][1]["stop"], "interrupted");
    }
}

#[test]
fn a_killed_run_is_readable_and_the_next_removes_its_file() {
    let place = Place::beside();
    let mut child = start(&place, &place.data());
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(place.left_in_data().len(), 1, "a killed run cannot remove its file");
    // A file written this very moment could be that of a run that is just starting.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(place.manifest().unwrap()["end"]["state"], "running", "it never ended");
    let ran = run(small(&place).arg(place.data()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new(), "the next run cleans up");
}

#[test]
fn a_device_that_fails_fails_the_run_with_what_was_measured() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(512),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    })
    .unwrap();
    let mut child = start(&place, &device.mount_point().unwrap());
    device.fail_beyond(Bytes::mib(1)).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let manifest = place.manifest().unwrap();
    assert_eq!(manifest["end"]["state"], "failed", "{}", manifest["end"]);
    assert_eq!(manifest["phases"][1]["stop"], "failed");
}

#[test]
fn a_snapshot_on_a_full_file_system_fails_the_run_and_the_kept_file_opens_once_there_is_room() {
    require!(Root, Loop, Xfs);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::gib(1),
        file_system: Some(FileSystem::Xfs),
        ..DeviceSpec::default()
    })
    .unwrap();
    let mount = device.mount_point().unwrap();
    let ran = run(small(&place).arg("--keep").arg(&mount));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let kept = names(&mount).into_iter().find(|name| name.ends_with("-disk0.dat")).unwrap();
    let kept = mount.join(kept);
    let mut command = place.command("run");
    command.args(["--cache", "8M", "--update-pct", "100", "--run-time", "60s"]).arg(&kept);
    let mut child = place.start(&mut command, |manifest| {
        manifest["settings"]["reused"] == true && phases(manifest) > 0
    });
    device.fill(Bytes::mib(8)).unwrap();
    // From then on, every first write to a shared extent needs new space, and there is hardly any
    // left.
    let snapshot = mount.join("snapshot");
    let copied = run(Command::new("cp").arg("--reflink=always").args([&kept, &snapshot]));
    assert_eq!(copied.code, Some(0), "{copied:#?}");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let manifest = place.manifest().unwrap();
    assert_eq!(manifest["end"]["state"], "failed", "{}", manifest["end"]);
    let error = manifest["end"]["error"].as_str().unwrap();
    assert!(error.contains("No space left on device"), "{error}");
    for made in ["snapshot", "filler"] {
        std::fs::remove_file(mount.join(made)).unwrap();
    }
    let mut command = place.command("run");
    let ran = run(command.args(["--cache", "8M", "--run-time", "1s"]).arg(&kept));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(ran.stderr.contains("recovered the files of an earlier run"), "{ran:#?}");
}

/// Returns the share of the database's claimed reads that the kernel charged.
fn charged(document: &Value) -> f64 {
    let ledger = &document["tables"]["ledger"];
    let reads = ledger.as_array().unwrap().iter().find(|row| row["what"] == "reads").unwrap();
    let bytes = |key: &str| reads[key].as_f64().unwrap_or_else(|| panic!("{key}: {ledger:#}"));
    bytes("process") / bytes("claimed")
}

#[test]
fn databases_with_a_bounded_page_cache_read_from_the_storage() {
    require!(MemoryGroup, Postgres);
    let groups = || -> Vec<String> {
        let mut find = Command::new("find");
        find.args(["/sys/fs/cgroup", "-name", "blockstone-page-cache-*"]);
        run(&mut find).stdout.lines().map(str::to_owned).collect()
    };
    let place = Place::new();
    let data = place.data();
    let sqlite = format!("sqlite:{}", data.display());
    let bound = ["--page-cache", "16M"];
    let rest = ["--schemas=1", "--sessions=4", "--cache=8M", "--run-time=3s", "--json"];
    // SQLite bypasses the page cache. PostgreSQL has 16 MiB of it for 384 MiB of rows: it serves
    // one read in 24, and those of the upper pages of the index, which each session reads first.
    let cases = [
        (sqlite.as_str(), ["--scale=64M", "--update-pct=10"], 0.95),
        ("postgres:scratch", ["--scale=384M", "--update-pct=0"], 0.88),
    ];
    for (target, data_and_load, least) in cases {
        let mut command = place.command("run");
        command.args(["--target", target]).args(bound).args(data_and_load).args(rest);
        if target != sqlite {
            command.arg(&data);
        }
        let ran = run(&mut command);
        let document = ran.json();
        assert!(!failed_rules(&document).contains(&"memory-test".to_owned()), "{document:#}");
        assert!(
            charged(&document) > least,
            "{target}: {} {:#}",
            charged(&document),
            document["tables"]["ledger"]
        );
        assert_eq!(document["settings"]["page_cache_bytes"], 16 << 20, "{document:#}");
        assert_eq!(document["settings"]["io"] == "direct", target == sqlite, "{document:#}");
        let direct = document["verdicts"].as_array().unwrap().iter();
        let direct = direct.clone().find(|it| it["rule"] == "not-direct").unwrap();
        assert_eq!(direct["outcome"] == "pass", target == sqlite, "{direct:#}");
        // The page cache of its files was examined, and not a share of the machine's memory.
        let verdicts = document["verdicts"].as_array().unwrap();
        let judged = verdicts.iter().find(|it| it["rule"] == "double-caching").unwrap();
        let evidence = judged["evidence"].as_str().unwrap();
        let family = target.split(':').next().unwrap();
        let passed = judged["outcome"] == "pass" && evidence.starts_with(&format!("{family}: "));
        assert!(passed || evidence.contains("cachestat"), "{judged:#}");
        assert_eq!(groups(), Vec::<String>::new(), "the group goes with the run");
        assert_eq!(place.left_in_data(), Vec::<String>::new());
    }
    let unbounded =
        run(place.command("run").args(["--target", &sqlite]).args(cases[0].1).args(rest));
    assert_eq!(unbounded.code, Some(3));
    assert!(failed_rules(&unbounded.json()).contains(&"memory-test".to_owned()));
}

#[test]
fn a_bound_of_the_page_cache_that_changes_nothing_is_refused() {
    let place = Place::beside();
    let sqlite = format!("sqlite:{}", place.data().display());
    for (target, size, expected) in [
        ("instance", "64M", "it does not read through the page cache"),
        (sqlite.as_str(), "8M", "8 MiB are too little"),
    ] {
        let mut command = place.command("run");
        let what = refused(&place, command.args(["--target", target, "--page-cache", size]));
        assert!(what.contains(expected), "{what}");
    }
}
