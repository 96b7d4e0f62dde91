//! The contract of every rule: an identity, a page, and a case of each outcome.

use blockstone_base::capability::Capability;
use blockstone_base::identity::{BlockDevice, Cloud, DeviceKind, Processors, RaidState};
use blockstone_base::load::{LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::verdict::Outcome;
use blockstone_figures::{Grown, Missing};
use blockstone_record::manifest::Group;
use proptest::prelude::*;

use super::registry;
use crate::testing::{Behaviour, Fixture, commit, load, saturating};

type Build = fn() -> Fixture;

/// For each rule, a recording that must fail it and one that leaves it inconclusive. All of them
/// must pass [`Fixture::healthy`].
const CASES: &[(&str, Build, Build)] = &[
    ("memory-test", cached_file, || {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices.clear();
        fixture
    }),
    (
        "memory-backed",
        || with(|f| f.top_device().name = "ram0".into()),
        || with(|f| f.manifest.target.devices.clear()),
    ),
    (
        "hole",
        || with(|f| f.manifest.file.as_mut().unwrap().map.hole_bytes = 4 << 30),
        || with(|f| f.manifest.file = None),
    ),
    (
        "unwritten",
        || with(|f| f.manifest.file.as_mut().unwrap().map.unwritten_bytes = 4 << 30),
        || with(|f| f.manifest.file.as_mut().unwrap().map.fiemap = Capability::degraded("xfs v0")),
    ),
    (
        "compressible",
        || {
            with(|f| {
                let sample = f.manifest.file.as_mut().unwrap().sample.as_mut().unwrap();
                sample.zero_bytes = sample.sampled_bytes;
                sample.lz4_bytes = sample.sampled_bytes / 200;
            })
        },
        || with(|f| f.manifest.file.as_mut().unwrap().sample = None),
    ),
    (
        "not-direct",
        || with(|f| f.manifest.target.direct_io.capability = Capability::degraded("9p")),
        || with(|f| f.manifest.target.file_system.as_mut().unwrap().kind = "fuse.sshfs".into()),
    ),
    (
        "above-link",
        || with(|f| set(f, "link_bytes_per_s", 500e6)),
        || with(|f| f.top_device().link = None),
    ),
    (
        "lying-flush",
        || {
            with(|f| {
                for window in f.windows_mut(Op::Commit) {
                    window.devices[0].1.set("flush_ios", 0);
                }
            })
        },
        || Fixture::healthy().without(&[Group::Commit]),
    ),
    (
        "corrupt",
        || with(|f| f.window_mut("random-read/psync/x4").checks.mismatches = 1),
        || with(|f| f.windows.iter_mut().for_each(|w| w.checks.stamps_verified = 0)),
    ),
    (
        "io-errors",
        || with(|f| f.window_mut("random-read/psync/x4").checks.failed_ops = 1),
        Fixture::empty,
    ),
    (
        "throttled",
        || capped(1000.0),
        || Fixture::healthy().without(&[Group::RandomRead, Group::RandomWrite, Group::LargeRead]),
    ),
    ("cloud-volume", || in_cloud(capped(3_000.0)), || in_cloud(capped(7_300.0))),
    ("burst", credit_runs_out, || Fixture::healthy().without(&[Group::Reference])),
    ("not-preconditioned", cliff, || {
        Fixture::healthy().without(&[Group::Layout, Group::RandomWrite, Group::Commit])
    }),
    ("unsteady", drifting, || Fixture::healthy().without(&[Group::Reference])),
    (
        "noisy-neighbour",
        || with(|f| f.windows.iter_mut().for_each(|w| w.host.set("cpu_user_ns", 4 << 30))),
        || {
            with(|f| {
                for window in &mut f.windows {
                    window.host = FromIterator::from_iter([]);
                    window.devices.clear();
                }
            })
        },
    ),
    (
        "run-queue-delay",
        || {
            with(|f| {
                let busy = Behaviour { run_queue_ns: 400e3, ..saturating(2_000.0, 2.0, 1) };
                f.add(
                    "commit/fsync/append/8K/x1",
                    Group::Commit,
                    commit(SyncMethod::Fsync, 1),
                    &busy,
                );
            })
        },
        || Fixture::healthy().without(&[Group::Commit]),
    ),
    (
        "processor-frequency",
        || with(|f| processors(f).idle_states[1].exit_latency_ns = 100_000),
        || with(|f| f.manifest.host.processors = None),
    ),
    (
        "device-locality",
        || {
            with(|f| {
                processors(f).numa_nodes = 2;
                f.top_device().numa_node = Some(1);
            })
        },
        || with(|f| processors(f).numa_nodes = 2),
    ),
    (
        "generator-bound",
        || {
            Fixture::reads_as(|load| Behaviour {
                cpu_ns: (12_000.0, 40_000.0),
                ..saturating(60_000.0, 3.0, load.in_flight())
            })
        },
        || {
            with(|f| f.windows.iter_mut().for_each(|w| w.process = FromIterator::from_iter([])))
                .without(&[Group::Overhead])
        },
    ),
    ("late-start", || open_loop(Ok(200_000_000)), || open_loop(Err(Missing::NotInVersion))),
    ("clock-pause", stopped, Fixture::empty),
    (
        "clock-step",
        || with(|f| f.manifest.clocks[1].boottime_offset_ns += 2_000_000_000),
        || with(|f| f.manifest.clocks.clear()),
    ),
    ("cache-suspected", array_cache, || Fixture::healthy().without(&[Group::CacheMap])),
    (
        "file-may-fit-cache",
        || {
            with(|f| {
                for load in f.manifest.phases.iter_mut().filter_map(|phase| phase.load.as_mut()) {
                    load.span_bytes = 64 << 20;
                }
            })
        },
        || with(|f| f.manifest.host.hypervisor = Some("KVM".into())),
    ),
    (
        "network-file-system",
        || with(|f| f.manifest.target.file_system.as_mut().unwrap().kind = "nfs4".into()),
        || with(|f| f.manifest.target.devices.clear()),
    ),
    (
        "raid-degraded",
        || {
            with(|f| {
                let (disks_missing, sync_action) = (Some(1), None);
                f.top_device().kind = DeviceKind::Raid;
                f.top_device().raid = Some(RaidState { disks: 2, disks_missing, sync_action });
            })
        },
        || with(|f| f.top_device().kind = DeviceKind::Raid),
    ),
    (
        "multipath-leg",
        || {
            with(|f| {
                let path = f.top_device().clone();
                let state = Some("offline".to_owned());
                f.top_device().beneath.push("sda".into());
                let path = BlockDevice { name: "sda".into(), state, ..path };
                f.manifest.target.devices.push(path);
            })
        },
        || with(|f| f.top_device().beneath.push("sda".into())),
    ),
    (
        "link-trained-down",
        || with(|f| f.top_device().link.as_mut().unwrap().bytes_per_s_max = Some(7.88e9)),
        || with(|f| f.top_device().link.as_mut().unwrap().bytes_per_s_max = None),
    ),
    (
        "shingled",
        || with(|f| f.top_device().zoned = Some("host-aware".into())),
        || with(|f| f.top_device().zoned = None),
    ),
    (
        "drive-throttled",
        || with(|f| f.manifest.drives.iter_mut().for_each(|drive| drive.is_hot = true)),
        || with(|f| f.manifest.drives.clear()),
    ),
];

/// Rules about the file, the devices or the machine, which need no load.
const ABOUT_THE_PLACE: [&str; 12] = [
    "memory-backed",
    "hole",
    "unwritten",
    "compressible",
    "cloud-volume",
    "network-file-system",
    "raid-degraded",
    "multipath-leg",
    "link-trained-down",
    "clock-step",
    "shingled",
    "drive-throttled",
];

fn with(spoil: impl FnOnce(&mut Fixture)) -> Fixture {
    let mut fixture = Fixture::healthy();
    spoil(&mut fixture);
    fixture
}

fn set(fixture: &mut Fixture, name: &str, value: impl Into<serde_json::Value>) {
    fixture.manifest.settings.insert(name.into(), value.into());
}

fn cached_file() -> Fixture {
    with(|f| {
        set(f, "buffered", true);
        for phase in &mut f.manifest.phases {
            phase.load.as_mut().unwrap().direct = false;
        }
        for window in f.windows_mut(Op::Read) {
            window.process.set("read_bytes", 0);
            window.devices[0].1.set("read_bytes", 0);
            window.devices[0].1.set("read_ios", 0);
        }
    })
}

fn capped(iops: f64) -> Fixture {
    Fixture::reads_as(|load| {
        let requests = if load.block_bytes > 8192 { 2.0 } else { 1.0 };
        let device_ns = 35e3 * f64::from(load.in_flight()).max(3.0) / 3.0;
        Behaviour {
            requests_per_op: requests,
            ..Behaviour::capped(iops / requests, load.in_flight(), device_ns)
        }
    })
}

fn processors(fixture: &mut Fixture) -> &mut Processors {
    fixture.manifest.host.processors.as_mut().unwrap()
}

fn in_cloud(mut fixture: Fixture) -> Fixture {
    fixture.manifest.host.cloud = Some(Cloud::Aws);
    fixture
}

fn open_loop(late_ns_sum: Grown) -> Fixture {
    with(|f| {
        let pacing = Pacing::Open { rate_per_s: 1000.0, poisson: true };
        let spec = LoadSpec { pacing, ..load(Op::Read, "psync", 16) };
        f.add("open-loop/r1000", Group::OpenLoop, spec, &Behaviour::natural(1000.0, 100e3));
        f.window_mut("open-loop/r1000").late_ns_sum = late_ns_sum;
    })
}

fn credit_runs_out() -> Fixture {
    with(|f| {
        let mut rates = vec![9_000.0; 30];
        rates.extend([3_000.0; 30]);
        let slow = Behaviour { slices: rates, ..Behaviour::natural(3_000.0, 33e6) };
        let last = load(Op::Read, "uring", 256);
        f.add("confirm/plateau", Group::Confirm, last, &slow);
    })
}

fn cliff() -> Fixture {
    with(|f| {
        f.top_device().rotational = Some(false);
        let slices = [vec![1_000.0; 60], vec![300.0; 60]].concat();
        let behaviour = Behaviour { slices, ..Behaviour::natural(1_000.0, 1e6) };
        let laid_out = blockstone_record::testing::point("layout");
        f.add("layout", Group::Layout, laid_out.load.unwrap(), &behaviour);
    })
}

fn drifting() -> Fixture {
    with(|f| {
        f.add("reference", Group::Reference, load(Op::Read, "psync", 1), &saturating(60e3, 3.2, 1));
    })
}

fn stopped() -> Fixture {
    with(|f| {
        let ticks = &mut f.window_mut("random-read/psync/x4").ticks;
        ticks[10..].iter_mut().for_each(|tick| tick.t_ns += 3_000_000_000);
    })
}

fn array_cache() -> Fixture {
    Fixture::reads_as(|load| match load.in_flight() {
        1 if load.span_bytes <= 64 << 20 => Behaviour::natural(16_000.0, 60e3),
        n => saturating(40_000.0, 8.0, n),
    })
}

#[test]
fn every_rule_passes_a_healthy_disk() {
    let findings = Fixture::healthy().find();
    for verdict in &findings.verdicts {
        assert_eq!(verdict.outcome, Outcome::Pass, "{}: {}", verdict.rule, verdict.evidence);
        assert!(verdict.cause.is_empty() && verdict.next.is_empty(), "{}", verdict.rule);
    }
    assert_eq!(findings.verdicts.len(), registry::CALIBRATION.len());
    assert!(findings.trustworthy());
}

#[test]
fn every_rule_has_a_case_that_fails_it_and_one_that_leaves_it_open() {
    let covered: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    let all: Vec<&str> = registry::CALIBRATION.iter().map(|rule| rule.about.id).collect();
    assert_eq!(covered, all, "one case a rule, in the registry's order");
    for (rule, failing, open) in CASES {
        let failed = failing().verdict(rule);
        assert_eq!(failed.outcome, Outcome::Fail, "{rule}: {}", failed.evidence);
        assert!(failed.evidence.chars().any(|c| c.is_ascii_digit()), "{rule}: {}", failed.evidence);
        assert!(!failed.cause.is_empty() && !failed.next.is_empty(), "{rule}");
        let open = open().verdict(rule);
        assert_eq!(open.outcome, Outcome::Inconclusive, "{rule}: {}", open.evidence);
        assert!(!open.evidence.is_empty(), "{rule} must say what was missing");
    }
}

#[test]
fn a_recording_without_anything_fails_no_rule_and_passes_none_that_needs_a_load() {
    for verdict in Fixture::empty().find().verdicts {
        let of_the_place = ABOUT_THE_PLACE.contains(&verdict.rule.as_str());
        let expected = if of_the_place { Outcome::Pass } else { Outcome::Inconclusive };
        assert_eq!(verdict.outcome, expected, "{}: {}", verdict.rule, verdict.evidence);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_rule_panics_on_any_subset_of_phases(mask in any::<u64>(), blind in any::<bool>()) {
        let mut fixture = Fixture::healthy();
        fixture.windows.retain(|window| mask >> (window.phase % 64) & 1 == 1);
        if blind {
            for window in &mut fixture.windows {
                window.process = FromIterator::from_iter([]);
                window.host = FromIterator::from_iter([]);
                window.devices.clear();
            }
        }
        for verdict in fixture.find().verdicts {
            let (rule, evidence) = (&verdict.rule, &verdict.evidence);
            prop_assert!(verdict.outcome != Outcome::Fail, "{rule}: {evidence}");
        }
    }
}
