//! The files that derive from the code: written by `cargo xtask generate`, compared in `ci`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use blockstone_testkit::build;

use crate::workspace::{output_of, root, scratch};

/// How generated files are dealt with.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write nothing; fail when a file is not what it would be
    #[arg(long)]
    check: bool,
}

/// Something that derives from the code.
struct Generator {
    /// A file, or a folder whose files are all generated when it ends in a slash.
    output: &'static str,
    /// The texts by file name; for a single file its name is not used.
    make: fn() -> Result<BTreeMap<String, String>>,
}

const GENERATORS: &[Generator] = &[
    Generator { output: "docs/verdicts.md", make: || printed_by("rules_page") },
    Generator { output: "docs/probes.md", make: || printed_by("columns_page") },
    Generator { output: "docs/cli.md", make: || Ok(single(cli_page()?)) },
    Generator { output: "completions/", make: completions },
    Generator { output: "man/", make: man_pages },
];

/// `cargo xtask generate`.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.check {
        check()?;
        println!("generated files are current");
        return Ok(ExitCode::SUCCESS);
    }
    for change in changes()? {
        change.apply()?;
        println!("{} {}", change.verb(), change.path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails when a generated file is not what it would be.
pub fn check() -> Result<()> {
    let stale = changes()?;
    for change in &stale {
        println!(
            "{} is not current: generate would have {} it",
            change.path.display(),
            change.verb()
        );
    }
    if stale.is_empty() { Ok(()) } else { bail!("run `cargo xtask generate` and commit the files") }
}

/// A file that is not what it would be.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    /// From the root of the workspace.
    path: PathBuf,
    /// What it would hold; none when it should not be there.
    text: Option<String>,
}

impl Change {
    fn verb(&self) -> &'static str {
        if self.text.is_some() { "written" } else { "removed" }
    }

    fn apply(&self) -> Result<()> {
        let path = root().join(&self.path);
        let named = || format!("write {}", path.display());
        match &self.text {
            None => fs::remove_file(&path).with_context(named),
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(root())).with_context(named)?;
                fs::write(&path, text).with_context(named)
            }
        }
    }
}

fn changes() -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for generator in GENERATORS {
        let made = (generator.make)().with_context(|| format!("generate {}", generator.output))?;
        changes.extend(differences(root(), generator.output, made)?);
    }
    Ok(changes)
}

/// What differs between the files of one output under `root` and what they would be.
fn differences(root: &Path, output: &str, made: BTreeMap<String, String>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let folder = output.strip_suffix('/').map(Path::new);
    if let Some(folder) = folder {
        for name in file_names(&root.join(folder))? {
            if !made.contains_key(&name) {
                changes.push(Change { path: folder.join(name), text: None });
            }
        }
    }
    for (name, text) in made {
        let path = folder.map_or_else(|| PathBuf::from(output), |folder| folder.join(name));
        if fs::read_to_string(root.join(&path)).ok().as_ref() != Some(&text) {
            changes.push(Change { path, text: Some(text) });
        }
    }
    Ok(changes)
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn single(text: String) -> BTreeMap<String, String> {
    BTreeMap::from([(String::new(), text)])
}

/// What an example prints: the pages that derive from a registry are printed by the crate that
/// has it, so that xtask builds in seconds and works while that crate does not.
fn printed_by(example: &str) -> Result<BTreeMap<String, String>> {
    let program = build(&["--workspace", "--example", example])?;
    Ok(single(output_of(&mut Command::new(program))?))
}

/// The help of the command and of each verb, as a user sees it.
fn cli_page() -> Result<String> {
    let mut page = String::from(
        "# The command line\n<!-- Generated from `blockstone --help` by `cargo xtask generate`; do \
         not edit. -->\n",
    );
    let words_of = |verb: &str| verb.split('-').map(str::to_owned).collect::<Vec<_>>();
    let verbs = man_pages()?.into_keys().filter_map(|name| verb_of(&name).map(words_of));
    for words in std::iter::once(Vec::new()).chain(verbs) {
        let heading = ["blockstone"].into_iter().chain(words.iter().map(String::as_str));
        let heading = heading.collect::<Vec<_>>().join(" ");
        let help = output_of(blockstone()?.args(&words).arg("--help"))?;
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(page, "\n## {heading}\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    Ok(page)
}

/// The verb whose manual page has this name: `calibrate` for `blockstone-calibrate.1`, and
/// `flash-cliff` for the page of `flash cliff`.
fn verb_of(page: &str) -> Option<&str> {
    page.strip_prefix("blockstone-")?.strip_suffix(".1").filter(|verb| !verb.ends_with("help"))
}

fn completions() -> Result<BTreeMap<String, String>> {
    let shells = ["bash", "elvish", "fish", "zsh"];
    let script = |shell: &str| {
        let text = output_of(blockstone()?.args(["completions", shell]))?;
        Ok((format!("blockstone.{shell}"), text))
    };
    shells.into_iter().map(script).collect()
}

fn man_pages() -> Result<BTreeMap<String, String>> {
    let dir = scratch("man")?;
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("empty {}", dir.display()))?;
    }
    output_of(blockstone()?.arg("man").arg(&dir))?;
    let mut pages = BTreeMap::new();
    for name in file_names(&dir)? {
        let path = dir.join(&name);
        let text = fs::read_to_string(&path);
        pages.insert(name, text.with_context(|| format!("read {}", path.display()))?);
    }
    Ok(pages)
}

/// The built binary, at a width and without colours that do not depend on who generates.
fn blockstone() -> Result<Command> {
    let mut command = Command::new(build(&["--workspace", "--bin", "blockstone"])?);
    command.env("COLUMNS", "100").env("NO_COLOR", "1").stdin(Stdio::null());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_testkit::ScratchDir;

    fn made<const N: usize>(texts: [(&str, &str); N]) -> BTreeMap<String, String> {
        texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    }

    #[test]
    fn a_changed_a_missing_and_a_surplus_file_are_found() {
        let dir = ScratchDir::on_disk().unwrap();
        fs::create_dir(dir.path().join("man")).unwrap();
        for (name, text) in [("same", "1"), ("changed", "old"), ("surplus", "3")] {
            fs::write(dir.path().join("man").join(name), text).unwrap();
        }
        let made = made([("same", "1"), ("changed", "new"), ("missing", "4")]);
        let mut found = differences(dir.path(), "man/", made).unwrap();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let change = |name: &str, text: Option<&str>| Change {
            path: Path::new("man").join(name),
            text: text.map(str::to_owned),
        };
        let expected =
            [change("changed", Some("new")), change("missing", Some("4")), change("surplus", None)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_single_file_is_compared_by_its_text() {
        let dir = ScratchDir::on_disk().unwrap();
        fs::write(dir.path().join("page.md"), "1").unwrap();
        assert_eq!(differences(dir.path(), "page.md", made([("", "1")])).unwrap(), []);
        assert_eq!(differences(dir.path(), "page.md", made([("", "2")])).unwrap().len(), 1);
    }

    #[test]
    fn a_verb_is_read_from_its_manual_page() {
        assert_eq!(verb_of("blockstone-calibrate.1"), Some("calibrate"));
        assert_eq!(verb_of("blockstone.1"), None);
        assert_eq!(verb_of("blockstone-help.1"), None);
    }
}
