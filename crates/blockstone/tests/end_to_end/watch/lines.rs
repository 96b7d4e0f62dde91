//! `blockstone watch --lines`, and without a terminal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{ScratchDir, run};
use jiff::Timestamp;

use super::{Ended, Turn, names, watch};

const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the lines that are not headings.
fn data(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Returns the cells of each line after the time.
fn cells(text: &str) -> Vec<Vec<&str>> {
    data(text).into_iter().map(|line| line.split_whitespace().skip(1).collect()).collect()
}

fn time(line: &str) -> Timestamp {
    let text = line.split_whitespace().next().unwrap();
    text.parse().unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Reads `lines` lines and closes the pipe, like head(1). Returns the program and its exit code, if
/// it ended on its own.
fn reads(mut child: Child, lines: usize) -> (Ended, Option<i32>) {
    let out = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(out.lines().take(lines).map_while(Result::ok).count(), lines);
    let started = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if started.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    (Ended(child), code)
}

#[test]
fn each_line_begins_with_its_time_and_has_a_cell_for_each_heading() {
    let _turn = Turn::alone();
    let started = Timestamp::now();
    // Without a terminal no option is needed.
    for arguments in [&["--lines"][..], &[]] {
        let times = ["--for", "1s", "--interval", "200ms", "--no-bpf"];
        let ran = run(watch(arguments).args(times));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let headings = ran.stdout.lines().nth(1).unwrap();
        assert!(headings.starts_with("#time ") && headings.contains("r_await"), "{headings}");
        let lines = data(&ran.stdout);
        assert_eq!(lines.len(), 5, "{}", ran.stdout);
        assert!(lines.is_sorted_by_key(|line| time(line)), "{}", ran.stdout);
        let (first, last) = (time(lines[0]), time(lines[4]));
        // The time is written to the millisecond.
        assert!(first.as_millisecond() >= started.as_millisecond(), "{}", ran.stdout);
        assert!(last <= Timestamp::now());
        for line in &lines {
            let count = |line: &str| line.split_whitespace().count();
            assert_eq!(count(line), count(headings), "{}", ran.stdout);
        }
    }
}

#[test]
fn a_program_whose_reader_left_ends_but_not_its_recording() {
    let _turn = Turn::beside();
    let endless = ["--lines", "--interval", "100ms", "--no-bpf"];
    let child = watch(&endless).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(reads(child, 4).1, Some(0), "it went on, or failed");

    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let mut recorded = watch(&endless);
    recorded.args(["--for", "2s", "--record"]).arg(&dir);
    let child = recorded.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(reads(child, 3).1, Some(0));
    let whole = run(&mut watch(&["--replay", dir.to_str().unwrap(), "--lines"]));
    // On a busy machine, ticks may be missed, but not whole seconds of them.
    let lines = data(&whole.stdout);
    let lasted = time(lines[lines.len() - 1]).duration_since(time(lines[0]));
    assert!(lasted.as_millis() >= 1_500, "{lasted:?}: {}", whole.stdout);
}

#[test]
fn a_replay_prints_the_lines_that_were_seen_live() {
    let _turn = Turn::alone();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let views = ["--lines", "--view", "host,disks,memory", "--rows", "2", "--interval", "200ms"];
    let live = run(watch(&views).args(["--for", "2s", "--no-bpf", "--record", dir]));
    assert_eq!(live.code, Some(0), "{live:#?}");
    assert!(names(Path::new(dir)).contains(&"manifest.json".to_owned()));
    let replayed = run(watch(&views[..5]).args(["--replay", dir]));
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
    assert_eq!(cells(&live.stdout), cells(&replayed.stdout));
    let times = data(&live.stdout).into_iter().zip(data(&replayed.stdout));
    for (live, replayed) in times {
        let apart = time(live).as_millisecond() - time(replayed).as_millisecond();
        assert!(apart.abs() <= 1_000, "{live} {replayed}");
    }
    let part = run(watch(&views[..5]).args(["--replay", dir, "--from", "400ms", "--to", "1s"]));
    let part = cells(&part.stdout);
    assert!(!part.is_empty() && part.len() < cells(&live.stdout).len(), "{part:?}");
}
