//! Recordings as a user keeps them: found from anywhere, labelled, removed; and the settings that
//! say where they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use blockstone_testkit::{Ran, blockstone_binary, run};

use super::watch::terminal::Terminal;
use crate::{Place, completed, keeps_to_its_schema, names, signal};

/// Records 300 ms of this machine, and returns the name of the directory.
fn record(place: &Place) -> String {
    let before = names(&place.runs());
    let arguments = ["--interval", "100ms", "--for", "300ms", "--no-bpf", "--once"];
    let name = format!("20260101-00000{}-watch-abc{}", before.len(), before.len());
    let mut watch = place.command("watch");
    completed(&run(watch.args(arguments).arg("--record").arg(place.runs().join(&name))));
    name
}

fn runs(place: &Place, arguments: &[&str]) -> Ran {
    run(place.command("runs").args(arguments))
}

#[test]
fn recordings_are_listed_labelled_and_removed() {
    let place = Place::beside();
    let [first, second, third] = [record(&place), record(&place), record(&place)];
    assert_eq!(runs(&place, &["--names"]).stdout, format!("{third}\n{second}\n{first}\n"));

    let manifest = place.runs().join(&first).join("manifest.json");
    let before = fs::read(&manifest).unwrap();
    let tagged = runs(&place, &["tag", "last~2", "baseline", "nvme=2"]);
    assert_eq!(tagged.code, Some(0), "{tagged:#?}");
    let noted = runs(&place, &["note", "20260101-000000", "before the update"]);
    assert!(noted.stdout.contains("#baseline #nvme=2 before the update"), "{noted:#?}");
    assert_eq!(fs::read(&manifest).unwrap(), before, "what was measured is untouched");
    let report = run(place.command("report").arg(&first));
    assert!(report.stdout.contains("#baseline #nvme=2 before the update"), "{report:#?}");
    let listed = runs(&place, &["--tag", "baseline", "--since", "yesterday", "--json"]).json();
    keeps_to_its_schema(&listed);
    let rows = listed["tables"]["recordings"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["tags"]), (1, &"baseline nvme=2".into()));

    let ambiguous = runs(&place, &["rm", "20260101"]);
    assert_eq!(ambiguous.code, Some(2));
    assert!(ambiguous.stderr.contains(&format!("3 match: {third}, {second}, {first}")));
    let asked = runs(&place, &["prune", "--keep", "1"]);
    assert_eq!(asked.code, Some(2), "{asked:#?}");
    assert!(asked.stderr.contains("hint: --yes removes them without asking"), "{asked:#?}");
    let tried = runs(&place, &["prune", "--keep", "1", "--dry-run", "--json"]).json();
    keeps_to_its_schema(&tried);
    let would = &tried["tables"]["removed"][0];
    assert_eq!(
        (&would["recording"], &would["outcome"]),
        (&second.as_str().into(), &"would be removed".into())
    );
    assert_eq!(names(&place.runs()).len(), 3);
    let pruned = runs(&place, &["prune", "--keep", "1", "--yes"]);
    assert!(pruned.stdout.contains("1 recording removed: "), "{pruned:#?}");
    assert!(pruned.stderr.contains("1 recording with tags kept"), "{pruned:#?}");
    assert_eq!(names(&place.runs()), [first.clone(), third.clone()]);
    let removed = runs(&place, &["rm", "last", &first, "--json"]).json();
    keeps_to_its_schema(&removed);
    assert_eq!(removed["tables"]["removed"].as_array().unwrap().len(), 2);
    assert!(removed["tables"]["removed"][0]["bytes"].as_u64().unwrap() > 1000);
    assert_eq!(names(&place.runs()), [""; 0]);
}

#[test]
fn a_terminal_is_asked_before_recordings_are_removed() {
    let place = Place::beside();
    record(&place);
    for (answer, code, left) in [("\r", 0, 1), ("no\r", 0, 1), ("y\r", 0, 0)] {
        let mut command = place.command("runs");
        let mut terminal = Terminal::start(command.args(["prune", "--keep", "0"]), 24, 80);
        terminal.until(|text| text.contains("Remove 1 recording (") && text.contains("[y/N]"));
        terminal.keys(answer);
        assert_eq!(terminal.end(), Some(code), "{answer:?}");
        assert_eq!(names(&place.runs()).len(), left, "{answer:?}");
    }
}

#[test]
fn what_is_not_only_a_recording_is_not_removed() {
    let place = Place::beside();
    let name = record(&place);
    let dir = place.runs().join(&name);
    let victim = place.data().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("manifest.json"), "{}").unwrap();
    for (at, what) in [("notes.txt", "file"), ("series/x.parquet", "link"), ("below", "link")] {
        let stranger = dir.join(at);
        match what {
            "file" => fs::write(&stranger, "mine").unwrap(),
            _ => symlink(&victim, &stranger).unwrap(),
        }
        let kept = names(&dir);
        let refused = runs(&place, &["rm", &name]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(&format!("`{at}` in it is not part of")), "{refused:#?}");
        assert_eq!(names(&dir), kept);
        fs::remove_file(&stranger).unwrap();
    }
    let link = place.runs().join("20260102-000000-watch-zzzzzz");
    symlink(&victim, &link).unwrap();
    let refused = runs(&place, &["rm", "zzzzzz"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let refused = runs(&place, &["rm", "../data/victim"]);
    assert!(refused.stderr.contains("no such recording"), "{refused:#?}");
    assert_eq!(names(&victim), ["manifest.json"]);
}

#[test]
fn what_is_being_recorded_is_not_removed() {
    let place = Place::beside();
    let mut watch = place.command("watch");
    watch.args(["--interval", "100ms", "--for", "60s", "--no-bpf", "--once", "--record"]);
    let dir = place.runs().join("20260101-000000-watch-abcdef");
    let mut child = place.start(watch.arg(&dir), |_| true);
    let refused = runs(&place, &["rm", "last"]);
    let pruned = runs(&place, &["prune", "--keep", "0", "--yes"]);
    signal(&child, "INT");
    child.wait().unwrap();
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("it is still being recorded"), "{refused:#?}");
    assert!(pruned.stdout.contains("0 recordings removed"), "{pruned:#?}");
    assert!(dir.join("manifest.json").exists());
    assert_eq!(runs(&place, &["rm", "last"]).code, Some(0));
}

