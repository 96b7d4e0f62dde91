//! `offload run` with servers of other versions, and as another user.

use std::process::Command;

use blockstone_sys::child;
use blockstone_testkit::{POSTGRES_VERSIONS, postgres_programs, require, run};
use serde_json::Value;

use super::super::{Place, copy_binary, keeps_to_its_schema};
use super::engines::{measured, number};

/// Returns the outcome of a rule for a measurement.
fn outcome<'a>(document: &'a Value, rule: &str) -> &'a str {
    let verdicts = document["verdicts"].as_array().unwrap();
    verdicts.iter().find(|it| it["rule"] == rule).unwrap()["outcome"].as_str().unwrap()
}

#[test]
fn cells_are_of_any_version_of_postgresql() {
    require!(Postgres, PostgresVersions);
    let place = Place::beside();
    for version in POSTGRES_VERSIONS.iter().filter(|version| version.major > 12) {
        let programs = postgres_programs(version.major);
        let programs = programs.to_str().unwrap();
        let arguments = ["--cells", "2", "--scale", "1M", "--repeat", "1", "--pg-bin", programs];
        let document = measured(&place, &arguments);
        let release = document["release"].as_str().unwrap();
        assert!(release.starts_with(&format!("{}.", version.major)), "{release}");
        // Before version 15, statistics cross the interface too.
        let is_apart = child::is_superuser() && version.major >= 15;
        let expected = if is_apart { "pass" } else { "inconclusive" };
        assert_eq!(outcome(&document, "wire-disagrees"), expected, "{document:#}");
        assert_eq!(outcome(&document, "not-offloaded"), "pass", "{document:#}");
        for run in document["tables"]["engines"].as_array().unwrap() {
            let more = (number(run, "disk_bytes") - number(run, "table_bytes")) / 8192.0;
            assert!((0.0..=2.0).contains(&(more / 2.0)), "{run:#}");
        }
    }
}

#[test]
fn programs_are_named_from_where_the_command_is_started() {
    require!(Postgres);
    let place = Place::beside();
    let mut command = place.command("offload");
    command.args(["run", "--cells", "1", "--scale", "1M", "--repeat", "1", "--json"]);
    command.args(["--pg-bin", "postgresql/15/bin"]).arg(place.data()).current_dir("/usr/lib");
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn an_ordinary_user_measures_without_a_network_namespace() {
    require!(Root, Postgres);
    let place = Place::beside();
    let (binary, data) = (place.runs().join("blockstone"), place.data());
    copy_binary(&binary);
    std::os::unix::fs::chown(&data, Some(65534), None).unwrap();
    for path in [place.scratch.path(), &place.runs(), &data] {
        assert_eq!(run(Command::new("chmod").arg("a+rx").arg(path)).code, Some(0));
    }
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        command.arg("offload").args(arguments);
        command
    };
    let arguments = ["run", "--cells", "1,2", "--scale", "1M", "--repeat", "1", "--json"];
    let ran = run(nobody(&arguments).arg(&data));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let tables = &document["tables"];
    assert_eq!(tables["evidence"][0]["interface_bytes"]["unmeasured"], "nothing happened");
    assert!(number(&tables["engines"][0], "wire_bytes") > 0.0);
    assert!(number(&tables["engines"][0], "host_cpu_ns") > 0.0);
    assert_eq!(outcome(&document, "wire-disagrees"), "inconclusive");
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let file = data.join("cards.csv");
    let ran = run(nobody(&["generate", "--scale", "1M"]).arg(&file));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // A directory of another user is refused in one line.
    let ran = run(nobody(&["run", "--scale", "1M"]).arg(place.runs()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.starts_with("error: create files in "), "{ran:#?}");
    assert_eq!(ran.stderr.lines().count(), 2, "{ran:#?}");
}
