//! Man pages, completion scripts and JSON schemas, as the binary prints them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use blockstone_testkit::ScratchDir;

use super::elf;
use crate::workspace::output_of;

pub type Pages = BTreeMap<String, Vec<u8>>;

/// A shell, the name of its script in the tarball, and where an installed shell looks for it.
pub struct Shell {
    pub name: &'static str,
    pub file: &'static str,
    pub debian: Option<&'static str>,
    /// Where Fedora's and SUSE's shells look for it.
    pub fedora: Option<&'static str>,
}

pub const SHELLS: &[Shell] = &[
    Shell {
        name: "bash",
        file: "blockstone.bash",
        debian: Some("usr/share/bash-completion/completions/blockstone"),
        fedora: Some("usr/share/bash-completion/completions/blockstone"),
    },
    Shell { name: "elvish", file: "blockstone.elv", debian: None, fedora: None },
    Shell {
        name: "fish",
        file: "blockstone.fish",
        debian: Some("usr/share/fish/vendor_completions.d/blockstone.fish"),
        fedora: Some("usr/share/fish/vendor_completions.d/blockstone.fish"),
    },
    Shell {
        name: "zsh",
        file: "_blockstone",
        debian: Some("usr/share/zsh/vendor-completions/_blockstone"),
        fedora: Some("usr/share/zsh/site-functions/_blockstone"),
    },
];

/// Documents that a binary prints about itself.
pub struct Documents {
    pub man: Pages,
    /// A script for each of [`SHELLS`].
    pub completions: Vec<(&'static Shell, String)>,
    /// JSON schemas, by file name.
    pub schemas: Pages,
}

impl Documents {
    pub fn printed_by(binary: &Path) -> Result<Self> {
        let script = |shell: &'static Shell| {
            Ok((shell, output_of(command(binary).args(["completions", shell.name]))?))
        };
        let completions = SHELLS.iter().map(script).collect::<Result<_>>()?;
        Ok(Self { man: man_pages(binary)?, completions, schemas: schemas(binary)? })
    }
}

/// Returns the schema of every document.
fn schemas(binary: &Path) -> Result<Pages> {
    let names = output_of(command(binary).arg("schema"))?;
    let names = names.lines().filter_map(|line| line.split_whitespace().next());
    let schema = |name: &str| {
        let text = output_of(command(binary).args(["schema", name]))?;
        Ok((format!("{name}.json"), text.into_bytes()))
    };
    names.map(schema).collect()
}

/// Returns the man page of the command and of each verb.
pub fn man_pages(binary: &Path) -> Result<Pages> {
    let dir = ScratchDir::on_disk()?;
    let dir = dir.path();
    output_of(command(binary).arg("man").arg(dir))?;
    let mut pages = Pages::new();
    for entry in fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))? {
        let path = entry?.path();
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        pages.insert(name.into_owned(), text);
    }
    Ok(pages)
}

/// Returns a command for the binary at a fixed width and without colours, so that its output does
/// not depend on the terminal. QEMU runs that of another processor.
pub fn command(binary: &Path) -> Command {
    let processor = elf::processor(binary).filter(|it| *it != std::env::consts::ARCH);
    let mut command = match processor {
        None => Command::new(binary),
        Some(processor) => {
            let mut command = Command::new(format!("qemu-{processor}-static"));
            command.arg(binary);
            command
        }
    };
    command.env("COLUMNS", "100").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}
