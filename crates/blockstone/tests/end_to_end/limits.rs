//! Limits of the shell that started it: ulimit(1).

use std::process::Command;

use blockstone_testkit::{blockstone_binary, run};

use super::Place;

/// The program with these options under `ulimit LIMIT VALUE`.
fn limited(place: &Place, limit: &str, value: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} {value} && exec \"$0\" \"$@\"")]);
    command.arg(blockstone_binary()).args(arguments).env("HOME", place.scratch.path());
    command
}

/// The least memory in KiB with which the kernel loads the program, to 500 KiB.
fn least_to_start(place: &Place) -> u32 {
    let (mut too_little, mut enough) = (1_000, 1_000_000);
    while enough - too_little > 500 {
        let middle = u32::midpoint(too_little, enough);
        let starts = run(&mut limited(place, "-v", middle, &["--version"])).code == Some(0);
        *if starts { &mut enough } else { &mut too_little } = middle;
    }
    enough
}

#[test]
fn without_memory_it_says_so_in_one_line() {
    let place = Place::beside();
    let least = least_to_start(&place);
    // From too little for a thread to enough.
    for (refused, kibibytes) in (least..least + 80_000).step_by(1_000).enumerate() {
        let watch = ["watch", "--once", "--for", "200ms", "--no-bpf"];
        let ran = run(&mut limited(&place, "-v", kibibytes, &watch));
        if ran.code == Some(0) {
            assert!(refused > 0, "{kibibytes} KiB, the least to start with, are enough");
            return;
        }
        assert_eq!(ran.code, Some(2), "{kibibytes} KiB: {ran:#?}");
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert!(
            matches!(lines.as_slice(), [.., what, hint]
                if what.starts_with("error: ") && hint.contains("ulimit -v")),
            "{kibibytes} KiB: {ran:#?}"
        );
        assert!(!ran.stderr.contains("panicked"), "{kibibytes} KiB: {ran:#?}");
    }
    panic!("{least} KiB and 80,000 more are not enough");
}

#[test]
fn without_descriptors_nothing_is_called_a_matter_of_the_version() {
    let place = Place::beside();
    let watch = ["watch", "--once", "--for", "200ms", "--no-bpf", "--view", "host"];
    let ran = run(&mut limited(&place, "-n", 12, &watch));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("n/e, no evidence: read /proc/stat: Too many"), "{ran:#?}");
    assert!(!ran.stdout.contains("n/v"), "{ran:#?}");
}
