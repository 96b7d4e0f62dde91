//! `blockstone check`: the honest and the deceptive answer on each kind of file system, for live
//! processes, without privileges, and refused.

mod coherence;
pub mod durability;
mod iosize;
mod metadata;
mod order;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_testkit::{
    DeviceSpec, FileKind, FileSystem, FuseCache, FuseMounts, LoopDevice, PostgresServer, Ran,
    ScratchDir, blockstone_binary, require, run,
};
use serde_json::Value;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema, names};

fn mounted(file_system: FileSystem, mebibytes: u64) -> LoopDevice {
    let (size, file_system) = (Bytes::mib(mebibytes), Some(file_system));
    LoopDevice::create(DeviceSpec { size, file_system, ..DeviceSpec::default() }).unwrap()
}

fn checked(path: &Path) -> Ran {
    run(Command::new(blockstone_binary()).args(["check", "direct", "--json"]).arg(path))
}

/// Tables that have the class of each case.
const CLASSES: [&str; 5] =
    ["direct-cells", "write-order-cells", "coherence-cases", "durability-streams", "metadata"];

fn rows<'a>(document: &'a Value, table: &str) -> impl Iterator<Item = &'a Value> {
    document["tables"][table].as_array().into_iter().flatten()
}

/// Returns the name of a case: `read/512`, `fsync/append`, `stat/cold/tree/2000`.
fn case(row: &Value) -> String {
    let keys = ["case", "mode", "operation", "method", "shape", "pattern", "files"];
    let parts = keys.iter().filter_map(|key| row.get(key));
    let parts = parts.map(|part| part.as_str().map_or(part.to_string(), str::to_owned));
    parts.collect::<Vec<_>>().join("/")
}

#[track_caller]
fn row<'a>(document: &'a Value, table: &str, wanted: &str) -> &'a Value {
    let found = rows(document, table).find(|row| case(row) == wanted);
    found.unwrap_or_else(|| panic!("no {wanted} in {table}: {document:#}"))
}

#[track_caller]
fn class<'a>(document: &'a Value, wanted: &str) -> &'a str {
    let mut all = CLASSES.iter().flat_map(|table| rows(document, table));
    let found = all.find(|row| case(row) == wanted);
    found.map_or("", |row| row["class"].as_str().unwrap())
}

/// Compares rows of classes: an operation, then block, 512, memory+512 and memory+4.
#[track_caller]
fn has(document: &Value, rows: &[(&str, [&str; 4])]) {
    for (operation, expected) in rows {
        let shapes = ["block", "512", "memory+512", "memory+4"];
        let found = shapes.map(|shape| class(document, &format!("{operation}/{shape}")));
        assert_eq!(found, *expected, "{operation}: {document:#}");
    }
}

#[track_caller]
fn outcome(document: &Value, rule: &str) -> String {
    let mut verdicts = document["verdicts"].as_array().unwrap().iter();
    let found = verdicts.find(|verdict| verdict["rule"] == rule).unwrap();
    found["outcome"].as_str().unwrap().to_owned()
}

/// Whether btrfs buffers direct writes to files with checksums, as it does since Linux 6.14.
fn btrfs_buffers() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    version >= (6, 14)
}

fn without_checksums(dir: &Path) {
    fs::create_dir(dir).unwrap();
    assert!(Command::new("chattr").arg("+C").arg(dir).status().unwrap().success());
}

const HONEST: [&str; 4] = ["direct", "direct", "direct", "refused"];

