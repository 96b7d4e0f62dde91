//! The probe `profile` against programs whose processor time the kernel keeps to the nanosecond.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_probe::profile::{self, ProfileSpec, SCHEMA};
use blockstone_probe::{Cell, Probe, Roles, Row};
use blockstone_sys::account;
use blockstone_testkit::require;

const COUNTERS: [&str; 5] = ["samples", "cpu_ns", "idle_ns", "watched_ns", "lost"];

/// Held by each test: they share two processors.
static ALONE: Mutex<()> = Mutex::new(());

/// Prime number of samples per second, high enough for a few seconds to yield thousands.
const PER_SECOND: u32 = 997;

/// A program that keeps a processor busy until dropped.
struct Burner(Child);

impl Burner {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Makes only system calls that fill memory with zeros.
    fn in_kernel() -> Self {
        Self::start("dd", &["if=/dev/zero", "of=/dev/null", "bs=1M"])
    }

    /// Executes only its own instructions.
    fn in_user() -> Self {
        Self::start("sh", &["-c", "while :; do :; done"])
    }

    fn cpu_ns(&self) -> u64 {
        account::account(Path::new("/"), self.0.id(), None).unwrap().cpu_ns.unwrap()
    }

    fn program(&self) -> String {
        let exe = fs::read_link(format!("/proc/{}/exe", self.0.id())).unwrap();
        exe.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts sampling, with roles for these processes.
fn watch(roles: &[(u32, &'static str)]) -> Box<dyn Probe> {
    let roles: BTreeMap<u32, &str> = roles.iter().copied().collect();
    let resolve = Box::new(move |process: u32, thread: u32, name: &str| {
        let other = || Roles::default().of_program(Path::new("/"), process, thread, name);
        roles.get(&process).map_or_else(other, |role| (*role).to_owned())
    });
    let probe =
        profile::open(ProfileSpec { per_second: PER_SECOND, resolve, ..ProfileSpec::everybody() });
    assert_eq!(probe.unmeasured(), [], "the probe runs");
    probe
}

fn rows(probe: &mut dyn Probe) -> Vec<Row> {
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    rows
}

fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    match cell(row, column) {
        Cell::Text(text) => text,
        _ => "",
    }
}

fn value(row: &Row, column: &str) -> f64 {
    match cell(row, column) {
        Cell::Value(value) => *value as f64,
        _ => 0.0,
    }
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a Cell {
    &row.cells[SCHEMA.columns.iter().position(|known| known.name == column).unwrap()]
}

/// Returns the sampled processor time of the rows selected by `wanted`.
fn cpu_ns(rows: &[Row], wanted: impl Fn(&Row) -> bool) -> f64 {
    let wanted = |row: &&Row| row.object != "sampling" && wanted(row);
    rows.iter().filter(wanted).map(|row| value(row, "cpu_ns")).sum()
}

fn sampling(rows: &[Row]) -> &Row {
    rows.iter().find(|row| row.object == "sampling").unwrap()
}

/// Returns the fraction of the time for which samples were taken. A hypervisor that runs other
/// guests on a processor lets its clock miss some.
fn coverage(rows: &[Row]) -> f64 {
    let sampling = sampling(rows);
    let taken = cpu_ns(rows, |_| true) + value(sampling, "idle_ns");
    taken / value(sampling, "watched_ns")
}

fn table(rows: &[Row]) -> String {
    let mut rows: Vec<_> = rows.iter().map(|row| (value(row, "samples"), &row.object)).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let lines = rows.iter().take(40).map(|(samples, object)| format!("{samples:6} {object}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the time of all processors by use, from `/proc/stat`: user, nice, system, idle, iowait,
/// two kinds of interrupts, steal.
fn uses_ns() -> [f64; 8] {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let mut fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    std::array::from_fn(|_| fields.next().unwrap().parse::<f64>().unwrap() * 1e7)
}

/// Returns the time since `before` that processors were not idle, and the time that was stolen.
fn busy_and_stolen_ns(before: &[f64; 8]) -> (f64, f64) {
    let now = uses_ns();
    let used = |of: &[usize]| of.iter().map(|&index| now[index] - before[index]).sum();
    (used(&[0, 1, 2, 5, 6, 7]), used(&[7]))
}

/// Asserts that samples were missed only while a hypervisor ran other guests, as far as it reports
/// that.
fn assert_complete(rows: &[Row], stolen_ns: f64) {
    let stolen = stolen_ns / value(sampling(rows), "watched_ns");
    let covered = coverage(rows);
    let text = format!("{covered} covered, {stolen} stolen\n{}", table(rows));
    assert!(covered > 0.85 - stolen && covered < 1.02, "{text}");
    assert!(value(sampling(rows), "lost") == 0.0, "{text}");
}

/// Each of these samples is found there or not, so their number has a standard deviation of at most
/// its square root; six of them plus three percent for clocks that differ are not exceeded by
/// chance.
fn assert_agrees(sampled_ns: f64, kept_ns: f64, rows: &[Row], what: &str) {
    let expected = kept_ns * coverage(rows);
    let samples = expected * f64::from(PER_SECOND) / 1e9;
    let allowed = expected * (0.03 + 6.0 / samples.sqrt());
    let text = format!("{what}: {sampled_ns} sampled, {expected} expected of {kept_ns}");
    assert!((sampled_ns - expected).abs() < allowed, "{text}\n{}", table(rows));
}

#[test]
fn processor_time_is_found_in_its_role_mode_module_and_function() {
    require!(Perf);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (kernel, user) = (Burner::in_kernel(), Burner::in_user());
    // Until both have started executing their program.
    thread::sleep(Duration::from_millis(300));
    let mut probe = watch(&[(kernel.0.id(), "zeros"), (user.0.id(), "loop")]);
    let uses_before = uses_ns();
    let before_ns = [&kernel, &user].map(Burner::cpu_ns);
    let own = || [0, 1].map(|i| [&kernel, &user][i].cpu_ns() - before_ns[i]);
    let started = Instant::now();
    while own().iter().min() < Some(&1_500_000_000) && started.elapsed() < Duration::from_mins(1) {
        thread::sleep(Duration::from_millis(50));
    }
    let kept_ns = own().map(|ns| ns as f64);
    let rows = rows(&mut *probe);
    let (busy_ns, stolen_ns) = busy_and_stolen_ns(&uses_before);
    let table = table(&rows);
    let all_ns = cpu_ns(&rows, |_| true);
    assert!((all_ns - value(sampling(&rows), "cpu_ns")).abs() < 1.0, "{all_ns}\n{table}");

    assert_complete(&rows, stolen_ns);
    for (role, kept_ns) in ["zeros", "loop"].into_iter().zip(kept_ns) {
        assert_agrees(cpu_ns(&rows, |row| text(row, "role") == role), kept_ns, &rows, role);
    }
    let all_ns = cpu_ns(&rows, |_| true);
    assert!(
        (all_ns / coverage(&rows) / busy_ns - 1.0).abs() < 0.2,
        "{all_ns} of {busy_ns}\n{table}"
    );

    let of = |role: &str, wanted: &dyn Fn(&Row) -> bool| {
        let all = cpu_ns(&rows, |row| text(row, "role") == role);
        cpu_ns(&rows, |row| text(row, "role") == role && wanted(row)) / all
    };
    let in_kernel = of("zeros", &|row| text(row, "mode") == "kernel");
    assert!(in_kernel > 0.9, "{in_kernel}\n{table}");
    let zeroing = ["read_zero", "clear_user", "rep_stos", "iov_iter_zero", "clear_page"];
    let in_family =
        of("zeros", &|row| zeroing.iter().any(|name| text(row, "symbol").contains(name)));
    assert!(in_family > 0.5, "{in_family}\n{table}");
    let program = user.program();
    // A shell's loop is its own code, apart from some calls of the C library.
    let in_user = of("loop", &|row| text(row, "mode") == "user");
    assert!(in_user > 0.9, "{in_user}\n{table}");
    let in_program = of("loop", &|row| text(row, "module") == program);
    assert!(in_program > 0.3, "{in_program} in {program}\n{table}");
    let libraries = of("loop", &|row| text(row, "module").starts_with("libc"));
    assert!(in_program + libraries > 0.9, "{in_program} and {libraries}\n{table}");
    let named =
        cpu_ns(&rows, |row| text(row, "module") == "vmlinux" && !text(row, "symbol").is_empty());
    assert!(named > 0.9 * cpu_ns(&rows, |row| text(row, "mode") == "kernel"), "{table}");
}

/// Time spent waiting for work is not processor time, regardless of the other load of this machine.
/// A processor that idles in a virtual machine is woken late for its samples, and then some are
/// missed: time that is not covered may only be idle time.
#[test]
fn waiting_for_work_is_no_processor_time() {
    require!(Perf);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut probe = watch(&[]);
    let before = uses_ns();
    thread::sleep(Duration::from_secs(2));
    let rows = rows(&mut *probe);
    let (busy_ns, stolen_ns) = busy_and_stolen_ns(&before);
    let table = table(&rows);
    let all = sampling(&rows);
    let watched_ns = value(all, "watched_ns");
    let sampled_ns = value(all, "cpu_ns");
    let off = (sampled_ns - (busy_ns - stolen_ns)).abs() / watched_ns;
    assert!(off < 0.15, "{sampled_ns} sampled, {busy_ns} kept of {watched_ns}\n{table}");
    assert!(coverage(&rows) < 1.02 && value(all, "lost") == 0.0, "{table}");
}

#[test]
fn programs_that_live_shorter_than_a_look_are_found_by_name() {
    require!(Perf);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut probe = watch(&[]);
    let short = "dd if=/dev/zero of=/dev/null bs=1M count=200";
    let script = format!("i=0; while [ $i -lt 400 ]; do {short}; i=$((i+1)); done; sleep 30");
    let shell = Burner::start("sh", &["-c", &script]);
    // Children that ended and were waited for, in ticks of 10 ms each: user and system.
    let children_ns = || -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", shell.0.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[13..15].iter().map(|ticks| ticks.parse::<f64>().unwrap() * 1e7).sum()
    };
    let resting = || {
        let stat = fs::read_to_string(format!("/proc/{}/wchan", shell.0.id())).unwrap_or_default();
        let children = account::children(Path::new("/"), shell.0.id());
        !stat.is_empty() && children.iter().any(|child| child.title.starts_with("sleep"))
    };
    let started = Instant::now();
    while !resting() && started.elapsed() < Duration::from_mins(1) {
        thread::sleep(Duration::from_millis(50));
    }
    let kept_ns = children_ns();
    let rows = rows(&mut *probe);
    assert!(kept_ns > 3e8, "{kept_ns}");
    let sampled = cpu_ns(&rows, |row| text(row, "role") == "dd");
    let before_exec = cpu_ns(&rows, |row| text(row, "role") == "sh");
    let share = sampled / kept_ns / coverage(&rows);
    assert!(share > 0.7, "{sampled} and {before_exec} of {kept_ns}\n{}", table(&rows));
    assert!(cpu_ns(&rows, |row| text(row, "role").contains("unknown")) < 0.1 * kept_ns);
}

#[test]
fn rows_fit_the_schema_and_counters_rise() {
    require!(Perf);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _burner = Burner::in_kernel();
    let mut probe = watch(&[]);
    let mut last: Vec<Row> = Vec::new();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(50));
        let now = rows(&mut *probe);
        for row in &now {
            assert_eq!(row.cells.len(), SCHEMA.columns.len());
            let same = last.iter().find(|before| before.object == row.object);
            for column in COUNTERS {
                let before = same.map_or(0.0, |before| value(before, column));
                assert!(value(row, column) >= before, "{} {column}", row.object);
            }
        }
        last = now;
    }
    for (index, column) in SCHEMA.columns.iter().enumerate() {
        let measured = last.iter().any(|row| row.cells[index] != Cell::Unmeasured);
        assert!(measured, "{}", column.name);
    }
}
