//! `blockstone watch --profile`.

use std::process::{Command, Stdio};

use blockstone_testkit::{ScratchDir, require, run};
use serde_json::Value;

use super::{Ended, Turn, copy_binary, keeps_to_its_schema, watch};

/// Starts a program that only makes the kernel fill memory with zeros.
fn zeros() -> Ended {
    let mut command = Command::new("dd");
    command.args(["if=/dev/zero", "of=/dev/null", "bs=1M"]).stderr(Stdio::null());
    Ended(command.spawn().unwrap())
}

fn rows<'a>(document: &'a Value, view: &str) -> &'a [Value] {
    document["views"][view].as_array().unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn a_busy_program_leads_its_table_with_its_functions_live_and_replayed() {
    require!(Perf);
    let _turn = Turn::alone();
    let burner = zeros();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("night");
    let dir = dir.to_str().unwrap();
    let group = "zeros=^dd if=/dev/zero";
    let arguments = ["--once", "--json", "--interval", "500ms", "--for", "1500ms", "--no-bpf"];
    let ran = run(watch(&arguments).args([
        "--profile",
        "--profile-hz",
        "997",
        "--group",
        group,
        "--record",
        dir,
    ]));
    drop(burner);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let live = ran.json();
    keeps_to_its_schema(&live);

    let roles = rows(&live, "cpu-by-role");
    let shares: f64 = roles.iter().map(|row| number(row, "cpu_share")).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}: {roles:?}");
    let ours = roles.iter().find(|row| row["role"] == "zeros").unwrap();
    assert!(number(ours, "cpu_ns_per_s") < 1.1e9 && number(ours, "samples") > 30.0, "{ours}");
    assert!(number(ours, "kernel_ns_per_s") > 0.9 * number(ours, "cpu_ns_per_s"), "{ours}");
    assert_eq!(ours["cpu_ns_per_own_io"]["unmeasured"], "off", "{ours}");
    let functions = rows(&live, "role-functions");
    let its = functions.iter().find(|row| row["role"] == "zeros").unwrap();
    assert!(its["module"] == "vmlinux" && its["symbol"] == ours["hottest"], "{its}");
    let sampling = &rows(&live, "cpu-samples")[0];
    assert!(number(sampling, "lost") == 0.0 && number(sampling, "missed_share") < 0.5);
    let samples: f64 = roles.iter().map(|row| number(row, "samples")).sum();
    assert!((samples - number(sampling, "samples")).abs() < 0.5, "{samples}: {sampling}");

    let replayed = run(&mut watch(&["--replay", dir, "--once", "--json"])).json();
    // Live, the wall clock is read at every tick; it is recorded less often.
    let measured = |document: &Value| {
        let mut keys = document.as_object().unwrap().clone();
        keys.retain(|key, _| key != "from" && key != "to");
        keys
    };
    assert!(measured(&replayed) == measured(&live), "the replay differs");
    let wanted = ["--view", "cpu-by-role,cpu-by-module,cpu-by-function,cpu-samples"];
    let text = run(watch(&["--replay", dir, "--once"]).args(wanted).env("COLUMNS", "120"));
    for part in ["Processor time by role", "zeros", "vmlinux", "per I/O", "Processor samples"] {
        assert!(text.stdout.contains(part), "{part} is not in {}", text.stdout);
    }
}

#[test]
fn a_user_who_may_not_sample_is_told_what_would_enable_it() {
    require!(Root, Perf);
    let _turn = Turn::beside();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let anybody_may = paranoid.trim().parse::<i64>().unwrap() <= 0;
    // A copy that this user may execute, wherever the binary is.
    let scratch = ScratchDir::in_memory().or_else(|_| ScratchDir::on_disk()).unwrap();
    let binary = scratch.path().join("blockstone");
    copy_binary(&binary);
    let modes = run(Command::new("chmod").args(["-R", "a+rx"]).arg(scratch.path()));
    assert_eq!(modes.code, Some(0));
    let ran = run(Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["watch", "--once", "--interval", "200ms", "--no-bpf", "--profile"])
        .args(["--view", "cpu-by-role,cpu-samples"])
        .env("COLUMNS", "200"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for part in ["n/p", "perf_event_paranoid", "cap_perfmon"] {
        assert_eq!(ran.stdout.contains(part), !anybody_may, "{part}: {}", ran.stdout);
    }
}

#[test]
fn a_rate_without_a_profile_and_a_profile_of_the_past_are_refused() {
    let _turn = Turn::beside();
    for (arguments, wanted) in [
        (&["--once", "--profile-hz", "99"][..], "--profile"),
        (&["--once", "--profile", "--profile-hz", "0"], "0 is not in 1..=5000"),
        (&["--once", "--profile", "--replay", "last"], "cannot be used with"),
    ] {
        let ran = run(&mut watch(arguments));
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{ran:#?}");
    }
}
