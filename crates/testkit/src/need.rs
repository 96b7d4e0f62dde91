//! Requirements of tests on the machine. If the machine does not meet them, the test reports that
//! and is counted as skipped, or fails if the run requires them.

use std::any::type_name_of_val;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use blockstone_base::Capability;

use crate::guest;
use crate::postgres::POSTGRES_VERSIONS;
use crate::throttle::Controller;
use crate::tool::find_program;

/// Names the needs that must be met: a comma-separated list, or `all`. Set in continuous
/// integration.
pub const REQUIRE_VARIABLE: &str = "BLOCKSTONE_REQUIRE";

/// Names a file to which each skipped test appends one line: test, tab, reason.
pub const SKIP_LOG_VARIABLE: &str = "BLOCKSTONE_SKIP_LOG";

/// Names a file that collects test durations, one line each: kind, seconds and test.
pub const TIME_LOG_VARIABLE: &str = "BLOCKSTONE_TIME_LOG";

/// If set, tests that need anything of the machine are skipped.
pub const FAST_VARIABLE: &str = "BLOCKSTONE_FAST";

/// Declares the needs: the name in `BLOCKSTONE_REQUIRE` and the Debian packages that provide it, or
/// no packages if only the kernel or the user can.
macro_rules! needs {
    ($($(#[$doc:meta])* $need:ident $name:literal [$($package:literal),*])+) => {
        /// A requirement of a test on the machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Need {
            $($(#[$doc])* $need,)+
        }

        impl Need {
            pub const ALL: &[Self] = &[$(Self::$need),+];

            /// The name used in `BLOCKSTONE_REQUIRE`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$need => $name,)+
                }
            }

            pub const fn debian_packages(self) -> &'static [&'static str] {
                match self {
                    $(Self::$need => &[$($package),*],)+
                }
            }
        }
    };
}

needs! {
    /// Running as root.
    Root "root" []
    Loop "loop" ["mount", "e2fsprogs"]
    /// A control group that caps the I/O of a block device.
    Blkio "blkio" []
    /// A control group that limits memory.
    MemoryGroup "memory-group" []
    /// A block device in compressed memory, added at run time.
    Zram "zram" []
    /// `io_uring` system calls that exist and are permitted.
    Uring "uring" []
    Fio "fio" ["fio"]
    /// The tool for finding duplicate blocks that results are compared with.
    Duperemove "duperemove" ["duperemove"]
    /// The XFS file system and its mkfs.
    Xfs "xfs" ["xfsprogs"]
    /// The btrfs file system and its mkfs.
    Btrfs "btrfs" ["btrfs-progs"]
    /// A file system in memory, mounted at /dev/shm.
    Tmpfs "tmpfs" []
    /// A browser that can render a page without a display.
    Chromium "chromium" ["chromium"]
    /// The programs of a PostgreSQL server, in the version of the distribution.
    Postgres "postgres" ["postgresql-15"]
    /// The same programs in other versions: [`crate::POSTGRES_VERSIONS`].
    PostgresVersions "postgres-versions" ["curl", "libarchive-tools"]
    /// The programs of a MariaDB server, without the package that starts one.
    Mariadb "mariadb" ["mariadb-server-core", "mariadb-client-core"]
    /// The tool that makes certificates.
    Openssl "openssl" ["openssl"]
    Iostat "iostat" ["sysstat"]
    Collectl "collectl" ["collectl"]
    /// A Prometheus server, to scrape a watch.
    Prometheus "prometheus" ["prometheus", "curl"]
    /// A kernel that runs BPF programs at its tracepoints and describes its types (BTF).
    Bpf "bpf" []
    /// Permission to sample all processors and to see kernel addresses.
    Perf "perf" []
    /// A kernel that reports how much of a file is in the page cache: cachestat(2).
    Cachestat "cachestat" []
    /// The tool that reports how much of a file is in the page cache.
    Fincore "fincore" ["util-linux-extra"]
    /// The compiler of the BPF programs, in the one version whose output is the same everywhere.
    Clang "clang" ["clang-14", "llvm-14"]
    /// A block device server whose write cache can be lost, and the file system that presents it.
    Nbdkit "nbdkit" ["nbdkit", "nbdfuse"]
    /// The tool that traces the system calls of a program.
    Strace "strace" ["strace"]
    /// An emulated machine with its own kernel, whose power can be cut: [`crate::Guest`].
    Qemu "qemu" ["qemu-system-x86", "nbdkit"]
    /// An NFS server in user space: [`crate::NfsServer`].
    Ganesha "ganesha" ["nfs-ganesha", "nfs-ganesha-vfs"]
    /// A kernel that lets a program serve a file system (FUSE).
    Fuse "fuse" ["mount"]
    /// A file system that presents the files of others (overlay).
    Overlay "overlay" ["mount"]
    /// The tool that reads Debian packages.
    DpkgDeb "dpkg-deb" ["dpkg"]
}

