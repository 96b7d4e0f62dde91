//! Checks that `check coherence` reports correctly what NFS clients see of each other, and `check
//! metadata` where answers came from. A machine emulated by QEMU mounts a directory from a server
//! on its host twice in each of several ways, so that each mount has its own caches, and checks the
//! pairs. What each way promises is known from nfs(5) and the kernel.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use blockstone_base::Bytes;
use blockstone_testkit::{Guest, GuestDisk, NfsServer, Power, build_as_tested};
use serde_json::Value;

use super::Lab;
use super::power_cut::await_within;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::packages;

const PATIENCE: Duration = Duration::from_mins(8);

/// Two mounts with the same options, and the classes that must be found for them.
struct Pair {
    name: &'static str,
    options: &'static str,
    /// Arguments of the check.
    check: &'static str,
    classes: &'static [(&'static str, &'static [&'static str])],
}

const FRESH: &[&str] = &["linearizable"];
const REOPEN: &[&str] = &["reopen"];

const PAIRS: &[Pair] = &[
    Pair {
        name: "actimeo=30",
        options: "nosharecache,actimeo=30",
        check: "--patience 2s --rounds 4",
        classes: &[
            ("ping-pong/fdatasync/held", REOPEN),
            ("ping-pong/fdatasync/reopened", FRESH),
            ("ping-pong/fdatasync/direct", FRESH),
            ("ping-pong/fdatasync/mapped", REOPEN),
            ("ping-pong/direct/held", REOPEN),
            ("ping-pong/direct/reopened", FRESH),
            ("ping-pong/direct/direct", FRESH),
            ("free-run/direct/direct", FRESH),
            // Data that is not flushed is not at the server.
            ("ping-pong/buffered/reopened", &["never"]),
            ("lock/exclusion", FRESH),
            ("lock/fence", FRESH),
            ("lock/counter", FRESH),
            ("name/create", &["never"]),
            ("name/exclusive-create", FRESH),
        ],
    },
    Pair {
        name: "actimeo=3",
        options: "nosharecache,actimeo=3",
        check: "--patience 5s --rounds 2",
        classes: &[
            ("ping-pong/fdatasync/held", REOPEN),
            ("ping-pong/direct/direct", FRESH),
            ("name/create", &["timer"]),
        ],
    },
    Pair {
        name: "noac",
        options: "nosharecache,noac",
        check: "--patience 2s --rounds 4",
        classes: &[
            ("ping-pong/buffered/held", FRESH),
            ("ping-pong/buffered/reopened", FRESH),
            ("ping-pong/buffered/direct", FRESH),
            ("ping-pong/direct/held", FRESH),
            ("ping-pong/direct/direct", FRESH),
            ("free-run/direct/direct", FRESH),
            ("lock/exclusion", FRESH),
            ("lock/fence", FRESH),
            ("name/create", FRESH),
            ("name/extend", FRESH),
            ("name/chmod", FRESH),
            ("name/remove", FRESH),
        ],
    },
];

/// A mount on which a directory is listed with nothing of it in memory, each entry with its
/// attributes, as `ls -l` does.
struct Listing {
    name: &'static str,
    options: &'static str,
    /// Bounds on the number of requests to the server per entry.
    least: f64,
    most: f64,
}

/// Few enough that each operation is tried on all of them in its time.
const FILES: u64 = 200;

const LISTINGS: &[Listing] = &[
    // Attributes come with the names, many in one answer.
    Listing { name: "rdirplus", options: "nosharecache,actimeo=60", least: 0.0, most: 0.1 },
    // Each file is looked up.
    Listing {
        name: "nordirplus",
        options: "nosharecache,actimeo=60,nordirplus",
        least: 1.0,
        most: 2.1,
    },
];

const COLUMNS: &[Column] = &[
    column("cases", "cases", 0),
    column("linearizable", "linearizable", 0),
    column("reopen", "fresh after\nreopening", 0),
    column("timer", "after\na time", 0),
    column("never", "never", 0),
    column("torn", "torn", 0),
    column("other", "sequential\nor unknown", 0),
    column("entries", "entries\nlisted", 0),
    column("requests", "requests\nfor them", 0),
];

/// Shell function that prints the result for a mount in one line that names it.
const JOB: &str = "\
said() {
    echo \"{\\\"mount\\\":\\\"$1\\\",\\\"said\\\":$(cat /said)}\" >/answers
}
";

