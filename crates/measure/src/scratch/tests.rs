use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use blockstone_testkit::Sleeper;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;

const STRANGER: u32 = 4321;

fn sleep_program() -> PathBuf {
    fs::canonicalize("/bin/sleep").unwrap()
}

fn age(path: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    fs::File::open(path).unwrap().set_modified(old).unwrap();
}

/// Creates a directory named like that of a killed run, with a file in it.
fn leftover(dir: &Path, id: u64) -> PathBuf {
    let path = dir.join(name(id, "disk0"));
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), "content").unwrap();
    age(&path);
    path
}

#[test]
fn a_directory_without_a_record_is_left_alone_with_all_that_works_in_it() {
    let dir = TempDir::new().unwrap();
    let path = leftover(dir.path(), 1);
    let mut shell = Sleeper::start(&sleep_program(), &path).unwrap();
    assert_eq!(remove_orphans(dir.path(), &[]), [] as [PathBuf; 0]);
    assert!(shell.runs(), "killed what no record names");
    assert!(path.join("file").exists());
}

#[test]
fn a_link_that_takes_the_place_of_a_directory_leads_nowhere() {
    let dir = TempDir::new().unwrap();
    let victim = TempDir::new().unwrap();
    fs::write(victim.path().join("precious"), "data").unwrap();
    let mut innocent = Sleeper::start(&sleep_program(), victim.path()).unwrap();
    let link = dir.path().join("link");
    symlink(victim.path(), &link).unwrap();
    let path = dir.path().join(name(2, "disk0"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &link, CWD, &path, RenameFlags::EXCHANGE);
            }
        });
        for _ in 0..2000 {
            if !path.exists() && !link.exists() {
                break;
            }
            let bait = dir.path().join("bait");
            let _ = fs::create_dir(&bait);
            age(&bait);
            // One of the two names is free.
            let flags = RenameFlags::NOREPLACE;
            let _ = renameat_with(CWD, &bait, CWD, &path, flags);
            let _ = renameat_with(CWD, &bait, CWD, &link, flags);
            remove_orphans(dir.path(), &[]);
            if !innocent.runs() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(innocent.runs(), "killed what works where the link led");
    assert!(victim.path().join("precious").exists());
}

#[test]
fn the_superuser_touches_nothing_of_a_stranger() {
    blockstone_testkit::require!(Root);
    let dir = TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let path = leftover(dir.path(), 3);
    let file = dir.path().join(name(4, ""));
    fs::write(&file, "content").unwrap();
    age(&file);
    for one in [&path, &file] {
        chown(one, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let mut innocent = Sleeper::start(&sleep_program(), &path).unwrap();
    assert_eq!(remove_orphans(dir.path(), &[]), [] as [PathBuf; 0]);
    assert!(innocent.runs(), "killed at a stranger's bidding");
    assert!(path.join("file").exists() && file.exists());
}
