//! Rules on dependencies: the order of the crates, the owners of crates that only one may use, and
//! a reason for each external dependency.

use super::Finding;
use super::tree::{Package, Tree};

/// External crates that only one crate of ours may use.
const OWNERS: &[(&str, &str)] = &[
    ("parquet", "record"),
    ("mysql", "servers"),
    ("postgres", "servers"),
    ("rusqlite", "servers"),
];

const TABLE: &str = "ARCHITECTURE.md";
const EXPLANATIONS: &str = "docs/dependencies.md";

/// Dependencies between our crates point downwards, and the table of ARCHITECTURE.md is exact: a
/// crate uses what its row names and nothing else, and a row names only crates of rows above it, so
/// that no cycle can be declared. Tests may also use the testkit.
pub fn direction(tree: &Tree) -> Vec<Finding> {
    let table = tree.file(TABLE).map_or("", |file| &file.text);
    let rows = crate_rows(table);
    let mut findings = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let is_above = |name: &&str| rows[..place].iter().any(|above| above.name == *name);
        for name in row.may_use.iter().filter(|name| !is_above(name)) {
            let what = format!("the row of {} names {name}, which has no row above it", row.name);
            findings.push(row.finding(what, "a crate stands below all that it may use"));
        }
        let Some(package) = tree.packages.iter().find(|package| package.name == row.name) else {
            let what = format!("there is no crate {}", row.name);
            findings.push(row.finding(what, "remove its row"));
            continue;
        };
        let is_used = |name: &&str| package.uses().any(|own| own == *name);
        for name in row.may_use.iter().filter(|name| row.is_list && !is_used(name)) {
            let what = format!("{} does not use {name}", row.name);
            findings.push(row.finding(what, "the column names what the crate does use"));
        }
    }
    for package in &tree.packages {
        let Some(row) = rows.iter().find(|row| row.name == package.name) else {
            let what = format!("crate {} is not in the table of crates", package.name);
            findings.push(package.finding(tree, "name", what, "add its row to ARCHITECTURE.md"));
            continue;
        };
        // A crate names itself if its tests turn on its own features.
        let is_itself = |own: &&str| *own == package.name;
        let uses = package.uses().filter(|own| !is_itself(own));
        for own in uses.filter(|own| !row.may_use.contains(own)) {
            let what = format!("{} must not use {own}", package.name);
            let hint = "dependencies point downwards only; see the table in ARCHITECTURE.md";
            findings.push(package.finding(tree, &format!("blockstone-{own}"), what, hint));
        }
    }
    findings
}

struct CrateRow<'a> {
    index: usize,
    name: &'a str,
    may_use: Vec<&'a str>,
    /// Whether it names each crate, rather than all above it.
    is_list: bool,
}

impl CrateRow<'_> {
    fn finding(&self, what: String, hint: &'static str) -> Finding {
        Finding { path: TABLE.to_owned(), line: self.index + 1, what, hint }
    }
}

/// Parses the rows of the table whose columns are the crate, two of text, and what it may use: a
/// list, a dash, `all above`, or `all above but` a list.
fn crate_rows(page: &str) -> Vec<CrateRow<'_>> {
    let mut rows: Vec<CrateRow<'_>> = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, _, _, may_use, ""] = cells[..] else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        let row = match may_use.strip_prefix("all above") {
            Some(but) => {
                let but = names(but.trim_start().trim_start_matches("but "));
                let above = rows.iter().map(|row| row.name);
                let may_use = above.filter(|name| !but.contains(name)).collect();
                CrateRow { index, name, may_use, is_list: false }
            }
            None => CrateRow { index, name, may_use: names(may_use), is_list: true },
        };
        rows.push(row);
    }
    rows
}

/// Splits a list into names; a dash is the empty list.
fn names(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|name| !["", "–"].contains(name)).collect()
}

