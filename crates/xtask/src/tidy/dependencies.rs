//! Who may use whom: the order of the crates, the owners of what only one may touch, and a reason
//! for each dependency from elsewhere.

use super::Finding;
use super::tree::{Package, Tree};

/// Each crate, and the crates of this workspace that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("sys", &["base"]),
    ("engine", &["base", "sys"]),
    ("probe", &["base", "sys"]),
    ("record", &["base"]),
    ("instance", &["base", "sys", "engine"]),
    ("target", &["base", "sys", "instance"]),
    ("workload", &["base", "sys", "engine", "target"]),
    ("measure", &["base", "sys", "probe", "record"]),
    ("run", &["base", "sys", "record", "target", "workload", "measure"]),
    ("calibrate", &["base", "sys", "engine", "record", "measure"]),
    ("scan", &["base", "sys", "engine", "record", "reduce"]),
    ("judge", &["base", "record"]),
    ("flash", &["base"]),
    ("reduce", &["base"]),
    ("view", &["base", "record"]),
    ("report", &["base", "record", "judge", "view"]),
    ("screen", &["base", "record", "report", "view"]),
    ("watch", &["base", "sys", "record", "target", "probe", "measure", "view"]),
    (
        "blockstone",
        &[
            "base",
            "sys",
            "engine",
            "probe",
            "record",
            "target",
            "workload",
            "measure",
            "calibrate",
            "run",
            "judge",
            "flash",
            "reduce",
            "scan",
            "report",
            "view",
            "screen",
            "watch",
        ],
    ),
    ("testkit", &["base", "sys"]),
    ("xtask", &["base", "sys", "testkit"]),
];

/// Crates from elsewhere that belong to one crate of ours.
const OWNERS: &[(&str, &str)] =
    &[("parquet", "record"), ("mysql", "target"), ("postgres", "target"), ("rusqlite", "target")];

const EXPLANATIONS: &str = "docs/dependencies.md";

/// Dependencies between our crates point downwards. Tests may also use the testkit.
pub fn direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == package.name) else {
            let what = format!("crate {} has no place in the order of the crates", package.name);
            let hint = "add it to DESIGN.md's table and to MAY_USE in crates/xtask/src/tidy";
            findings.push(package.finding(tree, "name", what, hint));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(own) = dependency.own() else { continue };
            let in_tests = dependency.test_only && own == "testkit";
            if !in_tests && !allowed.contains(&own) {
                let what = format!("{} must not use {own}", package.name);
                let hint = "dependencies point downwards only; MAY_USE in crates/xtask/src/tidy";
                findings.push(package.finding(tree, &dependency.name, what, hint));
            }
        }
    }
    findings
}

/// What only one crate may touch.
pub fn owners(tree: &Tree) -> Vec<Finding> {
    let trespass = |package: &Package| {
        let mut findings = Vec::new();
        for (name, owner) in OWNERS {
            if package.name != *owner && package.dependencies.iter().any(|d| d.name == *name) {
                let what = format!("only {owner} may use {name}, not {}", package.name);
                let hint = "ask that crate for what you need";
                findings.push(package.finding(tree, name, what, hint));
            }
        }
        findings
    };
    tree.packages.iter().flat_map(trespass).collect()
}

/// Every dependency from elsewhere has its line in docs/dependencies.md, with its users, and the
/// page has no line for one that is gone.
pub fn explained(tree: &Tree) -> Vec<Finding> {
    const HINT: &str = "a line is `| crate | used by | why it earns its place |`";
    let page = tree.file(EXPLANATIONS).map_or("", |file| &file.text);
    let mut findings = Vec::new();
    for package in &tree.packages {
        for dependency in package.dependencies.iter().filter(|d| d.own().is_none()) {
            let row = rows(page).find(|row| row.name == dependency.name);
            let what = match row {
                None => format!("{} has no line in {EXPLANATIONS}", dependency.name),
                Some(row) if !row.users.contains(&package.name.as_str()) => {
                    let name = &dependency.name;
                    format!("{EXPLANATIONS} does not say that {} uses {name}", package.name)
                }
                Some(_) => continue,
            };
            findings.push(package.finding(tree, &dependency.name, what, HINT));
        }
    }
    for row in rows(page) {
        for user in row.users {
            let uses = |package: &&Package| {
                package.name == user && package.dependencies.iter().any(|d| d.name == row.name)
            };
            if !tree.packages.iter().any(|package| uses(&package)) {
                let what = format!("{user} does not use {}", row.name);
                let path = EXPLANATIONS.to_owned();
                findings.push(Finding { path, line: row.index + 1, what, hint: HINT });
            }
        }
    }
    findings
}

/// A row of the page.
struct Row<'a> {
    index: usize,
    name: &'a str,
    users: Vec<&'a str>,
}

/// The rows of its table, without heading and rule.
fn rows(page: &str) -> impl Iterator<Item = Row<'_>> {
    page.lines().enumerate().filter_map(|(index, line)| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let name = cells.next()?.trim_matches('`');
        let users = cells.next()?.split(',').map(str::trim).collect();
        let is_row = name != "crate" && !name.starts_with("--");
        is_row.then_some(Row { index, name, users })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{Dependency, SourceFile};

    fn tree(package: &str, dependency: &str, test_only: bool, page: &str) -> Tree {
        let manifest = format!("[package]\nname = \"{package}\"\n[dependencies]\n{dependency} = 1");
        let dependencies = vec![Dependency { name: dependency.to_owned(), test_only }];
        Tree {
            files: vec![
                SourceFile::new(format!("crates/{package}/Cargo.toml"), manifest),
                SourceFile::new(EXPLANATIONS, page),
            ],
            packages: vec![Package { name: package.to_owned(), dependencies }],
        }
    }

    #[test]
    fn an_upward_dependency_is_found_with_its_line() {
        let findings = direction(&tree("base", "blockstone-sys", false, ""));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("crates/base/Cargo.toml", 4));
        assert!(direction(&tree("sys", "blockstone-base", false, "")).is_empty());
        assert_eq!(direction(&tree("new", "serde", false, "")).len(), 1, "no place in the order");
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert!(direction(&tree("judge", "blockstone-testkit", true, "")).is_empty());
        assert_eq!(direction(&tree("judge", "blockstone-testkit", false, "")).len(), 1);
    }

    #[test]
    fn parquet_belongs_to_record() {
        assert_eq!(owners(&tree("judge", "parquet", false, "")).len(), 1);
        assert!(owners(&tree("record", "parquet", false, "")).is_empty());
    }

    #[test]
    fn a_dependency_without_a_line_and_a_line_without_a_dependency_are_found() {
        let page = "| crate | used by | why |\n|---|---|---|\n| serde | base | text |\n";
        assert!(explained(&tree("base", "serde", false, page)).is_empty());
        assert_eq!(explained(&tree("base", "libc", false, "")).len(), 1, "no line");
        let other = explained(&tree("sys", "serde", false, page));
        assert_eq!(other.len(), 2, "sys is not named, and base does not use it: {other:?}");
        let both = page.replace("| base |", "| base, sys |");
        assert_eq!(explained(&tree("base", "serde", false, &both)).len(), 1, "sys does not use it");
    }
}