pub fn run(lab: &Lab) -> Result<Results> {
    packages::guest()?;
    packages::nfs_server()?;
    eprintln!("building blockstone");
    let binary = build_as_tested("blockstone")?;
    lab.interrupt.check()?;
    let server = NfsServer::start()?;
    let guest = Guest::create(Bytes::mib(4), GuestDisk::Honest)?;
    guest.install(&job(server.port()), &[&binary])?;
    eprintln!("a machine checks mounts of {}", server.exported().display());
    guest.power(Power::On)?;
    let ended = await_within(PATIENCE, || lab.interrupt.check().is_err() || !guest.runs());
    lab.interrupt.check()?;
    ended.with_context(|| format!("{}{}", guest.console(), server.log()))?;
    let said = said(&guest.answers()).with_context(|| guest.console())?;
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    for pair in PAIRS {
        let found =
            said.get(pair.name).with_context(|| format!("{}{}", guest.console(), server.log()))?;
        eprintln!("    {}: {}", pair.name, found["answer"].as_str().unwrap_or_default());
        let classes = classes(found)?;
        goals.extend(pair.goals(&classes));
        points.push(point(pair.name, &classes));
    }
    for listing in LISTINGS {
        let found = said.get(listing.name).with_context(|| guest.console())?;
        eprintln!("    {}: {}", listing.name, found["answer"].as_str().unwrap_or_default());
        let (entries, requests) = listed(found)?;
        goals.extend(listing.goals(found, entries, requests)?);
        let values = [[f64::NAN; 7].as_slice(), &[entries, requests]].concat();
        points.push(Point { name: listing.name.to_owned(), values });
    }
    let left = std::fs::read_dir(server.exported()).context("read what is exported")?.count();
    goals.push(Goal::at_most("files that checks left", left as f64, 0.0));
    Ok(Results { columns: COLUMNS, points, goals })
}

fn job(port: u16) -> String {
    let pairs = PAIRS.iter().map(|Pair { name, options, check, .. }| {
        format!(
            "for side in a b; do mount_nfs /$side {port} {options} || poweroff -f; done\n\
             blockstone check coherence /a /b {check} --json >/said 2>/errors || cat /errors\n\
             said {name}\n\
             umount /a /b\n"
        )
    });
    let listings = LISTINGS.iter().map(|Listing { name, options, .. }| {
        format!(
            "mount_nfs /a {port} {options} || poweroff -f\n\
             blockstone check metadata /a --files {FILES} --shape one-directory --ranks 1 \
             --drop-caches=all --json >/said 2>/errors || cat /errors\n\
             said {name}\n\
             umount /a\n"
        )
    });
    let parts: Vec<String> = pairs.chain(listings).collect();
    format!("{JOB}{}", parts.concat())
}

/// Returns the answer for each mount.
fn said(answers: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for answer in serde_json::Deserializer::from_str(answers).into_iter::<Value>() {
        let answer = answer.context("understand what the machine answered")?;
        let mount = answer["mount"].as_str().context("find which mount it is about")?;
        all.insert(mount.to_owned(), answer["said"].clone());
    }
    Ok(all)
}

/// Returns the class of each case.
fn classes(found: &Value) -> Result<BTreeMap<&str, &str>> {
    let cells = found["tables"]["coherence-cases"].as_array();
    let cells = cells.with_context(|| format!("find cases in {found:#}"))?;
    let mut classes = BTreeMap::new();
    for cell in cells {
        let (case, class) = (cell["case"].as_str(), cell["class"].as_str());
        classes.insert(case.context("find a case")?, class.context("find its class")?);
    }
    ensure!(!classes.is_empty(), "nothing was tried: {found:#}");
    Ok(classes)
}

/// Returns the row of an operation in a table.
fn row<'a>(found: &'a Value, table: &str, operation: &str) -> Result<&'a Value> {
    let mut rows = found["tables"][table].as_array().into_iter().flatten();
    let row = rows.find(|row| row["operation"] == operation);
    row.with_context(|| format!("find {operation} in {table} of {found:#}"))
}

/// Returns the number of entries that were listed with their attributes, and of requests for that.
fn listed(found: &Value) -> Result<(f64, f64)> {
    let row = row(found, "metadata-details", "readdir-stat/cold")?;
    eprintln!("    {}", row["evidence"].as_str().unwrap_or_default());
    let number = |key: &str| row[key].as_f64().with_context(|| format!("find {key} in {row}"));
    Ok((number("operations")?, number("rpcs")?))
}

