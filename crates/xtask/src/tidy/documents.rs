//! Checks that the pages a reader starts from exist, and that their links lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::tree::{SourceFile, Tree};

const PRESENT: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "HACKING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/cli.md",
    "docs/dependencies.md",
    "docs/exit-codes.md",
    "docs/glossary.md",
    "docs/probes.md",
    "docs/recording-format.md",
    "docs/verdicts.md",
];

pub fn present(tree: &Tree) -> Vec<Finding> {
    let missing = PRESENT.iter().filter(|path| tree.file(path).is_none());
    let hint = "write it; `cargo xtask generate` writes those that derive from the code";
    let finding = |path: &&str| Finding {
        path: (*path).to_owned(),
        line: 1,
        what: "the page is missing".to_owned(),
        hint,
    };
    missing.map(finding).collect()
}

/// Relative links in Markdown lead to a file or a folder of the tree.
pub fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_a("md")) {
        for (index, target) in targets(file) {
            if !leads_somewhere(tree, &file.path, target) {
                let what = format!("broken link: {target}");
                findings.push(file.finding(
                    index,
                    what,
                    "links are relative to the folder of the page",
                ));
            }
        }
    }
    findings
}

/// Returns the targets of a page's links with the indices of their lines, leaving out code.
fn targets(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        // Every second piece between backquotes is code.
        for text in line.split('`').step_by(2).filter(|_| !in_code) {
            let links = text.split("](").skip(1);
            found.extend(links.filter_map(|rest| Some((index, rest.split_once(')')?.0))));
        }
    }
    found
}

fn leads_somewhere(tree: &Tree, page: &str, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return true;
    }
    let mut resolved = PathBuf::new();
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    for component in folder.join(path).components() {
        match component {
            Component::ParentDir => {
                if !resolved.pop() {
                    return false;
                }
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    tree.files.iter().any(|file| Path::new(&file.path).starts_with(&resolved))
}

/// Pages that sources name exist: `blockstone help docs/page.md` prints what a message names.
pub fn named(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_test() && file.package() != "xtask") {
        for (index, line) in file.text.lines().take(file.product_lines()).enumerate() {
            for page in pages(line).filter(|page| tree.file(&format!("docs/{page}")).is_none()) {
                let what = format!("there is no page {page}");
                findings.push(file.finding(index, what, "name a file of docs/"));
            }
        }
    }
    findings
}

/// Returns the pages that a line names: `docs/page.md`, `blockstone help page.md`.
fn pages(line: &str) -> impl Iterator<Item = &str> {
    let after = ["docs/", "blockstone help "].into_iter().flat_map(|it| line.split(it).skip(1));
    let name = |rest: &'_ str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        rest[end..].starts_with(".md").then_some(end + ".md".len())
    };
    after.filter_map(move |rest| Some(&rest[..name(rest)?]))
}

/// Page that names, for each promise, the test that shows it.
const PROMISES: &str = "docs/security-tests.md";

/// Each test that is named in the last column of that page's tables exists in the file named before
/// it. A cell names tests as `path.rs`: `test`, `test`; a name with a space in it is a command.
pub fn tests(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PROMISES) else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, line) in page.text.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let cell = line.trim_end_matches('|').rsplit_once(" | ").map_or("", |(_, last)| last);
        let mut file: Option<&SourceFile> = None;
        for name in cell.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')) {
            let is_file = Path::new(name).extension().is_some_and(|found| found == "rs");
            if is_file {
                file = tree.file(name);
            }
            let is_there = match file {
                Some(file) => is_file || has_test(file, name),
                None => !is_file && tree.rust().any(|file| has_test(file, name)),
            };
            if !is_there {
                let hint = "name the file from the root of the tree, then its tests";
                findings.push(page.finding(index, format!("there is no test {name}"), hint));
            }
        }
    }
    findings
}

/// Returns whether the file declares a test of that name.
fn has_test(file: &SourceFile, name: &str) -> bool {
    let head = format!("fn {name}(");
    file.text.contains("#[test]") && file.text.lines().any(|line| line.trim().starts_with(&head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        let page = SourceFile::new("docs/page.md", text);
        let other = SourceFile::new("crates/base/src/lib.rs", "");
        Tree { files: vec![page, other], packages: Vec::new() }
    }

    #[test]
    fn a_missing_page_is_found() {
        let readme = SourceFile::new("README.md", "");
        let tree = Tree { files: vec![readme], packages: Vec::new() };
        let missing = present(&tree);
        assert_eq!(missing.len(), PRESENT.len() - 1);
        assert!(missing.iter().all(|finding| finding.path != "README.md"));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        let text = "a\n[gone](gone.md) and [here](page.md#part)\n[up](../../out.md)\n";
        let lines: Vec<usize> = links(&tree(text)).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn a_page_that_a_message_names_and_that_is_gone_is_found() {
        let text = "// docs/page.md\n\"see docs/gone.md\"\n\
            \"`blockstone help lost.md`, not docs/\"\n\
            #[cfg(test)]\nmod tests {\n// docs/none.md\n";
        let source = SourceFile::new("crates/a/src/lib.rs", text);
        let mut documents = tree("");
        documents.files.push(source);
        let found: Vec<_> = named(&documents).into_iter().map(|it| (it.line, it.what)).collect();
        let gone = |page: &str| format!("there is no page {page}");
        assert_eq!(found, [(2, gone("gone.md")), (3, gone("lost.md"))]);
    }

    #[test]
    fn folders_addresses_anchors_and_code_are_no_dead_links() {
        let text = "[f](../crates/base) [a](#part) [w](https://example.org) `[c](gone.md)`\n\
            ```\n[c](gone.md)\n```\n";
        assert_eq!(links(&tree(text)), []);
    }

    #[test]
    fn a_promise_whose_test_is_gone_is_found() {
        let promises = "| promise | test |\n|---|---|\n| a | `crates/a.rs`: `holds`, `gone` |\n\
            | b | `holds` |\n| c | `cargo xtask lab x` |\n| `gone` is missing | `crates/b.rs` |\n";
        let page = SourceFile::new(PROMISES, promises);
        let source = SourceFile::new("crates/a.rs", "#[test]\n    fn holds() {\n");
        let documents = Tree { files: vec![page, source], packages: Vec::new() };
        let all = tests(&documents);
        let found: Vec<_> = all.iter().map(|it| (it.line, it.what.as_str())).collect();
        assert_eq!(found, [(3, "there is no test gone"), (6, "there is no test crates/b.rs")]);
    }
}
