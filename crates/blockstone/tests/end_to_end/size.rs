//! `blockstone size`: hardware for a stated need, and for a load from a recording.

mod examples;
mod monitors;
mod on;
mod reports;

use std::path::Path;
use std::process::Command;

use blockstone_base::column::{Cell, Column};
use blockstone_base::database::LOAD;
use blockstone_record::Recorder;
use blockstone_record::manifest::End;
use blockstone_record::testing::{self, SECOND_NS};
use blockstone_testkit::{Ran, ScratchDir, blockstone_binary, run};
use serde_json::{Value, json};

use super::{Turn, keeps_to_its_schema, made};

fn size(arguments: &[&str]) -> Ran {
    run(Command::new(blockstone_binary()).arg("size").args(arguments))
}

fn document(arguments: &[&str]) -> Value {
    let ran = size(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

const STATED: [&str; 8] =
    ["--iops", "10000", "--reads", "50%", "--disk", "180iops", "--cell", "12disks"];

#[test]
fn a_stated_need_is_held_against_disks() {
    let _turn = Turn::beside();
    let of = |redundancy: &str| document(&[&STATED[..], &["--redundancy", redundancy]].concat());
    for (redundancy, iops, disks, cells) in
        [("external", 10_000.0, 56, 5), ("normal", 15_000.0, 84, 7), ("high", 20_000.0, 112, 10)]
    {
        let found = of(redundancy);
        let tables = &found["tables"];
        assert_eq!(tables["ceilings"][0]["need"], iops, "{found:#}");
        assert_eq!(tables["ceilings"][0]["binding"], true);
        assert_eq!(found["units"], disks);
        assert_eq!(tables["packed"][0]["units"], cells);
    }
    let text = size(&[&STATED[..], &["--redundancy", "normal"]].concat()).stdout;
    for line in
        ["15,000 IOPS of the storage", "84 × disk, 7 × cell; limited by IOPS", "redundancy high"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let drive = "blockstone run --rate 5091 --work-unit 1 --update-pct 49";
    assert!(text.contains(drive), "{text}");
}

#[test]
fn a_machine_may_bind_before_its_volumes_and_faster_cores_save_licences() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let list = scratch.path().join("cores.csv");
    std::fs::write(&list, "cpu,per core\nold,5.5\nslow,7\nfast,11\n").unwrap();
    let stated = ["--iops", "40000", "--reads", "70%", "--mbps", "800", "--cores", "20"];
    let machine = ["--disk", "aws-gp3", "--machine", "aws-r5.4xlarge", "--utilisation", "75%"];
    let list = ["--core-list", list.to_str().unwrap(), "--licence", "oracle-ee"];
    let ran = size(&[&stated[..], &machine, &list].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for said in ["does not carry it, by cores", "as of 2025-03"] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    for row in [["slow", "21", "11"], ["fast", "14", "7"]] {
        assert!(words.windows(3).any(|it| it == row), "{row:?}: {}", ran.stdout);
    }
    for bad in [
        &["--licence", "oracle-ee"][..],
        &["--machine", "aws-r5.4xlarge", "--licence", "oracle-se2"],
        &["--machine", "tape"],
        &["--core-list", "/nowhere"],
    ] {
        let ran = size(&[&["--iops", "1"], bad].concat());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("\nhint: "), "{ran:#?}");
    }
}

/// Records hours of a database with two instances: reads of both, and writes of the first.
fn recorded(dir: &Path, name: &str, hours: u64) {
    let manifest = blockstone_record::Manifest {
        verb: "watch".to_owned(),
        started_at: "2026-11-23T00:00:00Z".to_owned(),
        ..testing::manifest()
    };
    let mut recorder = Recorder::create(dir, manifest, &[&LOAD]).unwrap();
    let mut reads = [0, 0];
    for hour in 0..=hours {
        for (instance, reads) in reads.iter_mut().enumerate() {
            *reads += if hour > 0 { (instance as u64 + 1) * (100 + hour % 24) * 3_600 } else { 0 };
            let cell = |column: &Column| match column.name {
                "elapsed_ns" => Cell::from(hour * 3_600 * SECOND_NS),
                "read_ios" => Cell::from(*reads),
                "write_ios" => Cell::from(if instance == 0 { hour * 3_600 * 10 } else { 0 }),
                _ => Cell::Unmeasured,
            };
            let cells: Vec<Cell> = LOAD.columns.iter().map(cell).collect();
            let object = format!("{name}/{}", instance + 1);
            recorder.row(LOAD.probe, hour * 3_600 * SECOND_NS, 0, &object, &cells).unwrap();
        }
    }
    recorder.close(End::Complete).unwrap();
}

#[test]
fn a_load_becomes_a_need_with_its_peaks_and_two_databases_need_merge() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let [one, two] = ["one", "two"].map(|name| scratch.path().join(name));
    recorded(&one, "SALES", 48);
    recorded(&two, "HR", 24);
    let page = scratch.path().join("size.html");
    let arguments = [one.to_str().unwrap(), "--penalty", "2", "--html", page.to_str().unwrap()];
    let found = document(&arguments);
    let need = &found["tables"]["need"][0];
    // Three times 100 + hour, and twice 10 writes.
    assert_eq!(need["max"], 3.0 * 123.0 + 20.0, "{need:#}");
    let sources = &found["tables"]["sources"];
    assert_eq!(sources.as_array().unwrap().len(), 2 * 48);
    assert_eq!(sources[0]["reads_per_s"], 101.0);
    let p95 = &need["p95"];
    assert!(p95["value"].as_f64().is_some_and(|p95| p95 > 380.0), "{need:#}");
    assert!(p95["low"].is_f64() && p95.get("high").is_none(), "48 hours do not bound it: {need:#}");
    assert_eq!(need["p99"]["unmeasured"], "nothing happened");
    assert_eq!(found["consolidation"], "instances");
    assert_eq!(found["peak_of_sums_iops"], need["max"]);
    let earlier = size(&[arguments[0], "--penalty", "2", "--json=1"]).json();
    let earlier = &earlier["need"]["hardware_iops"];
    assert_eq!(earlier["p95"], p95["value"]);
    assert_eq!(earlier["p95_interval"], json!([p95["low"], null]));
    assert!(earlier["p99"].is_null() && earlier["p99_interval"].is_null(), "{earlier:#}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Hours of the week") && page.contains("How long how much is needed"));

    let both = [one.to_str().unwrap(), two.to_str().unwrap()];
    let refused = size(&both);
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.stderr,
        "error: size 2 databases: HR, SALES\nhint: --merge sizes them for the same storage\n"
    );
    let merged = document(&[&both[..], &["--merge"]].concat());
    assert_eq!(merged["consolidation"], "databases");
    assert_eq!(merged["peak_of_sums_iops"], 2.0 * (3.0 * 123.0 + 10.0), "{merged:#}");
    assert_eq!(
        merged["sum_of_peaks_iops"], merged["peak_of_sums_iops"],
        "they have the same hours"
    );
}

