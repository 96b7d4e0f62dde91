//! The owner of a directory in which the superuser measures: he keeps renaming the entries that
//! appear there, and puts links to the superuser's files in their place.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_testkit::{blockstone_binary, require};

use super::super::check::durability::Witness;
use super::{Place, STRANGER, within};

const CONTENT: &str = "the superuser's";

/// Swaps the entries that appear in a directory until it is dropped.
struct Owner {
    over: Arc<AtomicBool>,
    swaps: Option<JoinHandle<u64>>,
}

impl Owner {
    fn of(dir: &Path, victim: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (ended, dir, victim) = (Arc::clone(&over), dir.to_owned(), victim.to_owned());
        let work = move || {
            let mut swaps = 0;
            while !ended.load(Ordering::Relaxed) {
                swap_all(&dir, &victim, &mut swaps);
            }
            swaps
        };
        Self { over, swaps: Some(thread::spawn(work)) }
    }

    fn end(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.swaps.take().unwrap().join().unwrap()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Replaces files by links to the victim. Replaces directories by directories of the attacker, with
/// such a link and a file for programs that copy; entries that appear in them are swapped as well.
fn swap_all(dir: &Path, victim: &Path, swaps: &mut u64) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_mine = name.starts_with("aside") || found.is_symlink() || name == "in";
        if found.is_dir() && found.uid() == STRANGER {
            swap_all(&path, victim, swaps);
        } else if !is_mine {
            let aside = dir.join(format!("aside-{swaps}"));
            if fs::rename(&path, &aside).is_err() {
                continue;
            }
            *swaps += 1;
            if found.is_dir() {
                let _ = fs::create_dir(&path);
                let _ = chown(&path, Some(STRANGER), Some(STRANGER));
                let _ = fs::write(path.join("in"), "evil::0:0:evil:/root:/bin/sh\n");
                let _ = symlink(victim, path.join("out"));
            } else {
                let _ = symlink(victim, &path);
            }
        }
    }
}

/// Runs the command on a directory under attack, next to a file of the superuser's. Returns the
/// number of swaps.
fn attacked(place: &Place, arguments: &[&str]) -> u64 {
    let shown = arguments.join(" ");
    let (dir, victim) = (place.file(&shown), place.scratch.path().join("victim"));
    fs::write(&victim, CONTENT).unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(STRANGER), Some(STRANGER)).unwrap();
    let owner = Owner::of(&dir, &victim);
    let mut command = Command::new(blockstone_binary());
    command.args(arguments).arg(&dir).current_dir(place.scratch.path());
    let ran = within(Duration::from_mins(5), &mut command);
    let swaps = owner.end();
    assert!(ran.code.is_some_and(|code| code < 5), "{shown}: {ran:#?}");
    let found = fs::metadata(&victim).unwrap();
    let content = fs::read(&victim).unwrap();
    assert_eq!(String::from_utf8_lossy(&content[..content.len().min(64)]), CONTENT, "{shown}");
    assert_eq!((found.uid(), found.mode() & 0o7777), (0, 0o600), "{shown}");
    swaps
}

#[test]
fn ranks_write_to_no_file_that_takes_the_name_of_theirs() {
    require!(Root);
    assert!(attacked(&Place::new(), &["check", "coherence"]) > 0);
}

#[test]
fn writers_of_a_witness_write_to_no_directory_that_takes_the_name_of_theirs() {
    require!(Root);
    let (place, witness) = (Place::new(), Witness::start());
    let arguments = ["check", "durability", "--for", "2s", "--witness", &witness.address];
    assert!(attacked(&place, &arguments) > 0);
}

#[test]
fn files_of_checks_are_reached_by_no_name() {
    require!(Root);
    let place = Place::new();
    // Their files lose their names immediately, so it is a matter of luck whether one is swapped.
    for check in ["write-order", "direct", "durability", "iosize"] {
        attacked(&place, &["check", check]);
    }
}

#[test]
fn tools_that_are_counted_run_in_no_directory_that_takes_the_name_of_theirs() {
    require!(Root);
    assert!(attacked(&Place::new(), &["check", "iosize", "--tools"]) > 0);
}

#[test]
fn files_of_measurements_are_reached_by_no_name() {
    require!(Root);
    let place = Place::new();
    let calibrate = ["calibrate", "--brief", "--size", "64M", "--runs-dir", "runs"];
    assert!(attacked(&place, &calibrate) > 0);
    assert!(attacked(&place, &["noise", "--for", "1s", "--area", "1M"]) > 0);
}
