//! Hints are parts of errors. The program that prints them must know every error that has one, and
//! no message contains its hint as text.

use super::Finding;
use super::tree::{SourceFile, Tree};

/// File that lists the errors with hints.
const LIST: &str = "crates/blockstone/src/failure.rs";

/// Crates that print no errors of their own, whose errors only errors of other crates carry, or
/// that serve developers.
const LEFT_OUT: [&str; 5] = ["fuzz", "hint", "instance", "testkit", "xtask"];

/// Files that print a hint below a text which is not an error, or that read old manifests.
const MAY_WRITE: [&str; 7] = [
    "crates/base/src/hint.rs",
    "crates/blockstone/src/cli.rs",
    "crates/blockstone/src/printer.rs",
    "crates/blockstone/src/verbs/runs.rs",
    "crates/blockstone/src/verbs/watch/export.rs",
    "crates/record/src/manifest.rs",
    "crates/sys/src/heap.rs",
];

/// Finds types that derive `Hint` and are not listed, so that their hints would not be printed.
pub fn listed(tree: &Tree) -> Vec<Finding> {
    let list = tree.file(LIST).map_or("", |file| &file.text);
    let files = tree.rust().filter(|file| is_meant(file) && file.path != LIST);
    let mut findings = Vec::new();
    for file in files {
        let lines: Vec<&str> = file.code().collect();
        let derives = |line: &str| line.starts_with("#[derive(") && line.contains("Hint");
        for (index, _) in lines.iter().enumerate().filter(|(_, line)| derives(line)) {
            let Some(name) = lines[index..].iter().find_map(|line| name(line)) else { continue };
            if !list.contains(&format!("::{name}>,")) {
                let what = format!("the hint of `{name}` is not printed");
                findings.push(file.finding(line_of(file, name), what, "list it in failure.rs"));
            }
        }
    }
    findings
}

/// Finds messages that contain their hint.
pub fn apart(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust().filter(|file| is_meant(file) && !file.path.contains("/tests"));
    let files = files.filter(|file| !MAY_WRITE.contains(&&*file.path));
    let mut findings = Vec::new();
    for file in files {
        let lines = file.text.lines().take(file.product_lines()).enumerate();
        let is_within = |line: &str| line.contains("\\nhint: ") || line.contains("\"hint: ");
        for (index, _) in lines.filter(|(_, line)| is_within(line)) {
            let what = "a message that contains its hint";
            findings.push(file.finding(index, what, "give the error a `#[hint(…)]`"));
        }
    }
    findings
}

fn is_meant(file: &SourceFile) -> bool {
    !LEFT_OUT.contains(&file.package()) && !file.is_test() && file.path.contains("/src/")
}

/// Returns the name of the type that a line declares.
fn name(line: &str) -> Option<&str> {
    let declared = line.trim_start_matches("pub ");
    let name = declared.strip_prefix("enum ").or_else(|| declared.strip_prefix("struct "))?;
    name.split([' ', '(', '<', ';']).next()
}

fn line_of(file: &SourceFile, name: &str) -> usize {
    let of = |kind: &str| format!("{kind} {name}");
    let [an_enum, a_struct] = ["enum", "struct"].map(of);
    let is_it = |line: &str| line.contains(&an_enum) || line.contains(&a_struct);
    file.text.lines().position(is_it).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        let list = SourceFile::new(LIST, "    of::<blockstone_a::KnownError>,\n");
        let files = vec![list, SourceFile::new("crates/a/src/error.rs", text)];
        Tree { files, packages: Vec::new() }
    }

    #[test]
    fn an_error_whose_hint_is_not_printed_is_found() {
        let of =
            |name: &str| format!("#[derive(Debug, Hint)]\n#[error(\"x\")]\npub enum {name} {{");
        assert!(listed(&tree(&of("KnownError"))).is_empty());
        assert_eq!(listed(&tree(&of("NewError"))).len(), 1);
    }

    #[test]
    fn a_message_that_contains_its_hint_is_found() {
        assert_eq!(apart(&tree("bail!(\"no file\\nhint: name one\")")).len(), 1);
        assert!(apart(&tree("#[hint(\"name one\")]")).is_empty());
    }
}