#[test]
fn what_cannot_be_sized_is_one_line_and_a_hint() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let one = scratch.path().join("one");
    recorded(&one, "SALES", 3);
    let (path, dir) = (one.to_str().unwrap(), scratch.path().join("empty"));
    std::fs::create_dir(&dir).unwrap();
    let binary = scratch.path().join("binary");
    std::fs::write(&binary, [0, 159, 146, 150]).unwrap();
    for (arguments, why) in [
        (vec![], "neither a path nor a need"),
        (vec![dir.to_str().unwrap()], "the directory has no files"),
        (vec![binary.to_str().unwrap()], "binary"),
        (vec![path, "--disk", "tape"], "unit tape is not in the catalogue"),
        (vec![path, "--hours", "9"], "two hours"),
        (vec![path, "--verify", path], "made by watch"),
        (vec![path, "--iops", "5"], "cannot be used with"),
        (vec!["--iops", "5", "--utilisation", "0"], "utilisation"),
        (vec!["--iops", "5", "--disk", "rpm=7200"], "a part of the mechanics"),
        (vec!["--units", "3", "--disk", "usd=5"], "nothing that is needed"),
        (vec!["--lookups", "5"], "--rows"),
    ] {
        let ran = size(&arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(why) && ran.stderr.contains("hint: "), "{ran:#?}");
        assert!(ran.stdout.is_empty(), "{ran:#?}");
    }
    let few = document(&[path, "--percentile", "p95"]);
    assert_eq!((&few["percentile"], &few["intervals"]), (&"max".into(), &3.into()));
    let text = size(&[path]).stdout;
    assert!(text.contains("p95 needs 40 intervals or more, and there are 3"), "{text}");
}

#[test]
fn a_measured_curve_says_between_which_latencies_the_need_lies() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let curve = scratch.path().join("curve");
    let points = [
        ("overhead/null", 1_000_000, 300),
        ("random-read/psync/x1", 1_000, 1_000_000),
        ("random-read/psync/x4", 3_000, 4_000_000),
        ("random-read/psync/x16", 4_000, 40_000_000),
    ];
    made::calibration(&curve, &points);
    let of = |iops: &str| {
        let need = ["--iops", iops, "--reads", "100%", "--disk", "4000iops", "--p99", "5ms"];
        let ran = size(&[&need[..], &["--curve", curve.to_str().unwrap()]].concat());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = of("2000");
    assert!(text.contains("one unit does 3,000 IOPS with a p99 of 4.01 ms"), "{text}");
    assert!(text.contains("between 1 ms and 4.01 ms, as measured at 1,000"), "{text}");
    assert!(of("500").contains("less than was measured: its p99 was 1 ms at 1,000 IOPS"));
    // Two units: each has less to do than a unit may.
    assert!(of("5000").contains("2 × disk"));
}

#[test]
fn a_page_has_no_empty_headings() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("page.html");
    let ran = size(&[&STATED[..], &["--html", path.to_str().unwrap()]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("id=\"drive\""), "a section without a heading");
    assert!(!page.contains("></h2>") && !page.contains("\"></a></li>"), "an empty heading");
}

#[test]
fn files_of_two_gigabytes_are_refused_at_once() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    for (name, head, why) in [
        ("zeros.csv", "", "it is binary"),
        ("large.csv", "begin,end,database,reads_per_s,writes_per_s\n", "more than 64 MiB"),
    ] {
        let path = scratch.path().join(name);
        std::fs::write(&path, head).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
        let began = std::time::Instant::now();
        let ran = size(&[path.to_str().unwrap()]);
        assert!(ran.code == Some(2) && ran.stdout.is_empty(), "{ran:#?}");
        assert!(ran.stderr.contains(why) && ran.stderr.lines().count() == 2, "{ran:#?}");
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}
