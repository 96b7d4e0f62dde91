//! The form of the sources: where unsafe code may be, how long files and lines may get, how a crate
//! and a comment open, how a test may be skipped, and that registries are complete.

use super::Finding;
use super::tree::{SourceFile, Tree};

const FILE_LINES_MAX: usize = 600;
const MAIN_LINES_MAX: usize = 80;
const LINE_WIDTH_MAX: usize = 100;

/// Words with which a comment begins that is only a relative clause, or that says nothing without
/// the one before it: in a schema each stands alone.
const RELATIVES: [&str; 6] = ["What", "Who", "Whoever", "Whatever", "Nobody", "Likewise"];
/// Words that hide which user, program or session is meant, in lower case.
const VAGUE: [&str; 2] = ["nobody", "somebody"];

/// Attribute by which a crate of the program denies what clippy.toml lists; CI makes each warning
/// an error.
const DENIED: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]";
/// The crate that has the dangerous calls, and the crates that are developers' tools.
const FREE: [&str; 4] = ["sys", "testkit", "xtask", "fuzz"];

/// Folder of the tests that take turns.
const TAKING_TURNS: &str = "crates/blockstone/tests/end_to_end/";

/// Folders whose members are listed by a `registry.rs` in them or next to them, and what the code
/// of a member contains.
const REGISTRIES: &[(&str, &str)] = &[
    ("crates/engine/src/", "Engine for "),
    ("crates/probe/src/", "Probe for "),
    ("crates/servers/src/", "Target for "),
    ("crates/servers/src/monitor/", "-> Result<Box<dyn Monitor>"),
    ("crates/reduce/src/page/", ": Format = Format {"),
    ("crates/reduce/src/generate/", ": Kind = Kind {"),
    ("crates/trace/src/", ": Format = Format {"),
    ("crates/view/src/views/", ": View = View {"),
    ("crates/judge/src/rules/", "const ABOUT: About"),
    ("crates/blockstone/src/verbs/check/", "const CHECK: Check"),
    ("crates/xtask/src/bench/", "pub fn run(options: &Options)"),
    ("crates/xtask/src/lab/", "pub fn run(lab: &Lab)"),
];

/// Every crate keeps to the lints of the workspace, which deny unsafe code; only sys allows it.
pub fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let hint = "move it to crates/sys, behind a safe function";
    let others = tree.rust().filter(|file| file.package() != "sys");
    let allows = |line: &str| line.starts_with('#') && line.contains("unsafe_code");
    let mut findings = lines_with(others, allows, "unsafe code outside of crates/sys", hint);
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let unbound = manifests.filter(|file| !file.text.contains("[lints]\nworkspace = true"));
    findings.extend(unbound.map(|file| {
        let hint = "add `[lints]` with `workspace = true`";
        file.finding(0, "a crate without the lints of the workspace", hint)
    }));
    findings
}

/// Calls that reach a file, a program or a thread in a way that others can direct elsewhere are
/// only in sys: clippy.toml lists the methods, and each crate of the program denies them.
pub fn dangerous_calls(tree: &Tree) -> Vec<Finding> {
    let ours = |file: &&SourceFile| !FREE.contains(&file.package());
    let hint = "add the line after the documentation of the crate";
    let is_root = |file: &&SourceFile| {
        file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs")
    };
    let open = tree.rust().filter(ours).filter(is_root);
    let open = open.filter(|file| !file.text.lines().any(|line| line == DENIED));
    let mut findings: Vec<Finding> =
        open.map(|file| file.finding(0, format!("a crate without `{DENIED}`"), hint)).collect();
    for file in tree.rust().filter(ours).filter(|file| !file.is_test()) {
        for (index, line) in file.text.lines().take(file.product_lines()).enumerate() {
            let code = line.trim_start();
            if code.starts_with("//") || line == DENIED {
                continue;
            }
            if code.contains("clippy::disallowed_methods") {
                let hint = "move the call to crates/sys, behind a safe function";
                findings.push(file.finding(index, "a dangerous call is allowed", hint));
            }
            // Not a method that clippy could list: what is opened relative to it is a path.
            if code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "CWD") {
                let hint = "use sys::path or sys::held, which hold the directory";
                findings.push(file.finding(index, "a path relative to no held directory", hint));
            }
        }
    }
    findings
}

