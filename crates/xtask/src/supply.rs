//! Dependencies of the workspace, checked against deny.toml: licences, sources and duplicate
//! versions.
//!
//! The file is cargo-deny's. Where cargo-deny is installed, it checks all of it, advisories
//! included. Building it takes longer than the rest of CI, so elsewhere this module checks the
//! three tables that need no database, by the same file, and reports that advisories were not
//! checked.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};
use toml::Table;

use crate::test::Account;
use crate::workspace::{cargo, output_of, root, show};

const RULES: &str = "deny.toml";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the check as a job of its own.
pub fn run() -> Result<ExitCode> {
    let mut account = Account::default();
    check(&mut account)?;
    account.print();
    Ok(ExitCode::SUCCESS)
}

/// Checks all packages, and adds what could not be checked to the account. Fails on a finding.
pub fn check(account: &mut Account) -> Result<()> {
    let installed = Command::new("cargo-deny").arg("--version").output();
    if installed.is_ok_and(|output| output.status.success()) {
        let checks = ["deny", "--locked", "check", "licenses", "sources", "bans"];
        show(&mut cargo(checks))?;
        return advisories(account);
    }
    let text = std::fs::read_to_string(root().join(RULES)).context("read deny.toml")?;
    let rules = Rules::parse(&text)?;
    let mut metadata = cargo(["metadata", "--locked", "--format-version", "1"]);
    let metadata = output_of(metadata.args(["--filter-platform", TARGET]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let packages = packages(&metadata)?;
    let findings = findings(&rules, &packages);
    if !findings.is_empty() {
        bail!("{}\nhint: use another crate or version, or edit {RULES}", findings.join("\n"));
    }
    println!("supply: licences, sources and versions of {} packages agree", packages.len());
    skip(account, "cargo-deny is not installed");
    Ok(())
}

/// Checks advisories, which need a database that may be out of reach. A known vulnerability is a
/// failure.
fn advisories(account: &mut Account) -> Result<()> {
    let fetched = cargo(["deny", "--locked", "fetch", "db"]).output();
    if fetched.is_ok_and(|output| output.status.success()) {
        return show(&mut cargo(["deny", "--locked", "check", "advisories"]));
    }
    skip(account, "the database of advisories is out of reach");
    Ok(())
}

fn skip(account: &mut Account, why: &str) {
    println!("supply: advisories were NOT checked: {why}");
    account.skipped.push(("advisories of dependencies".to_owned(), why.to_owned()));
}

/// The tables of deny.toml that are checked here.
#[derive(Debug, Default)]
struct Rules {
    licences: Vec<Licensee>,
    /// Licences of packages that name only a file, keyed by `name@version`.
    clarified: BTreeMap<String, String>,
    registries: BTreeSet<String>,
    /// Allowed duplicates, as `name@version`.
    doubled: BTreeSet<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse().context("parse deny.toml")?;
        let list = |section: &str, key: &str| {
            let list = table.get(section).and_then(|section| section.get(key)?.as_array());
            list.with_context(|| format!("deny.toml has no {section}.{key}"))
        };
        let texts = |section, key| {
            let words = list(section, key)?.iter().filter_map(toml::Value::as_str);
            Ok::<_, anyhow::Error>(words.map(str::to_owned).collect::<Vec<_>>())
        };
        let licence = |name: &String| {
            Licensee::parse(name).with_context(|| format!("deny.toml: no licence is called {name}"))
        };
        let doubled = list("bans", "skip")?
            .iter()
            .map(|entry| match (entry.get("crate"), entry.get("reason")) {
                (Some(toml::Value::String(name)), Some(_)) => Ok(name.clone()),
                _ => bail!("deny.toml: an entry of bans.skip needs crate and reason: {entry:?}"),
            })
            .collect::<Result<_>>()?;
        let clarified = table["licenses"].get("clarify").and_then(toml::Value::as_array);
        let clarified = clarified
            .into_iter()
            .flatten()
            .map(|entry| match (entry.get("crate"), entry.get("expression")) {
                (Some(toml::Value::String(name)), Some(toml::Value::String(expression))) => {
                    Ok((name.clone(), expression.clone()))
                }
                _ => bail!("deny.toml: an entry of licenses.clarify needs crate and expression"),
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            clarified,
            licences: texts("licenses", "allow")?.iter().map(licence).collect::<Result<_>>()?,
            registries: texts("sources", "allow-registry")?.into_iter().collect(),
            doubled,
        })
    }
}

#[derive(Clone, Debug)]
struct Package {
    name: String,
    version: String,
    /// `None` for a package that names only a file.
    licence: Option<String>,
    source: String,
}

/// Returns the packages that are built for the target, without the workspace's own.
fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let list = |value: &Value| value.as_array().cloned().context("cargo's metadata lacks a list");
    let nodes = list(&metadata["resolve"]["nodes"])?;
    let resolved: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let member = |package: &Value| package["source"].is_null();
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    Ok(list(&metadata["packages"])?
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| resolved.contains(id)))
        // A path outside the workspace has no source either, and belongs in no release.
        .filter(|package| !member(package) || !text(package, "name").starts_with("blockstone"))
        .map(|package| Package {
            name: text(package, "name"),
            version: text(package, "version"),
            licence: package["license"].as_str().map(str::to_owned),
            source: text(package, "source"),
        })
        .collect())
}

