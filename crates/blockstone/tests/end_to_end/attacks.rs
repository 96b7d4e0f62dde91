//! Attacks from the position of the attacker: another user of the machine who owns a directory or a
//! role, or the author of a file name or a recording.

mod copying;
mod databases;
mod hostile;
mod hostile_schema;
mod orphans;
mod passwords;
mod servers;
mod sides;
mod sqlite;
mod swaps;
mod tls;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{Ran, blockstone_binary, require, run};

use super::bad_input::refused;
use super::{Place, names, phases, signal};

const STRANGER: u32 = 12_345;

/// Runs the command, and fails if it takes longer than `limit`.
#[track_caller]
pub fn within(limit: Duration, command: &mut Command) -> Ran {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let until = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{command:?} still runs after {limit:?}: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns a file below `dir` that contains `secret`, or has it in its name.
fn holds(dir: &Path, secret: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let found = if path.is_dir() {
            holds(&path, secret)
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            bytes.windows(secret.len()).any(|it| it == secret.as_bytes()).then(|| path.clone())
        };
        if found.is_some() || path.to_string_lossy().contains(secret) {
            return found.or(Some(path));
        }
    }
    None
}

#[test]
fn a_directory_of_recordings_that_others_rule_over_is_refused() {
    let place = Place::beside();
    fs::set_permissions(place.runs(), fs::Permissions::from_mode(0o777)).unwrap();
    let what = refused(&place, place.command("calibrate").arg(place.data()));
    assert!(what.contains("other users may write to it"), "{what}");
    fs::set_permissions(place.runs(), fs::Permissions::from_mode(0o1777)).unwrap();
    require!(Root);
    chown(place.runs(), Some(STRANGER), None).unwrap();
    for verb in ["calibrate", "run"] {
        let what = refused(&place, place.command(verb).arg(place.data()));
        assert!(what.contains("belongs to user 12345"), "{what}");
    }
    fs::write(place.file("file"), vec![7; 65_536]).unwrap();
    let out = place.scratch.path().join("out");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(STRANGER), None).unwrap();
    chown(place.runs(), Some(0), None).unwrap();
    for arguments in [&["--out"][..], &["--save"]] {
        let verb = if arguments[0] == "--out" { "calibrate" } else { "reduce" };
        let mut command = place.command(verb);
        command.args(arguments).arg(&out).arg(place.data());
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("belongs to user 12345"), "{ran:#?}");
        assert_eq!(names(&out), Vec::<String>::new());
    }
}

#[test]
fn whoever_replaces_a_recording_under_way_cannot_direct_it_elsewhere() {
    require!(Root);
    let place = Place::beside();
    // The parent directory belongs to the attacker, as that of a database belongs to its user.
    chown(place.scratch.path(), Some(STRANGER), None).unwrap();
    let out = place.scratch.path().join("out");
    let victim = place.runs().join("victim");
    fs::write(&victim, "the administrator's").unwrap();
    let mut command = Command::new(blockstone_binary());
    command.args(["calibrate", "--size", "64M", "--brief", "--out"]).arg(&out).arg(place.data());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while !out.join("manifest.json").exists() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }
    let moved = place.scratch.path().join("moved");
    fs::rename(&out, &moved).unwrap();
    fs::create_dir(&out).unwrap();
    for name in [".manifest.json.tmp", "manifest.json", ".report.html.tmp", "report.html"] {
        symlink(&victim, out.join(name)).unwrap();
    }
    symlink(place.runs(), out.join("series")).unwrap();
    chown(&out, Some(STRANGER), None).unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "the administrator's");
    assert_eq!(names(&place.runs()), ["victim"]);
    let manifest = fs::read_to_string(moved.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert!(phases(&manifest) > 3, "the recording went on where it was: {manifest:#}");
}

#[test]
fn recordings_are_for_their_owner_unless_they_are_shared() {
    let place = Place::beside();
    let modes = |share: &[&str]| {
        let mut command = place.command("watch");
        command.args(share).args(["--once", "--for", "1s", "--record"]);
        let dir = place.runs().join(if share.is_empty() { "own" } else { "shared" });
        let ran = run(command.arg(&dir).env("UMASK", "022"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        [dir.clone(), dir.join("manifest.json"), dir.join("series/host.parquet")]
            .map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777)
    };
    assert_eq!(modes(&[]), [0o700, 0o600, 0o600]);
    assert_eq!(modes(&["--share"]), [0o755, 0o644, 0o644]);
}

#[test]
fn what_a_terminal_would_obey_is_spelled_out() {
    let place = Place::beside();
    let name = "x\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}";
    let spelled = "x\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{9b}31m\\u{202e}";
    let fine = |ran: &Ran| {
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!ran.stdout.contains(obeyed) && !ran.stderr.contains(obeyed), "{ran:#?}");
    };
    let ran = run(place.command("calibrate").arg(place.file(name)));
    assert!(ran.stderr.contains(spelled), "{ran:#?}");
    fine(&ran);
    for arguments in [["report", name], ["compare", name], ["run", name], ["--color", name]] {
        fine(&run(Command::new(blockstone_binary()).args(arguments)));
    }
    // A recording from another user.
    let dir = place.runs().join("theirs");
    let ran = run(place.command("watch").args(["--once", "--for", "1s", "--record"]).arg(&dir));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let text = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["host"]["hostname"] = name.into();
    manifest["host"]["cpu_model"] = name.into();
    manifest["target"]["path"] = name.into();
    manifest["verb"] = name.into();
    for verb in ["watch", name] {
        manifest["verb"] = verb.into();
        fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
        for color in ["never", "auto"] {
            fine(&run(place.command("report").args(["--color", color]).arg(&dir)));
            fine(&run(place.command("runs").args(["--color", color])));
            fine(&run(place
                .command("watch")
                .args(["--color", color, "--once", "--replay"])
                .arg(&dir)));
        }
        fine(&run(place.command("report").arg("--json").arg(&dir)));
    }
}

