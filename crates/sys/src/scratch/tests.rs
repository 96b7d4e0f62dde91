use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use blockstone_testkit::Sleeper;
use tempfile::TempDir;

use super::*;

const STRANGER: u32 = 4321;

/// Creates two programs that are different files: the server, and another.
fn programs(dir: &Path) -> [PathBuf; 2] {
    ["server", "other"].map(|name| {
        let path = dir.join(name);
        fs::copy("/bin/sleep", &path).unwrap();
        path
    })
}

fn age(path: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    File::open(path).unwrap().set_modified(old).unwrap();
}

/// Creates what a killed run leaves at `path`: the directory, unlocked and old.
fn leave(path: &Path, program: Option<&Path>) {
    let made = ScratchDir::create(path, program).unwrap();
    fs::create_dir_all(path.join("data/base/1")).unwrap();
    fs::write(path.join("data/base/1/16384"), "rows").unwrap();
    drop(made);
    age(path);
}

fn remove_left(path: &Path) -> bool {
    remove_orphan(path, Instant::now())
}

#[test]
fn a_killed_runs_server_ends_and_others_in_its_directory_go_on() {
    let dir = TempDir::new().unwrap();
    let [server, other] = programs(dir.path());
    let path = dir.path().join("left");
    leave(&path, Some(&server));
    let mut left =
        [path.join("data"), path.clone()].map(|at| Sleeper::start(&server, &at).unwrap());
    let mut shell = Sleeper::start(&other, &path.join("data")).unwrap();
    let mut outside = Sleeper::start(&server, dir.path()).unwrap();
    assert!(remove_left(&path));
    assert!(!path.exists());
    for worker in &mut left {
        assert!(worker.was_killed());
    }
    assert!(shell.runs() && outside.runs());
}

#[test]
fn the_directory_of_a_living_run_stays_with_its_server() {
    let dir = TempDir::new().unwrap();
    let [server, _] = programs(dir.path());
    let path = dir.path().join("living");
    let made = ScratchDir::create(&path, Some(&server)).unwrap();
    let mut worker = Sleeper::start(&server, &path).unwrap();
    age(&path);
    assert!(!remove_left(&path));
    assert!(worker.runs() && path.exists());
    drop(made);
    assert!(remove_left(&path));
}

#[test]
fn a_young_directory_may_not_be_locked_yet() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("young");
    drop(ScratchDir::create(&path, None).unwrap());
    assert!(!remove_left(&path));
    age(&path);
    assert!(remove_left(&path));
}

#[test]
fn only_an_empty_directory_goes_without_a_record() {
    let dir = TempDir::new().unwrap();
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    age(&empty);
    assert!(remove_left(&empty));
    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("file"), "data").unwrap();
    age(&full);
    assert!(!remove_left(&full));
    assert!(full.join("file").exists());
}

#[test]
fn a_record_of_another_directory_proves_nothing() {
    let dir = TempDir::new().unwrap();
    let real = dir.path().join("real");
    leave(&real, None);
    let forged = dir.path().join("forged");
    fs::create_dir(&forged).unwrap();
    fs::write(forged.join("file"), "data").unwrap();
    let record = real.join(RECORD);
    let target = forged.join(RECORD);
    let attempts: [fn(&Path, &Path) -> io::Result<()>; 3] =
        [|a, b| fs::hard_link(a, b), |a, b| symlink(a, b), |a, b| fs::rename(a, b)];
    for attempt in attempts {
        let _ = fs::remove_file(&target);
        attempt(&record, &target).unwrap();
        age(&forged);
        assert!(!remove_left(&forged));
    }
    assert!(forged.join("file").exists());
    assert!(real.join("data").exists());
}

#[test]
fn damaged_records_are_refused() {
    let good = "blockstone scratch directory\ninode 7\nprogram 1 2\n";
    let parse = |text: &str| parse_record(text, 7).ok();
    assert_eq!(parse(good), Some(Some(Identity { device: 1, inode: 2 })));
    assert_eq!(parse("blockstone scratch directory\ninode 7\n"), Some(None));
    for len in 0..good.len() - 1 {
        // The program is in the last line, so a record cut short has none.
        let cut = parse(&good[..len]).flatten();
        assert_eq!(cut, None, "{}", &good[..len]);
    }
    for bad in ["", "inode 7\n", &good.replace('7', "8"), &good.replace('1', "-1")] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn links_in_it_are_removed_and_not_followed() {
    let dir = TempDir::new().unwrap();
    let victim = dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("precious"), "data").unwrap();
    let path = dir.path().join("left");
    leave(&path, None);
    symlink(&victim, path.join("data/link")).unwrap();
    symlink(victim.join("precious"), path.join("data/base/link")).unwrap();
    fs::hard_link(victim.join("precious"), path.join("data/hard")).unwrap();
    age(&path);
    assert!(remove_left(&path));
    assert_eq!(fs::read(victim.join("precious")).unwrap(), b"data");
}

