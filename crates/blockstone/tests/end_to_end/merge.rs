//! `merge`: runs at the same time become one recording.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blockstone_testkit::run;
use serde_json::Value;

use super::{Place, keeps_to_its_schema};

/// Starts as many ranks as there are names, and waits for all.
fn ranks(place: &Place, names: &[&str]) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(4);
    let start = |(rank, name): (usize, &&str)| {
        let (disk, record) = (place.file(name), place.runs().join("ranks").join(name));
        std::fs::create_dir(&disk).unwrap();
        let mut command = place.command("run");
        command.args(["--for=3s", "--scale=8M", "--cache=2M", "--schemas=1", "--threads=2"]);
        command.arg(format!("--start-at={}", since.as_secs_f64()));
        command.arg(format!("--ranks={}", names.len())).env("PMI_RANK", rank.to_string());
        command.args(["--update-pct=0", "--quiet", "--record"]).arg(record);
        command.arg(disk).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    std::fs::create_dir(place.runs().join("ranks")).unwrap();
    let children: Vec<_> = names.iter().enumerate().map(start).collect();
    for mut child in children {
        assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    }
}

#[test]
fn runs_at_the_same_time_become_one_recording_that_is_reported_and_compared() {
    let place = Place::beside();
    ranks(&place, &["a", "b"]);
    let all = place.runs().join("ranks");
    let ran = run(place.command("merge").arg("--json").arg(&all));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    assert_eq!(document["settings"]["sessions"], 4, "{:#}", document["settings"]);
    assert_eq!(document["missing_ranks"], 0);
    let ranks = document["tables"]["ranks"].as_array().unwrap();
    let of = |rank: &Value| rank["ops_per_s"].as_f64().unwrap();
    let sum: f64 = ranks.iter().map(of).sum();
    let merged = document["figures"]["operations_per_s"]["value"].as_f64().unwrap();
    assert!((merged / sum - 1.0).abs() < 0.01, "{merged} is not {sum}");
    let overlap = document["overlap_ratio"].as_f64().unwrap();
    let judged = document["verdicts"].as_array().unwrap().iter();
    let window = judged.clone().find(|it| it["rule"] == "common-window").unwrap();
    assert_eq!(window["outcome"] == "fail", overlap < 0.8, "{window:#}");

    let shown = run(place.command("report").arg("last"));
    assert!(shown.stdout.starts_with("2 ranks on 1 host: "), "{shown:#?}");
    let one = run(place.command("report").arg(all.join("b")));
    assert!(one.stdout.contains("rank 1 of 2 (pmi)"), "{one:#?}");
    let seed = |name: &str| {
        let manifest = std::fs::read(all.join(name).join("manifest.json")).unwrap();
        serde_json::from_slice::<Value>(&manifest).unwrap()["seed"].clone()
    };
    assert_ne!(seed("a"), seed("b"), "ranks do not write the same data");
    let again = run(place.command("compare").args(["last", "last"]));
    assert!(matches!(again.code, Some(0 | 3)), "{again:#?}");

    std::fs::remove_file(all.join("b/manifest.json")).unwrap();
    let one = run(place.command("merge").arg(&all));
    assert_eq!(one.code, Some(2), "{one:#?}");
    assert!(one.stderr.contains("at least two recordings are needed"), "{}", one.stderr);
}

#[test]
fn a_killed_rank_is_named_and_its_absence_condemns() {
    let place = Place::beside();
    ranks(&place, &["a", "b", "c"]);
    let all = place.runs().join("ranks");
    std::fs::remove_dir_all(all.join("b")).unwrap();
    let refused = run(place.command("merge").arg(&all));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("rank 1 has no recording here"), "{}", refused.stderr);
    let partial = run(place.command("merge").arg("--partial").arg(&all));
    assert_eq!(partial.code, Some(3), "{partial:#?}");
    assert!(partial.stdout.contains("partial: rank 1 has no recording here"), "{partial:#?}");
    assert!(partial.stdout.contains("common-window condemns"), "{partial:#?}");
}
