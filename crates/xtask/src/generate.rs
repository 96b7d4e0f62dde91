//! Files derived from the code: written by `cargo xtask generate`, compared in `ci`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, ensure};
use blockstone_testkit::{Need, build, build_as_tested, skipped_without};

use crate::dist::{command, man_pages};
use crate::workspace::{output_of, root, scratch, show};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write nothing; fail when a file is not what it would be
    #[arg(long)]
    check: bool,
}

struct Generator {
    output: &'static str,
    /// Requirement beyond Rust.
    need: Option<Need>,
    make: fn() -> Result<Vec<u8>>,
}

/// Files that were not generated, with the reason.
pub type Skipped = Vec<(String, String)>;

const GENERATORS: &[Generator] = &[
    Generator {
        output: "crates/sys/bpf/io.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("io.bpf.c"),
    },
    Generator {
        output: "crates/sys/bpf/active.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("active.bpf.c"),
    },
    Generator {
        output: "crates/sys/bpf/effect.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("effect.bpf.c"),
    },
    Generator {
        output: "crates/sys/bpf/order.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("order.bpf.c"),
    },
    Generator {
        output: "crates/sys/bpf/iosize.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("iosize.bpf.c"),
    },
    Generator {
        output: "crates/sys/bpf/pages.bpf.o",
        need: Some(Need::Clang),
        make: || kernel_programs("pages.bpf.c"),
    },
    plain("docs/verdicts.md", || printed_by("rules_page")),
    plain("docs/probes.md", || printed_by("columns_page")),
    plain("docs/views.md", || printed_by("views_page")),
    plain("docs/stores.md", || printed_by("stores_page")),
    plain("docs/cli.md", cli_page),
];

const fn plain(output: &'static str, make: fn() -> Result<Vec<u8>>) -> Generator {
    Generator { output, need: None, make }
}

pub fn run(options: &Options) -> Result<ExitCode> {
    if options.check {
        check()?;
        println!("generated files are current");
        return Ok(ExitCode::SUCCESS);
    }
    for (output, content) in stale(&mut Skipped::new())? {
        fs::write(root().join(output), content).with_context(|| format!("write {output}"))?;
        println!("written {output}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a generated file is out of date; returns the files that could not be compared.
pub fn check() -> Result<Skipped> {
    let mut skipped = Skipped::new();
    let stale = stale(&mut skipped)?;
    for (output, _) in &stale {
        println!("{output} is not current");
    }
    ensure!(stale.is_empty(), "run `cargo xtask generate` and commit the files");
    Ok(skipped)
}

/// Returns the files that are out of date, with their new contents.
fn stale(skipped: &mut Skipped) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut stale = Vec::new();
    for &Generator { output, need, make } in GENERATORS {
        let missing = need.map_or(Ok(None), skipped_without);
        if let Some(reason) = missing.map_err(|why| anyhow!("generate {output}: {why}"))? {
            println!("SKIP {output}: {reason}");
            skipped.push((output.to_owned(), reason));
            continue;
        }
        let content = make().with_context(|| format!("generate {output}"))?;
        if !holds(&root().join(output), &content) {
            stale.push((output, content));
        }
    }
    Ok(stale)
}

fn holds(file: &Path, content: &[u8]) -> bool {
    fs::read(file).is_ok_and(|found| found == content)
}

/// Compiles a program for the kernel. The object keeps the type descriptions that fit it to a
/// running kernel; other debug information is dropped, and with it every trace of where it was
/// compiled.
fn kernel_programs(source: &str) -> Result<Vec<u8>> {
    let object = scratch("kernel-programs.o")?;
    let mut compiler = Command::new("clang-14");
    compiler.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fdebug-compilation-dir=."]);
    compiler.args(["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unused-function"]);
    compiler.args(["-c", source, "-o"]).arg(&object).current_dir(root().join("crates/sys/bpf"));
    show(&mut compiler)?;
    show(Command::new("llvm-strip-14").arg("--strip-debug").arg(&object))?;
    fs::read(&object).with_context(|| format!("read {}", object.display()))
}

/// Returns the output of an example: pages derived from a registry are printed by the crate that
/// has it, so that xtask builds in seconds and works even when that crate does not.
fn printed_by(example: &str) -> Result<Vec<u8>> {
    let program = build(&["--workspace", "--example", example])?;
    Ok(output_of(&mut Command::new(program))?.into_bytes())
}

/// Returns the help of the command and of each verb, as a user sees it.
fn cli_page() -> Result<Vec<u8>> {
    let mut page = String::from(
        "# The command line\n<!-- Generated from `blockstone --help` by `cargo xtask generate`; do \
         not edit. -->\n",
    );
    // No verb has a dash in its name; the name of a check may: `check write-order`.
    let words_of = |verb: &str| verb.splitn(2, '-').map(str::to_owned).collect::<Vec<_>>();
    let blockstone = build_as_tested("blockstone")?;
    let verbs = man_pages(&blockstone)?.into_keys().filter_map(|name| verb_of(&name).map(words_of));
    for words in std::iter::once(Vec::new()).chain(verbs) {
        let heading = ["blockstone"].into_iter().chain(words.iter().map(String::as_str));
        let heading = heading.collect::<Vec<_>>().join(" ");
        let help = output_of(command(&blockstone).args(&words).arg("--help"))?;
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(page, "\n## {heading}\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    Ok(page.into_bytes())
}

/// Returns the verb whose manual page has this name: `calibrate` for `blockstone-calibrate.1`, and
/// `flash-cliff` for the page of `flash cliff`.
fn verb_of(page: &str) -> Option<&str> {
    page.strip_prefix("blockstone-")?.strip_suffix(".1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_testkit::ScratchDir;

    #[test]
    fn a_changed_and_a_missing_file_are_not_current() {
        let dir = ScratchDir::on_disk().unwrap();
        let page = dir.path().join("page.md");
        fs::write(&page, "1").unwrap();
        assert!(holds(&page, b"1") && !holds(&page, b"2"));
        assert!(!holds(&dir.path().join("missing.md"), b"1"));
    }

    #[test]
    fn a_verb_is_read_from_its_manual_page() {
        assert_eq!(verb_of("blockstone-calibrate.1"), Some("calibrate"));
        assert_eq!(verb_of("blockstone.1"), None);
    }
}
