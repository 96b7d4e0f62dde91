//! Interfaces that scripts rely on: the JSON document, exit codes, listings, completions, manual
//! pages.

use std::process::Command;

use blockstone_base::Bytes;
use blockstone_testkit::run;

use super::{Place, completed, keeps_to_its_schema, measured};

#[test]
fn one_run_gives_figures_report_listing_and_comparison() {
    let place = Place::new();
    let mut command = place.command("calibrate");
    command.args(["--quick", "--json", "--size", "256M", "--seed", "7", "--cpu"]);
    let ran = run(command.arg(place.data()));
    completed(&ran);
    let document = ran.json();
    assert_eq!(document["schema"], "blockstone.calibrate/2");
    keeps_to_its_schema(&document);
    for name in [
        "max_iops",
        "max_mbps",
        "actual_latency_ns_mean",
        "commit_latency_ns_p50",
        "visits_per_core_s",
    ] {
        let figure = &document["figures"][name];
        let (value, figure) = measured(figure);
        // On a disk whose speed varies, a few seconds leave a latency without an upper bound.
        let high = figure["high"].as_f64().unwrap_or(f64::INFINITY);
        assert!(high.is_finite() || name.contains("latency"), "{name}: {figure}");
        let low = figure["low"].as_f64().unwrap();
        assert!(value > 0.0 && low <= value && value <= high, "{name}: {low} {value} {high}");
    }
    let visits = document["tables"]["cached-visits"].as_array().unwrap();
    let alone = &visits[0]["visits_per_core_s"];
    let figure = measured(&document["figures"]["visits_per_core_s"]).1;
    assert_eq!(measured(alone).1["value"], figure["value"]);
    assert_eq!(alone["samples"], 6, "{visits:#?}");
    if let Some(together) = visits.get(1) {
        assert!(together["sessions"].as_u64() > Some(1), "{visits:#?}");
        let share = together["on_processor_ratio"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.01, "{visits:#?}");
    }
    let verdict = &document["verdicts"][0];
    assert!(["rule", "outcome", "evidence"].iter().all(|key| verdict[key].is_string()));
    assert_eq!(place.left_in_data(), Vec::<String>::new());

    let run_dir = document["recording"]["path"].as_str().unwrap();
    let page = std::fs::read_to_string(format!("{run_dir}/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("</html>"));

    let again = run(place.command("report").args(["--json", "last"]));
    assert_eq!(again.json()["figures"], document["figures"], "a report derives the same figures");

    let listed = run(place.command("runs").arg("--json")).json();
    keeps_to_its_schema(&listed);
    assert_eq!(listed["tables"]["recordings"][0]["id"], document["recording"]["id"]);

    let mine = ["runs", "--verb", "calibrate", "--since", "1d", "--csv"];
    let rows = run(place.command(mine[0]).args(&mine[1..])).stdout;
    assert!(rows.starts_with("id,started_at,verb,target,"), "{rows}");
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let none = run(place.command("runs").args(["--path", "/nowhere"]));
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("none of the 1 recordings"), "{}", none.stderr);

    let compared = run(place.command("compare").args(["--json", "last", "last"])).json();
    keeps_to_its_schema(&compared);
    let rows = compared["tables"]["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row["outcome"] == "not-established"), "{compared:#}");
}

#[test]
fn a_kept_file_is_reused_without_a_layout() {
    let place = Place::beside();
    completed(&place.calibrate(&["--size", "64M", "--keep"], &place.data()));
    let kept = place.left_in_data();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let file = place.file(&kept[0]);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), Bytes::mib(64).get());
    let ran = run(place.command("calibrate").args(["--brief", "--json", "--file"]).arg(&file));
    completed(&ran);
    let document = ran.json();
    let rates = document["tables"]["rates"].as_array().unwrap();
    assert!(rates.iter().all(|rate| rate["point"] != "layout"));
    // Our own file is written too.
    measured(&document["figures"]["max_write_iops"]);
    assert_eq!(place.left_in_data(), kept, "and kept");
}

#[test]
fn a_missing_capability_ends_with_its_own_code() {
    let place = Place::beside();
    let ran = run(place
        .command("calibrate")
        .args(["--buffered", "--require", "direct-io"])
        .arg(place.data()));
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

/// The verbs at every depth below `command`, each with its `parents`.
fn verbs(parents: &[String], command: &clap::Command) -> Vec<Vec<String>> {
    let below = command.get_subcommands().flat_map(|verb| {
        let words = [parents, &[verb.get_name().to_owned()]].concat();
        [verbs(&words, verb), vec![words]].concat()
    });
    below.collect()
}

/// The form in which a completion script offers a verb.
type Offer = fn(&str) -> String;

#[test]
fn every_verb_has_a_man_page_and_is_completed_by_every_shell() {
    let place = Place::beside();
    let verbs = verbs(&[], &blockstone_cli::declarations());
    for known in [&["calibrate"][..], &["flash", "cliff"], &["man"]] {
        assert!(verbs.iter().any(|verb| verb == known), "{known:?}: {verbs:?}");
    }
    let man = place.scratch.path().join("man");
    assert_eq!(run(place.command("man").arg(&man)).code, Some(0));
    let page = |words: &[String]| {
        let name = [&["blockstone".to_owned()], words].concat().join("-");
        std::fs::read_to_string(man.join(format!("{name}.1"))).unwrap_or_default()
    };
    for verb in &verbs {
        let heading = format!(".SH NAME\nblockstone\\-{} \\- ", verb.join("-").replace('-', "\\-"));
        assert!(page(verb).contains(&heading), "{verb:?}: {}", page(verb));
    }
    assert!(page(&["calibrate".to_owned()]).contains("max\\-latency"));
    let shells: [(&str, Offer); 5] = [
        ("bash", |verb| format!(",{verb})")),
        ("elvish", |verb| format!("cand {verb} '")),
        ("fish", |verb| format!("-a \"{verb}\" -d '")),
        ("powershell", |verb| format!("::new('{verb}', '{verb}', ")),
        ("zsh", |verb| format!("'{verb}:")),
    ];
    for (shell, offer) in shells {
        let ran = run(place.command("completions").arg(shell));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        for verb in verbs.iter().filter_map(|verb| verb.last()) {
            assert!(ran.stdout.contains(&offer(verb)), "{shell} does not offer {verb}");
        }
        assert!(ran.stdout.contains("max-latency"), "{shell}");
    }
}

#[test]
fn bash_completes_names_of_figures_stores_and_topics() {
    let place = Place::beside();
    let script = place.data().join("completion");
    std::fs::write(&script, run(place.command("completions").arg("bash")).stdout).unwrap();
    for (words, expected) in [
        ("run --expect commit.p", "commit.p50 commit.p99"),
        ("calibrate --expect knee", "knee.iops knee.p99"),
        ("run --for postg", "postgresql"),
        ("calibrate --for etc", "etcd"),
        ("check direct --expect answ", "answer"),
        ("help exp", "expect.md"),
        ("help top", "topics"),
        ("help teard", "teardown"),
    ] {
        let (before, word) = words.rsplit_once(' ').unwrap();
        let option = before.rsplit_once(' ').map_or(before, |(_, option)| option);
        let complete = format!(
            "compopt() {{ :; }}; . '{}'; COMP_WORDS=(blockstone {words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _blockstone blockstone {word} {option}; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let ran = run(Command::new("bash").args(["-c", &complete]));
        assert_eq!(ran.stdout.trim(), expected, "{words}: {ran:#?}");
    }
}

#[test]
fn nothing_recorded_is_said_and_is_no_error() {
    let place = Place::beside();
    let ran = run(&mut place.command("runs"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("blockstone run ."), "{}", ran.stderr);
    let ran = run(place.command("report").arg("last"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}
