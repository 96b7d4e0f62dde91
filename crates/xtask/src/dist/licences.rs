//! The licences of everything that is linked into the binary: crates, the C libraries that they
//! bundle, and what the compiler adds.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::workspace::{cargo, output_of};

/// A C library whose source a crate carries and compiles.
struct Bundled {
    package: &'static str,
    name: &'static str,
    licence: &'static str,
    text: Text,
}

enum Text {
    Literal(&'static str),
    /// A file of the package.
    In(&'static str),
}

const BUNDLED: &[Bundled] = &[
    Bundled {
        package: "libsqlite3-sys",
        name: "SQLite",
        licence: "public domain (blessing)",
        text: Text::Literal(
            "The author disclaims copyright to this source code.  In place of\n\
             a legal notice, here is a blessing:\n\n   \
             May you do good and not evil.\n   \
             May you find forgiveness for yourself and forgive others.\n   \
             May you share freely, never taking more than you give.\n",
        ),
    },
    Bundled {
        package: "ring",
        name: "parts of BoringSSL",
        licence: "Apache-2.0 AND ISC",
        text: Text::In("LICENSE-BoringSSL"),
    },
    Bundled {
        package: "zstd-sys",
        name: "Zstandard",
        licence: "BSD-3-Clause",
        text: Text::In("zstd/LICENSE"),
    },
];

/// Beginnings of the names of licence files, in capitals.
const FILE_NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

const LGPL: &str = include_str!("licences/LGPL-2.1.txt");

const ABOUT: &str = "\
This program is linked statically from the components below. Where a licence offers alternatives
with OR or a slash, each of them applies at your choice. A crate without a text of its own names
its licence only. The GNU C Library is linked under section 6 of its licence: the complete source
of this program is free, and can be linked with another version of that library.";

/// A component that is linked into the binary.
pub struct Component {
    /// The name of a crate is followed by its version.
    pub name: String,
    /// Usually an SPDX expression.
    pub licence: String,
    pub is_crate: bool,
    texts: Vec<String>,
}

/// Returns all third-party components of the binary for `triple`.
pub fn components(triple: &str) -> Result<Vec<Component>> {
    let mut components = crates(triple)?;
    components.extend(runtime(triple)?);
    Ok(components)
}

/// Returns the crates that the binary links. Procedural macros and build scripts run only at build
/// time and are left out. For one member of a workspace, `cargo metadata` does not tell which
/// features its dependencies have, and so which crates are linked; `cargo tree` does.
fn crates(triple: &str) -> Result<Vec<Component>> {
    let mut tree = cargo(["tree", "--locked", "--package", "blockstone", "--target", triple]);
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    let linked = linked(&output_of(&mut tree)?);
    let mut metadata = cargo(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value =
        serde_json::from_str(&output_of(metadata.args(["--filter-platform", triple]))?)
            .context("read cargo's metadata")?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let mut components = Vec::new();
    let mut found = BTreeSet::new();
    for package in packages.iter().filter(|package| linked.contains(&name(package))) {
        found.insert(name(package));
        // Only packages of the workspace have no source.
        if !package["source"].is_null() {
            components.extend(components_of(package)?);
        }
    }
    let unknown: Vec<&String> = linked.difference(&found).collect();
    ensure!(unknown.is_empty(), "cargo knows no licence of {unknown:?}, which are linked");
    Ok(components)
}

/// Returns names with versions from lines like `serde v1.0.229 (*)`.
fn linked(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    tree.lines().filter_map(name).collect()
}

fn name(package: &Value) -> String {
    let word = |key: &str| package[key].as_str().unwrap_or_default();
    format!("{} {}", word("name"), word("version"))
}

/// Returns the crate, and the library that it bundles.
fn components_of(package: &Value) -> Result<Vec<Component>> {
    let name = name(package);
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let dir = Path::new(manifest).parent().context("cargo names no manifest")?;
    let bundled = BUNDLED.iter().find(|bundled| package["name"] == bundled.package);
    ensure!(
        bundled.is_some() || package["links"].is_null(),
        "{name} links a native library whose licence is unknown\nhint: add it to BUNDLED in {}",
        file!()
    );
    let mut components = Vec::new();
    if let Some(Bundled { name: library, licence, text, .. }) = bundled {
        let text = match text {
            Text::Literal(text) => (*text).to_owned(),
            Text::In(file) => read(&dir.join(file))?,
        };
        let library = format!("{library}, bundled with {name}");
        let licence = (*licence).to_owned();
        components.push(Component { name: library, licence, is_crate: false, texts: vec![text] });
    }
    let files = licence_files(dir, package["license_file"].as_str())?;
    let texts = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let licence = match package["license"].as_str() {
        Some(licence) => licence.to_owned(),
        None if texts.is_empty() => bail!("{name} has neither a licence text nor an expression"),
        None => "in its licence file".to_owned(),
    };
    components.push(Component { name, licence, is_crate: true, texts });
    Ok(components)
}

/// Returns the package's licence files: those with a usual name, and the one that its manifest
/// names.
fn licence_files(dir: &Path, named: Option<&str>) -> Result<BTreeSet<PathBuf>> {
    let mut files: BTreeSet<PathBuf> = named.map(|file| dir.join(file)).into_iter().collect();
    for entry in fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if FILE_NAMES.iter().any(|usual| name.starts_with(usual)) && path.is_file() {
            files.insert(path);
        }
    }
    Ok(files)
}

fn read(file: &Path) -> Result<String> {
    let text = fs::read(file).with_context(|| format!("read {}", file.display()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the components that the compiler and the linker add.
fn runtime(triple: &str) -> Result<[Component; 3]> {
    ensure!(
        triple.ends_with("-linux-gnu"),
        "the licence of the C library of {triple} is unknown\nhint: name it in {}",
        file!()
    );
    let glibc = output_of(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let rustc = output_of(Command::new("rustc").arg("--version"))?;
    Ok([
        Component {
            name: format!("GNU C Library ({})", glibc.trim()),
            licence: "LGPL-2.1-or-later".to_owned(),
            is_crate: false,
            texts: vec![LGPL.to_owned()],
        },
        Component {
            name: "GCC runtime library (libgcc)".to_owned(),
            licence: "GPL-3.0-or-later WITH GCC-exception-3.1".to_owned(),
            is_crate: false,
            texts: Vec::new(),
        },
        Component {
            name: format!("Rust standard library ({})", rustc.trim()),
            licence: "MIT OR Apache-2.0".to_owned(),
            is_crate: false,
            texts: Vec::new(),
        },
    ])
}

/// Lists all components, then each text once, after the names of the components that have it.
pub fn page(components: &[Component]) -> String {
    let mut page = format!("Third-party components\n\n{ABOUT}\n\n");
    for Component { name, licence, .. } in components {
        let _ = writeln!(page, "- {name}: {licence}");
    }
    // Texts that differ in their line breaks are the same text.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut texts: Vec<(Vec<String>, &str, Vec<&str>)> = Vec::new();
    for Component { name, texts: own, .. } in components {
        for text in own {
            let words = words(text);
            match texts.iter_mut().find(|(known, ..)| *known == words) {
                Some((.., names)) => names.push(name),
                None => texts.push((words, text, vec![name])),
            }
        }
    }
    for (_, text, names) in texts {
        let rule = "=".repeat(80);
        let text = text.replace("\r\n", "\n");
        let _ = write!(page, "\n{rule}\n{}\n{rule}\n\n{}\n", names.join("\n"), text.trim_end());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_testkit::ScratchDir;
    use serde_json::json;

    fn package(dir: &Path, extra: &Value) -> Value {
        let manifest = dir.join("Cargo.toml");
        let mut package = json!({ "name": "a", "version": "1.0.0", "manifest_path": manifest });
        for (key, value) in extra.as_object().unwrap() {
            package[key] = value.clone();
        }
        package
    }

    #[test]
    fn a_crate_has_its_expression_and_all_its_texts() {
        let dir = ScratchDir::on_disk().unwrap();
        for name in ["LICENSE-MIT", "licence.md", "NOTICE.txt", "terms", "lib.rs"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let given = json!({ "license": "MIT", "license_file": "terms" });
        let found = components_of(&package(dir.path(), &given)).unwrap();
        assert_eq!((found[0].name.as_str(), found[0].licence.as_str()), ("a 1.0.0", "MIT"));
        assert_eq!(found[0].texts, ["LICENSE-MIT", "NOTICE.txt", "licence.md", "terms"]);
    }

    #[test]
    fn a_crate_without_text_and_expression_is_an_error() {
        let dir = ScratchDir::on_disk().unwrap();
        let error = |extra| components_of(&package(dir.path(), &extra)).err().unwrap().to_string();
        assert_eq!(error(json!({})), "a 1.0.0 has neither a licence text nor an expression");
        assert!(components_of(&package(dir.path(), &json!({ "license": "MIT" }))).is_ok());
        fs::write(dir.path().join("COPYING"), "do").unwrap();
        assert!(components_of(&package(dir.path(), &json!({}))).is_ok());
        let native = error(json!({ "links": "z" }));
        assert!(native.starts_with("a 1.0.0 links a native library"), "{native}");
    }

    #[test]
    fn a_text_that_several_have_is_printed_once_under_their_names() {
        let component = |name: &str, text: &str| Component {
            name: name.to_owned(),
            licence: "MIT".to_owned(),
            is_crate: true,
            texts: vec![text.to_owned()],
        };
        let all = [
            component("a", "do what\nyou like"),
            component("b", "ask"),
            component("c", "do what you like\r\n"),
        ];
        let page = page(&all);
        assert_eq!(page.matches("you like").count(), 1);
        let rule = "=".repeat(80);
        assert!(page.contains(&format!("{rule}\na\nc\n{rule}\n\ndo what\nyou like\n")), "{page}");
        assert!(page.contains("- a: MIT\n- b: MIT\n- c: MIT\n"), "{page}");
    }

    #[test]
    fn what_is_linked_is_listed_and_what_runs_at_build_time_is_not() {
        let page = page(&components(&super::super::host_triple().unwrap()).unwrap());
        let listed = |start: &str| page.lines().any(|line| line.starts_with(start));
        for component in
            ["anyhow ", "SQLite, bundled", "Zstandard, bundled", "GNU C Library (glibc 2."]
        {
            assert!(listed(&format!("- {component}")), "{component}");
        }
        for other in ["blockstone", "serde_derive ", "syn ", "cc ", "proptest ", "rpm "] {
            assert!(!listed(&format!("- {other}")), "{other}");
        }
        assert!(page.contains("GNU LESSER GENERAL PUBLIC LICENSE"));
    }

    #[test]
    fn every_package_that_cargo_links_into_the_binary_is_listed_with_its_licence() {
        let triple = super::super::host_triple().unwrap();
        let page = page(&components(&triple).unwrap());
        let lines: BTreeSet<&str> = page.lines().collect();
        let mut tree = cargo(["tree", "--locked", "--package", "blockstone", "--target", &triple]);
        tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"]);
        let tree = output_of(tree.args(["--format", "{p}|{l}"])).unwrap();
        let mut packages = BTreeSet::new();
        for line in tree.lines().filter(|line| !line.starts_with("blockstone")) {
            let (package, licence) = line.split_once('|').unwrap();
            let mut words = package.split(' ');
            let name = words.next().unwrap();
            let version = words.next().unwrap().trim_start_matches('v');
            packages.insert(name.to_owned());
            let listed = format!("- {name} {version}: {licence}");
            // A package may name a file of its own in place of a licence.
            let is_listed = match licence {
                "" => {
                    lines.iter().any(|line| line.len() > listed.len() && line.starts_with(&listed))
                }
                _ => lines.contains(listed.as_str()),
            };
            assert!(is_listed, "`{listed}` is missing");
        }
        assert!(packages.len() > 100, "{}", packages.len());
    }
}