/// A module is in `foo.rs` next to `foo/`.
pub fn module_files(tree: &Tree) -> Vec<Finding> {
    let old = tree.files.iter().filter(|file| file.path.ends_with("/mod.rs"));
    let hint = "name it after its folder and put it beside the folder";
    old.map(|file| file.finding(0, "a file called mod.rs", hint)).collect()
}

/// A file has one subject, and a `main.rs` reads as the outline of its program.
pub fn file_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_test()) {
        let is_main = file.path.ends_with("/src/main.rs");
        let most = if is_main { MAIN_LINES_MAX } else { FILE_LINES_MAX };
        let lines = file.product_lines();
        if lines > most {
            let what = format!("{lines} lines before the tests, {most} are allowed");
            findings.push(file.finding(most, what, "move a part of it to a file of its own"));
        }
    }
    findings
}

/// Lines fit next to each other on a screen, where no formatter sees to it.
pub fn line_width(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let narrow = |file: &&SourceFile| file.is_a("rs") || file.is_a("toml");
    for file in tree.files.iter().filter(narrow) {
        for (index, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > LINE_WIDTH_MAX {
                let what = format!("{width} columns, {LINE_WIDTH_MAX} are allowed");
                findings.push(file.finding(index, what, "break the line, or the string in it"));
            }
        }
    }
    findings
}

/// A comment is a noun phrase or a sentence with a subject, and its subject is a thing that has a
/// name. Only its first line is judged for how it begins, because later ones are in mid-sentence.
pub fn comments(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let mut in_comment = false;
        for (index, line) in file.text.lines().enumerate() {
            let text = comment(line);
            let opens = text.is_some() && !in_comment;
            in_comment = text.is_some();
            let Some(text) = text else { continue };
            let first = text.split_once(' ').map_or("", |(first, _)| first);
            if opens && RELATIVES.contains(&first) {
                let what = format!("a comment that begins with `{first}`");
                let hint = "write a noun phrase, or a sentence with a subject and a verb";
                findings.push(file.finding(index, what, hint));
            }
            let lower = text.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = words.find(|word| VAGUE.contains(word)) {
                let hint = "name the user, program or session that is meant";
                findings.push(file.finding(index, format!("a comment with `{word}`"), hint));
            }
        }
    }
    findings
}

/// Returns the text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim_start())
}

/// A crate opens with what it is for; a library shows how it is used.
pub fn crate_opening(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let is_library = file.path.ends_with("/src/lib.rs");
        if !is_library && !file.path.ends_with("/src/main.rs") {
            continue;
        }
        let hint = "start lib.rs with `//!`: purpose, what it must not know, main type, example";
        if !file.text.starts_with("//! ") {
            findings.push(file.finding(0, "the crate documentation lacks its purpose", hint));
        } else if is_library && !file.text.contains("//! ```") {
            findings.push(file.finding(0, "the crate documentation has no example", hint));
        }
    }
    findings
}

/// A skipped test is counted, which only the testkit does.
pub fn silent_skips(tree: &Tree) -> Vec<Finding> {
    let hint =
        "use blockstone_testkit::require!, which reports and counts skips and can forbid them";
    let ignored = lines_with(tree.rust(), |it| it.starts_with("#[ignore"), "an ignored test", hint);
    let others = tree.rust().filter(|file| !["testkit", "xtask"].contains(&file.package()));
    let silent =
        lines_with(others, |line| line.contains("\"SKIP"), "a skip that is not counted", hint);
    [ignored, silent].concat()
}

/// The end-to-end tests run at the same time; how many of them run together, and with which others,
/// is decided by the turn that each takes.
pub fn turns(tree: &Tree) -> Vec<Finding> {
    let hint = "begin it with `Place::beside()` or `Turn::beside()`; if it measures, with \
                `Place::new()` or `Turn::alone()`";
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with(TAKING_TURNS)) {
        let lines: Vec<&str> = file.text.lines().collect();
        let begins = lines.iter().enumerate().filter(|(_, line)| **line == "#[test]");
        for (index, _) in begins {
            let mut test = lines[index..].iter().take_while(|line| **line != "}");
            if !test.any(|line| line.contains("Place::") || line.contains("Turn::")) {
                findings.push(file.finding(index, "a test that takes no turn", hint));
            }
        }
    }
    findings
}

