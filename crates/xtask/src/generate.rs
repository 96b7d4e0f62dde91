//! The files that derive from the code: written by `cargo xtask generate`, compared in `ci`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail};
use blockstone_testkit::{Need, build, skipped_without};

use crate::dist::{command, man_pages};
use crate::workspace::{output_of, root, scratch, show};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write nothing; fail when a file is not what it would be
    #[arg(long)]
    check: bool,
}

struct Generator {
    /// A file, or a folder whose files are all generated when it ends in a slash.
    output: &'static str,
    /// What it takes beside Rust.
    need: Option<Need>,
    /// The contents by file name; for a single file its name is not used.
    make: fn() -> Result<Files>,
}

type Files = BTreeMap<String, Vec<u8>>;
/// What was not generated, and why.
pub type Skipped = Vec<(String, String)>;

const GENERATORS: &[Generator] = &[
    Generator {
        output: "crates/sys/bpf/io.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("io.bpf.c"),
    },
    plain("docs/verdicts.md", || printed_by("rules_page")),
    plain("docs/probes.md", || printed_by("columns_page")),
    plain("docs/views.md", || printed_by("views_page")),
    plain("docs/cli.md", || Ok(single(cli_page()?))),
];

const fn plain(output: &'static str, make: fn() -> Result<Files>) -> Generator {
    Generator { output, need: None, make }
}

pub fn run(options: &Options) -> Result<ExitCode> {
    if options.check {
        check()?;
        println!("generated files are current");
        return Ok(ExitCode::SUCCESS);
    }
    for change in changes(&mut Skipped::new())? {
        change.apply()?;
        println!("{} {}", change.verb(), change.path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails when a generated file is not what it would be; returns what could not be compared.
pub fn check() -> Result<Skipped> {
    let mut skipped = Skipped::new();
    let stale = changes(&mut skipped)?;
    for change in &stale {
        println!(
            "{} is not current: generate would have {} it",
            change.path.display(),
            change.verb()
        );
    }
    if !stale.is_empty() {
        bail!("run `cargo xtask generate` and commit the files");
    }
    Ok(skipped)
}

/// A file that is not what it would be.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    /// From the root of the workspace.
    path: PathBuf,
    /// What it would hold; none when it should not be there.
    content: Option<Vec<u8>>,
}

impl Change {
    fn verb(&self) -> &'static str {
        if self.content.is_some() { "written" } else { "removed" }
    }

    fn apply(&self) -> Result<()> {
        let path = root().join(&self.path);
        let named = || format!("write {}", path.display());
        match &self.content {
            None => fs::remove_file(&path).with_context(named),
            Some(content) => {
                fs::create_dir_all(path.parent().unwrap_or(root())).with_context(named)?;
                fs::write(&path, content).with_context(named)
            }
        }
    }
}

fn changes(skipped: &mut Skipped) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for generator in GENERATORS {
        let missing = generator.need.map_or(Ok(None), skipped_without);
        let missing = missing.map_err(|why| anyhow!("generate {}: {why}", generator.output))?;
        if let Some(reason) = missing {
            println!("SKIP {}: {reason}", generator.output);
            skipped.push((generator.output.to_owned(), reason));
            continue;
        }
        let made = (generator.make)().with_context(|| format!("generate {}", generator.output))?;
        changes.extend(differences(root(), generator.output, made)?);
    }
    Ok(changes)
}

/// What differs between the files of one output under `root` and what they would be.
fn differences(root: &Path, output: &str, made: Files) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let folder = output.strip_suffix('/').map(Path::new);
    if let Some(folder) = folder {
        for name in file_names(&root.join(folder))? {
            if !made.contains_key(&name) {
                changes.push(Change { path: folder.join(name), content: None });
            }
        }
    }
    for (name, content) in made {
        let path = folder.map_or_else(|| PathBuf::from(output), |folder| folder.join(name));
        if fs::read(root.join(&path)).ok().as_ref() != Some(&content) {
            changes.push(Change { path, content: Some(content) });
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

fn single(content: impl Into<Vec<u8>>) -> Files {
    Files::from([(String::new(), content.into())])
}

/// What the compiler makes of a program for the kernel. The object keeps the descriptions of types
/// that fit it to a running kernel; the rest of what a debugger would want is dropped, and with it
/// every trace of where it was compiled.
fn kernel_programs(source: &str) -> Result<Files> {
    let object = scratch("kernel-programs.o")?;
    let mut compiler = Command::new("clang-14");
    compiler.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fdebug-compilation-dir=."]);
    compiler.args(["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unused-function"]);
    compiler.args(["-c", source, "-o"]).arg(&object).current_dir(root().join("crates/sys/bpf"));
    show(&mut compiler)?;
    show(Command::new("llvm-strip-14").arg("--strip-debug").arg(&object))?;
    let content = fs::read(&object).with_context(|| format!("read {}", object.display()))?;
    Ok(single(content))
}

/// What an example prints: the pages that derive from a registry are printed by the crate that
/// has it, so that xtask builds in seconds and works while that crate does not.
fn printed_by(example: &str) -> Result<Files> {
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
    let blockstone = build(&["--workspace", "--bin", "blockstone"])?;
    let verbs = man_pages(&blockstone)?.into_keys().filter_map(|name| verb_of(&name).map(words_of));
    for words in std::iter::once(Vec::new()).chain(verbs) {
        let heading = ["blockstone"].into_iter().chain(words.iter().map(String::as_str));
        let heading = heading.collect::<Vec<_>>().join(" ");
        let help = output_of(command(&blockstone).args(&words).arg("--help"))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_testkit::ScratchDir;

    fn made<const N: usize>(texts: [(&str, &str); N]) -> Files {
        texts.map(|(name, text)| (name.to_owned(), text.into())).into()
    }

    #[test]
    fn a_changed_a_missing_and_a_surplus_file_are_found() {
        let dir = ScratchDir::on_disk().unwrap();
        fs::create_dir(dir.path().join("pages")).unwrap();
        for (name, text) in [("same", "1"), ("changed", "old"), ("surplus", "3")] {
            fs::write(dir.path().join("pages").join(name), text).unwrap();
        }
        let made = made([("same", "1"), ("changed", "new"), ("missing", "4")]);
        let mut found = differences(dir.path(), "pages/", made).unwrap();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let change = |name: &str, text: Option<&str>| Change {
            path: Path::new("pages").join(name),
            content: text.map(Into::into),
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