impl Listing {
    fn goals(&self, found: &Value, entries: f64, requests: f64) -> Result<Vec<Goal>> {
        let what = |what: &str| format!("{}: {what}", self.name);
        let is = |operation, class: &str| -> Result<f64> {
            Ok(f64::from(u8::from(row(found, "metadata", operation)?["class"] == class)))
        };
        let all = FILES as f64;
        Ok(vec![
            Goal::within(what("entries"), entries, all, all),
            Goal::within(what("requests for an entry"), requests / entries, self.least, self.most),
            Goal::at_least(what("the server listed"), is("readdir/cold", "server")?, 1.0),
            Goal::at_least(what("the server looked up"), is("stat/cold", "server")?, 1.0),
            Goal::at_least(what("memory looked up"), is("stat", "cached")?, 1.0),
        ])
    }
}

impl Pair {
    fn goals(&self, classes: &BTreeMap<&str, &str>) -> Vec<Goal> {
        let is_right = |(case, wanted): &(&str, &[&str])| {
            let found = classes.get(case).copied().unwrap_or("not tried");
            let is_right = wanted.contains(&found);
            if !is_right {
                eprintln!("    {}: {case} is {found}, not {}", self.name, wanted.join(" or "));
            }
            is_right
        };
        let right = self.classes.iter().filter(|it| is_right(it)).count() as f64;
        let all = self.classes.len() as f64;
        vec![Goal::within(format!("{}: classes that are right", self.name), right, all, all)]
    }
}

fn point(name: &str, classes: &BTreeMap<&str, &str>) -> Point {
    let of = |wanted: &str| classes.values().filter(|class| **class == wanted).count() as f64;
    let all = classes.len() as f64;
    let named = ["linearizable", "reopen", "timer", "never", "torn"].map(of);
    let other = all - named.iter().sum::<f64>();
    let none = [f64::NAN; 2];
    let values = [all].into_iter().chain(named).chain([other]).chain(none).collect();
    Point { name: name.to_owned(), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_and_counted() {
        let answers = r#"{"mount":"noac","said":{"tables":{"coherence-cases":[
            {"case":"a","class":"torn"},{"case":"b","class":"unknown"}]}}}
            {"mount":"other","said":{"tables":{"coherence-cases":[]}}}"#;
        let said = said(answers).unwrap();
        let classes = classes(&said["noac"]).unwrap();
        let values = point("noac", &classes).values;
        assert_eq!(values[..7], [2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(values.len(), COLUMNS.len());
        assert!(super::classes(&said["other"]).is_err());
        let pair = Pair { name: "noac", options: "", check: "", classes: &[("a", &["torn"])] };
        assert!(pair.goals(&classes).iter().all(Goal::is_met));
        let pair = Pair { classes: &[("a", FRESH), ("c", FRESH)], ..pair };
        assert!(!pair.goals(&classes).iter().any(Goal::is_met));
    }

    #[test]
    fn requests_for_entries_are_judged() {
        let found = serde_json::json!({"tables": {
            "metadata": [
                {"operation": "readdir/cold", "class": "server"},
                {"operation": "stat/cold", "class": "server"},
                {"operation": "stat", "class": "cached"},
            ],
            "metadata-details": [
                {"operation": "readdir-stat/cold", "operations": FILES, "rpcs": 5},
            ],
        }});
        let (entries, requests) = listed(&found).unwrap();
        assert_eq!((entries, requests), (200.0, 5.0));
        let met = |listing: &Listing| {
            let goals = listing.goals(&found, entries, requests).unwrap();
            goals.iter().filter(|goal| goal.is_met()).count()
        };
        assert_eq!([met(&LISTINGS[0]), met(&LISTINGS[1])], [5, 4]);
    }

    #[test]
    fn a_job_mounts_and_unmounts_each_pair() {
        let job = job(2049);
        assert_eq!(job.matches("mount_nfs /$side 2049 nosharecache,").count(), PAIRS.len());
        assert_eq!(job.matches("umount /a /b").count(), PAIRS.len());
        assert!(job.contains(r#"echo "{\"mount\":\"$1\""#), "{job}");
    }
}
