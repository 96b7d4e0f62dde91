//! Copies into a directory whose owner plants, swaps and links its entries, and targets that a copy
//! must not replace.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{
    FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, LoopDevice, Ran, blockstone_binary, require, run};
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags, mknodat, renameat_with, statat};

use super::{Place, names};

const OWNER: u32 = 65_534;
/// A user without any other processes.
const OWNER_ALONE: u32 = 64_321;
const SECRET: &str = "the administrator's";

fn copy(arguments: &[&str], paths: &[&Path]) -> Ran {
    run(Command::new(blockstone_binary()).arg("copy").args(arguments).args(paths))
}

fn start(arguments: &[&str], paths: &[&Path]) -> Child {
    let mut command = Command::new(blockstone_binary());
    command.arg("copy").args(arguments).args(paths);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// `blockstone copy` with these bytes on standard input.
fn copy_bytes(bytes: &[u8], arguments: &[&str], target: &Path) -> Ran {
    let mut command = Command::new(blockstone_binary());
    command.arg("copy").args(arguments).arg("-").arg(target).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A copy that is refused reads nothing.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn refused(ran: &Ran, says: &str) {
    assert_eq!(ran.code, Some(2), "{says}: {ran:#?}");
    assert!(ran.stderr.contains(says) && ran.stderr.contains("\nhint: "), "{says}: {ran:#?}");
}

/// Creates a file of root alone, outside the place under attack.
fn victim(place: &Place) -> PathBuf {
    let path = place.runs().join("victim");
    fs::write(&path, SECRET).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[track_caller]
fn is_untouched(path: &Path) {
    let found = fs::symlink_metadata(path).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), SECRET);
    assert_eq!((found.uid(), found.mode() & 0o7777), (0, 0o600));
}

/// Creates a directory of the attacker.
fn theirs(place: &Place, name: &str) -> PathBuf {
    let path = place.file(name);
    fs::create_dir(&path).unwrap();
    chown(&path, Some(OWNER), Some(OWNER)).unwrap();
    path
}

#[test]
fn cp_is_not_led_out_of_the_target() {
    require!(Root);
    let place = Place::beside();
    let (victim, to, from) = (victim(&place), theirs(&place, "to"), place.file("from"));
    fs::write(&from, vec![7; 8 << 20]).unwrap();
    let mut child = start(&["--against", "cp"], &[&from, &to]);
    // Names that can be derived from the process id are planted before it uses them.
    for number in 0..4 {
        let name = format!(".blockstone-against-{}-{number}-from", child.id());
        symlink(&victim, to.join(&name)).unwrap();
        lchown(to.join(name), Some(OWNER), Some(OWNER)).unwrap();
    }
    // Directories that appear are moved away, and replaced by others with the same names.
    let mut moved = 0;
    while child.try_wait().unwrap().is_none() {
        for name in names(&to).into_iter().filter(|name| name.starts_with("blockstone-test-")) {
            let planted = theirs(&place, &format!("planted-{moved}"));
            for name in ["copy", "from", "to"] {
                symlink(&victim, planted.join(name)).unwrap();
            }
            let (at, away) = (to.join(&name), to.join(format!("moved-{moved}")));
            if fs::rename(&at, &away).is_ok() {
                let _ = fs::rename(&planted, &at);
            }
            moved += 1;
        }
    }
    is_untouched(&victim);
    assert_eq!(fs::read(to.join("from")).unwrap(), fs::read(&from).unwrap());
}

#[test]
fn what_a_killed_comparison_leaves_is_removed_by_the_next() {
    require!(Root);
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    fs::create_dir(&to).unwrap();
    fs::write(&from, vec![7; 64 << 20]).unwrap();
    let rooms = || {
        let is_part = |name: &String| name.ends_with("-part") || name.ends_with("-resume");
        let all = names(&to).into_iter().filter(|name| name != "from" && !is_part(name));
        all.collect::<Vec<_>>()
    };
    let mut child = start(&["--against", "cp"], &[&from, &to]);
    while rooms().is_empty() && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
    let left = rooms();
    assert!(left.len() <= 1, "{left:?}");
    for name in left {
        let mode = fs::metadata(to.join(name)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o700);
    }
    std::thread::sleep(Duration::from_millis(200));
    fs::remove_file(to.join("from")).unwrap();
    let ran = copy(&["--against", "cp"], &[&from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(names(&to), ["from"]);
}

#[test]
fn devices_and_pipes_are_never_replaced() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(17), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    device.blank().unwrap();
    let from = place.file("from");
    fs::write(&from, "x").unwrap();
    let number = fs::metadata(device.device()).unwrap().rdev();
    for (name, kind, number, says) in [
        ("null", FileType::CharacterDevice, 0x103, "a character device, which a copy never"),
        ("pipe", FileType::Fifo, 0, "a pipe, which a copy never"),
        ("block", FileType::BlockDevice, number, "--destroy"),
    ] {
        let node = place.file(name);
        mknodat(CWD, &node, kind, Mode::RUSR | Mode::WUSR, number).unwrap();
        let before = statat(CWD, &node, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        for force in [&[][..], &["--force"]] {
            refused(&copy_bytes(b"x", force, &node), says);
            refused(&copy(force, &[&from, &node]), says);
            refused(&copy(force, &[device.device(), &node]), says);
        }
        let after = statat(CWD, &node, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let what = |it: &rustix::fs::Stat| (it.st_ino, it.st_mode, it.st_rdev, it.st_ctime_nsec);
        assert_eq!(what(&before), what(&after), "{name}");
        // The same in a tree that is copied over another one.
        let (tree, other) = (place.file("tree"), place.file("other"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(other.join("tree")).unwrap();
        fs::write(tree.join(name), "x").unwrap();
        mknodat(CWD, other.join("tree").join(name), kind, Mode::RUSR, number).unwrap();
        refused(&copy(&["--force"], &[&tree, &other]), "which a copy never replaces");
        let kept = fs::symlink_metadata(other.join("tree").join(name)).unwrap().file_type();
        assert!(!kept.is_file(), "{name}");
        fs::remove_dir_all(&tree).unwrap();
        fs::remove_dir_all(&other).unwrap();
    }
    // Nor a link to one, such as /dev/stdout.
    let link = place.file("link");
    symlink("null", &link).unwrap();
    refused(&copy_bytes(b"x", &["--force"], &link), "a character device, which a copy never");
    refused(&copy(&["--force"], &[&from, &link]), "a character device, which a copy never");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("null"));
    assert!(fs::read(device.device()).unwrap().iter().all(|&byte| byte == 0));
    assert!(fs::metadata(place.file("pipe")).unwrap().file_type().is_fifo());
}

#[test]
fn a_pipe_overwrites_a_device_that_is_named_twice_and_gets_all_of_another() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(17), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    device.blank().unwrap();
    let name = device.device().to_str().unwrap();
    let content: Vec<u8> = (0..9_000_041_u32).map(|at| (at % 251) as u8).collect();
    refused(&copy_bytes(&content, &[], device.device()), "--destroy");
    refused(&copy_bytes(&content, &["--destroy", "/dev/null"], &place.file("to")), "not a block");
    let ran = copy_bytes(&content, &["--json", "--verify", "--destroy", name], device.device());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(
        (&ran.json()["bytes"], &ran.json()["verified"]),
        (&content.len().into(), &true.into())
    );
    let mut whole = content;
    whole.resize(17 << 20, 0);
    assert_eq!(fs::read(device.device()).unwrap(), whole);
    let mut command = Command::new(blockstone_binary());
    let output = command.args(["copy", name, "-"]).output().unwrap();
    assert!(output.status.success() && output.stdout == whole, "{}", output.stdout.len());
    device.blank().unwrap();
    let more = vec![1; 18 << 20];
    refused(&copy_bytes(&more, &["--destroy", name], device.device()), "gives more");
}

/// Gives a file the owner and the time of another.
fn disguise(path: &Path, as_made_of: &Path, owner: u32) {
    let time = fs::metadata(as_made_of).unwrap().modified().unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    chown(path, Some(owner), Some(owner)).unwrap();
}

#[test]
fn what_another_user_planted_is_not_an_earlier_copy() {
    require!(Root);
    let place = Place::beside();
    let (from, to, list) = (place.file("from"), place.file("to"), place.runs().join("list"));
    fs::create_dir(&from).unwrap();
    fs::create_dir_all(to.join("from")).unwrap();
    for name in ["one", "two"] {
        fs::write(from.join(name), "goodgood").unwrap();
    }
    let planted = to.join("from/one");
    fs::write(&planted, "EVILEVIL").unwrap();
    disguise(&planted, &from.join("one"), OWNER);
    let resume = ["--resume", "--verify", "--manifest", list.to_str().unwrap()];
    refused(&copy(&resume, &[&from, &to]), "belongs to user 65534");
    assert_eq!(fs::read_to_string(to.join("from/two")).unwrap(), "goodgood");
    // A second name could belong to any file of the owner.
    fs::remove_file(&planted).unwrap();
    fs::write(place.file("other"), "EVILEVIL").unwrap();
    fs::hard_link(place.file("other"), &planted).unwrap();
    disguise(&planted, &from.join("one"), 0);
    refused(&copy(&resume, &[&from, &to]), "has 2 names");
    // A file of this user is read again.
    fs::remove_file(place.file("other")).unwrap();
    let quick = copy(&["--resume", "--json"], &[&from, &to]);
    assert_eq!(quick.json()["kept_files"], 2, "{quick:#?}");
    refused(&copy(&resume, &[&from, &to]), "has other bytes than its source");
    let ran = copy(&[&resume[..], &["--force", "--json"]].concat(), &[&from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = ran.json();
    assert_eq!((&found["files"], &found["kept_files"]), (&1.into(), &1.into()), "{found:#}");
    assert_eq!(fs::read_to_string(&planted).unwrap(), "goodgood");
    // Files that were kept are in the list too.
    let ran = copy(&resume, &[&from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let check = ["--json", "--check", list.to_str().unwrap()];
    let ran = copy(&check, &[&to]);
    assert_eq!((ran.code, &ran.json()["equal_files"]), (Some(0), &2.into()), "{ran:#?}");
    fs::write(to.join("from/two"), "EVILEVIL").unwrap();
    assert_eq!(copy(&check, &[&to]).code, Some(1));
}

/// Replaces the entries that appear in `to` by root's files and directories until `end` is set.
fn swap(to: &Path, secrets: &Path, kind: &str, end: &AtomicBool) {
    let mut next = 0;
    while !end.load(Relaxed) {
        let Ok(entries) = fs::read_dir(to.join("from")) else { continue };
        for entry in entries.flatten().filter(|it| it.file_name().as_encoded_bytes()[0] == b'n') {
            let secret = secrets.join(format!("{kind}{next}"));
            if !secret.exists() {
                return;
            }
            let exchange = RenameFlags::EXCHANGE;
            if renameat_with(CWD, &secret, CWD, entry.path(), exchange).is_ok() {
                next += 1;
            }
        }
    }
}

#[test]
fn nothing_that_takes_the_place_of_a_new_name_is_given_away() {
    const COUNT: usize = 2000;
    require!(Root);
    let place = Place::beside();
    for kind in ["pipe", "directory"] {
        let from = place.file("from");
        fs::create_dir(&from).unwrap();
        for number in 0..COUNT {
            let path = from.join(format!("n{number}"));
            if kind == "pipe" {
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
            } else {
                fs::create_dir(&path).unwrap();
            }
            chown(&path, Some(OWNER), Some(OWNER)).unwrap();
        }
        chown(&from, Some(OWNER), Some(OWNER)).unwrap();
        let (to, secrets) = (theirs(&place, "to"), place.file("secrets"));
        fs::create_dir(&secrets).unwrap();
        for number in 0..COUNT {
            let path = secrets.join(format!("{kind}{number}"));
            if kind == "pipe" {
                fs::write(&path, SECRET).unwrap();
            } else {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("secret"), SECRET).unwrap();
            }
            let mode = if kind == "pipe" { 0o600 } else { 0o700 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(&to, &secrets, kind, &end));
            copy(&[], &[&from, &to]);
            end.store(true, Relaxed);
        });
        // Check them wherever they are now.
        for dir in [&secrets, &to.join("from")] {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let found = entry.metadata().unwrap();
                let is_secret = match kind {
                    "pipe" => found.is_file(),
                    _ => found.is_dir() && entry.path().join("secret").exists(),
                };
                let given = found.uid() != 0 || found.mode() & 0o077 != 0;
                assert!(!is_secret || !given, "{} {:o}", entry.path().display(), found.mode());
            }
        }
        for dir in [from, to, secrets] {
            fs::remove_dir_all(dir).unwrap();
        }
    }
}

#[test]
fn a_directory_that_was_there_is_not_given_away_with_what_it_holds() {
    require!(Root);
    let place = Place::beside();
    let (from, to) = (place.file("from"), theirs(&place, "to"));
    for name in ["private", "empty"] {
        fs::create_dir_all(from.join(name)).unwrap();
        fs::write(from.join(name).join("file"), "x").unwrap();
        chown(from.join(name), Some(OWNER), Some(OWNER)).unwrap();
        fs::create_dir_all(to.join("from").join(name)).unwrap();
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(to.join("from").join(name), mode).unwrap();
    }
    fs::write(to.join("from/private/secret"), SECRET).unwrap();
    let ran = copy(&["--force"], &[&from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("it was there before"), "{ran:#?}");
    let kept = |name: &str| fs::metadata(to.join("from").join(name)).unwrap();
    assert_eq!((kept("private").uid(), kept("private").mode() & 0o7777), (0, 0o700));
    assert_eq!(kept("empty").uid(), OWNER, "nothing else is in it");
}

#[test]
fn a_check_follows_no_link_out_of_the_target() {
    let place = Place::beside();
    let (from, to, list) = (place.file("from"), place.file("to"), place.runs().join("list"));
    for dir in ["sub", "other"] {
        fs::create_dir_all(from.join(dir)).unwrap();
        fs::write(from.join(dir).join("file"), "x").unwrap();
    }
    let manifest = ["--manifest", list.to_str().unwrap()];
    assert_eq!(copy(&manifest, &[&from, &to]).code, Some(0));
    let check = || copy(&["--json", "--check", list.to_str().unwrap()], &[&to]);
    assert_eq!(check().json()["equal_files"], 2);
    // The same bytes in another place.
    fs::remove_file(to.join("sub/file")).unwrap();
    symlink(from.join("sub/file"), to.join("sub/file")).unwrap();
    fs::rename(to.join("other"), place.file("moved")).unwrap();
    symlink(place.file("moved"), to.join("other")).unwrap();
    let ran = check();
    assert_eq!((ran.code, &ran.json()["equal_files"]), (Some(1), &0.into()), "{ran:#?}");
}

#[test]
fn a_tree_deeper_than_the_limit_of_open_files_is_copied() {
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    let deep = |top: &Path| (0..300).fold(top.to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(deep(&from)).unwrap();
    fs::write(deep(&from).join("file"), "x").unwrap();
    symlink("file", deep(&from).join("link")).unwrap();
    for (number, path) in deep(&from).ancestors().take(200).enumerate() {
        fs::write(path.join("n"), number.to_string()).unwrap();
    }
    let list = place.runs().join("list");
    let limited = |arguments: &[&Path]| {
        let shell = "ulimit -n 64; exec \"$0\" copy \"$@\"";
        run(Command::new("sh").args(["-c", shell]).arg(blockstone_binary()).args(arguments))
    };
    let ran = limited(&[Path::new("--manifest"), &list, &from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(fs::read_to_string(deep(&to).join("link")).unwrap(), "x");
    let ran = limited(&[Path::new("--check"), &list, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let file = fs::File::options().write(true).open(deep(&to).join("file")).unwrap();
    file.write_all_at(b"y", 0).unwrap();
    let ran = limited(&[Path::new("--check"), &list, &to]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
}

#[test]
fn threads_that_cannot_be_had_are_no_panic() {
    require!(Root);
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    fs::create_dir(&from).unwrap();
    for number in 0..200 {
        fs::write(from.join(number.to_string()), "x").unwrap();
    }
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.scratch.path(), open).unwrap();
    chown(place.data(), Some(OWNER_ALONE), Some(OWNER_ALONE)).unwrap();
    for most in 1..8 {
        let limit = format!("--nproc={most}");
        let user = format!("--reuid={OWNER_ALONE}");
        let mut command = Command::new("setpriv");
        command.args([&user, "--clear-groups", "prlimit", &limit]).arg(blockstone_binary());
        let ran = run(command.arg("copy").args([&from, &to]).current_dir(place.data()));
        let is_clear = ran.code == Some(0) || ran.stderr.contains("\nhint: ");
        assert!(matches!(ran.code, Some(0 | 2)) && is_clear, "{most}: {ran:#?}");
        let _ = fs::remove_dir_all(&to);
    }
}