impl Need {
    pub fn capability(self) -> Capability {
        match self {
            Self::Root => given(rustix::process::geteuid().is_root(), "run as root"),
            Self::Loop => root_and(|| {
                programs(&["losetup", "mkfs.ext4"])?;
                exists("/dev/loop-control", "the kernel has no loop devices")
            }),
            Self::Blkio => root_and(|| match Controller::detect() {
                Some(_) => Ok(()),
                None => Err("no control group can cap a block device".to_owned()),
            }),
            Self::MemoryGroup => root_and(memory_group),
            Self::Zram => root_and(|| {
                exists("/sys/class/zram-control/hot_add", "no zram; `modprobe zram` may add it")
            }),
            Self::Uring => match io_uring::IoUring::new(2) {
                Ok(_) => Capability::Full,
                Err(error) => Capability::degraded(format!("io_uring_setup fails: {error}")),
            },
            Self::Xfs | Self::Btrfs => root_and(|| file_system(self.name())),
            Self::Fuse | Self::Overlay => root_and(|| known(self.name())),
            Self::Tmpfs => given(is_tmpfs("/dev/shm"), "/dev/shm is not a tmpfs"),
            Self::Prometheus => from(programs(&["prometheus", "curl"])),
            Self::Postgres => {
                let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
                let mut servers = versions.map(|version| version.path().join("bin/initdb"));
                given(servers.any(|initdb| initdb.is_file()), "no PostgreSQL server is installed")
            }
            Self::PostgresVersions => {
                let missing = POSTGRES_VERSIONS.iter().find(|version| !version.is_installed());
                from(missing.map_or(Ok(()), |version| {
                    Err(format!("no PostgreSQL {} is installed below /var/tmp", version.major))
                }))
            }
            Self::Mariadb => {
                from(programs(&["mariadbd", "mariadb-install-db", "my_print_defaults"]))
            }
            Self::Bpf => root_and(|| {
                exists("/sys/kernel/btf/vmlinux", "the kernel does not describe its types")?;
                let held = effective_capabilities().unwrap_or_default();
                let may = held & CAP_BPF_AND_PERFMON == CAP_BPF_AND_PERFMON;
                may.then_some(()).ok_or("CAP_BPF and CAP_PERFMON are missing".to_owned())
            }),
            Self::Perf => root_and(|| {
                exists("/proc/sys/kernel/perf_event_paranoid", "the kernel has no perf events")?;
                let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
                let seen = symbols.lines().any(|line| !line.starts_with("0000000000000000"));
                seen.then_some(()).ok_or("the kernel hides its addresses".to_owned())
            }),
            Self::Cachestat => given(kernel_is((6, 5)), "the kernel is older than Linux 6.5"),
            Self::Fio
            | Self::Duperemove
            | Self::Chromium
            | Self::Openssl
            | Self::Iostat
            | Self::Collectl
            | Self::Fincore
            | Self::Strace
            | Self::DpkgDeb => from(programs(&[self.name()])),
            Self::Nbdkit => root_and(|| programs(&["nbdkit", "nbdfuse", "losetup"])),
            Self::Qemu => from(emulator()),
            Self::Ganesha => root_and(|| programs(&["ganesha.nfsd", "setpriv"])),
            Self::Clang => from(programs(&["clang-14", "llvm-strip-14"])),
        }
    }
}

fn memory_group() -> Result<(), String> {
    let unified = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    let has = unified.is_ok_and(|text| text.split(' ').any(|word| word.trim() == "memory"));
    let none = "no control group can limit memory";
    if has { Ok(()) } else { exists("/sys/fs/cgroup/memory/memory.stat", none) }
}

