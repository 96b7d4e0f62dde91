//! `cargo xtask dist`: the release binary with its documents, in target/dist: a tarball, packages
//! for Debian and for RPM, an OCI image, a bill of materials and checksums.
//!
//! Equal inputs give equal archives: entries are sorted, belong to root, and have the time of the
//! commit or `SOURCE_DATE_EPOCH`.

// Tried: cargo-deb 3.8.0, for the Debian package. To install it takes 101 s of processor time (69
// crates), in each CI run that starts from nothing. It takes files from paths that Cargo.toml
// lists, but pages, schemas and completions are printed by the program, so that they would have to
// be written to a directory and listed first; and all that it replaces is `deb`, 86 lines.

mod archive;
mod deb;
mod documents;
mod elf;
mod installed;
mod licences;
mod oci;
mod rpm;
mod sbom;
mod tarball;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use blockstone_testkit::build;
use clap::Args;
use flate2::Compression;
use sha2::{Digest, Sha256};

use self::archive::Style;
use self::documents::{Documents, Pages};
pub use self::documents::{command, man_pages};
use crate::workspace::{output_of, root};

/// Files and folders of the workspace that every package contains as they are. Links between them
/// lead to one another.
const TEXTS: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "HACKING.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs",
    "packaging",
];
const SUMMARY: &str = "Measure storage the way a database uses it";
const DESCRIPTION: [&str; 2] = [
    "Calibrates storage, runs database workloads on it, watches hosts and",
    "databases, and reports which results to trust.",
];

