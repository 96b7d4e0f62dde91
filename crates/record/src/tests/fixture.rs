//! Recordings of every format ever written can be read.

use std::env;
use std::path::{Path, PathBuf};

use blockstone_base::Estimate;
use blockstone_base::capability::Capability;
use blockstone_base::column::Cell;
use blockstone_base::identity::{BlockDevice, CapKind, CgroupCap, DeviceKind, Host, Link};
use blockstone_base::load::{Access, LoadSpec, Pacing};
use blockstone_base::verdict::{Outcome, Verdict, Weight};

use super::{manifest, record_run_of};
use crate::manifest::{End, Figure, Manifest, Phase, Stop};
use crate::{Recording, RunState, list_runs, testing};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

#[test]
fn a_recording_of_format_1_is_read() {
    check(&fixtures().join("v1"));
}

fn check(dir: &Path) {
    let recording = Recording::open(dir).unwrap();
    assert_eq!(recording.manifest.format, "blockstone.recording/1");
    assert_eq!(recording.manifest.end, End::Complete);
    let expected = Manifest {
        probes: recording.manifest.probes.clone(),
        ended_at: recording.manifest.ended_at.clone(),
        end: End::Complete,
        ..full_manifest()
    };
    assert_eq!(recording.manifest, expected);
    let disk = recording.series("disk").unwrap();
    assert_eq!((disk.len(), disk.objects(0)), (60, vec!["sda", "sdb"]));
    assert_eq!(disk.delta(0, "sda", 0, 2_900_000_000, "read_bytes"), Some(29 * 8192));
    assert_eq!(disk.value_at(0, "sdb", 0, "in_flight"), None);
    assert_eq!(disk.rows().last().unwrap().cell(2), Cell::Text("up".to_owned()));
    assert_eq!(recording.series("cpu").unwrap().len(), 30);
    let histograms = recording.histograms().unwrap();
    let counts: Vec<u64> = histograms.iter().map(|row| row.histogram.count()).collect();
    assert_eq!(counts, [50, 60, 70]);
    assert!(histograms.iter().all(|row| row.page.is_none()));
    let sum: u128 = (0..60).map(|i| 100_000 + i * 997).sum();
    assert_eq!(histograms[1].histogram.sum_ns(), sum);
    let mut all = blockstone_base::LatencyHistogram::new();
    for row in &histograms {
        all.merge(&row.histogram);
    }
    // The figures printed by the Python in docs/recording-format.md for the same file.
    assert_eq!([0.5, 0.9, 0.99].map(|q| all.quantile_ns(q)), [129_023, 155_647, 167_935]);
    assert_eq!(recording.events().unwrap()[2].detail, "tick 20");
    assert_eq!(recording.warnings(), Vec::<String>::new());
}

#[test]
fn fixtures_are_listed_as_runs() {
    let runs = list_runs(&fixtures()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].id.as_str(), &runs[0].state), ("r1", &RunState::Ended(End::Complete)));
}

/// Also creates the fixture of a new format: set `BLOCKSTONE_WRITE_FIXTURE` to its directory.
#[test]
fn what_is_written_today_reads_like_the_newest_fixture() {
    let parent = tempfile::tempdir().unwrap();
    let asked = env::var_os("BLOCKSTONE_WRITE_FIXTURE").map(PathBuf::from);
    let dir = asked.unwrap_or_else(|| parent.path().join("run"));
    record_run_of(&dir, full_manifest());
    check(&dir);
}

/// A manifest with an example of every field and every kind of value.
fn full_manifest() -> Manifest {
    let mut full = manifest("r1");
    "2026-01-02T03:04:05Z".clone_into(&mut full.started_at);
    ".".clone_into(&mut full.argv[2]);
    full.host = Host { hostname: "testhost".to_owned(), cpus: 2, ..Host::default() };
    full.target.free_bytes = 1 << 30;
    full.target.devices = vec![BlockDevice {
        // The fixture is older than this.
        zoned: None,
        size_bytes: 1 << 40,
        model: Some("Model".to_owned()),
        link: Some(Link {
            description: "PCIe 8.0 GT/s x4".to_owned(),
            bytes_per_s: 3.9e9,
            bytes_per_s_max: None,
            description_max: None,
            source: "/sys/class/pci".to_owned(),
        }),
        ..testing::device("vda", DeviceKind::Disk)
    }];
    full.target.caps = vec![CgroupCap {
        device: "254:0".to_owned(),
        kind: CapKind::ReadIops,
        limit: 437,
        source: "/sys/fs/cgroup/io.max".to_owned(),
    }];
    full.file = Some(testing::file("/data/blockstone.dat", 1 << 30));
    let fiemap = Capability::degraded("tmpfs does not answer FIEMAP");
    full.capabilities.push(testing::capability("fiemap", fiemap));
    full.phases = ["random-read/psync/x4", "commit/dsync/overwrite/8K/x1"].map(phase).into();
    let estimate = Estimate {
        value: 437.0,
        low: 436.5,
        high: 437.5,
        samples: 4370,
        duration_ns: 10_000_000_000,
    };
    let title = "Most random reads a second";
    let figure = testing::figure(title, "IOPS", estimate, "random-read/psync/x4");
    let figure = Figure { condemned_by: vec!["throttled".to_owned()], ..figure };
    full.summary = [("max_iops".to_owned(), figure)].into();
    full.verdicts = vec![Verdict {
        rule: "throttled".to_owned(),
        outcome: Outcome::Fail,
        weight: Weight::Warns,
        concerns: vec!["max_iops".to_owned()],
        evidence: "437 reads a second at every depth".to_owned(),
        cause: "io.max of the control group".to_owned(),
        next: "lift the cap".to_owned(),
    }];
    full
}

/// A phase of four workers, with the same load, sequential and open-loop, in the background.
fn phase(label: &str) -> Phase {
    let point = testing::point(label);
    let load = LoadSpec { span_bytes: 1 << 30, workers: 4, ..point.load.unwrap() };
    let pacing = Pacing::Open { rate_per_s: 1000.0, poisson: true };
    Phase {
        background: Some(LoadSpec { access: Access::Sequential, pacing, ..load.clone() }),
        load: Some(load),
        window_start_ns: 500_000_000,
        window_end_ns: 2_900_000_000,
        end_ns: 3_000_000_000,
        stop: Stop::IntervalReached,
        settled: None,
        processors: None,
        first_error: Some("read 8192 bytes at 0: Input/output error".to_owned()),
        note: Some("a note".to_owned()),
        ..point
    }
}
