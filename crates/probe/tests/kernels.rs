//! Every probe on saved files of other kernels; `tests/kernels/README.md` lists their origin.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_probe::{Cell, Context, Roles, Scope, Unmeasured, registry};
use blockstone_testkit::lay_out;

const KERNELS: [&str; 4] = ["3.10", "4.18", "5.5", "6.18"];

/// Output of all probes of a host at one look.
struct ProbeOutput {
    cells: BTreeMap<(&'static str, String, &'static str), Cell>,
    unmeasured: BTreeMap<(&'static str, &'static str), Unmeasured>,
}

fn look(kernel: &str, processes: &[u32]) -> ProbeOutput {
    let root = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kernels/{kernel}.txt"));
    lay_out(&std::fs::read_to_string(path).unwrap(), root.path()).unwrap();
    let scope = Scope::Host(Roles::with(processes.to_vec(), Vec::new()));
    let context = Context { root: root.path().to_owned(), scope };
    let mut seen = ProbeOutput { cells: BTreeMap::new(), unmeasured: BTreeMap::new() };
    for entry in registry::of(&context) {
        let mut probe = (entry.open)(&context);
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        for row in rows {
            assert_eq!(row.cells.len(), entry.schema.columns.len());
            for (column, cell) in entry.schema.columns.iter().zip(row.cells) {
                seen.cells.insert((entry.schema.probe, row.object.clone(), column.name), cell);
            }
        }
        let missing = probe.unmeasured();
        seen.unmeasured.extend(missing.into_iter().map(|(c, why)| ((entry.schema.probe, c), why)));
    }
    seen
}

impl ProbeOutput {
    #[track_caller]
    fn is(&self, probe: &'static str, object: &str, expected: &[(&'static str, i64)]) {
        for (column, value) in expected {
            let cell = self.cell(probe, object, column);
            assert_eq!(cell, Cell::Value(*value), "{probe} {object} {column}");
        }
    }

    #[track_caller]
    fn cell(&self, probe: &'static str, object: &str, column: &'static str) -> Cell {
        self.cells[&(probe, object.to_owned(), column)].clone()
    }

    /// Asserts that the columns have no value anywhere, and that the reason is the version, in
    /// these words.
    #[track_caller]
    fn lacks(&self, probe: &'static str, columns: &[&'static str], words: &str) {
        for column in columns {
            let cells = self.cells.iter().filter(|(key, _)| key.0 == probe && key.2 == *column);
            assert!(cells.clone().all(|(_, cell)| *cell == Cell::Unmeasured), "{probe} {column}");
            assert!(cells.count() > 0, "{probe} {column}");
            match &self.unmeasured[&(probe, *column)] {
                Unmeasured::NotInVersion(why) => assert!(why.contains(words), "{column}: {why}"),
                other => panic!("{column}: {other:?}"),
            }
        }
    }

    /// Disks with nothing beneath them, where each request is counted once.
    fn ends(&self) -> Vec<&str> {
        let disk = Cell::Text("disk".to_owned());
        let kinds =
            self.cells.iter().filter(|(key, kind)| key.2 == "device_kind" && **kind == disk);
        let names = kinds.map(|((_, name, _), _)| name.as_str());
        names.filter(|name| self.beneath(name).is_empty()).collect()
    }

    fn beneath(&self, device: &str) -> String {
        match self.cell("block", device, "beneath") {
            Cell::Text(text) => text,
            other => panic!("{device}: {other:?}"),
        }
    }

    fn kind(&self, device: &str) -> Cell {
        self.cell("block", device, "device_kind")
    }
}

#[test]
fn every_kernel_is_read_and_what_it_lacks_has_a_reason() {
    for kernel in KERNELS {
        let seen = look(kernel, &[4711, 8741]);
        for ((probe, object, column), cell) in &seen.cells {
            // The reason applies to the column, for all objects.
            let others = seen.cells.iter().filter(|(key, _)| key.0 == *probe && key.2 == *column);
            let never = others.clone().all(|(_, cell)| *cell == Cell::Unmeasured);
            let told = seen.unmeasured.contains_key(&(*probe, *column));
            assert_eq!(never, told, "{kernel}: {probe} {object} {column}: {cell:?}");
        }
    }
}