/// Returns from the test, counted as skipped, unless the machine meets all needs; panics instead if
/// `BLOCKSTONE_REQUIRE` names an unmet one.
///
/// ```
/// fn a_loop_device_keeps_its_cap() {
///     blockstone_testkit::require!(Root, Loop, Blkio);
///     // … the test itself.
/// }
/// # a_loop_device_keeps_its_cap();
/// ```
#[macro_export]
macro_rules! require {
    ($($need:ident),+ $(,)?) => {
        if !$crate::allowed(&|| {}, &[$($crate::Need::$need),+]) {
            return;
        }
    };
}

/// Returns whether a test may run: the function behind [`require!`](crate::require). `here` is any
/// value whose type was defined in the test, such as a closure: its type name contains the test's
/// name.
///
/// # Panics
/// If an unmet need is required.
pub fn allowed<T>(here: &T, needs: &[Need]) -> bool {
    let required = std::env::var(REQUIRE_VARIABLE).unwrap_or_default();
    let test = test_name(type_name_of_val(here));
    if std::env::var_os(FAST_VARIABLE).is_some() && !needs.is_empty() {
        skip(&test, "a fast run asks nothing of the machine");
        return false;
    }
    for &need in needs {
        match decide(need, &capability_once(need), &required) {
            Decision::Run => {}
            Decision::Skip(reason) => {
                skip(&test, &reason);
                return false;
            }
            Decision::Fail(reason) => panic!(
                "{test} needs {reason}\nhint: {REQUIRE_VARIABLE}={required} forbids skipping it",
            ),
        }
    }
    true
}

/// Returns why a job other than a test must do without `need`, which the job prints and counts; an
/// error if `need` is required.
pub fn skipped_without(need: Need) -> Result<Option<String>, String> {
    let required = std::env::var(REQUIRE_VARIABLE).unwrap_or_default();
    match decide(need, &capability_once(need), &required) {
        Decision::Run => Ok(None),
        Decision::Skip(reason) => Ok(Some(reason)),
        Decision::Fail(reason) => {
            Err(format!("{reason}; {REQUIRE_VARIABLE}={required} forbids skipping it"))
        }
    }
}

/// Consequence of a capability for a test.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Run,
    Skip(String),
    Fail(String),
}

fn decide(need: Need, capability: &Capability, required: &str) -> Decision {
    let Capability::Degraded { why } = capability else { return Decision::Run };
    let reason = format!("{}: {why}", need.name());
    let named = |name: &str| name == need.name() || name == "all";
    if required.split(',').any(|name| named(name.trim())) {
        Decision::Fail(reason)
    } else {
        Decision::Skip(reason)
    }
}

/// Checks each need once per process, because a machine does not change while its tests run.
fn capability_once(need: Need) -> Capability {
    static KNOWN: Mutex<BTreeMap<Need, Capability>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(need).or_insert_with(|| need.capability()).clone()
}

/// Reports and counts that a test, or a part of it, did not run. Written directly to standard
/// error, because the test harness discards the output of passing tests, and a silent skip looks
/// like a pass.
///
/// # Panics
/// When standard error or the log is closed.
pub fn skip(test: &str, reason: &str) {
    writeln!(io::stderr(), "SKIP {test}: {reason}").expect("standard error is open");
    if let Some(path) = std::env::var_os(SKIP_LOG_VARIABLE) {
        append(Path::new(&path), &[test, reason]).expect("the skip log can be written");
    }
}

/// Records how long the test on this thread took. The durations that the test harness reports
/// include the time a test waits for its turn.
pub fn note_time(kind: &str, duration: Duration) {
    if let Some(path) = std::env::var_os(TIME_LOG_VARIABLE) {
        let seconds = format!("{:.1}", duration.as_secs_f64());
        let thread = std::thread::current();
        let fields = [kind, &seconds, thread.name().unwrap_or("unnamed")];
        // Informational only: a test that passed must not fail because of it.
        let _ = append(Path::new(&path), &fields);
    }
}

