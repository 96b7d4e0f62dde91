//! Limits of the shell that started the program: ulimit(1).

use std::process::Command;

use blockstone_testkit::{blockstone_binary, run};

use super::Place;

/// Runs the program with these options under `ulimit LIMIT VALUE`.
fn limited(place: &Place, limit: &str, value: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} {value} && exec \"$0\" \"$@\"")]);
    command.arg(blockstone_binary()).args(arguments).env("HOME", place.scratch.path());
    command
}

const WATCH: [&str; 5] = ["watch", "--once", "--for", "200ms", "--no-bpf"];

/// Finds the least memory in KiB, to within `step`, that `is_enough`; the first bound must not be
/// enough, the second must be.
fn least(
    (mut too_little, mut enough): (u32, u32),
    step: u32,
    is_enough: impl Fn(u32) -> bool,
) -> u32 {
    while enough - too_little > step {
        let middle = u32::midpoint(too_little, enough);
        *if is_enough(middle) { &mut enough } else { &mut too_little } = middle;
    }
    enough
}

/// Whether a watch runs with this memory; if not, it must say so in one line.
fn watches_with(place: &Place, kibibytes: u32) -> bool {
    let ran = run(&mut limited(place, "-v", kibibytes, &WATCH));
    assert!(!ran.stderr.contains("panicked"), "{kibibytes} KiB: {ran:#?}");
    if ran.code == Some(0) {
        return true;
    }
    assert_eq!(ran.code, Some(2), "{kibibytes} KiB: {ran:#?}");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert!(
        matches!(lines.as_slice(), [.., what, hint]
            if what.starts_with("error: ") && hint.contains("ulimit -v")),
        "{kibibytes} KiB: {ran:#?}"
    );
    false
}

#[test]
fn without_memory_it_says_so_in_one_line() {
    let place = Place::beside();
    let ran = |arguments, kibibytes| run(&mut limited(&place, "-v", kibibytes, arguments));
    let starts = least((1_000, 1_000_000), 500, |k| ran(&["--version"], k).code == Some(0));
    // From too little for a thread up to enough.
    let enough = (starts..starts + 80_000).step_by(1_000).find(|&k| watches_with(&place, k));
    assert!(enough.is_some_and(|enough| enough > starts), "{starts} KiB to start, {enough:?}");

    // A thread that has its stack needs a few KiB more before it runs.
    let has_thread = |k| !ran(&WATCH, k).stderr.contains("start a thread");
    let mut all = (starts..enough.unwrap()).step_by(1_000);
    let last = all.rfind(|&k| !has_thread(k)).expect("too little for a thread");
    let thread = least((last, last + 1_000), 4, has_thread);
    for kibibytes in (thread - 40..thread + 60).step_by(4) {
        watches_with(&place, kibibytes);
    }
}

#[test]
fn without_descriptors_nothing_is_called_a_matter_of_the_version() {
    let place = Place::beside();
    let watch = [&WATCH[..], &["--view", "host"]].concat();
    let ran = run(&mut limited(&place, "-n", 12, &watch));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("n/e, no evidence: read /proc/stat: Too many"), "{ran:#?}");
    assert!(!ran.stdout.contains("n/v"), "{ran:#?}");
}
