//! `--expect`: limits on the figures of a report, from the command line or from files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use blockstone_base::units::Bytes;
use blockstone_report::expect::{self, Expectation, Term};
use blockstone_report::render::json::schema::Document;
use serde::Deserialize;

use crate::failure::Failure;
use crate::verb::Verb;
use crate::{input, verbs};

/// Largest file of limits that is read.
const FILE_BYTES: Bytes = Bytes::mib(1);

/// A file of limits. Other tables in it are left to those who share the file.
#[derive(Deserialize)]
struct File {
    expect: Limits,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Limits {
    /// `"commit.p99" = "<2ms"`.
    ByName(BTreeMap<String, String>),
    /// `"commit.p99<2ms"`.
    List(Vec<String>),
}

/// Returns the documents whose figures a verb can expect: its own, or those of all recordings for a
/// verb that reads these.
fn documents(verb: &Verb) -> Vec<&'static Document> {
    let reads_all = verb.documents.is_empty();
    let is_meant = |it: &&Verb| if reads_all { it.report.is_some() } else { it.name == verb.name };
    verbs::ALL.iter().filter(is_meant).flat_map(|verb| verb.documents).collect()
}

/// Returns the verb for which `--expect help` asks. It needs none of the arguments of the verb.
pub fn asks_for_names(words: &[String]) -> Option<&'static Verb> {
    let is_separate = words.windows(2).any(|pair| pair[0] == "--expect" && pair[1] == "help");
    let asks = is_separate || words.iter().any(|word| word == "--expect=help");
    words.iter().find_map(|word| verbs::find(word).filter(|verb| asks && verb.reports))
}

/// Lists the names of figures that a verb knows.
pub fn help(verb: &Verb) -> String {
    expect::help(&documents(verb))
}

/// Returns the figures that `--expect` of a verb can name.
pub fn known(verb: &Verb) -> Vec<Term> {
    expect::known(&documents(verb))
}

/// Reads the limits that a command line gives, and checks each name and unit. They are checked
/// before a measurement, which may take hours.
pub fn read(given: &[String], verb: &Verb) -> Result<Vec<Expectation>> {
    let mut all = Vec::new();
    for text in given {
        match text.strip_prefix('@') {
            Some(file) => all.extend(from_file(Path::new(file))?),
            None => all.extend(expect::parse(text)?),
        }
    }
    let documents = documents(verb);
    for expectation in &all {
        expect::resolve(expectation, verb.name, &documents)?;
    }
    if all.is_empty() && !given.is_empty() {
        bail!(Failure::new("expect nothing: no limit is given", "--expect 'commit.p99<2ms'"));
    }
    Ok(all)
}

fn from_file(path: &Path) -> Result<Vec<Expectation>> {
    let hint = "a file of limits is TOML: [expect] and lines such as \"commit.p99\" = \"<2ms\"";
    let named = || format!("read limits of {}", path.display());
    let text = input::text(path, FILE_BYTES)
        .map_err(|error| anyhow!(input::failure(&named(), &error, hint)))?;
    let file: File = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
        anyhow!(Failure::new(format!("{}, line {line}: {}", named(), error.message()), hint))
    })?;
    let limits = match file.expect {
        Limits::ByName(limits) => limits.into_iter().map(|(name, limit)| name + &limit).collect(),
        Limits::List(limits) => limits,
    };
    let all = limits.iter().map(|limit| expect::parse(limit));
    let all: Vec<Vec<Expectation>> = all.collect::<Result<_, _>>().with_context(named)?;
    Ok(all.into_iter().flatten().collect())
}