fn findings(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Package { name, version, licence, source } in packages {
        versions.entry(name).or_default().push(version);
        let registry = source.strip_prefix("registry+").unwrap_or_default();
        if !rules.registries.contains(registry) {
            found.push(format!("{name} {version} comes from `{source}`, which is not allowed"));
        }
        match licence.as_ref().or_else(|| rules.clarified.get(&format!("{name}@{version}"))) {
            None => found.push(format!("{name} {version} names no licence")),
            Some(licence) if !is_allowed(rules, licence) => {
                found.push(format!("{name} {version} has the licence {licence}, not allowed"));
            }
            Some(_) => {}
        }
    }
    for (name, versions) in &versions {
        let excused = |version: &&&str| rules.doubled.contains(&format!("{name}@{version}"));
        if versions.len() > 1 && versions.iter().filter(|v| !excused(v)).count() > 1 {
            found.push(format!("{name} is there in versions {}", versions.join(" and ")));
        }
    }
    let is_doubled = |entry: &&String| {
        entry.split_once('@').is_some_and(|(name, version)| {
            versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(&version))
        })
    };
    let stale = rules.doubled.iter().filter(|entry| !is_doubled(entry));
    found.extend(stale.map(|entry| format!("{RULES} excuses {entry}, which is not doubled")));
    found
}

/// Returns whether the allowed licences satisfy an expression. A slash means OR, as it once did.
fn is_allowed(rules: &Rules, licence: &str) -> bool {
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|wanted| rules.licences.iter().any(|given| given.satisfies(wanted)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Unicode-3.0"]
        clarify = [{ crate = "g@1.0.0", expression = "MIT" }]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
        [bans]
        skip = [{ crate = "a@1.0.0", reason = "b" }]
    "#;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: Some(licence.to_owned()),
            source: "registry+https://github.com/rust-lang/crates.io-index".to_owned(),
        }
    }

    #[test]
    fn a_licence_must_be_allowed_as_a_whole() {
        let rules = Rules::parse(TEXT).unwrap();
        for allowed in ["MIT", "MIT/GPL-3.0", "(MIT OR GPL-3.0-only) AND Unicode-3.0"] {
            assert!(is_allowed(&rules, allowed), "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "", "do what you like"] {
            assert!(!is_allowed(&rules, refused), "{refused}");
        }
    }

    #[test]
    fn doubled_versions_strange_sources_and_missing_licences_are_found() {
        let rules = Rules::parse(TEXT).unwrap();
        let excused = [package("a", "1.0.0", "MIT"), package("a", "2.0.0", "MIT")];
        assert_eq!(findings(&rules, &excused), Vec::<String>::new());
        let mut bad = excused.to_vec();
        bad.extend([package("c", "1.0.0", "MIT"), package("c", "2.0.0", "MIT")]);
        bad.push(Package {
            source: "git+https://example.com/x".into(),
            ..package("d", "1.0.0", "MIT")
        });
        bad.push(Package { licence: None, ..package("e", "1.0.0", "") });
        bad.push(Package { licence: None, ..package("g", "1.0.0", "") });
        bad.push(package("f", "1.0.0", "AGPL-3.0-only"));
        let found = findings(&rules, &bad);
        let said =
            ["`git+https://example.com/x`", "e 1.0.0 names no", "AGPL-3.0-only", "c is there"];
        assert_eq!(found.len(), said.len(), "{found:?}");
        for (found, said) in found.iter().zip(said) {
            assert!(found.contains(said), "{found}");
        }
        let stale = findings(&rules, &excused[..1]);
        assert_eq!(stale, ["deny.toml excuses a@1.0.0, which is not doubled"]);
    }

    #[test]
    fn an_exception_without_a_reason_is_an_error() {
        let text = TEXT.replace(r#", reason = "b""#, "");
        let error = Rules::parse(&text).unwrap_err().to_string();
        assert!(error.contains("needs crate and reason"), "{error}");
    }
}
