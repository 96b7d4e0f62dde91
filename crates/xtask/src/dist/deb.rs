//! `blockstone_VERSION_ARCH.deb`: an `ar` archive of a format version, a tar that describes the
//! package and a tar of its files (deb(5)), written without Debian's tools.

use anyhow::{Context, Result, bail};

use super::Release;
use super::archive::{File, Files};

/// Returns the file's name and contents.
pub fn package(release: &Release) -> Result<(String, Vec<u8>)> {
    let architecture = architecture(&release.triple)?;
    let files = files(release)?;
    let control = File::data(control(&release.version, architecture, &files));
    let control = Files::from([("control".to_owned(), control)]);
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", release.style.tar_gz(&control, "./")?),
        ("data.tar.gz", release.style.tar_gz(&files, "./")?),
    ];
    let mut package = ar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = ar::Header::new(name.into(), content.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(release.style.mtime_s);
        package.append(&header, &content[..]).with_context(|| format!("archive {name}"))?;
    }
    let name = format!("blockstone_{}_{architecture}.deb", release.version);
    Ok((name, package.into_inner()?))
}

/// Returns Debian's name for the processor of a target.
fn architecture(triple: &str) -> Result<&'static str> {
    match triple.split('-').next() {
        Some("x86_64") => Ok("amd64"),
        Some("aarch64") => Ok("arm64"),
        _ => bail!("no Debian architecture is known for {triple}\nhint: add it in {}", file!()),
    }
}

fn files(release: &Release) -> Result<Files> {
    let mut files = Files::from([
        ("usr/bin/blockstone".to_owned(), File::program(&release.binary)),
        ("usr/share/doc/blockstone/copyright".to_owned(), File::data(copyright(release))),
    ]);
    for (page, text) in &release.documents.man {
        let file = File::data(release.style.gzip(text)?);
        files.insert(format!("usr/share/man/man1/{page}.gz"), file);
    }
    for (name, text) in &release.documents.schemas {
        files.insert(format!("usr/share/blockstone/schema/{name}"), File::data(text.as_slice()));
    }
    for (shell, script) in &release.documents.completions {
        if let Some(path) = shell.debian {
            files.insert(path.to_owned(), File::data(script.as_str()));
        }
    }
    Ok(files)
}

fn copyright(release: &Release) -> Vec<u8> {
    let mut text = b"Blockstone is licensed under MIT or Apache-2.0, at your choice.\n\n".to_vec();
    for (_, licence) in release.texts.iter().filter(|(name, _)| name.starts_with("LICENSE-")) {
        text.extend(licence);
        text.push(b'\n');
    }
    text.extend(release.third_party.as_bytes());
    text
}

/// Returns the control file. It has no `Depends`: the binary is static.
fn control(version: &str, architecture: &str, files: &Files) -> String {
    let bytes: usize = files.values().map(File::size).sum();
    let installed_kib = bytes.div_ceil(1024);
    format!(
        "Package: blockstone\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Blockstone developers\n\
         Installed-Size: {installed_kib}\n\
         Section: utils\n\
         Priority: optional\n\
         Description: Measure storage the way a database uses it\n \
         Calibrates storage, runs database workloads on it, watches hosts and\n \
         databases, and reports which results to trust.\n"
    )
}