/// Starts `config` as a user with this home, who is not asked for options.
fn config(home: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = Command::new(blockstone_binary());
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "BLOCKSTONE_RUNS_DIR", "BLOCKSTONE_PROGRESS"]
    {
        command.env_remove(name);
    }
    command.env("HOME", home).envs(variables.iter().copied());
    run(command.arg("config").args(arguments))
}

#[test]
fn settings_come_from_the_option_the_environment_and_the_file_in_this_order() {
    let place = Place::beside();
    let file = place.file(".config/blockstone/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "runs_dir = \"~/f\"\n\ncolor = \"never\"\n").unwrap();
    let home = place.data();
    let of = |variables: &[(&str, &str)], arguments: &[&str], key: &str| {
        let document = config(&home, variables, &[arguments, &["--json"]].concat()).json();
        keeps_to_its_schema(&document);
        let rows = document["tables"]["settings"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["setting"] == key).unwrap();
        ["value", "origin", "place"].map(|column| row[column].as_str().unwrap().to_owned())
    };
    let at = |line: usize| format!("{}, line {line}", file.display());
    let runs_dir = home.join("f").display().to_string();
    assert_eq!(of(&[], &[], "runs_dir"), [&runs_dir, "file", &at(1)]);
    assert_eq!(of(&[], &[], "color"), ["never", "file", &at(3)]);
    assert_eq!(of(&[], &[], "share"), ["false", "default", ""]);
    let environment = [("BLOCKSTONE_RUNS_DIR", "/e")];
    assert_eq!(of(&environment, &[], "runs_dir"), ["/e", "environment", "BLOCKSTONE_RUNS_DIR"]);
    let option = ["--runs-dir", "/o"];
    assert_eq!(of(&environment, &option, "runs_dir"), ["/o", "option", "--runs-dir"]);

    fs::write(&file, "runs_dir = \"/a\"\ncolour = \"never\"\n").unwrap();
    let refused = config(&home, &[], &[]);
    let expected = format!(
        "error: read {}: `colour` is not a setting\n\
         hint: the settings are runs_dir, color, progress, share\n",
        at(2)
    );
    assert_eq!((refused.code, refused.stderr), (Some(2), expected));
    let help = config(&home, &[], &["--help"]);
    assert_eq!(help.code, Some(0), "{help:#?}");
}

#[test]
fn recordings_in_the_working_directory_are_named_where_none_are_found() {
    let place = Place::beside();
    let name = record(&place);
    let left = place.data().join("blockstone-runs");
    fs::rename(place.runs(), &left).unwrap();
    for arguments in [&["runs"][..], &["report", "last"]] {
        let mut command = Command::new(blockstone_binary());
        command.env("BLOCKSTONE_RUNS_DIR", place.runs()).current_dir(place.data());
        let ran = run(command.args(arguments));
        assert!(ran.stderr.contains("--runs-dir blockstone-runs lists those"), "{ran:#?}");
    }
    let mut command = Command::new(blockstone_binary());
    command.current_dir(place.data()).args(["runs", "--runs-dir", "blockstone-runs", "--names"]);
    assert_eq!(run(&mut command).stdout, format!("{name}\n"));
}

#[test]
fn shells_complete_the_names_of_recordings() {
    let place = Place::beside();
    let name = record(&place);
    let odd = "20260102-000000-run-$(touch x)";
    fs::create_dir(place.runs().join(odd)).unwrap();
    let script = run(Command::new(blockstone_binary()).args(["completions", "bash"])).stdout;
    let script = format!(
        "{script}
        blockstone() {{ {} \"$@\"; }}
        for words in 'report 20260101' 'compare la' 'runs rm 20260102' 'calibrate 2026'; do
            COMP_WORDS=(blockstone $words); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
            COMPREPLY=(); _blockstone_with_recordings blockstone \"${{COMP_WORDS[COMP_CWORD]}}\" \
                \"${{COMP_WORDS[COMP_CWORD-1]}}\"
            echo \"$words: ${{COMPREPLY[*]}}\"
        done",
        blockstone_binary().display()
    );
    let mut bash = Command::new("bash");
    // It is too long for an argument.
    let file = place.scratch.path().join("script");
    fs::write(&file, script).unwrap();
    bash.arg("--norc").arg(&file).env("BLOCKSTONE_RUNS_DIR", place.runs());
    let ran = run(bash.current_dir(place.data()));
    let expected = [
        format!("report 20260101: {name}"),
        "compare la: last".to_owned(),
        r"runs rm 20260102: 20260102-000000-run-\$\(touch\ x\)".to_owned(),
        "calibrate 2026: ".to_owned(),
    ];
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), expected, "{ran:#?}");
    assert_eq!(place.left_in_data(), [""; 0], "a name is not executed");
}
