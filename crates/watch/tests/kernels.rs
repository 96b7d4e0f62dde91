//! The disks of several kernels as shown by a view: no request counts twice. And the counters of an
//! `NVMe` device itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::Path;

use blockstone_probe::{Context, nvme, registry};
use blockstone_record::manifest::ProbeInfo;
use blockstone_sys::nvme::{Log, NvmeError, PAGE_BYTES, Page};
use blockstone_testkit::lay_out;
use blockstone_view::{History, Value, registry as views};

const SECOND_NS: u64 = 1_000_000_000;

/// Returns all counts of a kernel's devices, as one interval of a second.
fn since_boot(kernel: &str) -> History {
    let root = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/tests/kernels");
    let capture = fs::read_to_string(folder.join(format!("{kernel}.txt"))).unwrap();
    lay_out(&capture, root.path()).unwrap();
    let context = Context::of_host(root.path());
    let entry = registry::ALL.iter().find(|entry| entry.schema.probe == "block").unwrap();
    let mut history = History::new(vec![ProbeInfo::of(entry.schema)]);
    for entry in fs::read_dir(root.path().join("sys/class/block")).unwrap() {
        let stat = entry.unwrap().path().join("stat");
        let fields = fs::read_to_string(&stat).unwrap().split_whitespace().count();
        fs::write(&stat, "0 ".repeat(fields)).unwrap();
    }
    let mut probe = (entry.open)(&context);
    for t_ns in [0, SECOND_NS] {
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        for row in rows {
            history.push("block", t_ns, &row.object, row.cells);
        }
        lay_out(&capture, root.path()).unwrap();
    }
    history
}

/// Returns bytes written per second, and the devices beneath, of a row.
fn written(history: &History, device: &str) -> Option<(f64, String)> {
    let interval = history.interval(0, SECOND_NS);
    let view = views::find("disks").unwrap();
    let table = view.table(&interval).unwrap();
    let at = |key| view.column(key).unwrap();
    let row = table.rows.iter().find(|row| row[0] == Value::from(device))?;
    match (&row[at("write_bytes_per_s")], &row[at("beneath")]) {
        (Value::Number(bytes), Value::Text(beneath)) => Some((*bytes, beneath.clone())),
        other => panic!("{device}: {other:?}"),
    }
}

#[test]
fn partitions_mapped_devices_and_nvme_heads_count_once() {
    for (kernel, sectors) in [
        // vda + vdb + vdc, not vda1 and not dm-0 on vdc.
        ("3.10", 10_253_583_588_u64 + 213_623_952 + 1_491_074_702),
        // Two paths, whose heads do not move, and nvme3n1 without its partitions.
        ("4.18", 1_281_792_136 + 1_204_958_632 + 1_628_185_952),
        // vda + nvme0n1.
        ("5.5", 67_967_912 + 24_366_029_343),
    ] {
        let all = written(&since_boot(kernel), "all").unwrap().0;
        assert_eq!(all as u64, sectors * 512, "{kernel}");
    }
}

#[test]
fn each_device_says_on_what_it_lies() {
    let old = since_boot("3.10");
    assert_eq!(written(&old, "dm-0").unwrap(), (1_491_074_702.0 * 512.0, "vdc".to_owned()));
    assert_eq!(written(&old, "vda1").unwrap().1, "vda");
    let paths = since_boot("4.18");
    assert_eq!(written(&paths, "nvme0n1").unwrap(), (0.0, "nvme0c0n1".to_owned()));
    assert_eq!(written(&paths, "nvme0c0n1").unwrap().1, "");
    assert_eq!(written(&since_boot("5.5"), "dm-0").unwrap().1, "vda2");
}

/// An OCP device at its first or second reading: its counters are primes times that number.
struct Primes(u64);

impl nvme::Logs for Primes {
    fn read(&mut self, _: &str, log: Log) -> Result<Page, NvmeError> {
        let mut page = [0; PAGE_BYTES];
        let mut put = |at: usize, prime: u64| {
            page[at..at + 8].copy_from_slice(&(self.0 * prime).to_le_bytes());
        };
        match log {
            Log::Health => {
                // Units of 512,000 bytes read and written, the commands for them, hours.
                for (at, prime) in [(32, 1013), (48, 1009), (64, 3001), (80, 4001), (128, 7001)] {
                    put(at, prime);
                }
                // No warning, 311 K, spare, its threshold, life used.
                page[..6].copy_from_slice(&[0, 0x37, 0x01, 97, 11, 3]);
            }
            Log::OcpHealth => {
                put(0, 2_000_000_011);
                let guid = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5_u128;
                page[PAGE_BYTES - 16..].copy_from_slice(&guid.to_le_bytes());
            }
        }
        Ok(page)
    }
}

#[test]
fn what_an_nvme_device_counts_is_shown() {
    let root = tempfile::tempdir().unwrap();
    let controller = root.path().join("sys/class/nvme/nvme0");
    fs::create_dir_all(&controller).unwrap();
    fs::write(controller.join("model"), "Disk 9\n").unwrap();
    let mut history = History::new(vec![ProbeInfo::of(&nvme::SCHEMA)]);
    for reading in [1, 2] {
        let mut rows = Vec::new();
        nvme::open_with(root.path(), Box::new(Primes(reading))).sample(&mut rows);
        for row in rows {
            history.push("nvme", reading * SECOND_NS, &row.object, row.cells);
        }
    }
    let view = views::find("nvme").unwrap();
    let table = view.table(&history.interval(SECOND_NS, 2 * SECOND_NS)).unwrap();
    let host = 1009.0 * 512_000.0;
    for (key, expected) in [
        ("used_share", 0.03),
        ("available_spare_share", 0.97),
        ("spare_threshold_share", 0.11),
        ("temperature_celsius", 38.0),
        ("host_written_bytes", 2.0 * host),
        ("media_written_bytes", 2.0 * 2_000_000_011.0),
        ("write_amplification", 2_000_000_011.0 / host),
        ("write_amplification_ever", 2_000_000_011.0 / host),
        ("power_on_hours", 14_002.0),
    ] {
        let shown = table.rows[0][view.column(key).unwrap()].number().unwrap();
        assert!((shown / expected - 1.0).abs() < 1e-12, "{key}: {shown}");
    }
    assert_eq!(table.rows[0][view.column("model").unwrap()], Value::from("Disk 9"));
}
