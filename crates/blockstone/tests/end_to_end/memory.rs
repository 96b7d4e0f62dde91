//! Limits of the memory that files of any content, and copies, may take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use blockstone_testkit::{blockstone_binary, require, run};

use super::{Place, attacks::within};

/// Maximum memory that any file may make the program take.
const MOST: u64 = 512 << 20;

/// Runs the command: returns its exit code, its errors, and its peak memory in bytes.
#[track_caller]
fn weighed(command: &mut Command) -> (Option<i32>, String, u64) {
    let errors = tempfile::NamedTempFile::new().unwrap();
    let into = errors.reopen().unwrap();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(into).spawn().unwrap();
    let (status, peak) = watched(child);
    (status.code(), fs::read_to_string(errors.path()).unwrap(), peak)
}

/// Waits for the child and observes its peak memory. What wait4(2) reports is at least the memory
/// that this process, with all its tests, had when it started the child.
fn watched(mut child: Child) -> (ExitStatus, u64) {
    let mut peak = 0;
    loop {
        peak = peak.max(resident_peak_bytes(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            return (status, peak);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The kernel's record of the peak resident memory since the program started. `None` before that:
/// for a moment, a process that was spawned has the memory of this one, with all its tests.
pub fn resident_peak_bytes(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find(|line| *line == "Name:\tblockstone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Expects one error and one hint, and no more memory than promised.
#[track_caller]
fn refused_within(command: &mut Command, what: &str) {
    let (code, said, peak) = weighed(command);
    assert_eq!(code, Some(2), "{command:?}: {said}");
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("warning: ")).collect();
    assert!(
        matches!(lines[..], [error, hint] if error.starts_with("error: ")
        && hint.starts_with("hint: ")),
        "{command:?}: {said}"
    );
    assert!(said.contains(what), "{command:?}: {said}");
    assert!(peak <= MOST, "{command:?} took {} MiB", peak >> 20);
}

fn write(place: &Place, name: &str, head: &str, (part, count): (&str, usize)) -> PathBuf {
    let path = place.file(name);
    fs::write(&path, format!("{head}{}", part.repeat(count))).unwrap();
    path
}

#[test]
fn reports_of_endless_rows_are_read_or_refused_within_the_limit() {
    let place = Place::beside();
    let head = "<html><head><title>AWR Report</title></head><body>\n\
                <table summary=\"This table displays instance activity\"><tr>";
    let account = |path: &Path| {
        let mut command = place.command("offload");
        command.arg("account").arg(path);
        command
    };
    let large = write(&place, "large.html", head, ("<td>1", 40 << 20));
    refused_within(&mut account(&large), "larger than 64 MiB");
    fs::remove_file(large).unwrap();
    let row = write(&place, "row.html", head, ("<td>1", 12 << 20));
    let (code, said, peak) = weighed(&mut account(&row));
    assert_eq!(code, Some(2), "{said}");
    assert!(peak <= MOST, "{} MiB: {said}", peak >> 20);
    let commas = write(&place, "commas.csv", "time,instance,statistic,value", (",", 60 << 20));
    let (code, said, peak) = weighed(&mut account(&commas));
    assert_eq!(code, Some(2), "{said}");
    assert!(peak <= MOST, "{} MiB: {said}", peak >> 20);
}

#[test]
fn a_manifest_of_a_copy_is_read_within_the_limit() {
    let place = Place::beside();
    let file = fs::File::create(place.file("file")).unwrap();
    file.set_len(1 << 30).unwrap();
    let check = |list: &Path| {
        let mut command = place.command("copy");
        command.arg("--check").arg(list).arg(place.data());
        command
    };
    let hash = "0".repeat(32);
    let one = format!(
        "{{\"path\":\"file\",\"size_bytes\":{},\"chunks\":[[0,{0},\"{hash}\"]]}}\n",
        1 << 30
    );
    let chunk = write(&place, "chunk.jsonl", &one, ("", 0));
    refused_within(&mut check(&chunk), "a chunk of 1 GiB");
    let head = "{\"path\":\"file\",\"size_bytes\":1,\"chunks\":[";
    let short = write(&place, "short.jsonl", head, ("[0,0,\"\"],", 13 << 20));
    refused_within(&mut check(&short), "line 1");
    let whole = format!("[0,0,\"{hash}\"],");
    let count = (126 << 20) / whole.len();
    let long = write(&place, "long.jsonl", head, (&whole, count));
    refused_within(&mut check(&long), "line 1");
}

#[test]
fn files_that_never_end_are_refused_soon() {
    let place = Place::beside();
    let data = place.data();
    let data = data.to_str().unwrap();
    for endless in ["/dev/zero", "/dev/urandom"] {
        for arguments in [
            &["run", "--conf", endless, data][..],
            &["reduce", "--model", endless, data],
            &["size", "--iops", "10", "--catalogue", endless],
            &["flash", "sim", "--trace", endless],
        ] {
            let mut command = Command::new(blockstone_binary());
            let ran = within(Duration::from_mins(1), command.args(arguments));
            assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
            assert!(ran.stderr.contains("\nhint: "), "{arguments:?}: {ran:#?}");
            refused_within(Command::new(blockstone_binary()).args(arguments), "");
        }
    }
}

/// A control group with a memory limit, for one program after another.
struct Group(PathBuf);

impl Group {
    fn of(bytes: u64) -> Self {
        let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers");
        let (base, file) = if v2.exists() {
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
            ("/sys/fs/cgroup", "memory.max")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        };
        let dir = PathBuf::from(format!("{base}/blockstone-test-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let group = Self(dir);
        fs::write(group.0.join(file), bytes.to_string()).unwrap();
        group
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&self.0);
        command.arg(blockstone_binary()).args(arguments);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_small_control_group_is_asked_before_memory_is_taken() {
    require!(MemoryGroup);
    let place = Place::beside();
    let group = Group::of(64 << 20);
    let (from, to) = (place.file("from"), place.file("to"));
    fs::create_dir(&from).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(from.join(name), vec![7; 96 << 20]).unwrap();
    }
    let other = place.file("other");
    let [from, to, other] = [&from, &to, &other].map(|path| path.to_str().unwrap());
    let ran = run(&mut group.command(&["copy", "--verify", "--json", from, to]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let ran = run(&mut group.command(&["copy", "--request", "128M", from, other]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("of memory are needed"), "{ran:#?}");
    let row = write(&place, "row.html", "<table summary=\"a\"><tr>", ("<td>1", 11 << 20));
    let ran = run(&mut group.command(&["offload", "account", row.to_str().unwrap()]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("\nhint: "), "{ran:#?}");
}
