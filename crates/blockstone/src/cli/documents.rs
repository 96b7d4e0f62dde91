//! Commands in README.md and docs/ are commands that the program accepts, and the verdicts in their
//! outputs are those of rules.

use std::path::{Path, PathBuf};
use std::{fs, iter};

use blockstone_base::verdict::Weight;
use clap::error::ErrorKind;

use super::declarations;
use crate::store;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap().map(|it| it.unwrap().path());
    let is_written = |path: &PathBuf| {
        path.extension().is_some_and(|it| it == "md") && !path.ends_with("docs/cli.md")
    };
    iter::once(Path::new(ROOT).join("README.md")).chain(docs.filter(is_written)).collect()
}

/// Returns the commands of a page: lines of code blocks that begin with the program, with the lines
/// that continue them, and pieces between backquotes, which may name a verb only.
fn commands(page: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut is_code = false;
    let text = page.replace("\\\n", " ");
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let line = line.trim_start();
            let is_output = !line.starts_with("$ ")
                && line.split(" #").next().unwrap_or_default().trim_end().contains("  ");
            if is_output {
                continue;
            }
            found.push((line.strip_prefix("$ ").unwrap_or(line).to_owned(), true));
        } else {
            prose.push_str(&line.replace("\\|", "|"));
            prose.push('\n');
        }
    }
    let pieces = prose.split('`').skip(1).step_by(2);
    found.extend(pieces.map(|code| (code.replace('\n', " "), false)));
    found.retain(|(line, _)| line.starts_with("blockstone "));
    found
}

/// Returns the words of a command up to a pipe or redirection; `None` if it has placeholders.
fn words(command: &str) -> Option<Vec<String>> {
    let words = shlex::split(command)?;
    let is_end = |word: &String| matches!(word.as_str(), "|" | ">" | "<" | "&&" | "&" | "#" | "2>");
    let words: Vec<String> = words.into_iter().take_while(|word| !is_end(word)).collect();
    let is_placeholder = |word: &String| {
        word.contains(['…', '[', '$', '÷']) || word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    (!words.iter().any(is_placeholder)).then_some(words)
}

/// Returns the examples in the help of a command and of those below it: a description follows after
/// two spaces.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_before_long_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let lines = lines.filter(|line| line.starts_with("blockstone "));
    let calls = lines.map(|line| line.split("  ").next().unwrap_or_default().to_owned());
    let mut found: Vec<String> = calls.collect();
    found.extend(command.get_subcommands().flat_map(examples));
    found
}

#[test]
fn commands_in_documents_and_examples_are_accepted() {
    let (mut refused, mut accepted) = (Vec::new(), 0);
    let mut texts: Vec<(PathBuf, Vec<(String, bool)>)> = pages()
        .into_iter()
        .map(|page| {
            let found = commands(&fs::read_to_string(&page).unwrap());
            (page, found)
        })
        .collect();
    let examples: Vec<_> = examples(&declarations()).into_iter().map(|it| (it, true)).collect();
    assert!(examples.len() > 100, "{}", examples.len());
    texts.push((PathBuf::from("--help"), examples));
    for (page, commands) in texts {
        for (command, is_whole) in commands {
            let Some(words) = words(&command) else { continue };
            let words = store::spelled_out(words.into_iter().map(Into::into).collect());
            let error = declarations().try_get_matches_from(words).err();
            match error.filter(|error| !is_accepted(error.kind(), is_whole)) {
                Some(error) => {
                    let why = error.to_string();
                    let why = why.lines().next().unwrap_or_default().to_owned();
                    refused.push(format!("{}: {command}\n    {why}", page.display()));
                }
                None => accepted += 1,
            }
        }
    }
    assert!(refused.is_empty(), "{accepted} accepted\n{}", refused.join("\n"));
    assert!(accepted > 100, "{accepted}");
}

fn is_accepted(kind: ErrorKind, is_whole: bool) -> bool {
    use ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
        MissingRequiredArgument,
    };
    match kind {
        DisplayHelp | DisplayVersion => true,
        MissingRequiredArgument | DisplayHelpOnMissingArgumentOrSubcommand => !is_whole,
        _ => false,
    }
}

/// Returns the names of rules in the outputs of a page, with whether they condemn, where that is
/// said.
fn judged(page: &str) -> Vec<(String, Option<bool>)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let mut found = Vec::new();
    for block in blocks {
        let flowed = block.replace("\n    ", " ").replace(",\n  ", ", ");
        for line in flowed.lines().map(str::trim) {
            let named = [("✗ ", true), ("! ", false)];
            let named =
                named.into_iter().find_map(|(sign, is)| Some((line.strip_prefix(sign)?, is)));
            let rule = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
            if let Some((text, condemns)) = named
                && (text.contains(" condemns ") || text.contains(" concerns "))
            {
                found.push((rule(text), Some(condemns)));
            }
            if let Some((_, rules)) = line.split_once("condemned: ") {
                found.extend(rules.split(", ").map(|id| (rule(id), Some(true))));
            }
            let passed = line.strip_prefix("✓ ").and_then(|text| text.split_once(" passed: "));
            if let Some((_, rules)) = passed {
                let ids = rules.split(',').map(str::trim).filter(|id| !id.is_empty());
                found.extend(ids.map(|id| (rule(id), None)));
            }
        }
    }
    found
}

#[test]
fn verdicts_in_example_outputs_are_those_of_rules() {
    let rules = crate::rules_page::rules();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for page in pages() {
        for (id, condemns) in judged(&fs::read_to_string(&page).unwrap()) {
            let known = rules.iter().find(|(about, _)| about.id == id);
            let is_right = known.is_some_and(|(about, _)| {
                condemns != Some(true) || about.weight == Weight::Condemns
            });
            if is_right {
                right += 1;
            } else {
                wrong.push(format!("{}: {id}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{right} right, and\n{}", wrong.join("\n"));
    assert!(right > 100, "{right}");
}