/// Every engine, probe and rule that has a file is registered.
pub fn registries(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known = Vec::new();
    for (folder, marker) in REGISTRIES {
        let beside = folder.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
        let lists = [format!("{folder}registry.rs"), format!("{beside}/registry.rs")];
        let Some(list) = lists.iter().find_map(|path| tree.file(path)) else { continue };
        known.push(&list.path);
        for file in tree.rust() {
            let Some(stem) = member(file, folder, marker) else { continue };
            let not_in_a_name = |c: char| !c.is_alphanumeric() && c != '_';
            if !list.code().any(|line| line.split(not_in_a_name).any(|word| word == stem)) {
                let what = format!("{} does not list it", list.path);
                findings.push(file.finding(0, what, "add its line, or remove the file"));
            }
        }
    }
    let registries = tree.rust().filter(|file| file.path.ends_with("/registry.rs"));
    let new = registries.filter(|file| !known.contains(&&file.path));
    let hint = "add it to REGISTRIES in crates/xtask/src/tidy/sources.rs";
    findings.extend(new.map(|file| file.finding(0, "a registry that tidy does not know", hint)));
    findings
}

/// Returns the name under which the registry of a folder must list this file, if it must.
fn member<'a>(file: &'a SourceFile, folder: &str, marker: &str) -> Option<&'a str> {
    let stem = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let is_member = file.code().any(|line| line.contains(marker));
    (is_member && stem != "registry" && !stem.contains('/')).then_some(stem)
}

