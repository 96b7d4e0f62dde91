//! Each rule on runs: what makes it fail, and what leaves it without evidence.

use blockstone_base::Capability;
use blockstone_base::column::{Origin, Schema, Unit};
use blockstone_base::database::DIRECT_DATA;
use blockstone_base::identity::{
    BlockDevice, CapKind, CgroupCap, Cloud, DeviceKind, Link, RaidState,
};
use blockstone_base::verdict::Outcome;
use blockstone_judge::RunFindings;
use blockstone_judge::rules::registry;
use blockstone_record::manifest::NamedCapability;
use blockstone_record::testing::{self, RecordingBuilder, schema};
use serde_json::json;

use super::fixture::{calibration, healthy};
use super::found;

type Spoil = fn(&mut RecordingBuilder);

/// Ids of the rules that apply to runs, in their order.
fn rules_of_runs() -> Vec<&'static str> {
    registry::RUN.iter().map(|rule| rule.about.id).collect()
}

/// The healthy run on an attached disk whose flushes take a millisecond, under a limit that it does
/// not reach.
fn sound() -> RecordingBuilder {
    let mut run = healthy();
    run.manifest.host.hypervisor = None;
    let target = &mut run.manifest.target;
    target.caps.push(cap(50_000));
    target.devices[0].link = Some(Link {
        description: "SATA 6.0 Gb/s".to_owned(),
        bytes_per_s: 600e6,
        bytes_per_s_max: Some(600e6),
        description_max: Some("SATA 6.0 Gb/s".to_owned()),
        source: "/sys".to_owned(),
    });
    run.set("block", "vda", "flush_ios", 200);
    run.set("block", "vda", "flush_ns", 200_000_000);
    run.observe(&MEMORY);
    run.observe(&CACHED_FILES);
    level(&mut run, "memory", "", [("memory_bytes", 16 << 30), ("file_cache_bytes", 9 << 30)]);
    run.set("memory", "", "swapped_in_pages", 0);
    run.set("memory", "", "refaulted_file_pages", 900);
    let cached = [("cached_bytes", 1 << 30), ("unseen_files", 0)];
    level(&mut run, "cached_files", "postgres", cached);
    run
}

static MEMORY: Schema = schema(
    "memory",
    &[
        Origin("test").level("memory_bytes", Unit::Bytes, ""),
        Origin("test").level("file_cache_bytes", Unit::Bytes, ""),
        Origin("test").count("swapped_in_pages", ""),
        Origin("test").count("refaulted_file_pages", ""),
    ],
);
static CACHED_FILES: Schema = schema(
    "cached_files",
    &[
        Origin("test").level("cached_bytes", Unit::Bytes, ""),
        Origin("test").level("unseen_files", Unit::Count, ""),
    ],
);

/// Sets levels of the window, which do not change.
fn level<const N: usize>(
    run: &mut RecordingBuilder,
    probe: &str,
    object: &str,
    columns: [(&str, u64); N],
) {
    for (column, value) in columns {
        run.last().read((probe, object), column, vec![value; 101]);
    }
}

/// A counter of the window of ten seconds whose rate changes at a tick of 100 ms.
fn changing(at_tick: u64, before_per_s: u64, after_per_s: u64) -> Vec<u64> {
    let count = |tick: u64| {
        tick.min(at_tick) * before_per_s / 10 + tick.saturating_sub(at_tick) * after_per_s / 10
    };
    (0..=100).map(|tick| 1_000 + count(tick)).collect()
}

fn cap(limit: u64) -> CgroupCap {
    CgroupCap {
        device: "254:0".to_owned(),
        kind: CapKind::ReadIops,
        limit,
        source: "/sys/fs/cgroup/io.max".to_owned(),
    }
}

