//! `blockstone-VERSION-1.ARCH.rpm`, for Fedora, RHEL and SUSE.

use anyhow::{Context, Result};
use rpm::{BuildConfig, CompressionWithLevel, FileOptions, PackageBuilder};

use super::{DESCRIPTION, Release, SUMMARY, architecture, installed};

/// Returns the file's name and contents.
pub fn package(release: &Release) -> Result<(String, Vec<u8>)> {
    let architecture = architecture(&release.triple, ["x86_64", "aarch64"])?;
    let licence = "MIT OR Apache-2.0";
    let time_s = u32::try_from(release.style.mtime_s).context("the time is after 2106")?;
    let config = BuildConfig::v4()
        .source_date(time_s)
        .compression(CompressionWithLevel::Gzip(release.style.compression.level()));
    let mut builder =
        PackageBuilder::new("blockstone", &release.version, licence, architecture, SUMMARY);
    // The name of the build host would make equal inputs differ.
    builder.using_config(config).description(DESCRIPTION.join("\n")).build_host("localhost");
    for (path, file) in installed::files(release, &|shell| shell.fedora)? {
        let options = FileOptions::new(format!("/{path}")).permissions(file.mode() as u16);
        builder.with_file_contents(file.into_content(), options)?;
    }
    let mut package = Vec::new();
    builder.build()?.write(&mut package)?;
    Ok((format!("blockstone-{}-1.{architecture}.rpm", release.version), package))
}