pub fn owners(tree: &Tree) -> Vec<Finding> {
    let trespass = |package: &Package| {
        let mut findings = Vec::new();
        for (name, owner) in OWNERS {
            if package.name != *owner && package.dependencies.iter().any(|d| d.name == *name) {
                let what = format!("only {owner} may use {name}, not {}", package.name);
                let hint = "use the functions of that crate instead";
                findings.push(package.finding(tree, name, what, hint));
            }
        }
        findings
    };
    tree.packages.iter().flat_map(trespass).collect()
}

/// Every external dependency has its line in docs/dependencies.md, with its users, and the
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

struct Row<'a> {
    index: usize,
    name: &'a str,
    users: Vec<&'a str>,
}

/// Returns the rows of its table, without heading and rule.
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

    const CRATES: &str = "\
        | crate | purpose | must not know | may use |\n\
        |---|---|---|---|\n\
        | `base` | units | any I/O | – |\n\
        | `sys` | the kernel | what is measured | base |\n\
        | `judge` | verdicts | the machine | base, sys |\n\
        | `tool` | prints | – | all above but sys |\n";

    /// Returns what `direction` finds in these packages, each written as `judge: base, sys`.
    fn directions(table: &str, packages: [&str; 4]) -> Vec<String> {
        let package = |text: &str| {
            let (name, used) = text.split_once(':').unwrap();
            let dependency = |name: &str| match name.strip_prefix("dev ") {
                Some(name) => Dependency { name: format!("blockstone-{name}"), test_only: true },
                None => Dependency { name: format!("blockstone-{name}"), test_only: false },
            };
            let dependencies = names(used).into_iter().map(dependency).collect();
            Package { name: name.to_owned(), dependencies }
        };
        let files = vec![SourceFile::new(TABLE, table)];
        let tree = Tree { files, packages: packages.into_iter().map(package).collect() };
        let line = |f: Finding| format!("{}:{}: {}", f.path, f.line, f.what);
        direction(&tree).into_iter().map(line).collect()
    }

    #[test]
    fn the_table_of_crates_is_what_they_use() {
        let exact = ["base:", "sys: base, dev sys", "judge: base, sys, dev testkit", "tool: judge"];
        assert_eq!(directions(CRATES, exact), [""; 0]);
        let upward = ["base: sys", "sys: base", "judge: base, sys", "tool:"];
        assert_eq!(directions(CRATES, upward), ["crates/base/Cargo.toml:1: base must not use sys"]);
        let testkit = ["base:", "sys: base", "judge: base, sys, testkit", "tool: sys"];
        assert_eq!(
            directions(CRATES, testkit),
            [
                "crates/judge/Cargo.toml:1: judge must not use testkit",
                "crates/tool/Cargo.toml:1: tool must not use sys"
            ]
        );
        let unused = ["base:", "sys: base", "judge: base", "tool:"];
        assert_eq!(directions(CRATES, unused), ["ARCHITECTURE.md:5: judge does not use sys"]);
    }

    #[test]
    fn a_table_with_a_circle_or_without_a_crate_is_found() {
        let circle = CRATES.replace("any I/O | –", "any I/O | sys");
        let crates = ["base: sys", "sys: base", "judge: base, sys", "tool: judge"];
        let what = "the row of base names sys, which has no row above it";
        assert_eq!(directions(&circle, crates), [format!("ARCHITECTURE.md:3: {what}")]);
        let new = ["base:", "sys: base", "judge: base, sys", "new:"];
        assert_eq!(
            directions(CRATES, new),
            [
                "ARCHITECTURE.md:6: there is no crate tool",
                "crates/new/Cargo.toml:1: crate new is not in the table of crates"
            ]
        );
    }

    #[test]
    fn an_upward_dependency_is_found_with_its_line() {
        let mut tree = tree("base", "blockstone-sys", false, "");
        tree.files.push(SourceFile::new(TABLE, "| `base` | units | any I/O | – |"));
        let findings = direction(&tree);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("crates/base/Cargo.toml", 4));
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