/// Returns a finding for each line, tests included, that `matches` without its indentation.
fn lines_with<'a>(
    files: impl Iterator<Item = &'a SourceFile>,
    matches: impl Fn(&str) -> bool,
    what: &str,
    hint: &'static str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let found = file.text.lines().enumerate().filter(|(_, line)| matches(line.trim_start()));
        findings.extend(found.map(|(index, _)| file.finding(index, what, hint)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree<const N: usize>(files: [(&str, &str); N]) -> Tree {
        let files = files.map(|(path, text)| SourceFile::new(path, text));
        Tree { files: files.into(), packages: Vec::new() }
    }

    /// Returns the lines that a check finds in one file.
    fn lines(check: super::super::Check, path: &str, text: &str) -> Vec<usize> {
        check(&tree([(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_code_is_found_outside_of_sys_only() {
        let text = "// unsafe_code\nmod a {\n    #![allow(unsafe_code)]\n}\n";
        assert_eq!(lines(unsafe_code, "crates/base/src/a.rs", text), [3]);
        assert!(lines(unsafe_code, "crates/sys/src/a.rs", text).is_empty());
        let in_tests = "#[cfg(test)]\nmod tests {\n    #[expect(unsafe_code)]\n}\n";
        assert_eq!(lines(unsafe_code, "crates/base/src/a.rs", in_tests), [3]);
        let manifest = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        assert!(lines(unsafe_code, "crates/a/Cargo.toml", manifest).is_empty());
        assert_eq!(lines(unsafe_code, "crates/a/Cargo.toml", "[package]\n"), [1]);
    }

    #[test]
    fn dangerous_calls_are_found_outside_of_sys_only() {
        let root = format!("//! A crate.\n\n{DENIED}\n");
        assert!(lines(dangerous_calls, "crates/a/src/lib.rs", &root).is_empty());
        assert_eq!(lines(dangerous_calls, "crates/a/src/lib.rs", "//! A crate.\n"), [1]);
        assert!(lines(dangerous_calls, "crates/sys/src/lib.rs", "//! A crate.\n").is_empty());
        let text = "// CWD\n#[expect(clippy::disallowed_methods)]\nstatat(CWD, p);\nFLAGS_CWD;\n";
        assert_eq!(lines(dangerous_calls, "crates/a/src/a.rs", text), [2, 3]);
        assert!(lines(dangerous_calls, "crates/sys/src/a.rs", text).is_empty());
        let in_tests = "#[cfg(test)]\nmod tests {\n    statat(CWD, p);\n}\n";
        assert!(lines(dangerous_calls, "crates/a/src/a.rs", in_tests).is_empty());
    }

    #[test]
    fn mod_rs_is_found() {
        assert_eq!(lines(module_files, "crates/base/src/a/mod.rs", ""), [1]);
        assert!(lines(module_files, "crates/base/src/a.rs", "").is_empty());
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(lines(file_length, "crates/a/src/a.rs", &long), [FILE_LINES_MAX + 1]);
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{long}", "\n".repeat(FILE_LINES_MAX));
        assert!(lines(file_length, "crates/a/src/a.rs", &tested).is_empty());
        assert!(lines(file_length, "crates/a/tests/a.rs", &long).is_empty());
        let main = "\n".repeat(MAIN_LINES_MAX + 1);
        assert_eq!(lines(file_length, "crates/a/src/main.rs", &main), [MAIN_LINES_MAX + 1]);
    }

    #[test]
    fn a_wide_line_is_found_by_its_characters() {
        let text = format!("\n{}\n{}\n", "µ".repeat(100), "µ".repeat(101));
        assert_eq!(lines(line_width, "crates/a/src/a.rs", &text), [3]);
        assert!(lines(line_width, "docs/a.md", &text).is_empty());
    }

    #[test]
    fn a_comment_that_is_a_relative_clause_is_found_at_its_first_line_only() {
        let text = "//! What it does.\n\n/// Work, and\n/// What is left of it.\nstruct A {\n\
                    \x20   /// Whatever remains.\n    a: u8,\n    // Whose turn it is.\n}\n";
        assert_eq!(lines(comments, "crates/a/src/a.rs", text), [1, 6]);
        assert!(lines(comments, "docs/a.md", text).is_empty());
    }

    #[test]
    fn a_comment_about_unnamed_persons_is_found() {
        let [first, second] = VAGUE;
        let text = format!("/// Held by {first}.\nfn f() {{}}\n// Read by {second}_else.\n");
        assert_eq!(lines(comments, "crates/a/tests/a.rs", &text), [1], "whole words only");
        let text = format!("let a = \"{first}\";\n// Left to {second}.\n");
        assert_eq!(lines(comments, "crates/a/tests/a.rs", &text), [2], "comments only");
    }

    #[test]
    fn a_crate_without_purpose_or_example_is_found() {
        assert_eq!(lines(crate_opening, "crates/a/src/lib.rs", "use b;\n"), [1]);
        assert_eq!(lines(crate_opening, "crates/a/src/lib.rs", "//! Purpose.\n"), [1]);
        assert!(lines(crate_opening, "crates/a/src/lib.rs", "//! P.\n//! ```\n").is_empty());
        assert!(lines(crate_opening, "crates/a/src/main.rs", "//! Purpose.\n").is_empty());
    }

    #[test]
    fn a_skip_that_is_not_counted_is_found() {
        let text = "#[test]\n#[ignore]\nfn f() {\n    eprintln!(\"SKIP: no root\");\n}\n";
        assert_eq!(lines(silent_skips, "crates/a/tests/a.rs", text), [2, 4]);
    }

    #[test]
    fn a_test_that_takes_no_turn_is_found() {
        let of = |name: &str, first: &str| format!("#[test]\nfn {name}() {{\n    {first}\n}}\n");
        let text = of("a", "let place = Place::beside();") + &of("b", "run();");
        assert_eq!(lines(turns, "crates/blockstone/tests/end_to_end/run.rs", &text), [5]);
        assert!(lines(turns, "crates/blockstone/tests/compare.rs", &text).is_empty());
    }

    #[test]
    fn a_file_that_its_registry_does_not_list_is_found() {
        let list = ("crates/engine/src/registry.rs", "pub const ALL: &[Entry] = &[psync::ENTRY];");
        let engine = "impl Engine for E {}";
        let found = |path, text| registries(&tree([list, (path, text)])).len();
        assert_eq!(found("crates/engine/src/psync.rs", engine), 0);
        assert_eq!(found("crates/engine/src/uring.rs", engine), 1);
        assert_eq!(found("crates/engine/src/helper.rs", "fn f() {}"), 0);
        let fake = "#[cfg(test)]\nmod tests {\nimpl Engine for Fake {}";
        assert_eq!(found("crates/engine/src/helper.rs", fake), 0);
        assert_eq!(found("crates/new/src/registry.rs", ""), 1, "tidy must know it");
    }
}
