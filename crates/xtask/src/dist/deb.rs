//! `blockstone_VERSION_ARCH.deb`: an `ar` archive of a format version, a tar that describes the
//! package and a tar of its files (deb(5)), written without Debian's tools.

use anyhow::{Context, Result};

use super::archive::{File, Files};
use super::{DESCRIPTION, Release, SUMMARY, architecture, installed};

/// Returns the file's name and contents.
pub fn package(release: &Release) -> Result<(String, Vec<u8>)> {
    let architecture = architecture(&release.triple, ["amd64", "arm64"])?;
    let files = installed::files(release, &|shell| shell.debian)?;
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
         Description: {SUMMARY}\n {}\n {}\n",
        DESCRIPTION[0], DESCRIPTION[1]
    )
}