#[test]
fn of_3_10_there_are_eleven_counters_and_no_pressure() {
    let seen = look("3.10", &[]);
    seen.is(
        "block",
        "vda",
        &[
            ("read_ios", 58_221_223),
            ("read_merges", 571_170),
            ("read_bytes", 7_363_640_901 * 512),
            ("read_ns", 993_650_042 * 1_000_000),
            ("write_bytes", 10_253_583_588 * 512),
            ("in_flight", 0),
            ("busy_ns", 877_360_678 * 1_000_000),
            ("queue_ns", 1_357_257_008 * 1_000_000),
        ],
    );
    let late = ["discard_ios", "discard_bytes", "flush_ios", "flush_ns"];
    seen.lacks("block", &late, "this kernel has 11 fields");
    assert_eq!(
        seen.ends(),
        ["sr0", "vda", "vdb", "vdc"],
        "no partition, and nothing built on them"
    );
    assert_eq!((seen.kind("dm-0"), seen.beneath("dm-0")), (Cell::Text("dm".into()), "vdc".into()));
    assert_eq!(seen.beneath("vda1"), "vda");
    seen.lacks("host", &["psi_cpu_some_ns", "psi_io_some_ns", "psi_io_full_ns"], "CONFIG_PSI");
    seen.is(
        "host",
        "",
        &[
            ("cpu_user_ns", 301_854 * 10_000_000),
            ("cpu_softirq_ns", 3_944 * 10_000_000),
            ("cpu_iowait_ns", 3_552 * 10_000_000),
            ("cpu_steal_ns", 0),
            ("switches", 38_014_093),
            ("runnable", 2),
            ("dirty_bytes", 768 * 1024),
            ("cached_bytes", (12_007_640 + 1_020_128) * 1024),
        ],
    );
    seen.is("cpu", "cpu7", &[("cpu_idle_ns", 1_139_282 * 10_000_000)]);
    // MemAvailable was added in 3.14; allocations that stall are counted by zone since 4.10.
    let late = ["available_bytes", "direct_reclaims", "huge_pages_bytes", "refaulted_file_pages"];
    seen.lacks("memory", &late, "this kernel has no /proc/");
    seen.is(
        "memory",
        "",
        &[
            ("memory_bytes", 15_666_184 * 1024),
            ("swap_total_bytes", 0),
            ("paged_out_bytes", 1_541_180_581 * 1024),
            ("major_page_faults", 507_162),
        ],
    );
}

#[test]
fn network_and_nfs_of_3_x_are_read() {
    let seen = look("3.10", &[]);
    // There is no space between a long number and the colon; a name may itself contain a colon.
    seen.is("network", "eth0", &[("received_bytes", 68_210_035_552), ("sent_packets", 43_451_486)]);
    seen.is("network", "ibr10:30", &[("received_bytes", 0), ("sent_packets", 0)]);
    seen.is("network", "tcp", &[("received_packets", 57_252_008), ("retransmits", 227)]);
    seen.is(
        "nfs",
        "/mnt/nfs/test",
        &[
            ("read_ios", 1_298),
            ("read_bytes", 1_210_214_218),
            ("read_queue_ns", 6_000_000),
            ("read_server_ns", 79_386_000_000),
            ("read_ns", 79_407_000_000),
            ("write_ios", 0),
            ("retransmits", 0),
        ],
    );
}

#[test]
fn of_4_18_nvme_disks_count_at_their_paths() {
    let seen = look("4.18", &[]);
    assert_eq!(seen.beneath("nvme0n1"), "nvme0c0n1");
    assert_eq!(seen.beneath("nvme1n1"), "nvme1c1n1");
    assert_eq!(seen.beneath("nvme3n1p3"), "nvme3n1");
    assert_eq!(seen.ends(), ["nvme0c0n1", "nvme1c1n1", "nvme3n1"]);
    seen.is("block", "nvme0c0n1", &[("read_bytes", 1_473_911_640 * 512), ("discard_ios", 0)]);
    seen.is("block", "nvme0n1", &[("read_bytes", 0)]);
    seen.lacks("block", &["flush_ios", "flush_ns"], "this kernel has 15 fields");
}

