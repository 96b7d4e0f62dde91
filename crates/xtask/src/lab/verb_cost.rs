//! Counts what it takes to add a verb, by adding one to a copy of the committed tree as HACKING.md
//! says, building it and running it in every medium.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Lab;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::{output_of, root, scratch, show};

/// The files of the throw-away verb, which counts the lines of files: a crate, a document with a
/// table, a rule.
const FILES: &[(&str, &str)] = &[
    ("crates/tally/Cargo.toml", include_str!("verb_cost/cargo.toml.txt")),
    ("crates/tally/src/lib.rs", include_str!("verb_cost/lib.rs.txt")),
    ("crates/blockstone/src/verbs/tally.rs", include_str!("verb_cost/verb.rs.txt")),
    ("crates/blockstone/src/verbs/tally/args.rs", include_str!("verb_cost/args.rs.txt")),
    ("crates/blockstone/src/verbs/tally/rows.rs", include_str!("verb_cost/rows.rs.txt")),
    ("crates/blockstone/src/verbs/tally/report.rs", include_str!("verb_cost/report.rs.txt")),
    ("crates/blockstone/src/verbs/tally/rules.rs", include_str!("verb_cost/rules.rs.txt")),
    (
        "crates/blockstone/src/verbs/tally/rules/empty_file.rs",
        include_str!("verb_cost/rule.rs.txt"),
    ),
    ("crates/blockstone/tests/tally.rs", include_str!("verb_cost/test.rs.txt")),
    ("docs/tally.md", include_str!("verb_cost/docs.md.txt")),
];
/// The edits elsewhere: a file, a line of it, and the line that is added after that.
const EDITS: &[(&str, &str, &str)] = &[
    ("crates/blockstone/src/verbs.rs", "        runs,\n", "        tally,\n"),
    (
        "Cargo.toml",
        "blockstone-size = { path = \"crates/size\" }\n",
        "blockstone-tally = { path = \"crates/tally\" }\n",
    ),
    (
        "crates/blockstone/Cargo.toml",
        "blockstone-sys.workspace = true\n",
        "blockstone-tally.workspace = true\n",
    ),
    (
        "ARCHITECTURE.md",
        "| base, sys |\n",
        "| `tally` | lines of files, counted | how they are shown | base, input |\n",
    ),
];

const FILES_MAX: f64 = 10.0;
const LINES_MAX: f64 = 4.0;

const COLUMNS: &[Column] =
    &[column("new_files", "new\nfiles", 0), column("edited_lines", "edited\nlines", 0)];

pub fn run(_: &Lab) -> Result<Results> {
    let tree = scratch("verb-cost")?;
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("remove {}", tree.display()))?;
    }
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--no-hardlinks", "."]).arg(&tree).current_dir(root());
    show(&mut clone)?;
    add_the_verb(&tree)?;
    try_it(&tree)?;
    let [files, lines] = cost(&tree)?.map(|count| count as f64);
    fs::remove_dir_all(&tree).with_context(|| format!("remove {}", tree.display()))?;
    let goals = vec![
        Goal::at_most("new files of a verb", files, FILES_MAX),
        Goal::at_most("lines edited elsewhere", lines, LINES_MAX),
    ];
    let point = Point { name: "tally".to_owned(), values: vec![files, lines] };
    Ok(Results { columns: COLUMNS, points: vec![point], goals })
}

fn add_the_verb(tree: &Path) -> Result<()> {
    for (path, text) in FILES {
        let file = tree.join(path);
        ensure!(!file.exists(), "{path} is there: the throw-away verb needs another name");
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    for (path, after, line) in EDITS {
        let file = tree.join(path);
        let text = fs::read_to_string(&file).with_context(|| format!("read {path}"))?;
        ensure!(text.contains(after), "{path} has no line `{}`", after.trim());
        fs::write(&file, text.replacen(after, &format!("{after}{line}"), 1))
            .with_context(|| format!("write {path}"))?;
    }
    Ok(())
}

/// Runs tidy, clippy and the verb's own test, which checks text, JSON, CSV and page.
fn try_it(tree: &Path) -> Result<()> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(tree);
        command.env("CARGO_TARGET_DIR", root().join("target/verb-cost"));
        command
    };
    show(&mut cargo(&["xtask", "tidy"]))?;
    show(&mut cargo(&["clippy", "--package", "blockstone", "--", "-D", "warnings"]))?;
    show(&mut cargo(&["test", "--package", "blockstone", "--test", "tally"]))
}

/// Counts new files, and lines added to or removed from existing files, without generated ones.
fn cost(tree: &Path) -> Result<[usize; 2]> {
    let git = |arguments: &[&str]| output_of(Command::new("git").args(arguments).current_dir(tree));
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    let edited = git(&["diff", "--numstat", "--", ".", ":!Cargo.lock"])?;
    let lines = edited.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let added: usize = fields.next()?.parse().ok()?;
        let removed: usize = fields.next()?.parse().ok()?;
        Some(added + removed)
    });
    Ok([new.lines().count(), lines.sum()])
}
