//! `blockstone noise`: alongside a run in progress, interrupted, and refused.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use blockstone_testkit::run;
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema, names, phases, signal};

#[test]
fn noise_beside_a_run_alternates_and_compares_what_the_sessions_got() {
    let place = Place::new();
    let mut load = place.command("run");
    let small = ["--scale", "8M", "--cache", "4M", "--run-time", "25s", "--update-pct", "20"];
    let loaded = |manifest: &Value| phases(manifest) > 0;
    let mut load = place.start(load.args(small).arg(place.data()), loaded);
    let tells = |run: &String| place.runs().join(run).join("live.sock").exists();
    while !names(&place.runs()).iter().any(tells) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut noise = place.command("noise");
    noise.args(["--json", "--sync", "--area", "2M", "--db", "run:last"]);
    noise.args(["--phase", "2s", "--for", "8s", "--write-size", "64K"]);
    let ran = run(noise.arg(place.data()));
    load.kill().unwrap();
    load.wait().unwrap();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!((&document["quiet_phases"], &document["noisy_phases"]), (&2.into(), &2.into()));
    let noise = &document["tables"]["noise-writers"][0];
    assert_eq!((&noise["writers"], &noise["mode"]), (&2.into(), &"redo".into()));
    assert_eq!(noise["write_bytes"], 64 << 10);
    assert!(document["figures"]["write_mbps"]["value"].as_f64().unwrap() > 0.0);
    let effect = document["tables"]["effect"].as_array().unwrap();
    for figure in ["Operations/s", "Commits/s", "Single-block read"] {
        let row = effect.iter().find(|row| row["figure"] == figure);
        let row = row.unwrap_or_else(|| panic!("{figure}: {noise:#}"));
        assert!(row["quiet"]["value"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(row["outcome"].is_string() && row["ratio"].is_object(), "{row:#}");
    }
    // Looked up by name: the load may have begun in the same second.
    let recording = document["recording"]["path"].as_str().unwrap();
    let manifest = std::fs::read(Path::new(recording).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let groups: Vec<&Value> =
        manifest["phases"].as_array().unwrap().iter().map(|phase| &phase["group"]).collect();
    assert_eq!(groups, ["quiet", "noise", "quiet", "noise"]);
    let shown = run(place.command("report").arg(recording));
    assert!(shown.stdout.contains("Effect of the noise on others"), "{shown:#?}");
    // A path is as long as it is.
    let mut lines = shown.stdout.lines().filter(|line| !line.starts_with("recording"));
    assert!(lines.all(|line| line.chars().count() <= 100), "{shown:#?}");
}

#[test]
fn progress_is_lines_where_no_terminal_is_and_objects_for_programs() {
    let place = Place::beside();
    let made = |how: &str, time: &str| {
        let mut command = place.command("noise");
        command.args([
            "--area",
            "2M",
            "--writers",
            "1",
            "--sync",
            "--for",
            time,
            "--progress",
            how,
        ]);
        let ran = run(command.arg(place.data()));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stderr.lines().filter(|line| line.contains("left")).map(str::to_owned).collect()
    };
    let lines: Vec<String> = made("auto", "11s");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(" % · ") && lines[0].contains(" s left · "), "{lines:?}");
    let lines: Vec<String> = made("json", "4s");
    let objects: Vec<Value> = lines.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let done: Vec<f64> = objects.iter().filter_map(|it| it["done"].as_f64()).collect();
    assert!(done.len() >= 2 && done.is_sorted() && done.iter().all(|it| *it <= 1.0), "{lines:?}");
    assert!(objects[0]["what"].is_string() && objects[0]["rates"].is_array(), "{lines:?}");
    assert_eq!(made("none", "2s"), Vec::<String>::new());
}

#[test]
fn an_interrupted_noise_leaves_a_result_and_no_file() {
    let place = Place::beside();
    let mut command = place.command("noise");
    command.args(["--buffered", "--area", "2M", "--writers", "1"]).arg(place.data());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    while place.left_in_data().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(4));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("buffered, unflushed") && text.contains("MB/s"), "{text}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn noise_that_would_destroy_or_cannot_be_is_refused() {
    let place = Place::beside();
    let file = place.file("precious");
    std::fs::write(&file, b"precious").unwrap();
    let data = place.data().display().to_string();
    let file_name = file.display().to_string();
    let cases: [(&[&str], &str); 10] = [
        (&[], "neither a path nor a time"),
        (&[&file_name], "no file of others is overwritten"),
        (&[&data, "--destroy", "/dev/null"], "not one of the paths"),
        (&[&data, "--writers", "0"], "one for each path"),
        (&[&data, "--writers", "65"], "at most 64"),
        (&[&data, "--area", "1000K"], "whole MiB"),
        (&[&data, "--write-size", "3K"], "power of two"),
        (&[&data, "--phase", "1s"], "too short to settle"),
        (&[&data, "--phase", "10s", "--for", "15s"], "less than one without noise"),
        (&[&data, "--area", "100T", "--for", "1s"], "are free"),
    ];
    for (arguments, expected) in cases {
        let what = refused(&place, place.command("noise").args(arguments));
        assert!(what.contains(expected), "{arguments:?}: {what}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}
