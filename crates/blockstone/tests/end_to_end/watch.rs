//! `blockstone watch` as a user runs it: once, recorded, replayed, on a terminal, scraped, killed.

mod active_set;
mod charges;
mod csv;
mod database;
mod found;
mod import;
mod lines;
pub mod listen;
mod profile;
pub mod terminal;
mod who;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{
    Caps, DeviceSpec, FileSystem, LoopDevice, ScratchDir, blockstone_binary, require, run,
};
use serde_json::Value;

use super::{Place, Turn, copy_binary, keeps_to_its_schema, names, signal};
use terminal::Terminal;

const O_DIRECT: i32 = 0o40000;
/// Present as soon as the first segment of a recording is complete.
const FIRST_SEGMENT: &str = "series/watch.0001.parquet";

fn watch(arguments: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.arg("watch").args(arguments);
    command
}

/// A child that does not end on its own; killed when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_view_without_a_source_says_why_it_is_not_there() {
    let _turn = Turn::beside();
    let ran = run(&mut watch(&["--once", "--for", "200ms", "--view", "disks,snapper"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("snapper: no database was watched; --db names one."), "{ran:#?}");
    assert!(!ran.stdout.contains("disks: "), "{ran:#?}");
}

#[test]
fn one_look_gives_text_and_a_document_with_the_columns_of_a_recording() {
    let _turn = Turn::alone();
    for (option, columns, tables) in [
        (None, 80, &["Host", "Disks", "Processes by role", "more tables"][..]),
        (
            Some("--all"),
            120,
            &["Host", "Disks", "Processes by role", "Memory", "Blockstone itself"],
        ),
    ] {
        let mut command = watch(&["--once", "--interval", "200ms"]);
        let ran = run(command.args(option).env("COLUMNS", columns.to_string()));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        for text in tables {
            assert!(ran.stdout.contains(text), "{text} is not in {}", ran.stdout);
        }
        let lines = || ran.stdout.lines();
        assert!(lines().all(|line| line.chars().count() <= columns), "{}", ran.stdout);
        assert!(option.is_some() || lines().count() <= 40, "{}", ran.stdout);
    }

    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let ran = run(&mut watch(&["--record", dir, "--for", "2s", "--interval", "200ms"]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = run(&mut watch(&["--replay", dir, "--once", "--json"])).json();
    keeps_to_its_schema(&document);
    let narrowed = ["--replay", dir, "--once", "--json", "--where", "event=WALSync"];
    let narrowed = run(&mut watch(&narrowed)).json();
    keeps_to_its_schema(&narrowed);
    assert_eq!(narrowed["where"]["event"], "WALSync");
    let text = std::fs::read_to_string(Path::new(dir).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    for probe in manifest["probes"].as_array().unwrap() {
        let name = probe["probe"].as_str().unwrap();
        let objects = document["probes"][name].as_object().unwrap();
        for object in objects.values() {
            let columns = probe["columns"].as_array().unwrap();
            assert!(columns.iter().all(|c| !object[c["name"].as_str().unwrap()].is_null()
                || object.get(c["name"].as_str().unwrap()).is_some()));
        }
    }
    let part = run(Command::new(blockstone_binary())
        .args(["report", "--json", "--from", "400ms"])
        .args(["--to", "1s", dir]));
    let part = part.json();
    keeps_to_its_schema(&part);
    let page = run(Command::new(blockstone_binary()).args(["report", "--html", "-", dir]));
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.starts_with("<!DOCTYPE html>") && page.stdout.contains("</html>"));
    for part in ["id=\"host\"", "id=\"disks\"", "<svg", "Blockstone itself"] {
        assert!(page.stdout.contains(part), "{part}");
    }
    let compared = run(Command::new(blockstone_binary()).args(["compare", "--json", dir, dir]));
    let compared = compared.json();
    keeps_to_its_schema(&compared);
    let rows = compared["tables"]["rows"].as_array().unwrap();
    assert!(rows.len() > 50, "{compared:#}");
    assert!(rows.iter().all(|row| row["outcome"] == "not-established"), "{compared:#}");
    let length_ns = part["to_ns"].as_u64().unwrap() - part["from_ns"].as_u64().unwrap();
    assert!((390_000_000..810_000_000).contains(&length_ns), "{length_ns}");
}

#[test]
fn two_parts_of_one_recording_show_what_changed_between_them() {
    let _turn = Turn::alone();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("change");
    let dir = dir.to_str().unwrap();
    let script = "sleep 3; while :; do :; done";
    let mut busy = Command::new("sh");
    let _busy = Ended(busy.args(["-c", script, "blockstone-marked"]).spawn().unwrap());
    let marked = ["--group", "busy=blockstone-marked", "--interval", "100ms", "--no-bpf"];
    let ran = run(watch(&["--record", dir, "--for", "6s"]).args(marked));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let [before, after] = ["..2500ms", "3500ms.."].map(|part| format!("{dir}@{part}"));
    let compare =
        |arguments: &[&str]| run(Command::new(blockstone_binary()).arg("compare").args(arguments));
    let document = compare(&["--json", &before, &after]).json();
    keeps_to_its_schema(&document);
    let recordings = document["tables"]["recordings"].as_array().unwrap();
    let ns = |side: usize, key: &str| recordings[side][key].as_u64().unwrap();
    assert!(ns(0, "to_ns") < ns(1, "from_ns"), "{document:#}");
    let rows = document["tables"]["rows"].as_array().unwrap();
    let is_it = |row: &&Value| row["row"] == "busy" && row["figure"] == "cpu_share";
    let found = rows.iter().find(is_it).unwrap();
    assert_eq!(found["outcome"], "higher", "{found:#}");
    let text = compare(&[&before, &after]).stdout;
    assert!(text.contains("change@..2.5s") && text.contains("busy"), "{text}");
    let page = compare(&["--html", "-", &before, &after]).stdout;
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(">busy<"), "{text}");
    let overlapping = compare(&[&before, &format!("{dir}@2s..4s")]);
    assert!(overlapping.stderr.contains("overlap by"), "{overlapping:#?}");
    for (part, what) in [("@9s..9500ms", "fewer than two samples"), ("@x..", "hint: give the time")]
    {
        let refused = compare(&[&before, &format!("{dir}{part}")]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(what), "{refused:#?}");
    }
}

#[test]
fn disks_agree_with_iostat_on_the_same_load() {
    require!(Root, Loop, Iostat);
    let _turn = Turn::alone();
    let device =
        LoopDevice::create(DeviceSpec { size: Bytes::mib(64), ..DeviceSpec::default() }).unwrap();
    // On a busy host, one of the two may start observing after the load has begun.
    for left in (0..3).rev() {
        let (ours, theirs) = ours_and_iostat(&device);
        let reads = (ours["reads"], theirs["reads"]);
        println!("reads of ours and of iostat: {reads:?}");
        if left > 0 && (reads.0.round() < 3_000.0 || reads.1 < 2_970.0) {
            continue;
        }
        assert_eq!(reads.0.round() as u64, 3_000);
        for (what, theirs) in theirs {
            let ours = ours[what];
            // iostat prints two decimal digits.
            let off = (ours - theirs).abs();
            assert!(off <= 0.01 * theirs.max(1.0), "{what}: {ours} of ours, {theirs} of iostat");
        }
        return;
    }
}

/// Issues 3,000 reads and 1,000 writes of 8 KiB, and returns what we and iostat observe within 5 s.
fn ours_and_iostat(
    device: &LoopDevice,
) -> (BTreeMap<&'static str, f64>, BTreeMap<&'static str, f64>) {
    let name = device.device().file_name().unwrap().to_str().unwrap().to_owned();
    let iostat = Command::new("iostat")
        .args(["-x", "-d", "-y", "-o", "JSON", "5", "1", &name])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ours = watch(&["--once", "--json", "--for", "5s", "--interval", "1s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    let file = File::options().read(true).write(true).custom_flags(O_DIRECT).open(device.device());
    let file = file.unwrap();
    let mut memory = vec![7_u8; 3 << 13];
    let start = memory.as_ptr().align_offset(4096);
    for round in 0..4_000_u64 {
        let block = &mut memory[start..start + 8192];
        let offset = (round * 37 % 8_000) * 8192;
        if round % 4 == 0 {
            file.write_all_at(block, offset).unwrap();
        } else {
            file.read_exact_at(block, offset).unwrap();
        }
    }
    let ours = ours.wait_with_output().unwrap();
    let theirs = iostat.wait_with_output().unwrap();
    let ours: Value = serde_json::from_slice(&ours.stdout).unwrap();
    let theirs: Value = serde_json::from_slice(&theirs.stdout).unwrap();
    let theirs = &theirs["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    assert_eq!(theirs["disk_device"], name.as_str(), "{theirs:#}");
    let disks = ours["views"]["disks"].as_array().unwrap();
    let disk = disks.iter().find(|disk| disk["device"] == name.as_str()).unwrap();
    let seconds = (ours["to_ns"].as_f64().unwrap() - ours["from_ns"].as_f64().unwrap()) / 1e9;
    let our = |key: &str| disk[key].as_f64().unwrap_or(0.0);
    let their = |key: &str| theirs[key].as_f64().unwrap();
    (
        BTreeMap::from([
            ("reads", our("read_ios_per_s") * seconds),
            ("writes", our("write_ios_per_s") * seconds),
            ("bytes read", our("read_bytes_per_s") * seconds),
            ("bytes written", our("write_bytes_per_s") * seconds),
            ("bytes of a read", our("read_size_bytes")),
            ("ms of a read", our("read_await_ns") / 1e6),
        ]),
        BTreeMap::from([
            ("reads", their("r/s") * 5.0),
            ("writes", their("w/s") * 5.0),
            ("bytes read", their("rkB/s") * 5.0 * 1024.0),
            ("bytes written", their("wkB/s") * 5.0 * 1024.0),
            ("bytes of a read", their("rareq-sz") * 1024.0),
            ("ms of a read", their("r_await")),
        ]),
    )
}

#[test]
fn a_run_of_128_readers_is_128_active_sessions_also_on_a_terminal() {
    require!(Root, Loop, Blkio);
    let place = Place::new();
    // Slow enough that all of them wait all the time.
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(256),
        file_system: Some(FileSystem::Ext4),
        caps: Caps { read_iops: Some(2_000), ..Caps::default() },
    })
    .unwrap();
    let data = device.mount_point().unwrap();
    let mut command = place.within(device.command(blockstone_binary()), "run");
    command.args(["--json", "--readers", "128", "--scale", "1M", "--work-unit", "8"]);
    command.args(["--cache", "8M", "--run-time", "12s"]).arg(&data);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let event = "session/db file sequential read";
    let sessions_on = |text: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.starts_with(event))?;
        line[event.len()..].split_whitespace().next()?.parse().ok()
    };
    while !names(&place.runs()).iter().any(|run| place.runs().join(run).join("live.sock").exists())
    {
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut live = Terminal::start(
        place.command("watch").args(["--db", "run:last", "--view", "events"]),
        24,
        80,
    );
    live.until(|text| sessions_on(text).is_some_and(|count| (126.0..=130.0).contains(&count)));
    let ran = child.wait_with_output().unwrap();
    live.until(|text| text.contains("connect to the run"));
    live.keys("q");
    assert_eq!(live.end(), Some(0));
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{ran:#?}");
    let report = run(place.command("report").args(["--json", "last", "--from", "0s"]));
    let window: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let dir = window["recording"]["path"].as_str().unwrap().to_owned();
    keeps_to_its_schema(&report.json());
    assert!(!Path::new(&dir).join("live.sock").exists());
    samples_agree_with_the_clock(&place, &dir);

    let mut screen = Terminal::start(
        place.command("watch").args(["--replay", &dir, "--view", "events"]),
        24,
        80,
    );
    // From the end of the run back to its middle, over fifteen ticks.
    screen.until(|text| text.contains("replay"));
    screen.keys("{{{{{{{{{{++");
    let text = screen.until(|text| text.contains("over 1.") && text.contains(event));
    let sessions = sessions_on(&text).unwrap();
    assert!((126.0..=130.0).contains(&sessions), "{text}");
    // The distribution of its waits: 128 sessions share 2,000 reads per second, so each takes about
    // 64 ms.
    screen.keys("h");
    let text = screen.until(|text| text.contains("p99.9"));
    assert!(text.contains("events › session/db file") && text.contains("<67.1 ms"), "{text}");
    screen.keys("m");
    let text = screen.until(|text| text.contains("in each cell from"));
    assert!(text.contains("<67.1 ms"), "{text}");
    screen.keys("q");
    assert_eq!(screen.end(), Some(0));
}

/// Checks the window of a run of 128 sessions that only read.
fn samples_agree_with_the_clock(place: &Place, dir: &str) {
    let manifest = place.manifest().unwrap();
    let phases = manifest["phases"].as_array().unwrap();
    let window = phases.iter().find(|phase| phase["group"] == "workload").unwrap();
    let at = |key: &str| format!("{}ms", window[key].as_u64().unwrap() / 1_000_000);
    let [from, to] = [at("window_start_ns"), at("window_end_ns")];
    let part = ["--replay", dir, "--once", "--json", "--from", &from, "--to", &to];
    let document = run(&mut watch(&part)).json();
    let rows = |view: &str| document["views"][view].as_array().unwrap().clone();
    let reads = |view: &str| -> Vec<Value> {
        let rows = rows(view).into_iter();
        rows.filter(|row| row["event"] == "db file sequential read").collect()
    };
    let active = reads("active-sessions").pop().unwrap();
    let average = active["average_active_sessions"].as_f64().unwrap();
    assert!((120.0..=128.0).contains(&average), "{active:#}");
    assert_eq!(active["sessions"], 128.0, "{active:#}");
    let each = reads("session-waits");
    assert!(each.iter().all(|row| row["time_share"].as_f64().unwrap() > 0.8), "{each:#?}");
    assert_eq!(rows("sampled-sessions").len(), 128);
    let of_sessions = |view: &str, key: &str, key_of_name: &str| -> Vec<f64> {
        let rows = rows(view).into_iter();
        let sessions = rows.filter(|row| row[key_of_name] == "session");
        sessions.map(|row| row[key].as_f64().unwrap()).collect()
    };
    let counted = |key| of_sessions("snapper", key, "role");
    assert_eq!(counted("commits_per_s"), [0.0; 128]);
    assert!(counted("db_time_share").iter().all(|share| *share > 0.9));
    let sum: f64 = counted("read_ios_per_s").iter().sum();
    let all = of_sessions("database-io", "read_ios_per_s", "function")[0];
    assert!((0.9..=1.1).contains(&(sum / all)), "{sum} and {all}");
    let waits: f64 = each.iter().map(|row| row["waits_per_s"].as_f64().unwrap()).sum();
    assert!((0.9..=1.1).contains(&(waits / all)), "{waits} and {all}");
    for slice in rows("ash") {
        let bar = slice["bar"].as_str().unwrap();
        assert!(bar.len() >= 20 && bar.chars().all(|letter| "IC".contains(letter)), "{slice:#}");
    }
}

#[test]
fn several_intervals_are_printed_each_with_its_time() {
    let _turn = Turn::beside();
    let times = ["--once", "--times", "3", "--for", "400ms", "--interval", "200ms", "--no-bpf"];
    let text = run(watch(&times).args(["--view", "host"]));
    assert_eq!(text.code, Some(0), "{text:#?}");
    assert_eq!(text.stdout.matches("clock 2").count(), 3, "{}", text.stdout);
    let ran = run(watch(&times).args(["--json", "--view", "disks"]));
    let documents = serde_json::Deserializer::from_str(&ran.stdout).into_iter::<Value>();
    let documents: Vec<Value> = documents.map(Result::unwrap).collect();
    let edges = |key: &str| documents.iter().map(|it| it[key].clone()).collect::<Vec<_>>();
    let (from, to) = (edges("from"), edges("to"));
    assert_eq!(from.len(), 3, "{}", ran.stdout);
    assert_eq!(from[1..], to[..2], "each begins where the one before ends");
    for refused in [&["--times", "2"][..], &["--once", "--times", "0"]] {
        assert_eq!(run(&mut watch(refused)).code, Some(2), "{refused:?}");
    }
}

#[test]
fn a_live_terminal_shows_the_host_and_leaves_it_as_it_was() {
    let _turn = Turn::beside();
    let mut screen = Terminal::start(&mut watch(&["--interval", "200ms"]), 24, 80);
    let text = screen.until(|text| text.contains("live") && text.contains("runnable"));
    assert!(text.lines().count() <= 24, "{text}");
    screen.keys("?");
    screen.until(|text| text.contains("drill down into"));
    screen.keys(" 3");
    screen.until(|text| text.contains("r/s") || text.contains("w/s"));
    // Ctrl-C is a key like any other while keys are read one by one.
    screen.keys("\x03");
    assert_eq!(screen.end(), Some(0));
    let mut narrow = Terminal::start(&mut watch(&["--interval", "200ms"]), 5, 20);
    narrow.until(|text| text.contains("too small"));
    narrow.keys("q");
    assert_eq!(narrow.end(), Some(0));
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let _turn = Turn::beside();
    let mut dumb = watch(&["--interval", "200ms", "--for", "1s", "--no-bpf"]);
    let mut screen = Terminal::start(dumb.env("TERM", "dumb"), 24, 120);
    screen.until(|text| text.contains("#time "));
    assert_eq!(screen.end(), Some(0));
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let _turn = Turn::beside();
    let mut screen = Terminal::start(&mut watch(&["--interval", "200ms"]), 24, 80);
    screen.until(|text| text.contains("live") && text.contains("runnable"));
    screen.hang_up();
    assert!(screen.end().is_some(), "it ended by itself");
}

#[test]
fn a_watch_that_is_killed_leaves_what_it_wrote_and_an_interrupted_one_all() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let start = |name: &str| {
        let mut command = watch(&["--interval", "100ms", "--record", &dir(name)]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut killed, mut interrupted) = (start("killed"), start("interrupted"));
    // The first segment is written after ten seconds.
    let patience = Instant::now() + Duration::from_mins(1);
    while !["killed", "interrupted"]
        .iter()
        .all(|name| Path::new(&dir(name)).join(FIRST_SEGMENT).exists())
    {
        assert!(Instant::now() < patience, "no segment: {:?}", names(Path::new(&dir("killed"))));
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&killed, "KILL");
    signal(&interrupted, "INT");
    killed.wait().unwrap();
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    let seconds = |name: &str| {
        let ran = run(&mut watch(&["--replay", &dir(name), "--once", "--json"]));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let document = ran.json();
        (document["to_ns"].as_f64().unwrap() - document["from_ns"].as_f64().unwrap()) / 1e9
    };
    let (killed, interrupted) = (seconds("killed"), seconds("interrupted"));
    assert!(killed > 9.0, "{killed}");
    assert!(interrupted > killed + 1.0, "{interrupted} s of one and {killed} s of the other");
}

#[test]
fn a_user_without_privileges_sees_what_it_may_and_is_told_the_rest() {
    require!(Root);
    let _turn = Turn::beside();
    // A copy that this user may execute, wherever the binary is.
    let scratch = ScratchDir::in_memory().or_else(|_| ScratchDir::on_disk()).unwrap();
    let binary = scratch.path().join("blockstone");
    copy_binary(&binary);
    let modes = run(Command::new("chmod").args(["-R", "a+rx"]).arg(scratch.path()));
    assert_eq!(modes.code, Some(0));
    let pid = std::process::id().to_string();
    let ran = run(Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["watch", "--once", "--json", "--interval", "200ms", "--pid", &pid]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    let processes = document["views"]["processes"].as_array().unwrap();
    // Other processes and disks come and go: those that stayed have figures.
    let is_other = |row: &&Value| row["role"] != "blockstone/blockstone";
    let said = |row: &Value| row["read_bytes_per_s"]["unmeasured"] == "not permitted";
    let others: Vec<&Value> = processes.iter().filter(is_other).collect();
    assert!(others.iter().any(|row| said(row)), "{others:#?}");
    assert!(others.iter().any(|row| row["cpu_share"].is_number()), "{others:#?}");
    let disks = document["views"]["disks"].as_array().unwrap();
    assert!(disks.iter().any(|disk| disk["read_ios_per_s"].is_number()), "{disks:#?}");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let occupied = scratch.path().join("occupied");
    std::fs::create_dir_all(occupied.join("x")).unwrap();
    let occupied = occupied.to_str().unwrap();
    for (arguments, what) in [
        (&["--once", "--pid", "4194304"][..], "no such process"),
        (&["--listen", "0.0.0.0:0"], "other hosts could connect"),
        (&["--listen", "[::]:0", "--allow-remote"], "--listen-token-file"),
        (&["--listen-token-file", "token"], "--listen"),
        (&["--listen", "127.0.0.1:0", "--listen-token-file", "/nowhere"], "No such file"),
        (&["--listen", "127.0.0.1:0", "--listen-token-file", "/dev/zero"], "not a regular file"),
        (&["--listen", "127.0.0.1:0", "--listen-host", "db1:80"], "without port"),
        (&["--interval", "1ms"], "too coarse"),
        (&["--group", "x=("], "unclosed group"),
        (&["--once", "--view", "nothing"], "nothing"),
        (&["--once", "--where", "event"], "COLUMN=VALUE"),
        (&["--once", "--where", "color=red"], "have no `color`"),
        (&["--once", "--where", "instance=x"], "instance=x: no database has this name"),
        (&["--where", "event=WALSync"], "--once"),
        (&["--json"], "--json needs --once"),
        (&["--csv=disks"], "--csv needs --once"),
        (&["--html", "page.html"], "--html needs --once"),
        (&["--once", "--where", "event=x", "--view", "disks"], "not made of session samples"),
        (&["--record", occupied], "not empty"),
        (&["--replay", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["--replay", "x", "--db", "postgres://x"], "cannot be used with"),
        (&["--replay", "x", "--interval", "2s"], "cannot be used with"),
        (&["--once", "--sample", "1s"], "--db"),
        (&["--who", "--view", "disks"], "cannot be used with"),
        (&["--once", "--db", "oracle://x"], "no monitor for"),
        (&["--once", "--db", "postgres://nobody@127.0.0.1:1/x"], "127.0.0.1"),
        (&["--lines", "--once"], "cannot be used with"),
        (&["--lines", "--rows", "0"], "at least one line"),
        (&["--once", "--rows", "2"], "cannot be used with"),
        (&["--lines", "--view", "host,active-sessions"], "nothing was read of session"),
    ] {
        let ran = run(&mut watch(arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(lines[0].contains(what), "{arguments:?}: {lines:?}");
        assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{arguments:?}: {lines:?}");
        assert!(ran.stdout.is_empty(), "{ran:#?}");
    }
    assert_eq!(names(Path::new(occupied)), ["x"]);
}