#[test]
fn arguments_that_are_no_text_are_refused_or_measured() {
    let place = Place::beside();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for arguments in [&["calibrate", "--brief"][..], &["run"], &["watch", "--once", "--record"]] {
        let ran = run(Command::new(blockstone_binary())
            .current_dir(place.runs())
            .args(arguments)
            .arg(odd)
            .arg("--no-such-option"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    }
    let out = place.runs().join(odd);
    let ran = run(place.command("watch").args(["--once", "--for", "1s", "--record"]).arg(&out));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(out.join("manifest.json").exists());
}

#[test]
fn a_pipe_or_an_endless_file_in_a_recording_is_not_read() {
    let place = Place::beside();
    let limit = Duration::from_secs(10);
    let dir = place.runs().join("20260101-000000-run-abcdef");
    fs::create_dir(&dir).unwrap();
    let manifest = dir.join("manifest.json");
    let made = run(Command::new("mkfifo").arg(&manifest));
    assert_eq!(made.code, Some(0));
    for zero in [false, true] {
        if zero {
            fs::remove_file(&manifest).unwrap();
            symlink("/dev/zero", &manifest).unwrap();
        }
        let ran = within(limit, place.command("runs").arg("--json"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let ran = within(limit, place.command("report").arg(&dir));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("hint: "), "{ran:#?}");
    }
}

#[test]
fn a_damaged_plan_of_a_grid_is_refused_and_leads_nowhere_else() {
    let place = Place::beside();
    let (dir, elsewhere) = (place.runs().join("grid"), place.runs().join("elsewhere"));
    fs::create_dir(&dir).unwrap();
    let ran =
        run(place.command("watch").args(["--once", "--for", "1s", "--record"]).arg(&elsewhere));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let plan = |values: &str, recording: &str| {
        format!(
            r#"{{"schema":"blockstone.grid/1","axes":[{{"name":"update","values":["0"]}}],
            "cells":[{{"values":[{values}],"recordings":["{recording}"]}}]}}"#
        )
    };
    for damaged in ["{", "{}", &plan("", "a"), &plan(r#""0","1""#, "a")] {
        fs::write(dir.join("grid.json"), damaged).unwrap();
        let ran = run(place.command("report").arg(&dir));
        assert_eq!(ran.code, Some(2), "{damaged}: {ran:#?}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{ran:#?}");
    }
    for name in ["../elsewhere", "/etc", ".."] {
        fs::write(dir.join("grid.json"), plan(r#""0""#, name)).unwrap();
        let ran = run(place.command("report").arg("--json").arg(&dir));
        assert!(ran.stdout.contains("it is not beside the plan"), "{ran:#?}");
    }
}

/// Starts a watch that records, from a shell that first runs `before`.
fn started(place: &Place, before: &str, arguments: &str) -> (Child, PathBuf) {
    let dir = place.runs().join("watched");
    let script = format!(
        "{before}; exec {} watch --once --for 3s --record {} {arguments}",
        blockstone_binary().display(),
        dir.display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped());
    (shell.spawn().unwrap(), dir)
}

#[test]
fn a_hangup_that_was_ignored_stays_ignored() {
    let place = Place::beside();
    let (child, dir) = started(&place, "trap '' HUP", "--quiet");
    let until = Instant::now() + Duration::from_secs(30);
    while !dir.join("manifest.json").exists() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "HUP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["end"]["state"], "complete");
}

#[test]
fn a_limit_of_file_size_is_an_error_with_a_hint() {
    let place = Place::beside();
    let mut shell = Command::new("sh");
    let script = format!(
        "ulimit -f 64; exec {} calibrate --brief --size 64M {}",
        blockstone_binary().display(),
        place.data().display()
    );
    let ran = run(shell.args(["-c", &script]).env("BLOCKSTONE_RUNS_DIR", place.runs()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("hint: "), "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn a_run_that_its_memory_cannot_hold_is_refused() {
    let place = Place::beside();
    let what = refused(&place, place.command("run").args(["--cache", "900G"]).arg(place.data()));
    assert!(what.contains("of memory"), "{what}");
}

#[test]
fn a_standard_output_that_is_full_is_named() {
    let place = Place::beside();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(blockstone_binary())
        .args(["watch", "--once", "--for", "1s"])
        .current_dir(place.runs())
        .stdout(full)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said.contains("standard output") && said.contains("hint: "), "{said}");
    assert!(output.status.signal().is_none());
}
