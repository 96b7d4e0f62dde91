//! Input of the checks: the texts and the packages of the workspace.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use crate::workspace::{cargo, output_of, root};

#[derive(Debug, Default)]
pub struct Tree {
    /// Every file that is, or will be, committed.
    pub files: Vec<SourceFile>,
    pub packages: Vec<Package>,
}

#[derive(Debug)]
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

#[derive(Debug)]
pub struct Package {
    /// Name of its folder: `sys`.
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub struct Dependency {
    /// Name of its package: `blockstone-base`, `serde`.
    pub name: String,
    pub test_only: bool,
}

const PREFIX: &str = "blockstone-";

impl SourceFile {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub fn is_a(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Returns the folder of the crate that has this file: `sys` for `crates/sys/src/ring.rs`.
    pub fn package(&self) -> &str {
        let inside = self.path.strip_prefix("crates/").unwrap_or_default();
        inside.split('/').next().unwrap_or_default()
    }

    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Returns its lines before the tests that are not comments.
    pub fn code(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().take(self.product_lines());
        lines.filter(|line| !line.trim_start().starts_with("//"))
    }

    pub fn product_lines(&self) -> usize {
        product_lines(&self.text).unwrap_or_else(|| self.text.lines().count())
    }

    /// Returns a finding on the line with this index, counted from 0.
    pub fn finding(&self, index: usize, what: impl Into<String>, hint: &'static str) -> Finding {
        Finding { path: self.path.clone(), line: index + 1, what: what.into(), hint }
    }
}

/// Returns the number of lines before the test module, if the text has one.
fn product_lines(text: &str) -> Option<usize> {
    let next = text.lines().skip(1);
    let mut pairs = text.lines().zip(next);
    pairs.position(|(line, next)| line == "#[cfg(test)]" && next.starts_with("mod tests"))
}

impl Package {
    /// Returns the crates of this workspace that it depends on, except the testkit for its tests.
    pub fn uses(&self) -> impl Iterator<Item = &str> {
        let is_test = |d: &&Dependency| d.test_only && d.own() == Some("testkit");
        self.dependencies.iter().filter(move |d| !is_test(d)).filter_map(Dependency::own)
    }

    /// Returns a finding on the line of its Cargo.toml that names `dependency`.
    pub fn finding(
        &self,
        tree: &Tree,
        dependency: &str,
        what: impl Into<String>,
        hint: &'static str,
    ) -> Finding {
        let path = format!("crates/{}/Cargo.toml", self.name);
        let manifest = tree.file(&path).map_or("", |file| &file.text);
        let line = manifest.lines().position(|line| line.starts_with(dependency));
        Finding { path, line: line.unwrap_or(0) + 1, what: what.into(), hint }
    }
}

impl Dependency {
    /// Returns the folder of a crate of this workspace; `None` for an external crate.
    pub fn own(&self) -> Option<&str> {
        let is_program = PREFIX.strip_suffix('-') == Some(&self.name);
        if is_program { Some(&self.name) } else { self.name.strip_prefix(PREFIX) }
    }
}

impl Tree {
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_a("rs"))
    }
}

/// Reads the workspace: the files that git tracks or would track.
pub fn load() -> Result<Tree> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let mut files = Vec::new();
    for path in output_of(&mut git)?.lines() {
        // A file that was removed but not yet committed is listed but does not exist. A file that
        // is not UTF-8, such as a picture, has no lines to check, but links may lead to it.
        if let Ok(bytes) = fs::read(root().join(path)) {
            files.push(SourceFile::new(path, String::from_utf8(bytes).unwrap_or_default()));
        }
    }
    let metadata = output_of(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    Ok(Tree { files, packages: packages(&metadata) })
}

fn packages(metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |value: &Value| {
        let name = text(&value["name"]);
        let dependencies = list(&value["dependencies"])
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                test_only: dependency["kind"] == "dev",
            })
            .collect();
        Package { name: name.trim_start_matches(PREFIX).to_owned(), dependencies }
    };
    list(&metadata["packages"]).iter().map(package).collect()
}