#[test]
fn of_5_5_flushes_belong_to_whole_disks() {
    let seen = look("5.5", &[8741]);
    seen.is("block", "vda", &[("flush_ios", 168_084), ("flush_ns", 69_664 * 1_000_000)]);
    seen.is("block", "nvme0n1", &[("flush_ios", 0)]);
    for device in ["vda1", "vda2", "dm-0", "nvme0n1p3"] {
        assert_eq!(seen.cell("block", device, "flush_ios"), Cell::Unmeasured, "{device}");
    }
    assert_eq!(seen.ends(), ["nvme0n1", "vda"]);
    assert_eq!(seen.beneath("dm-0"), "vda2");
    seen.is("host", "", &[("psi_io_some_ns", 96_242_289_000), ("psi_io_full_ns", 92_732_851_000)]);
    assert_eq!(seen.cell("host", "", "psi_cpu_some_ns"), Cell::Unmeasured);
    seen.is(
        "processes",
        "firefox",
        &[
            ("processes", 1),
            ("cpu_ns", 34_569_991_055),
            ("run_queue_ns", 1_039_068_587),
            ("requested_read_bytes", 8_239_915),
            ("read_calls", 120_229),
            ("read_bytes", 77_910_016),
            ("write_bytes", 262_144),
        ],
    );
}

#[test]
fn arrays_lie_on_their_members() {
    // RAID 1+0 of four disks, as in /proc/mdstat of github.com/netdata/netdata/issues/2193.
    let root = tempfile::tempdir().unwrap();
    let mut capture = Vec::new();
    let mut device = |name: &str, beneath: &[&str]| {
        let directory = format!("/sys/devices/virtual/block/{name}");
        capture.push(format!("==> /sys/class/block/{name} -> {directory} <=="));
        capture.push(format!("==> {directory}/stat <==\n1 0 8 1 0 0 0 0 0 1 1"));
        capture.push(format!("==> {directory}/md/level <==\nraid1"));
        for member in beneath {
            capture.push(format!("==> {directory}/slaves/{member}/size <==\n8"));
        }
    };
    device("md0", &["sda1", "sdb1"]);
    device("md1", &["sdc1", "sdd1"]);
    device("md2", &["md0", "md1"]);
    lay_out(&capture.join("\n"), root.path()).unwrap();
    let mut probe = (blockstone_probe::block::open)(&Context::of_host(root.path()));
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    let seen: Vec<(&str, &[Cell])> =
        rows.iter().map(|row| (row.object.as_str(), &row.cells[..2])).collect();
    let text = |text: &str| Cell::Text(text.to_owned());
    assert_eq!(
        seen,
        [
            ("md0", &[text("md"), text("sda1 sdb1")][..]),
            ("md1", &[text("md"), text("sdc1 sdd1")][..]),
            ("md2", &[text("md"), text("md0 md1")][..]),
        ]
    );
}

#[test]
fn of_6_18_all_is_told() {
    let seen = look("6.18", &[4711]);
    assert_eq!(seen.ends(), ["vda"]);
    for probe in ["host", "cpu", "memory", "resources", "network", "block", "processes"] {
        let missing = seen.unmeasured.keys().filter(|(of, _)| *of == probe);
        assert_eq!(missing.count(), 0, "{probe}: {:?}", seen.unmeasured);
    }
    let refaulted = [("refaulted_anonymous_pages", 0), ("refaulted_file_pages", 65_983_664)];
    seen.is("memory", "", &refaulted);
    assert_eq!(seen.kind("loop0"), Cell::Text("loop".into()));
    assert_eq!(seen.beneath("loop0"), "/var/tmp/disk.img");
    seen.is("block", "loop0", &[("write_bytes", 180_186_552 * 512), ("flush_ios", 149_097)]);
    let process = [("cpu_ns", 136_908_961), ("run_queue_ns", 193_903_697), ("read_bytes", 77_824)];
    seen.is("processes", "sleep", &process);
    // Version 1 of control groups, together with the unified hierarchy without its controllers.
    let limit = seen.cell("cgroup", "/service", "memory_limit_bytes");
    assert_eq!(limit, Cell::Unmeasured);
    assert!(matches!(seen.cell("cgroup", "/service", "memory_bytes"), Cell::Value(1..)));
}