/// Contents of the packages.
struct Release {
    version: String,
    /// Target triple: `x86_64-unknown-linux-gnu`.
    triple: String,
    binary: Vec<u8>,
    documents: Documents,
    /// Contents of [`TEXTS`], by path.
    texts: Pages,
    third_party: String,
    bill_of_materials: String,
    style: Style,
}

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Make packages for another machine, in a directory of their own in target/dist: needs
    /// Debian's gcc-aarch64-linux-gnu and qemu-user-static for aarch64-unknown-linux-gnu
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let host = host_triple()?;
    let foreign = options.target.as_ref().filter(|triple| **triple != host);
    let mut dir = root().join("target/dist");
    let mut flags = Vec::new();
    if let Some(triple) = foreign {
        dir.push(triple);
        let processor = architecture(triple, ["x86_64", "aarch64"])?;
        flags = vec![
            "--config".to_owned(),
            format!("target.{triple}.linker = '{processor}-linux-gnu-gcc'"),
        ];
    }
    let triple = foreign.unwrap_or(&host).clone();
    let selection = ["--locked", "--release", "--package", "blockstone", "--target", &triple];
    let flags = flags.iter().map(String::as_str);
    let binary = build(&selection.into_iter().chain(flags).collect::<Vec<_>>())?;
    let style = Style { mtime_s: mtime_s()?, compression: Compression::best() };
    let release = Release::of(&binary, triple, style)?;
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("empty {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let mut sums = String::new();
    let packages = [
        tarball::package(&release)?,
        deb::package(&release)?,
        rpm::package(&release)?,
        oci::package(&release)?,
        sbom::package(&release),
    ];
    for (name, content) in packages {
        write(&dir.join(&name), &content)?;
        sums.push_str(&checksum_line(&name, &content));
    }
    write(&dir.join("SHA256SUMS"), sums.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl Release {
    /// Makes a release of the built program `binary`, which is for `triple`.
    fn of(binary: &Path, triple: String, style: Style) -> Result<Self> {
        let program = read(binary)?;
        ensure!(
            elf::is_static(&program)?,
            "{} is linked dynamically\nhint: RUSTFLAGS overrides the flags of .cargo/config.toml",
            binary.display()
        );
        let version = output_of(command(binary).arg("--version"))?;
        let version = version.trim().strip_prefix("blockstone ");
        let version = version.context("`blockstone --version` prints no version")?.to_owned();
        let components = licences::components(&triple)?;
        Ok(Self {
            documents: Documents::printed_by(binary)?,
            texts: texts()?,
            third_party: licences::page(&components),
            bill_of_materials: sbom::document(&version, style.mtime_s, &components)?,
            version,
            binary: program,
            triple,
            style,
        })
    }
}

/// Reads [`TEXTS`].
fn texts() -> Result<Pages> {
    let mut texts = Pages::new();
    let mut paths: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    while let Some(path) = paths.pop() {
        let found = root().join(&path);
        if !found.is_dir() {
            texts.insert(path, read(&found)?);
            continue;
        }
        for entry in fs::read_dir(&found).with_context(|| format!("list {path}"))? {
            paths.push(format!("{path}/{}", entry?.file_name().to_string_lossy()));
        }
    }
    Ok(texts)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read {}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("write {}", path.display()))?;
    println!("{:>10} bytes  {}", content.len(), path.display());
    Ok(())
}

/// Returns a line as `sha256sum --check` reads it.
fn checksum_line(name: &str, content: &[u8]) -> String {
    format!("{}  {name}\n", sha256(content))
}

fn sha256(content: &[u8]) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(content) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// Returns one of two names of the processor of a target: that of a 64-bit PC, that of 64-bit ARM.
fn architecture(triple: &str, names: [&'static str; 2]) -> Result<&'static str> {
    match triple.split('-').next() {
        Some("x86_64") => Ok(names[0]),
        Some("aarch64") => Ok(names[1]),
        _ => bail!("no package is made for {triple}\nhint: add its processor in {}", file!()),
    }
}

/// Returns the triple that `host-tuple` in .cargo/config.toml stands for.
fn host_triple() -> Result<String> {
    let about = output_of(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

/// Returns the time of all entries: `SOURCE_DATE_EPOCH`, or that of the commit.
fn mtime_s() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        let wrong = || format!("SOURCE_DATE_EPOCH must be seconds since 1970, not `{text}`");
        return text.trim().parse().with_context(wrong);
    }
    let mut git = Command::new("git");
    let text = output_of(git.args(["log", "-1", "--format=%ct"]).current_dir(root()))
        .context("ask for the time of the commit\nhint: without git, set SOURCE_DATE_EPOCH")?;
    text.trim().parse().context("git names no time of the commit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::documents::links as documents_that_lead_nowhere;
    use crate::tidy::tree::{SourceFile, Tree};
    use blockstone_testkit::{ScratchDir, blockstone_binary, require};

    fn release() -> Release {
        let style = Style { mtime_s: 1_700_000_000, compression: Compression::none() };
        Release::of(blockstone_binary(), host_triple().unwrap(), style).unwrap()
    }

    #[test]
    fn the_tarball_holds_the_program_and_its_documents() {
        let (name, archive) = tarball::package(&release()).unwrap();
        let folder = name.strip_suffix(".tar.gz").unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
        let entries = tar.entries().unwrap().map(|entry| {
            let header = entry.unwrap().header().clone();
            (header.path().unwrap().display().to_string(), header.mode().unwrap())
        });
        let entries: Vec<_> = entries.collect();
        let files = ["README.md", "docs/size.md", "LICENSE-MIT", "THIRD-PARTY-LICENSES.txt"];
        let completions = ["blockstone.bash", "blockstone.elv", "blockstone.fish", "_blockstone"];
        let completions = completions.map(|file| format!("completions/{file}"));
        let files = files.iter().map(|file| (*file).to_owned()).chain(completions);
        let documents = ["man/blockstone-calibrate.1", "schema/run.json"].map(str::to_owned);
        for file in files.chain(documents) {
            assert!(entries.contains(&(format!("{folder}/{file}"), 0o644)), "{file}: {entries:?}");
        }
        assert!(entries.contains(&(format!("{folder}/blockstone"), 0o755)), "{entries:?}");
    }

    #[test]
    fn debians_tools_read_the_package_and_the_program_in_it_runs() {
        require!(DpkgDeb);
        let dir = ScratchDir::on_disk().unwrap();
        let release = release();
        let (name, package) = deb::package(&release).unwrap();
        let path = dir.path().join(name);
        fs::write(&path, package).unwrap();
        let dpkg = |action: &str| {
            let mut command = Command::new("dpkg-deb");
            command.arg(action).arg(&path);
            command
        };
        let control = output_of(&mut dpkg("--info")).unwrap();
        assert!(control.contains(&format!("Version: {}\n", release.version)), "{control}");
        let listed = output_of(dpkg("--contents").env("TZ", "UTC")).unwrap();
        let has = |mode: &str, path: &str| {
            let line = listed.lines().find(|line| line.ends_with(path)).unwrap_or_default();
            let time = line.contains(" 2023-11-14 22:13 ");
            line.starts_with(mode) && line.contains(" root/root ") && time
        };
        assert!(has("-rwxr-xr-x", " ./usr/bin/blockstone"), "{listed}");
        assert!(has("drwxr-xr-x", " ./usr/share/man/man1/"), "{listed}");
        assert!(has("-rw-r--r--", " ./usr/share/doc/blockstone/copyright"), "{listed}");
        assert!(has("-rw-r--r--", " ./usr/share/blockstone/schema/run.json"), "{listed}");
        let installed = dir.path().join("root");
        output_of(dpkg("--extract").arg(&installed)).unwrap();
        let mut program = Command::new(installed.join("usr/bin/blockstone"));
        let version = output_of(program.arg("--version")).unwrap();
        assert_eq!(version, format!("blockstone {}\n", release.version));
        let page = fs::read(installed.join("usr/share/man/man1/blockstone.1.gz")).unwrap();
        assert_eq!(page[..2], [0x1f, 0x8b]);
    }

    #[test]
    fn links_of_the_documents_lead_to_documents() {
        let texts = texts().unwrap();
        let is_page = |path: &str| Path::new(path).extension().is_some_and(|it| it == "md");
        let pages = texts.iter().filter(|(path, _)| is_page(path));
        let files = texts.iter().map(|(path, text)| {
            let text = if is_page(path) { String::from_utf8_lossy(text) } else { "".into() };
            SourceFile::new(path, text)
        });
        let tree = Tree { files: files.collect(), packages: Vec::new() };
        assert!(pages.count() > 40);
        let dead = documents_that_lead_nowhere(&tree);
        assert!(dead.is_empty(), "{dead:#?}");
    }

    #[test]
    fn a_checksum_line_is_that_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum_line("a", b""), format!("{empty}  a\n"));
    }
}
