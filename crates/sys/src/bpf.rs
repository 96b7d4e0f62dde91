//! Programs that run inside the kernel (BPF) and count what no file under /proc shows.
//!
//! They are written in C (crates/sys/bpf), compiled when the workspace's files are generated, and
//! carried in the binary; the kernel's own type information (BTF) fits them to the running kernel
//! when they are loaded. They attach to tracepoints only, never to functions of the kernel.
//!
//! Without the feature `bpf` this module still exists and reports that it cannot do anything.

pub mod active;
pub mod effect;
mod file;
mod follow;
pub mod io;
pub mod iosize;
#[cfg_attr(feature = "bpf", path = "bpf/load.rs")]
#[cfg_attr(not(feature = "bpf"), path = "bpf/load_nothing.rs")]
mod load;
pub mod order;
pub mod pages;
mod table;
mod watch;

use std::io::Error;
use std::path::{Path, PathBuf};

use blockstone_base::Capability;
use blockstone_base::hint::Hint;

use self::load::Loaded;
use self::table::{Plain, Table};
use crate::proc::{own_status, under};

pub use self::file::{Device, Subject};
pub use self::load::Cost;

#[derive(Debug, thiserror::Error, Hint)]
pub enum BpfError {
    #[error("trace inside the kernel: {why}")]
    Missing { why: String },
    #[error("start the kernel program {program}: {message}")]
    #[hint("it needs tracepoints of Linux 6.5 or later")]
    Refused { program: String, message: String },
    #[error("{operation} the kernel table {table}: {source}")]
    Table { operation: &'static str, table: &'static str, source: Error },
    #[error("watch the page cache of {}: {why}", path.display())]
    File { path: PathBuf, why: String },
}

/// Returns whether programs can run in the kernel, as far as that can be known without trying.
pub fn capability(root: &Path) -> Capability {
    const BTF: &str = "/sys/kernel/btf/vmlinux";
    if !cfg!(feature = "bpf") {
        return Capability::degraded("this binary was built without the feature bpf");
    }
    if !cfg!(target_arch = "x86_64") {
        return Capability::degraded("the kernel programs are written for x86-64 only");
    }
    if !under(root, BTF).exists() {
        return Capability::degraded(format!(
            "no {BTF}: a kernel built with CONFIG_DEBUG_INFO_BTF has it"
        ));
    }
    match effective_capabilities(root) {
        Some(held) if held & SYS_ADMIN == 0 && held & NEEDED != NEEDED => Capability::degraded(
            "CAP_BPF and CAP_PERFMON are missing; run as root, or `setcap \
             cap_bpf,cap_perfmon+ep` on the binary",
        ),
        _ => Capability::Full,
    }
}

/// Bits of a capability set, linux/capability.h: `CAP_PERFMON` and `CAP_BPF` together, and
/// `CAP_SYS_ADMIN`, which includes both.
const NEEDED: u64 = 1 << 38 | 1 << 39;
const SYS_ADMIN: u64 = 1 << 21;

fn effective_capabilities(root: &Path) -> Option<u64> {
    u64::from_str_radix(&own_status(root, "CapEff:")?, 16).ok()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// I/Os, files and processes not counted because a table was full or their end was not seen.
    pub dropped: u64,
    /// Number of program runs whose time the kernel measured, which it does for a sixteenth of the
    /// time; `None` if it does not for this user.
    pub runs: Option<u64>,
    /// Time that these runs took.
    pub own_ns: Option<u64>,
}

impl Audit {
    fn of(dropped: &Table<u32, u64>, loaded: &Loaded) -> Self {
        let (runs, own_ns) = spent(loaded).unzip();
        Self { dropped: count(dropped), runs, own_ns }
    }
}

/// Returns the measured runs of all programs, and the nanoseconds that they took.
fn spent(loaded: &Loaded) -> Option<(u64, u64)> {
    let costs = loaded.costs()?;
    Some(costs.iter().fold((0, 0), |(runs, ns), cost| (runs + cost.runs, ns + cost.ns)))
}

/// The object parser requires the alignment of a `u64`.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// The compiled programs with this name.
macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &$crate::bpf::Aligned<[u8]> =
            &$crate::bpf::Aligned(*include_bytes!(concat!("../../bpf/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}
use object;

/// Returns the single number in a table; zero if it cannot be read.
fn count(table: &Table<u32, u64>) -> u64 {
    table.get(&0).ok().flatten().unwrap_or(0)
}

fn open<K: Plain, V: Plain>(loaded: &Loaded, table: &'static str) -> Result<Table<K, V>, BpfError> {
    Table::new(loaded.map(table)?).map_err(on("open", table))
}

fn on(operation: &'static str, table: &'static str) -> impl FnOnce(Error) -> BpfError {
    move |source| BpfError::Table { operation, table, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_missing_thing_is_named_with_what_would_help() {
        if !cfg!(all(feature = "bpf", target_arch = "x86_64")) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let why = |root: &Path| format!("{:?}", capability(root));
        assert!(why(root.path()).contains("CONFIG_DEBUG_INFO_BTF"));
        fs::create_dir_all(root.path().join("sys/kernel/btf")).unwrap();
        fs::write(root.path().join("sys/kernel/btf/vmlinux"), "").unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let held = |set: u64| {
            let text = format!("Name:\tx\nCapEff:\t{set:016x}\n");
            fs::write(root.path().join("proc/self/status"), text).unwrap();
            capability(root.path())
        };
        assert!(format!("{:?}", held(1 << 39)).contains("CAP_PERFMON"));
        assert_eq!(held(NEEDED), Capability::Full);
        assert_eq!(held(SYS_ADMIN), Capability::Full);
    }
}