fn append(path: &Path, fields: &[&str]) -> io::Result<()> {
    let mut log = OpenOptions::new().append(true).create(true).open(path)?;
    log.write_all(format!("{}\n", fields.join("\t")).as_bytes())
}

/// Returns `crate::tests::the_test` for the type name `crate::tests::the_test::{{closure}}`.
fn test_name(type_name: &str) -> String {
    type_name.trim_end_matches("::{{closure}}").to_owned()
}

/// Bits of a capability set (linux/capability.h).
const CAP_BPF_AND_PERFMON: u64 = 1 << 39 | 1 << 38;

fn effective_capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Whether the kernel has this version or a later one.
fn kernel_is(version: (u32, u32)) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    kernel_version(&release).is_some_and(|found| found >= version)
}

/// Returns the first two numbers of a release such as `6.18.44-fc-v657`.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn given(holds: bool, why: &str) -> Capability {
    if holds { Capability::Full } else { Capability::degraded(why) }
}

fn from(result: Result<(), String>) -> Capability {
    result.map_or_else(Capability::degraded, |()| Capability::Full)
}

fn root_and(check: impl FnOnce() -> Result<(), String>) -> Capability {
    match Need::Root.capability() {
        Capability::Full => from(check()),
        degraded @ Capability::Degraded { .. } => degraded,
    }
}

fn programs(names: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| find_program(name).is_none()) {
        Some(name) => Err(format!("{name} is not installed")),
        None => Ok(()),
    }
}

fn emulator() -> Result<(), String> {
    programs(&["qemu-system-x86_64", "nbdkit"])?;
    guest::unpacked()
}

/// Checks for the mkfs of a file system, and for the kernel's support.
fn file_system(name: &str) -> Result<(), String> {
    programs(&[&format!("mkfs.{name}")])?;
    known(name)
}

/// Checks for the kernel's support of a file system.
fn known(name: &str) -> Result<(), String> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let listed = known.lines().any(|line| line.split_whitespace().last() == Some(name));
    listed.then_some(()).ok_or_else(|| format!("the kernel does not list {name}"))
}

fn is_tmpfs(path: &str) -> bool {
    // TMPFS_MAGIC (linux/magic.h).
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == 0x0102_1994)
}

fn exists(path: &str, why: &str) -> Result<(), String> {
    if Path::new(path).exists() { Ok(()) } else { Err(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_need_skips_and_a_required_one_fails() {
        let missing = Capability::degraded("not installed");
        let reason = "fio: not installed".to_owned();
        assert_eq!(decide(Need::Fio, &Capability::Full, "fio"), Decision::Run);
        assert_eq!(decide(Need::Fio, &missing, ""), Decision::Skip(reason.clone()));
        assert_eq!(decide(Need::Fio, &missing, "root,loop"), Decision::Skip(reason.clone()));
        assert_eq!(decide(Need::Fio, &missing, "root, fio"), Decision::Fail(reason.clone()));
        assert_eq!(decide(Need::Fio, &missing, "all"), Decision::Fail(reason));
    }

    #[test]
    fn a_test_is_named_by_its_function() {
        let name = test_name(type_name_of_val(&|| {}));
        assert!(name.ends_with("need::tests::a_test_is_named_by_its_function"), "{name}");
    }

    #[test]
    fn the_skip_log_collects_one_line_a_test() {
        let dir = std::env::temp_dir().join(format!("blockstone-skip-{}", std::process::id()));
        append(&dir, &["a::first", "zram: no zram"]).unwrap();
        append(&dir, &["a::second", "root: run as root"]).unwrap();
        let text = fs::read_to_string(&dir).unwrap();
        fs::remove_file(&dir).unwrap();
        assert_eq!(text, "a::first\tzram: no zram\na::second\troot: run as root\n");
    }

    #[test]
    fn versions_of_kernels_are_read() {
        assert_eq!(kernel_version("6.18.44-fc-v657\n"), Some((6, 18)));
        assert_eq!(kernel_version("6.5-rc1"), Some((6, 5)));
        assert_eq!(kernel_version("unknown"), None);
    }

    #[test]
    fn every_need_answers() {
        for need in Need::ALL {
            if let Capability::Degraded { why } = need.capability() {
                assert!(!why.is_empty(), "{} must say why", need.name());
            }
        }
    }
}