#[test]
fn whoever_took_its_name_keeps_it() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("mine");
    let made = ScratchDir::create(&path, None).unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("theirs"), "data").unwrap();
    made.remove().unwrap();
    assert!(path.join("theirs").exists());
    assert_eq!(fs::read_dir(dir.path().join("moved")).unwrap().count(), 0);
}

#[test]
fn what_a_run_made_goes_and_a_directory_in_its_place_stays() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("made");
    let _held = ScratchDir::create(&path, None).unwrap();
    fs::write(path.join("rows"), "data").unwrap();
    remove(&path).unwrap();
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    fs::write(path.join("theirs"), "data").unwrap();
    remove(&path).unwrap_err();
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    remove(&link).unwrap();
    assert!(path.join("theirs").exists() && !link.exists());
}

#[test]
fn a_log_is_written_through_no_link() {
    let dir = TempDir::new().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "data").unwrap();
    let path = dir.path().join("home");
    let made = ScratchDir::create(&path, None).unwrap();
    symlink(&victim, path.join("server.log")).unwrap();
    let log = made.log("server.log").unwrap();
    log.writer().unwrap().write_all(b"first\n").unwrap();
    log.writer().unwrap().write_all(b"second\n").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"data");
    // The server replaces its log: the file that was written is still the one that is read.
    fs::remove_file(path.join("server.log")).unwrap();
    symlink(&victim, path.join("server.log")).unwrap();
    assert_eq!(log.text(), "first\nsecond\n");
}

#[test]
fn mounts_in_it_are_not_entered() {
    blockstone_testkit::require!(Root);
    let dir = TempDir::new().unwrap();
    let victim = dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("precious"), "data").unwrap();
    let path = dir.path().join("left");
    leave(&path, None);
    let at = path.join("data/mnt");
    fs::create_dir(&at).unwrap();
    let mount = Command::new("mount").arg("--bind").args([&victim, &at]).status().unwrap();
    assert!(mount.success());
    age(&path);
    let removed = remove_left(&path);
    let umount = Command::new("umount").arg(&at).status().unwrap();
    assert!(umount.success() && !removed);
    assert_eq!(fs::read(victim.join("precious")).unwrap(), b"data");
    age(&path);
    assert!(remove_left(&path), "it is known as a killed run's still");
}

#[test]
fn the_superuser_kills_the_servers_user_only() {
    blockstone_testkit::require!(Root);
    let dir = TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let [server, _] = programs(dir.path());
    let path = dir.path().join("left");
    let mut made = ScratchDir::create(&path, Some(&server)).unwrap();
    let user = User { name: "stranger".to_owned(), uid: STRANGER, gid: STRANGER };
    made.give_to(&user).unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (STRANGER, 0o700));
    drop(made);
    age(&path);
    let mut own = Sleeper::start(&server, &path).unwrap();
    let mut command = Command::new(&server);
    crate::child::confine(command.current_dir(&path), Some(&user), Signal::KILL);
    let mut theirs = Sleeper::spawn(&mut command).unwrap();
    assert!(remove_left(&path));
    assert!(theirs.was_killed());
    assert!(own.runs(), "killed a process of the superuser");
}

#[test]
fn the_superuser_believes_no_record_of_another_user() {
    blockstone_testkit::require!(Root);
    let dir = TempDir::new().unwrap();
    let [server, _] = programs(dir.path());
    let path = dir.path().join("left");
    leave(&path, Some(&server));
    chown(path.join(RECORD), Some(STRANGER), Some(STRANGER)).unwrap();
    let mut worker = Sleeper::start(&server, &path).unwrap();
    assert!(!remove_left(&path));
    assert!(worker.runs() && path.join("data").exists());
}

#[test]
fn a_directory_is_made_in_one_that_is_held_and_removed_however_deep_it_is() {
    let dir = TempDir::new().unwrap();
    let held = crate::held::HeldDir::hold(dir.path()).unwrap();
    let made = ScratchDir::create_in(&held, "made").unwrap();
    let path = dir.path().join("made");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(made.owner(), fs::metadata(&path).unwrap().uid());
    ScratchDir::create_in(&held, "made").unwrap_err();
    // Sibling directories, all deeper than one removal reaches.
    let deep = (0..70).fold(path.clone(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    for above in deep.ancestors().take(60) {
        fs::create_dir_all(above.join("e/f")).unwrap();
        fs::write(above.join("e/file"), "x").unwrap();
        symlink(dir.path(), above.join("link")).unwrap();
    }
    fs::write(dir.path().join("other"), "x").unwrap();
    made.remove().unwrap();
    assert_eq!(crate::path::names(dir.path()).unwrap(), ["other"]);
}

#[test]
fn a_directory_whose_run_was_killed_before_it_wrote_its_record_is_removed() {
    let dir = TempDir::new().unwrap();
    for (number, record) in [None, Some(""), Some("something else")].into_iter().enumerate() {
        let path = dir.path().join(number.to_string());
        fs::create_dir(&path).unwrap();
        if let Some(record) = record {
            fs::write(path.join(RECORD), record).unwrap();
        }
        age(&path);
        assert_eq!(remove_left(&path), record.is_none_or(str::is_empty), "{record:?}");
    }
}