#[test]
fn ext4_and_xfs_are_direct_where_they_accept_a_request() {
    require!(Bpf, Loop, Xfs);
    let _turn = Place::new();
    let ext4 = mounted(FileSystem::Ext4, 64);
    let ran = checked(&ext4.mount_point().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let all = ["read", "overwrite", "append", "fill-hole", "unwritten"];
    has(&document, &all.map(|operation| (operation, HONEST)));
    assert_eq!(class(&document, "read-compressed/block"), "", "it does not compress");
    assert_eq!(class(&document, "overwrite-shared/block"), "", "it shares no blocks");
    assert_eq!(outcome(&document, "not-direct"), "pass");
    assert_eq!(outcome(&document, "alignment-refused"), "pass");
    assert_eq!(names(&ext4.mount_point().unwrap()), ["lost+found"], "nothing is left");

    let xfs = mounted(FileSystem::Xfs, 320);
    let ran = checked(&xfs.mount_point().unwrap());
    assert_eq!(ran.code, Some(0), "a part of a shared block is not promised: {ran:#?}");
    let document = ran.json();
    has(&document, &all.map(|operation| (operation, HONEST)));
    has(&document, &[("overwrite-shared", ["direct", "buffered", "direct", "refused"])]);
}

#[test]
fn what_the_journal_and_memory_serve_is_never_direct() {
    require!(Bpf, Loop, Tmpfs);
    let _turn = Place::new();
    let journal = mounted(FileSystem::Ext4DataJournal, 64);
    let ran = checked(&journal.mount_point().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let document = ran.json();
    assert!(rows(&document, "direct-cells").next().is_some());
    for cell in rows(&document, "direct-cells") {
        assert!(["buffered", "dropped", "refused"].contains(&cell["class"].as_str().unwrap()));
    }
    has(&document, &[("overwrite", ["buffered"; 4])]);
    assert_eq!(outcome(&document, "not-direct"), "fail");

    let memory = ScratchDir::in_memory().unwrap();
    let ran = checked(memory.path());
    let document = ran.json();
    // Kernels before Linux 6.6 refuse the flag on tmpfs.
    let expected = class(&document, "read/block");
    assert!(["memory", "refused"].contains(&expected), "{document:#}");
    has(&document, &[("read", [expected; 4]), ("append", [expected; 4])]);
    let (code, found) = if expected == "memory" { (3, "fail") } else { (0, "inconclusive") };
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    assert_eq!(outcome(&document, "not-direct"), found);
}

/// Mounts an overlay whose upper layer is in this directory.
fn overlay(layers: &Path) -> (coherence::Undo, PathBuf) {
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| layers.join(name));
    for dir in [&lower, &upper, &work] {
        fs::create_dir(dir).unwrap();
    }
    let [lower, upper, work] = [lower, upper, work].map(|dir| dir.display().to_string());
    let options = format!("-t overlay -o lowerdir={lower},upperdir={upper},workdir={work}");
    (coherence::mounted(&options, Path::new("overlay"), &merged), merged)
}

#[test]
fn an_overlay_is_as_its_upper_layer_and_fuse_as_its_server_allows() {
    require!(Bpf, Loop, Overlay, Tmpfs, Fuse);
    let _turn = Place::new();
    let ext4 = mounted(FileSystem::Ext4, 64);
    let (_undo, merged) = overlay(&ext4.mount_point().unwrap());
    let document = checked(&merged).json();
    has(&document, &["read", "overwrite", "append", "fill-hole"].map(|it| (it, HONEST)));
    assert_eq!(names(&merged), Vec::<String>::new(), "nothing is left");
    let memory = ScratchDir::in_memory().unwrap();
    let (_undo, merged) = overlay(memory.path());
    let document = checked(&merged).json();
    let expected = class(&document, "read/block");
    assert!(["memory", "refused"].contains(&expected), "{document:#}");
    has(&document, &[("overwrite", [expected; 4]), ("append", [expected; 4])]);

    let refuses = FuseCache { direct: false, ..FuseCache::UNTIL_OPENED };
    let mounts = FuseMounts::create(&[FuseCache::UNTIL_OPENED, FuseCache::NOTHING, refuses]);
    let mounts = mounts.unwrap();
    for (mount, expected) in mounts.paths().iter().zip(["direct", "direct", "refused"]) {
        let document = checked(mount).json();
        let all = ["read", "overwrite", "append", "fill-hole"];
        has(&document, &all.map(|operation| (operation, [expected; 4])));
        let evidence = document["tables"]["direct-cells"][0]["evidence"].as_str().unwrap();
        let said = evidence.contains("what the server caches is not seen");
        assert_eq!(said, expected == "direct", "{evidence}");
        assert_eq!(names(mount), Vec::<String>::new(), "nothing is left");
    }
}

#[test]
fn btrfs_is_told_apart_on_a_path_and_of_a_process() {
    require!(Bpf, Loop, Btrfs);
    let _turn = Place::new();
    let device = mounted(FileSystem::Btrfs, 256);
    let dir = device.mount_point().unwrap();
    let plain = dir.join("no-checksums");
    without_checksums(&plain);
    let ran = checked(&plain);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let honest = ran.json();
    let misaligned = |class| ["direct", class, class, class];
    has(&honest, &[("read", misaligned("buffered")), ("overwrite", misaligned("dropped"))]);

    let document = checked(&dir).json();
    let (writes, share) = if btrfs_buffers() { ("dropped", 1.0) } else { ("direct", 0.0) };
    for operation in ["overwrite", "append", "fill-hole", "unwritten", "overwrite-shared"] {
        let found = class(&document, &format!("{operation}/block"));
        assert_eq!(found, writes, "{operation}: {document:#}");
    }
    // The kernel enters the direct path, and leaves it.
    let compressed = row(&document, "direct-cells", "read-compressed/block");
    assert_eq!(compressed["class"], "buffered");
    assert!(compressed["direct_ios"].as_u64().is_none_or(|ios| ios > 0), "{compressed}");
    assert_eq!(class(&document, "read/block"), "direct");

    for (dir, class, share, code) in
        [(&dir, writes, share, if share > 0.0 { 3 } else { 0 }), (&plain, "direct", 0.0, 0)]
    {
        let mut load = direct_writer(&dir.join("written"));
        let (ran, file) = observed(&load, &dir.join("written"));
        // Its last dd ends on its own, and then no longer keeps the file system busy.
        load.kill().unwrap();
        load.wait().unwrap();
        thread::sleep(Duration::from_millis(500));
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert_eq!((&file["opened"], &file["class"]), (&"direct".into(), &class.into()), "{file}");
        assert_eq!(file["cached_share"], share, "{file}");
    }
}

/// Starts a shell whose dd bypasses the page cache, writing the same 3 MiB over and over.
fn direct_writer(path: &Path) -> Child {
    let mut shell = Command::new("sh");
    let dd = "dd if=/dev/zero of=\"$0\" bs=8K count=400 oflag=direct conv=notrunc";
    shell.arg("-c").arg(format!("while {dd} 2>/dev/null; do :; done")).arg(path);
    shell.stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the finding for `path` in a process, as soon as it has done I/O, which may take a while
/// on a busy machine.
#[track_caller]
fn observed(process: &Child, path: &Path) -> (Ran, Value) {
    let name = path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap());
    let name = name.display().to_string();
    for _ in 0..30 {
        let mut check = Command::new(blockstone_binary());
        check.args(["check", "direct", "--json", "--for", "1s", "--pid"]);
        let ran = run(check.arg(process.id().to_string()));
        let document = ran.json();
        let busy = |file: &&Value| file["file"] == name.as_str() && file["requests"] != 0;
        if let Some(file) = rows(&document, "open-files").find(busy) {
            keeps_to_its_schema(&document);
            return (ran, file.clone());
        }
    }
    panic!("no I/O to {name} was seen");
}

#[test]
fn a_file_is_only_read_and_keeps_the_pages_of_its_other_readers() {
    require!(Bpf);
    let place = Place::new();
    let file = place.file("read");
    FileKind::Real.create(&file, Bytes::mib(1)).unwrap();
    let content = fs::read(&file).unwrap();
    let ran = run(place.command("check").args(["direct", "--json"]).arg(&file));
    let document = ran.json();
    let cell = &document["tables"]["direct-cells"][0];
    assert_eq!((case(cell).as_str(), &cell["class"]), ("read/block", &"direct".into()));
    assert!(cell["after_cached_bytes"].is_u64(), "{cell}");
    assert!(cell["evidence"].as_str().unwrap().contains("another reader"), "{cell}");
    assert_eq!(cell["before_cached_bytes"], cell["after_cached_bytes"], "{cell}");
    assert_eq!(rows(&document, "direct-cells").count(), 4, "it is not written to");
    assert_eq!(fs::read(&file).unwrap(), content);

    let text = run(place.command("check").arg(&file)).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Answers direct direct: 3 of 3"), "{text}");
    let csv = run(place.command("check").arg("--csv=direct-matrix").arg(&file)).stdout;
    assert_eq!(csv.lines().nth(1), Some("read,direct,direct,direct,refused"), "{csv}");
    let page = run(place.command("check").args(["--html", "-"]).arg(&file)).stdout;
    assert!(page.contains("direct-cells") && page.contains("took the direct path"));
}

#[test]
fn without_privileges_nothing_is_called_direct() {
    require!(Root);
    let _turn = Place::new();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("open");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    let modes = run(Command::new("chmod").arg("a+rx").arg(scratch.path()));
    assert_eq!(modes.code, Some(0));
    let program = dir.join("blockstone");
    fs::copy(blockstone_binary(), &program).unwrap();
    let unprivileged = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        run(command.arg(&program).args(arguments).current_dir(&dir))
    };
    let ran = unprivileged(&["check", "--json", "."]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let document = ran.json();
    assert_eq!(class(&document, "overwrite/block"), "unknown", "{document:#}");
    let evidence = document["tables"]["direct-cells"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("CAP_BPF"), "{evidence}");
    let ran = unprivileged(&["check", "direct", "--pid", "1"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("or as root"), "{ran:#?}");
    assert_eq!(names(&dir), ["blockstone"]);
}

#[test]
fn a_check_that_ends_at_any_moment_leaves_nothing() {
    let place = Place::beside();
    for (moment, signal) in
        (0..12).map(|step| (step * 25, if step % 2 == 0 { "KILL" } else { "INT" }))
    {
        let mut check = place.command("check");
        check.arg(place.data()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut check = check.spawn().unwrap();
        thread::sleep(Duration::from_millis(moment));
        let sent = run(Command::new("kill").args(["-s", signal]).arg(check.id().to_string()));
        let status = check.wait().unwrap();
        // It may have completed already.
        assert!(sent.code == Some(0) || status.code() == Some(0), "{status}");
    }
    // If a kill hits while a file still has its name, the next check removes the file.
    assert!(run(place.command("check").arg(place.data())).code.is_some());
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}

#[test]
fn a_server_is_compared_with_its_settings() {
    require!(Bpf, Postgres);
    let _turn = Place::new();
    let settings = ["wal_sync_method=open_datasync", "autovacuum=off"];
    let server = PostgresServer::start(15, &settings).unwrap();
    let writes = "DO $$ BEGIN FOR i IN 1..10000 LOOP INSERT INTO t VALUES (i); COMMIT; \
                  PERFORM pg_sleep(0.02); END LOOP; END $$";
    let mut session = server.session(&["CREATE TABLE t (n int)", writes]).unwrap();
    let busy = |(file, detail): &(&Value, &Value)| {
        assert_eq!(file["file"], detail["file"]);
        detail["file_type"] == "redo" && file["requests"] != 0
    };
    let ran = (0..15).find_map(|_| {
        let mut check = Command::new(blockstone_binary());
        check.args(["check", "direct", "--json", "--for", "1s", "--db", &server.address()]);
        let ran = run(&mut check);
        let document = ran.json();
        let mut files = rows(&document, "open-files").zip(rows(&document, "open-file-details"));
        files.any(|file| busy(&file)).then_some(ran)
    });
    session.kill().unwrap();
    session.wait().unwrap();
    let ran = ran.expect("redo is written");
    let document = ran.json();
    assert!(document["subject"].as_str().unwrap().starts_with("PostgreSQL 15"), "{document:#}");
    let mut files = rows(&document, "open-files").zip(rows(&document, "open-file-details"));
    let (redo, detail) = files.find(busy).unwrap();
    assert_eq!((&detail["requested_sync"], &redo["sync"]), (&"dsync".into(), &"dsync".into()));
    assert_eq!((&redo["opened"], &redo["class"]), (&"buffered".into(), &"buffered".into()));
    let session = rows(&document, "submissions").find(|row| row["blocking_requests"] != 0);
    let session = session.unwrap_or_else(|| panic!("{document:#}"));
    assert!(session["title"].as_str().unwrap().starts_with("postgres: "), "{session:#}");
    assert_eq!((&session["how"], &session["rings"]), (&"blocking".into(), &0.into()));
    assert_eq!(outcome(&document, "flags-contradict-settings"), "pass", "{document:#}");
    assert_eq!(outcome(&document, "not-direct"), "inconclusive", "nothing is opened direct");
}

#[test]
fn checks_that_cannot_be_made_are_refused() {
    let place = Place::new();
    let data = place.data().display().to_string();
    let small = place.file("small");
    fs::write(&small, "small").unwrap();
    let small = small.display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&[], "no path is named"),
        (&["/no/such/path"], "nothing exists"),
        (&["/dev/null"], "character device"),
        (&[&small], "at least"),
        (&[&data, "direct", &data], "means all checks"),
        (&["direct"], "required"),
        (&["direct", &data, "--pid", "1"], "cannot be used with"),
        (&["direct", &data, "--for", "5s"], "cannot be used with"),
        (&["direct", "--pid", "0"], "0"),
        (&["direct", "--pid", "4194304"], "no such process"),
        (&["direct", "--pid", "1", "--for", "0s"], "more than nothing"),
        (&["direct", "--pid", "1", "--for", "2h"], "at most 1h"),
        (&["direct", "--db", "oracle://scott@host/db"], "no monitor"),
        (&["direct", "--db", "run:last"], "in its own process"),
        (&["no-such-check", &data], ""),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, place.command("check").args(*arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
    assert_eq!(fs::read(&small).unwrap(), b"small");
}
