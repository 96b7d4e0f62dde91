//! `blockstone watch --csv`: every tick, for a spreadsheet or gnuplot.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use blockstone_testkit::{ScratchDir, run};
use jiff::Timestamp;

use super::{Turn, keeps_to_its_schema, watch};

/// Splits each line into its fields. No name in these tests has a comma.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.split_terminator("\r\n").map(|line| line.split(',').collect()).collect()
}

/// Returns the values of a long table by time and names of the figure.
fn values(text: &str) -> BTreeMap<(&str, String), &str> {
    let rows = table(text);
    assert_eq!(rows[0], ["time", "view", "row", "figure", "value"]);
    let named = rows[1..].iter().map(|row| {
        let names: Vec<_> = row[1..4].iter().filter(|name| !name.is_empty()).copied().collect();
        ((row[0], names.join(".")), row[4])
    });
    named.collect()
}

const SHORT: [&str; 6] = ["--interval", "200ms", "--no-bpf", "--view", "host,disks", "--csv"];

#[test]
fn lines_and_both_shapes_of_csv_are_the_same_figures() {
    // Other tests create devices, which would become columns.
    let _turn = Turn::alone();
    let scratch = ScratchDir::on_disk().unwrap();
    let [night, wide] = ["night", "wide.csv"].map(|name| scratch.path().join(name));
    let (dir, file) = (night.to_str().unwrap(), wide.to_str().unwrap());
    let live = run(watch(&SHORT).args([file, "--lines", "--for", "2s", "--record", dir]));
    assert_eq!(live.code, Some(0), "{live:#?}");
    let text = std::fs::read_to_string(file).unwrap();
    let rows = table(&text);
    assert_eq!(rows[0][..2], ["time", "host.cpu_user_share"]);
    assert!(rows[0].iter().any(|name| name.starts_with("disks.")), "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    let times: Vec<Timestamp> = rows[1..].iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.len() >= 5 && times.is_sorted(), "{text}");
    assert_eq!(live.stdout.lines().filter(|line| !line.starts_with('#')).count(), times.len());

    let replay = ["--replay", dir, "--view", "host,disks", "--csv"];
    let again = run(watch(&replay).args(["-", "--csv-shape", "long"]));
    let long = values(&again.stdout);
    let from_replay: Vec<_> = {
        let mut times: Vec<&str> = long.keys().map(|(time, _)| *time).collect();
        times.dedup();
        times
    };
    assert_eq!(from_replay.len(), times.len());
    for (row, time) in rows[1..].iter().zip(&from_replay) {
        for (name, value) in rows[0].iter().zip(row).skip(1) {
            assert_eq!(long.get(&(*time, (*name).to_owned())), Some(value), "{name} at {time}");
        }
    }
    // Without a file name it writes to standard output. A replay has columns for all devices; the
    // live file has none for a device that appeared after its header was written.
    let replayed = run(&mut watch(&replay));
    let replayed = table(&replayed.stdout);
    assert_eq!(replayed.len(), rows.len());
    for (column, name) in rows[0].iter().enumerate().skip(1) {
        let same = replayed[0].iter().position(|replayed| replayed == name);
        let same = same.unwrap_or_else(|| panic!("no {name} in {:?}", replayed[0]));
        let values = |rows: &[Vec<&str>], column: usize| -> Vec<String> {
            rows[1..].iter().map(|row| row[column].to_owned()).collect()
        };
        assert_eq!(values(&replayed, same), values(&rows, column), "{name}");
    }
}

#[test]
fn a_file_is_replaced_and_a_link_is_not_followed() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let [victim, link] = ["victim", "link.csv"].map(|name| scratch.path().join(name));
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    let ran = run(watch(&SHORT).arg(&link).args(["--for", "400ms"]));
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert!(std::fs::read_to_string(&link).unwrap().starts_with("time,host."));
    // Writing to a pipe is allowed.
    let ran = run(watch(&SHORT).args(["/dev/stdout", "--for", "400ms"]));
    assert!(ran.stdout.starts_with("time,host."), "{ran:#?}");
}

#[test]
fn csv_that_makes_no_sense_is_refused() {
    let _turn = Turn::beside();
    let cases: &[(&[&str], &str)] = &[
        (&["--csv", "disks"], "--csv ./disks"),
        (&["--csv=disks"], "add --once"),
        (&["--lines", "--csv", "-"], "both print on standard output"),
        (&["--csv", "/nowhere/at/all.csv", "--for", "1s"], "/nowhere/at/all.csv"),
        (&["--csv-shape", "long"], "--csv"),
        (&["--once", "--csv", "--csv-shape", "long"], "--once"),
        (&["--once", "--csv", "--json"], "cannot be used with"),
        (&["--once", "--csv=nothing"], "host"),
    ];
    for (arguments, expected) in cases {
        let ran = run(&mut watch(arguments));
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{arguments:?}: {ran:#?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {ran:#?}");
    }
    assert!(!Path::new("disks").exists());
}

#[test]
fn one_look_says_when_it_was() {
    let _turn = Turn::beside();
    let before = Timestamp::now();
    let once = ["--once", "--for", "400ms", "--no-bpf"];
    let document = run(watch(&once).arg("--json")).json();
    keeps_to_its_schema(&document);
    let [from, to] = ["from", "to"]
        .map(|key| document[key].as_str().unwrap().parse::<Timestamp>().unwrap().as_millisecond());
    assert!(before.as_millisecond() <= from && to <= Timestamp::now().as_millisecond());
    let ns = ["from_ns", "to_ns"].map(|key| document[key].as_i64().unwrap());
    assert!(((to - from) - (ns[1] - ns[0]) / 1_000_000).abs() <= 1, "{document:#}");
    let text = run(&mut watch(&once)).stdout;
    let clock = text.lines().find_map(|line| line.split_once("clock ")).unwrap().1;
    let (from, to) = clock.split_once(" to ").unwrap();
    let ended: Timestamp = to.trim().parse().unwrap();
    assert!(from.parse::<Timestamp>().unwrap() < ended && ended <= Timestamp::now(), "{text}");
    let table = run(watch(&once).arg("--csv=disks")).stdout;
    assert!(table.starts_with("device,read_ios_per_s,"), "{table}");
}