/// For each rule, what makes it fail.
const FAILURES: &[(&str, Spoil)] = &[
    ("failed-session", |run| run.set("operation", "select", "failed_ops", 10)),
    ("work-unit", |run| run.set("operation", "select", "rows", 3_600)),
    ("plan-changed", |run| {
        let settings = &mut run.manifest.settings;
        let plan = |text: &str| json!({ "select": text, "update": "Index Scan" });
        settings.insert("plans".into(), plan("Index Scan"));
        settings.insert("plans_after".into(), plan("Bitmap Heap Scan"));
    }),
    ("memory-test", |run| run.set("process", "", "read_bytes", 8_190)),
    ("memory-backed", |run| run.manifest.target.devices[0].name = "zram0".into()),
    ("unsafe-commits", |run| {
        let settings = &mut run.manifest.settings;
        settings.insert("server_settings".into(), json!({ "fsync": "off" }));
    }),
    ("hole", |run| run.manifest.disk_files[1].map.hole_bytes = 1 << 28),
    ("unwritten", |run| run.manifest.disk_files[0].map.unwritten_bytes = 1 << 28),
    ("compressible", |run| {
        run.manifest.disk_files[0].sample.as_mut().unwrap().lz4_bytes = 100_000;
    }),
    ("not-direct", |run| {
        run.manifest.capabilities[0].capability = Capability::degraded("9p");
    }),
    ("above-link", |run| {
        run.manifest.settings.insert("link_bytes_per_s".into(), json!(40e6));
    }),
    ("lying-flush", |run| {
        run.set("sql", "", "flushes", 300);
        run.set("block", "vda", "flush_ios", 0);
    }),
    ("above-calibration", |run| {
        for disk in ["/d1", "/d2", "/d3", "/d4"] {
            run.set("disk", disk, "read_ios", 3_000);
        }
    }),
    ("db-time-remainder", |run| run.set("instance", "", "outside_sampled_blocked_ns", 50_000_000)),
    ("littles-law", |run| run.set("operation", "select", "service_ns_sum", 9_000_000_000)),
    ("mostly-cached", |run| run.set("instance", "", "logical_reads", 90_000)),
    ("silent-writes", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        for kind in ["select", "update", "scan"] {
            run.set("operation", kind, "commits", 0);
        }
        run.set("instance", "", "redo_bytes", 18_000_000);
    }),
    ("maintenance", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        run.set("instance", "", "checkpoints", 10);
    }),
    ("throttled", |run| run.manifest.target.caps.push(cap(6_100))),
    ("cloud-volume", |run| {
        run.manifest.host.cloud = Some(Cloud::Aws);
        run.set("block", "vda", "read_ios", 2_500);
        run.set("block", "vda", "write_ios", 490);
    }),
    ("degraded", |run| run.set("instance", "", "degraded_reads", 10)),
    ("burst", |run| {
        run.last().read(("block", "vda"), "read_ios", changing(50, 6_000, 2_000));
        run.last().read(("operation", "select"), "completed_ops", changing(50, 1_200, 400));
    }),
    ("unsteady", |run| run.in_bursts("role", "session")),
    ("noisy-neighbour", |run| run.set("host", "", "cpu_steal_ns", 500_000_000)),
    ("double-caching", |run| {
        let settings = json!({ "shared_buffers": "4GB" });
        run.manifest.settings.insert("server_settings".into(), settings);
        level(run, "cached_files", "postgres", [("cached_bytes", 8 << 30)]);
    }),
    ("run-queue-delay", |run| run.set("event", "session/run queue", "time_ns", 8_000_000_000)),
    ("generator-bound", |run| run.set("process", "", "cpu_user_ns", 1_600_000_000)),
    ("late-start", |run| {
        run.manifest.settings.insert("rate_per_s".into(), 1_500.into());
        run.set("operation", "select", "late_ns_sum", 6_000_000_000);
    }),
    ("clock-step", |run| run.manifest.clocks[1].boottime_offset_ns += 2_000_000_000),
    ("cache-suspected", |run| {
        let read = ("event", "session/db file sequential read");
        run.last().read(read, "waits", changing(25, 2_000, 6_000));
        run.last().read(read, "time_ns", changing(25, 16_000_000_000, 13_800_000_000));
    }),
    ("network-file-system", |run| {
        run.manifest.target.file_system.as_mut().unwrap().kind = "cifs".into();
    }),
    ("raid-degraded", |run| {
        let (disks_missing, sync_action) = (Some(0), Some("check".to_owned()));
        let device = &mut run.manifest.target.devices[0];
        device.kind = DeviceKind::Raid;
        device.raid = Some(RaidState { disks: 2, disks_missing, sync_action });
    }),
    ("multipath-leg", |run| {
        let mut path = run.manifest.target.devices[0].clone();
        (path.name, path.state) = ("sda".into(), Some("blocked".into()));
        run.manifest.target.devices[0].beneath.push("sda".into());
        run.manifest.target.devices.push(path);
    }),
    ("link-trained-down", |run| {
        let link = run.manifest.target.devices[0].link.as_mut().unwrap();
        link.bytes_per_s /= 2.0;
    }),
    ("shingled", |run| {
        run.manifest.target.devices[0].zoned = Some("host-managed".into());
    }),
    ("drive-throttled", |run| {
        run.manifest.target.devices[0].name = "nvme0n1".into();
        run.manifest.drives = [0, 1].map(testing::drive).into();
        run.manifest.drives[1].throttled = [1, 0];
    }),
];

