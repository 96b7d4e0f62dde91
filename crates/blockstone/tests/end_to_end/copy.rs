//! `blockstone copy` as a user runs it: the attributes that a target must keep, refusals, and the
//! state after an interruption.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, LoopDevice, Ran, blockstone_binary, require, run};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, mknodat,
    setxattr, utimensat,
};
use serde_json::Value;

use super::{Place, keeps_to_its_schema, names, signal};

const NOBODY: u32 = 65534;

fn copy(arguments: &[&str], paths: &[&Path]) -> Ran {
    run(Command::new(blockstone_binary()).arg("copy").args(arguments).args(paths))
}

/// Returns the document of a copy that ended with this code.
#[track_caller]
fn document(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

/// Bytes that differ from file to file and do not compress.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    blockstone_base::rng::fill(seed, &mut bytes);
    bytes
}

/// Describes what a copy must preserve of everything below `top`, by relative name.
fn kept(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut groups: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(name) = left.pop() {
        let path = top.join(&name);
        let found = path.symlink_metadata().unwrap();
        let kind = found.file_type();
        let content = if kind.is_file() {
            format!("{:?}", xxhash(&fs::read(&path).unwrap()))
        } else if kind.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            if kind.is_dir() {
                left.extend(
                    fs::read_dir(&path).unwrap().map(|it| name.join(it.unwrap().file_name())),
                );
                left.sort_by(|a, b| b.cmp(a));
            }
            found.rdev().to_string()
        };
        let first = groups.entry(found.ino()).or_insert_with(|| name.clone()).clone();
        let line = format!(
            "{:o} {}:{} {}.{} {} {content} {} {:?}",
            found.mode(),
            found.uid(),
            found.gid(),
            found.mtime(),
            found.mtime_nsec(),
            if kind.is_dir() { 0 } else { found.len() },
            first.display(),
            extended(&path)
        );
        all.insert(name, line);
    }
    all
}

fn xxhash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |hash: u64, &byte| {
        hash.rotate_left(5) ^ u64::from(byte).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

fn extended(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut list = vec![0_u8; 4096];
    let count = llistxattr(path, &mut list[..]).unwrap();
    let names = list[..count].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0_u8; 4096];
        let count = lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).unwrap();
        (String::from_utf8_lossy(name).into_owned(), value[..count].to_vec())
    };
    names.map(value).collect()
}

fn set_time(path: &Path, seconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Returns `user::rw-,user:65534:r--,group::r--,mask::r--,other::---` in the kernel's format.
fn access_list() -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, rights, id) in
        [(1, 6, none), (2, 4, NOBODY), (4, 4, none), (16, 4, none), (32, 0, none)]
    {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(id));
    }
    list
}

