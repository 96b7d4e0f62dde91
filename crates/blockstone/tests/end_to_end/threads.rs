//! A user who may not start any more threads.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use blockstone_testkit::{require, run};

use super::{Place, attacks::within, copy_binary};

/// Longer than any of these takes on a busy machine; a hang takes forever.
const LIMIT: Duration = Duration::from_mins(3);

/// Returns the id of a user who has no other processes.
fn user() -> u32 {
    1_000_000 + std::process::id()
}

/// The program as that user, limited to this number of processes and threads.
fn limited(place: &Place, threads: u32, arguments: &[&str]) -> Command {
    let user = user();
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]);
    command.args(["prlimit", &format!("--nproc={threads}")]);
    command.arg(place.runs().join("blockstone")).args(arguments);
    command.current_dir(place.data()).env("HOME", place.data());
    command
}

fn prepare(place: &Place) {
    copy_binary(&place.runs().join("blockstone"));
    let data = place.data();
    for path in [place.scratch.path(), &place.runs()] {
        assert_eq!(run(Command::new("chmod").arg("a+rx").arg(path)).code, Some(0));
    }
    for name in ["one", "two", "three"] {
        fs::write(data.join(name), vec![7; 3 << 20]).unwrap();
    }
    fs::write(data.join("iostat"), "").unwrap();
    let list = [data.clone(), data.join("one"), data.join("two"), data.join("three")];
    for path in &list {
        own(path);
    }
}

fn own(path: &Path) {
    chown(path, Some(user()), Some(user())).unwrap();
}

#[test]
fn without_threads_every_verb_does_its_work_or_says_so() {
    require!(Root);
    let place = Place::beside();
    prepare(&place);
    let short = ["--run-time", "1s", "--scale", "2M", "--schemas", "1", "--threads", "2"];
    let run_of = |target: &'static str| [&["run", "--target", target][..], &short, &["."]].concat();
    let (instance, null) = (run_of("instance"), run_of("null"));
    let sqlite = [&["run", "--target", "sqlite:."][..], &short].concat();
    let verbs: &[&[&str]] = &[
        &["calibrate", "--brief", "--size", "4M", "."],
        &instance,
        &null,
        &sqlite,
        &["noise", "--for", "1s", "--phase", "500ms", "--area", "1M", "."],
        &["reduce", "one", "two", "three"],
        &["copy", "--force", "one", "two", "three", "copies/"],
        &["size", "one"],
        &["trace", "one"],
        &["flash", "sim", "--quick"],
        &["watch", "--once", "--for", "200ms"],
        &["check", "direct", "."],
        &["check", "metadata", "--files", "1k", "."],
        &["check", "write-order", "."],
        &["check", "coherence", "."],
        &["check", "durability", "."],
        &["check", "iosize", "."],
        &["offload", "run", "--scale", "1M", "--cells", "1", "."],
        &["claim", "1 GB/s over 10GbE"],
        &["runs"],
    ];
    for threads in [1, 2, 3, 5, 8] {
        for arguments in verbs {
            let _ = fs::remove_dir_all(place.file("copies"));
            fs::create_dir(place.file("copies")).unwrap();
            own(&place.file("copies"));
            let ran = within(LIMIT, &mut limited(&place, threads, arguments));
            let what = format!("{threads} threads: {arguments:?}: {ran:#?}");
            assert!(!ran.stderr.contains("panicked"), "{what}");
            match ran.code {
                Some(0 | 1 | 3 | 4) => {}
                Some(2) => {
                    let errors = ran.stderr.lines().filter(|line| line.starts_with("error: "));
                    assert!(errors.count() >= 1 && ran.stderr.contains("hint: "), "{what}");
                }
                _ => panic!("{what}"),
            }
        }
    }
}