#[test]
fn every_rule_passes_a_healthy_run_and_fails_what_it_looks_for() {
    let outcome = |findings: &RunFindings, rule: &str| {
        let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == rule).unwrap();
        (verdict.outcome, verdict.evidence.clone())
    };
    let passed = found(&sound(), Some(&calibration()));
    let covered: Vec<&str> = FAILURES.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(covered, rules_of_runs(), "a case for each rule");
    for (rule, spoil) in FAILURES {
        let (seen, evidence) = outcome(&passed, rule);
        assert_eq!(seen, Outcome::Pass, "{rule}: {evidence}");
        let mut fixture = sound();
        spoil(&mut fixture);
        let (seen, evidence) = outcome(&found(&fixture, Some(&calibration())), rule);
        assert_eq!(seen, Outcome::Fail, "{rule}: {evidence}");
    }
}

/// For each rule, what leaves it without evidence.
const BLIND: &[(&str, Spoil)] = &[
    ("failed-session", |run| run.remove("operation")),
    ("work-unit", |run| run.remove("operation")),
    ("plan-changed", |run| {
        let plans = json!({ "select": "Index Scan", "update": "Index Scan" });
        run.manifest.settings.insert("plans".into(), plans);
    }),
    ("memory-test", |run| run.remove("process")),
    ("memory-backed", |run| run.manifest.target.devices.clear()),
    ("unsafe-commits", |run| {
        run.manifest.settings.insert("server_settings".into(), json!({}));
    }),
    ("hole", |run| run.manifest.disk_files.clear()),
    ("unwritten", |run| {
        run.manifest.disk_files[1].map.fiemap = Capability::degraded("not on this file system");
    }),
    ("compressible", |run| run.manifest.disk_files[0].sample = None),
    ("not-direct", |run| run.manifest.capabilities.clear()),
    ("above-link", |run| run.manifest.target.devices[0].link = None),
    ("lying-flush", |run| run.remove("block")),
    // Judged without a calibration.
    ("above-calibration", |_| {}),
    ("db-time-remainder", |run| run.remove("instance")),
    ("littles-law", |run| {
        run.manifest.settings.insert("rate_per_s".into(), 100.into());
    }),
    ("mostly-cached", |run| run.remove("instance")),
    ("silent-writes", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        for kind in ["select", "update", "scan"] {
            run.set("operation", kind, "commits", 0);
        }
        run.remove("instance");
    }),
    ("maintenance", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        run.remove("instance");
        run.remove("sql");
    }),
    ("throttled", |run| run.manifest.target.caps.clear()),
    ("cloud-volume", |run| {
        run.manifest.host.cloud = Some(Cloud::Aws);
        run.remove("block");
    }),
    ("degraded", |run| run.remove("instance")),
    ("burst", |run| run.remove("block")),
    ("unsteady", |run| {
        run.remove("role");
        run.remove("operation");
    }),
    ("noisy-neighbour", |run| {
        run.remove("host");
        run.remove("block");
    }),
    ("double-caching", |run| run.remove("cached_files")),
    ("run-queue-delay", |run| run.remove("event")),
    ("generator-bound", |run| run.remove("process")),
    ("late-start", |run| {
        run.manifest.settings.insert("rate_per_s".into(), 1_500.into());
        run.remove("operation");
    }),
    ("clock-step", |run| run.manifest.clocks.clear()),
    ("cache-suspected", |run| run.remove("event")),
    ("network-file-system", |run| run.manifest.target.devices.clear()),
    ("raid-degraded", |run| run.manifest.target.devices[0].kind = DeviceKind::Raid),
    ("multipath-leg", |run| run.manifest.target.devices[0].beneath.push("sda".into())),
    ("link-trained-down", |run| run.manifest.target.devices[0].link = None),
    ("shingled", |run| run.manifest.target.devices[0].zoned = None),
    ("drive-throttled", |run| run.manifest.target.devices[0].name = "nvme0n1".into()),
];