/// Creates one of everything that a directory can hold.
fn make_everything(top: &Path) {
    fs::create_dir_all(top.join("sub/empty")).unwrap();
    for (name, size) in [("0", 0), ("41", 41), ("4097", 4097), ("sub/large", (9 << 20) + 17)] {
        fs::write(top.join(name), bytes(size as u64, size)).unwrap();
    }
    let sparse = fs::File::create(top.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &bytes(7, 5000), 3 << 20).unwrap();
    sparse.set_len(64 << 20).unwrap();
    fs::hard_link(top.join("41"), top.join("sub/41 again")).unwrap();
    symlink("../41", top.join("sub/link")).unwrap();
    symlink("/no/such/file", top.join("dangling")).unwrap();
    mknodat(CWD, top.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    mknodat(CWD, top.join("null"), FileType::CharacterDevice, Mode::RUSR, 0x103).unwrap();
    let list = access_list();
    setxattr(top.join("4097"), "system.posix_acl_access", &list, XattrFlags::empty()).unwrap();
    setxattr(top.join("sub"), "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    for (name, value) in [("user.note", &b"kept"[..]), ("trusted.note", b"\0\xff")] {
        setxattr(top.join("41"), name, value, XattrFlags::empty()).unwrap();
        setxattr(top.join("sub"), name, value, XattrFlags::empty()).unwrap();
    }
    chown(top.join("41"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(top.join("41"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(top.join("sub/empty"), fs::Permissions::from_mode(0o1733)).unwrap();
    for (number, name) in kept(top).into_keys().enumerate() {
        set_time(&top.join(name), 1_000_000_000 + number as i64);
    }
}

#[test]
fn a_tree_has_all_that_its_source_has() {
    require!(Root);
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    make_everything(&from);
    let expected = kept(&from);
    let found = document(&copy(&["--json", "--verify"], &[&from, &to]), 0);
    assert_eq!(kept(&to), expected);
    assert_eq!(kept(&from), expected, "the source is as it was");
    let counts = ["files", "directories", "links", "hard_links", "specials"].map(|key| &found[key]);
    assert_eq!(counts, [5, 3, 2, 1, 2], "{found:#}");
    let size = (64 << 20) + 41 + 4097 + (9 << 20) + 17;
    assert_eq!(found["bytes"], size);
    assert!(found["data_bytes"].as_u64().unwrap() < 12 << 20, "holes are not moved: {found:#}");
    let blocks = to.join("sparse").metadata().unwrap().blocks();
    assert!(blocks < 1 << 11, "holes are kept: {blocks}");
    for key in ["time_ns", "cpu_ns"] {
        assert!(found[key].as_f64().unwrap() > 0.0, "{key}");
    }
    for key in
        ["method", "verified", "page_cache_bytes_before", "page_cache_bytes_after", "resumed_bytes"]
    {
        assert!(found.get(key).is_some(), "{key}");
    }
    assert_eq!(
        found["tables"]["reasons"][0]["why"],
        "no reflink: hashes are of bytes that are read"
    );
    // Complete files are kept; those that are missing are copied again.
    fs::remove_file(to.join("41")).unwrap();
    fs::remove_file(to.join("dangling")).unwrap();
    let again = document(&copy(&["--json", "--resume"], &[&from, &place.data().join("from2")]), 0);
    assert_eq!(again["files"], 5);
    let again = document(&copy(&["--json", "--force"], &[&from, &place.file("from2")]), 0);
    assert_eq!(again["files"], 5);
    assert_eq!(kept(&place.file("from2/from")), expected, "into a directory");
}

#[test]
fn what_cannot_end_well_is_refused_before_anything_is_written() {
    let place = Place::beside();
    for dir in ["a/inside", "b"] {
        fs::create_dir_all(place.file(dir)).unwrap();
    }
    for file in ["one", "b/one", "two"] {
        fs::write(place.file(file), "x").unwrap();
    }
    let huge = fs::File::create(place.file("huge")).unwrap();
    huge.set_len(1 << 20).unwrap();
    let listed = || kept(&place.data());
    let before = listed();
    for (paths, options, says) in [
        (vec!["one", "two"], &[][..], "it exists"),
        (vec!["one", "b"], &[], "it exists"),
        (vec!["one", "one"], &["--force"], "are the same"),
        (vec!["a", "a/inside"], &["--force"], "the target is inside the source"),
        (vec!["one", "b/one", "a"], &[], "both would be"),
        (vec!["one", "two", "new"], &[], "several sources need a directory"),
        (vec!["one", "none/new"], &[], "make the directory above it first"),
        (vec!["none", "new"], &[], "No such file"),
        (vec!["one"], &[], "no target is named"),
        (vec!["one", "new"], &["--request", "1000B"], "multiple of 4K"),
        (vec!["one", "new"], &["--rate", "0"], "greater than 0"),
        (vec!["one", "new"], &["--against", "cp", "--resume"], "cannot be used with"),
        (vec!["one"], &["--check", "m", "--force"], "cannot be used with"),
    ] {
        let paths: Vec<PathBuf> = paths.iter().map(|name| place.file(name)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        refused(&copy(options, &paths), says);
    }
    let (pipe, one) = (Path::new("-"), place.file("one"));
    refused(&copy(&[], &[pipe, pipe]), "both are pipes");
    refused(&copy(&["--json"], &[&one, pipe]), "the report would be in it");
    refused(&copy(&["--verify"], &[&one, pipe]), "the data cannot be read back");
    refused(&copy(&["--resume"], &[&one, pipe]), "files only");
    refused(&copy(&[], &[pipe, &one]), "it exists");
    refused(&copy(&["--force"], &[&one, Path::new("/dev/zero")]), "it is a character device");
    assert_eq!(listed(), before);
}

#[track_caller]
fn refused(ran: &Ran, says: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{says}: {ran:#?}");
    assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 2, "an error and its hint: {}", ran.stderr);
}

#[test]
fn names_are_kept_as_they_are_and_never_printed_so() {
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    fs::create_dir(&from).unwrap();
    let odd = [&b"\x1b[31mred\n"[..], b"no text \xff\xfe", b"-rf", b"$(touch x)", b" "];
    for name in odd {
        fs::write(from.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let expected = kept(&from);
    let ran = copy(&[], &[&from, &to]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(kept(&to), expected);
    assert!(!ran.stdout.contains('\x1b') && ran.stdout.contains("\\x1b[31mred\\x0a"), "{ran:#?}");
    assert!(ran.stdout.contains("no text \\xff\\xfe"), "{}", ran.stdout);
}

#[test]
fn links_in_the_target_lead_nowhere() {
    require!(Root);
    let place = Place::beside();
    let (from, to, theirs) = (place.file("from"), place.file("to"), place.file("theirs"));
    for dir in [from.join("sub"), to.clone(), theirs.clone()] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(from.join("sub/file"), "ours").unwrap();
    fs::write(from.join("file"), "ours").unwrap();
    fs::write(theirs.join("file"), "theirs").unwrap();
    // An attacker who may write to the target prepares it.
    chown(&to, Some(NOBODY), None).unwrap();
    fs::create_dir(to.join("from")).unwrap();
    symlink(&theirs, to.join("from/sub")).unwrap();
    symlink(theirs.join("file"), to.join("from/file")).unwrap();
    let before = kept(&theirs);
    let ran = copy(&["--force"], &[&from, &to]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("make the directory") || ran.stderr.contains("from/sub"),
        "{ran:#?}"
    );
    assert_eq!(kept(&theirs), before);
    // Everything else is copied, and a link in the place of a file is replaced.
    assert!(to.join("from/file").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(to.join("from/file")).unwrap(), "ours");
}

#[test]
fn an_interrupted_copy_goes_on_where_it_was() {
    let place = Place::beside();
    let (from, to) = (place.file("from"), place.file("to"));
    let content = bytes(3, 16 << 20);
    fs::write(&from, &content).unwrap();
    let mut command = Command::new(blockstone_binary());
    // A small file is resumable only on request.
    command.args(["copy", "--resume", "--rate", "16M"]).args([&from, &to]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    signal(&child, "INT");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("continue with: blockstone copy --resume --rate 16M "), "{said}");
    assert!(!to.exists(), "a target has its name when it is complete");
    let found = document(&copy(&["--json", "--resume", "--rate", "16M"], &[&from, &to]), 0);
    assert_eq!(fs::read(&to).unwrap(), content);
    let resumed = found["resumed_bytes"].as_u64().unwrap();
    assert!((1..16 << 20).contains(&resumed), "{found:#}");
    assert_eq!(names(&place.data()), ["from", "to"], "nothing else is left");
    let found = document(&copy(&["--json", "--resume"], &[&from, &to]), 0);
    assert_eq!((&found["files"], &found["kept_files"]), (&0.into(), &1.into()));
}

#[test]
fn what_is_no_file_takes_the_place_of_a_file_only_by_force() {
    let place = Place::beside();
    let (source, target) = (place.file("source"), place.file("target"));
    for dir in [&source, &target] {
        fs::create_dir(dir).unwrap();
    }
    let made = Command::new("mkfifo").arg(source.join("pipe")).status().unwrap();
    assert!(made.success());
    symlink("elsewhere", source.join("link")).unwrap();
    fs::write(source.join("file"), "file").unwrap();
    fs::hard_link(source.join("file"), source.join("other")).unwrap();
    for name in ["pipe", "link", "other"] {
        fs::write(target.join(name), "mine").unwrap();
        let (from, to) = (source.join(name), target.join(name));
        let copied = |options: &[&str]| copy(options, &[&from, &to]);
        for options in [&[][..], &["--resume"]] {
            let ran = copied(options);
            assert_eq!(ran.code, Some(2), "{name} {options:?}: {ran:#?}");
            assert!(ran.stderr.contains("\nhint: "), "{ran:#?}");
            assert_eq!(fs::read_to_string(&to).unwrap(), "mine", "{name}");
        }
        assert_eq!(copied(&["--force"]).code, Some(0), "{name}");
        // A pipe given as the target is never replaced.
        let kept = if name == "pipe" { 2 } else { 0 };
        assert_eq!(copied(&["--resume"]).code, Some(kept), "{name}: it is there");
    }
}

#[test]
fn a_pipe_gets_and_gives_the_bytes_of_files() {
    let place = Place::beside();
    let (from, packed, to) = (place.file("from"), place.file("packed"), place.file("to"));
    let content = [bytes(5, 3 << 20), vec![b'x'; 6 << 20], bytes(6, 4097)].concat();
    fs::write(&from, &content).unwrap();
    let pipe = |line: &str| {
        let shell = format!("set -o pipefail; {line}");
        let ran = run(Command::new("bash")
            .args(["-c", &shell, "bash"])
            .arg(blockstone_binary())
            .args([&from, &packed, &to]));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran
    };
    pipe("$1 copy $2 - | gzip -1 | $1 copy - $3");
    let ran = pipe("gunzip < $3 | $1 copy --json - $4");
    let found = document(&ran, 0);
    assert_eq!(found["bytes"], content.len());
    assert_eq!(fs::read(&to).unwrap(), content);
    let ran = pipe("$1 copy $2 - | head -c 10 > /dev/null");
    assert!(ran.stderr.contains("the reader of the pipe ended"), "{ran:#?}");
}

#[test]
fn a_manifest_finds_a_changed_byte() {
    let place = Place::beside();
    let (from, to, list) = (place.file("from"), place.file("to"), place.file("list"));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("large"), bytes(8, (9 << 20) + 5)).unwrap();
    fs::write(from.join("small"), "x").unwrap();
    let manifest = ["--manifest", list.to_str().unwrap()];
    assert_eq!(copy(&manifest, &[&from, &to]).code, Some(0));
    let check =
        |code| document(&copy(&["--json", "--check", list.to_str().unwrap()], &[&to]), code);
    let found = check(0);
    assert_eq!((&found["files"], &found["equal_files"]), (&2.into(), &2.into()), "{found:#}");
    let changed = fs::OpenOptions::new().write(true).open(to.join("large")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&changed, b"\0\0\0", 9 << 20).unwrap();
    let found = check(1);
    assert_eq!(found["tables"]["changed"][0]["file"], "large", "{found:#}");
    assert_eq!(found["tables"]["changed"][0]["offset_bytes"], f64::from(8 << 20));
    fs::remove_file(to.join("small")).unwrap();
    assert_eq!(check(1)["equal_files"], 0);
    for bad in ["", "no manifest\n", "{\"path\": \"../../etc/passwd\"}\n"] {
        fs::File::create(&list).unwrap().write_all(bad.as_bytes()).unwrap();
        refused(&copy(&["--check", list.to_str().unwrap()], &[&to]), "list");
    }
}

#[test]
fn a_manifest_may_be_compressed_or_in_utf_16() {
    let place = Place::beside();
    let (from, to, list) = (place.file("from"), place.file("to"), place.file("list"));
    fs::write(&from, bytes(8, 9 << 20)).unwrap();
    assert_eq!(copy(&["--manifest", list.to_str().unwrap()], &[&from, &to]).code, Some(0));
    let plain = fs::read(&list).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    let utf_16 = plain.iter().flat_map(|byte| [*byte, 0]).collect();
    let check = |manifest: &[u8]| {
        fs::File::create(&list).unwrap().write_all(manifest).unwrap();
        copy(&["--json", "--check", list.to_str().unwrap()], &[&to])
    };
    for manifest in [gzip.clone(), zstd, utf_16] {
        assert_eq!(document(&check(&manifest), 0)["equal_files"], 1);
    }
    refused(&check(&gzip[..gzip.len() / 2]), "decompress with gzip");
}

#[test]
fn a_device_is_read_to_its_end() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(17), ..DeviceSpec::default() };
    let device = LoopDevice::create(spec).unwrap();
    let content = bytes(4, 17 << 20);
    fs::write(device.device(), &content).unwrap();
    let to = place.file("to");
    let found = document(&copy(&["--json", "--verify"], &[device.device(), &to]), 0);
    assert_eq!(found["bytes"], content.len());
    assert_eq!(fs::read(&to).unwrap(), content);
    refused(&copy(&["--resume"], &[device.device(), &place.file("other")]), "files only");
}

#[test]
fn a_device_is_overwritten_if_it_is_named_twice_and_empty() {
    require!(Root, Loop);
    let place = Place::beside();
    let spec = DeviceSpec { size: Bytes::mib(17), ..DeviceSpec::default() };
    let [one, two] = [spec, spec].map(|spec| LoopDevice::create(spec).unwrap());
    one.blank().unwrap();
    two.blank().unwrap();
    let from = place.file("from");
    let mut content = bytes(4, 9 << 20);
    fs::write(&from, &content).unwrap();
    // A hole, and bytes that end within a sector.
    content.resize(12 << 20, 0);
    content.extend(bytes(5, 41));
    let file = fs::OpenOptions::new().write(true).open(&from).unwrap();
    file.write_all_at(&content[12 << 20..], 12 << 20).unwrap();

    refused(&copy(&[], &[&from, one.device()]), "--destroy");
    refused(&copy(&["--destroy", "/dev/null"], &[&from, &place.file("to")]), "not a block device");
    let onto = |from: &Path, device: &LoopDevice| {
        let name = device.device().to_str().unwrap();
        copy(&["--json", "--verify", "--destroy", name], &[from, device.device()])
    };
    let found = document(&onto(&from, &one), 0);
    assert_eq!((&found["bytes"], &found["method"]), (&content.len().into(), &"direct".into()));
    assert_eq!(found["verified"], true);
    let mut whole = content.clone();
    whole.resize(17 << 20, 0);
    assert_eq!(fs::read(one.device()).unwrap(), whole);
    refused(&onto(&from, &one), "not empty");
    assert_eq!(document(&onto(one.device(), &two), 0)["verified"], true);
    assert_eq!(fs::read(two.device()).unwrap(), whole);
    file.set_len(18 << 20).unwrap();
    two.blank().unwrap();
    refused(&onto(&from, &two), "name a larger device");
}

#[test]
fn cp_takes_turns_and_leaves_one_target() {
    let place = Place::new();
    let (from, to) = (place.file("from"), place.file("to"));
    fs::write(&from, bytes(9, 8 << 20)).unwrap();
    let found = document(&copy(&["--json", "--against", "cp"], &[&from, &to]), 0);
    let rounds = found["tables"]["against"].as_array().unwrap();
    let programs: Vec<&str> = rounds.iter().map(|it| it["program"].as_str().unwrap()).collect();
    assert_eq!(programs, ["blockstone", "cp", "cp", "blockstone"]);
    assert!(rounds.iter().all(|it| it["time_ns"].as_f64().unwrap() > 0.0), "{found:#}");
    assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
    assert_eq!(names(&place.data()), ["from", "to"]);
}

#[test]
fn other_commands_methods_and_sizes_take_turns_too() {
    let place = Place::new();
    let from = place.file("from");
    fs::write(&from, bytes(9, 1 << 20)).unwrap();
    for (number, (against, name)) in [
        ("dd if={source} of={target} bs=64K status=none", "dd"),
        ("sh -c 'cat <\"$1\" >\"$2\"' sh", "sh"),
        ("mmap", "mmap"),
        ("64K", "64 KiB"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = place.file(&format!("to{number}"));
        let found = document(&copy(&["--json", "--against", against], &[&from, &to]), 0);
        let rounds = found["tables"]["against"].as_array().unwrap();
        let programs: Vec<&str> = rounds.iter().map(|it| it["program"].as_str().unwrap()).collect();
        assert_eq!(programs, ["blockstone", name, name, "blockstone"]);
        assert!(rounds.iter().all(|it| it["bytes"] == 1 << 20), "{found:#}");
    }
    let to = place.file("to");
    for (against, why) in [
        ("no-such-program -x", "run no-such-program: "),
        ("5K", "it must be a multiple of 4K"),
        ("dd 'if=", "a quote is not closed"),
    ] {
        refused(&copy(&["--against", against], &[&from, &to]), why);
    }
    assert_eq!(names(&place.data()), ["from", "to0", "to1", "to2", "to3"]);
}

#[test]
fn a_file_made_of_a_pipe_has_the_mode_of_any_new_file() {
    let place = Place::beside();
    for (mask, mode) in [("022", 0o644), ("027", 0o640), ("077", 0o600)] {
        let to = place.file(mask);
        let script = format!("umask {mask}; echo data | \"$0\" copy - \"$1\"");
        let ran = run(Command::new("sh").arg("-c").arg(script).arg(blockstone_binary()).arg(&to));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, mode, "{mask}");
    }
}

#[test]
fn a_database_is_read_before_the_first_round_and_around_each() {
    let place = Place::beside();
    let mut child = super::run::start(&place, &place.data());
    let (from, to) = (place.file("from"), place.file("to"));
    fs::write(&from, bytes(9, 1 << 20)).unwrap();
    let runs = place.runs();
    let runs = ["--runs-dir", runs.to_str().unwrap()];
    let compare = ["--json=1", "--against", "cp", "--db", "run:last"];
    let ran = copy(&[&compare[..], &runs].concat(), &[&from, &to]);
    // The previous version of the document has the keys, seconds and nulls of scripts written for
    // it.
    let found = ran.json();
    assert_eq!((ran.code, &found["schema"]), (Some(0), &"blockstone.copy/1".into()), "{ran:#?}");
    assert!(found["seconds"].as_f64().unwrap() > 0.0 && found["verified"].is_null(), "{found:#}");
    assert_eq!(found["reasons"][0]["files"], 1);
    assert!(found["failed"].as_array().unwrap().is_empty() && found["tables"]["reasons"].is_null());
    signal(&child, "TERM");
    child.wait().unwrap();
    for name in ["physical_reads_per_s", "read_latency_ns_mean"] {
        assert!(found["database_alone"][name].as_f64().unwrap() > 0.0, "{name}: {found:#}");
    }
    let rounds = found["against"].as_array().unwrap();
    // A copy of 1 MiB is too short to say anything about a database.
    assert!(
        rounds.iter().all(|round| round["database"]["physical_reads_per_s"].is_null()),
        "{found:#}"
    );
    assert_eq!(rounds.len(), 4);
}