/// Cases that hide a part of the evidence, so that the rest shows nothing wrong.
const HALF_BLIND: &[(&str, Spoil)] = &[
    ("plan-changed", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
    }),
    ("plan-changed", |run| {
        let settings = &mut run.manifest.settings;
        settings.insert("plans".into(), json!({}));
        settings.insert("plans_after".into(), json!({}));
    }),
    ("memory-test", |run| {
        let vda = run.manifest.target.devices[0].clone();
        run.manifest.target.devices = vec![BlockDevice { kind: DeviceKind::Loop, ..vda }];
    }),
    ("unsafe-commits", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
    }),
    ("unsafe-commits", |run| {
        let settings = &mut run.manifest.settings;
        let durable = json!({ "fsync": ["on"], "synchronous_commit": ["on"] });
        settings.insert("durable_settings".into(), durable);
        settings.insert("server_settings".into(), json!({ "fsync": "on" }));
    }),
    ("not-direct", |run| {
        run.manifest.target.file_system.as_mut().unwrap().kind = "nfs4".into();
    }),
    ("not-direct", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
    }),
    ("silent-writes", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        run.remove("operation");
    }),
    ("throttled", |run| {
        let elsewhere = CgroupCap { device: "9:9".to_owned(), ..cap(6_100) };
        run.manifest.target.caps.push(elsewhere);
    }),
    ("maintenance", |run| {
        run.manifest.settings.insert("server".into(), "PostgreSQL 15".into());
        run.remove("sql");
        run.set("instance", "", "checkpoints", 0);
    }),
    ("lying-flush", |run| run.manifest.host.hypervisor = Some("KVM".into())),
    // Less than the time to program a page of flash.
    ("lying-flush", |run| run.set("block", "vda", "flush_ns", 10_000_000)),
    ("lying-flush", |run| run.set("block", "vda", "flush_ios", 0)),
    ("burst", |run| run.manifest.host.hypervisor = Some("KVM".into())),
    ("cache-suspected", |run| run.manifest.host.hypervisor = Some("KVM".into())),
    ("noisy-neighbour", |run| run.remove("block")),
    ("double-caching", |run| run.remove("memory")),
    ("double-caching", |run| {
        level(run, "cached_files", "postgres", [("cached_bytes", 8 << 30)]);
    }),
];

#[test]
fn a_rule_without_evidence_does_not_decide() {
    let covered: Vec<&str> = BLIND.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(covered, rules_of_runs(), "a case for each rule");
    for (rule, blind) in BLIND.iter().chain(HALF_BLIND) {
        let mut fixture = sound();
        blind(&mut fixture);
        let findings = found(&fixture, None);
        let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == *rule).unwrap();
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{rule}: {}", verdict.evidence);
        assert!(!verdict.evidence.is_empty() && verdict.cause.is_empty(), "{rule}");
    }
}

#[test]
fn direct_io_of_a_database_is_what_it_reports_itself() {
    let mut run = sound();
    run.manifest.settings.insert("server".into(), "SQLite 3.54.1".into());
    let direct = NamedCapability { name: DIRECT_DATA.into(), capability: Capability::Full };
    run.manifest.capabilities.push(direct);
    for (kind, outcome) in [("ext4", Outcome::Pass), ("tmpfs", Outcome::Fail)] {
        run.manifest.target.file_system.as_mut().unwrap().kind = kind.into();
        let findings = found(&run, None);
        let verdict = findings.verdicts.iter().find(|it| it.rule == "not-direct").unwrap();
        assert_eq!(verdict.outcome, outcome, "{kind}: {}", verdict.evidence);
    }
}

#[test]
fn rates_that_never_settled_are_warned_about() {
    let mut fixture = healthy();
    for (settled, outcome) in [(Some(true), Outcome::Pass), (Some(false), Outcome::Fail)] {
        fixture.last().phase.settled = settled;
        let findings = found(&fixture, None);
        let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == "unsteady").unwrap();
        assert_eq!(verdict.outcome, outcome, "{}", verdict.evidence);
        if outcome == Outcome::Fail {
            assert!(verdict.evidence.contains("did not settle in 11 s"), "{}", verdict.evidence);
            assert!(verdict.concerns.contains(&"read_iops".to_owned()), "{:?}", verdict.concerns);
        }
    }
}

#[test]
fn reads_that_fell_while_the_operations_went_on_are_no_burst() {
    let mut run = sound();
    run.last().read(("block", "vda"), "read_ios", changing(50, 6_000, 2_000));
    let findings = found(&run, None);
    let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == "burst").unwrap();
    assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
}

#[test]
fn a_step_of_a_run_gives_its_bucket() {
    let mut run = sound();
    run.last().read(("block", "vda"), "read_ios", changing(50, 6_000, 2_000));
    run.last().read(("operation", "select"), "completed_ops", changing(50, 1_200, 400));
    let findings = found(&run, None);
    let verdict = findings.verdicts.iter().find(|verdict| verdict.rule == "burst").unwrap();
    assert!(verdict.evidence.contains("bucket of 20,"), "{}", verdict.evidence);
}
