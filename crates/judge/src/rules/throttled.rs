//! A configured limit: that of a control group, a hypervisor, or a cloud volume.
//!
//! A flat curve alone proves nothing: every device has a ceiling, and a good one is flat there.
//! A limit differs from a ceiling in the behaviour of the device *below* it. A device at its
//! ceiling is busy with every request, so that time passes in the device and all requests are
//! alike. A device behind a limit is idle most of the time: it answers immediately, and the
//! requests wait elsewhere, in stalls. So a plateau is called a limit only with one of the marks in
//! [`marks`].

mod cap;
pub(super) mod ladder;
mod marks;

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;

use super::{CalibrationRule, Case, RunRule, beyond_sight, percent};
use ladder::{Ladder, Plateau};
use marks::{Kind, Mark};

const ABOUT: About = About {
    id: "throttled",
    weight: Weight::Warns,
    doc: "A cap on I/Os or bytes per second, with its value: the rate stays the same over at \
          least three doublings of concurrency although the device itself responds faster. Reads \
          and writes are judged separately. In a run: a rate that equals the limit of a control \
          group.",
    threshold: "A plateau is three quarters of the loads above some concurrency, over three \
                doublings, within 2 % (or within one release of 100 ms, if the interval of the \
                point allows it). It is a cap if one of these holds: a control group of this \
                process limits the device to the same value within 2 % (10 % if the interval \
                allows it); at two points or more the mean latency without run-queue time is at \
                least twice the median, and requests are in the device for less than half of it or \
                the rate stops and goes (its coefficient of variation is 0.75 or more), which only \
                burst-and-stall causes (an exponential tail gives 1.44; hits and misses of a cache \
                keep the device at work); at two points or more the requests spent less than half \
                of their latency in the device, and at least 200 µs outside of it; small and large \
                blocks reach the same number of device requests per second within 3 %; or, on a \
                virtual machine with idle processors, four doublings agree within 0.5 % below \
                20,000 I/Os per second, less than a single I/O thread of a host can do. Otherwise \
                the plateau is the limit of the device itself, unless the limit of a control group \
                is within a factor of two of the rate, the plateau agrees within 0.5 %, or a \
                hypervisor, controller or array may set it: then the rule is inconclusive. So it \
                is where the rate still rises by more than 10 % with the last doubling: a cap \
                above it was not reached. The cap is on bytes if 8K and 1 MiB reach the same bytes \
                per second within 3 %, otherwise on I/Os. In a run: at least 95 % of a control \
                group's limit on a device of the target's chain; inconclusive without such a \
                limit, because others cannot be seen.",
    cause: "A limit outside of the control groups of this machine: a cap of a cloud volume or \
            hypervisor, or a control group that is not visible here.",
    next: "Compare the value with what was bought or configured; remove the cap to measure the \
           device, keep it to measure what the database will get.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, cap::check);

fn check(case: &Case) -> Judgement {
    let ladders = ladder::all(case);
    let between = beyond_sight(case.manifest);
    let mut found = Vec::new();
    let mut pass = Vec::new();
    let mut undecided = Vec::new();
    for ladder in &ladders {
        let plateau = ladder.plateau();
        let mark = marks::find(case, ladder, plateau.as_ref(), &ladders);
        match (plateau, mark) {
            (plateau, Some(mark)) => found.push((ladder, plateau, mark)),
            (_, None) if let Some(limit) = marks::within_sight(case, ladder) => {
                undecided.push(format!("{}: {limit}", ladder.name));
            }
            (Some(plateau), None) if marks::uncannily_flat(&plateau) || between.is_some() => {
                let between = between.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                undecided.push(format!(
                    "{}: {} within {}; this could be an external cap or the limit of the device \
                     itself{between}",
                    ladder.name,
                    ladder.rate_text(&plateau.level),
                    percent(plateau.spread_ratio())
                ));
            }
            (Some(plateau), None) => pass.push(format!(
                "{}: {} is the limit of the device itself, whose latency grows",
                ladder.name,
                ladder.rate_text(&plateau.level)
            )),
            (None, None) if ladder.doublings() < ladder::DOUBLINGS_MIN => {}
            (None, None) if ladder.too_noisy() => undecided.push(format!(
                "{}: the rates are too uncertain to tell whether there is a plateau",
                ladder.name
            )),
            (None, None) if ladder.still_rises() => undecided.push(format!(
                "{}: still rising at {} in flight; a cap above {} was not reached",
                ladder.name,
                ladder.top().load.in_flight(),
                ladder.rate_text(&ladder.top().iops)
            )),
            (None, None) => pass.push(format!("{}: no plateau", ladder.name)),
        }
    }
    if !found.is_empty() {
        return failure(&ladders, &found);
    }
    match (pass.is_empty(), undecided.is_empty()) {
        (_, false) => Judgement::inconclusive(undecided.join("; ")),
        (true, true) => Judgement::inconclusive("no load covered three doublings of concurrency"),
        (false, true) => Judgement::pass(pass.join("; ")),
    }
}

fn failure(ladders: &[Ladder], found: &[(&Ladder, Option<Plateau>, Mark)]) -> Judgement {
    let mut texts: Vec<String> = Vec::new();
    let mut labels = Vec::new();
    let mut sources = Vec::new();
    for (ladder, plateau, mark) in found {
        let members = plateau.as_ref().map_or_else(|| vec![ladder.top()], |p| p.members.clone());
        labels.extend(members.iter().map(|member| member.label.clone()));
        let span = plateau.as_ref().map_or_else(String::new, |plateau| {
            let (low, high) = plateau.in_flight();
            format!(" from {low} to {high} in flight (spread {})", percent(plateau.spread_ratio()))
        });
        let cap = format!("{}: cap of {}{span}", ladder.name, ladder.rate_text(&mark.rate));
        if mark.control_file.is_some() && sources.contains(&mark.control_file) {
            texts.push(format!("{cap}, of the same limit"));
            continue;
        }
        let limits = match marks::kind(ladder, ladders, mark) {
            Kind::Ios => "it limits I/Os",
            Kind::Bytes => "it limits bytes",
            Kind::Unknown => "whether it limits I/Os or bytes was not measured",
        };
        texts.push(format!("{cap}; {}; {limits}", mark.evidence));
        sources.push(mark.control_file.clone());
    }
    let failed = Judgement::fail(texts.join("; "), labels);
    let sources: Vec<String> = sources.into_iter().flatten().collect();
    if sources.is_empty() {
        return failed;
    }
    failed.caused_by(format!("The control group limit in {}.", sources.join(" and in ")))
}

/// Returns the rate with its interval: `437 IOPS (436 to 438)`.
fn iops_text(rate: &blockstone_base::stats::Estimate) -> String {
    let [value, low, high] = [rate.value, rate.low, rate.high].map(three_digits);
    format!("{value} IOPS ({low} to {high})")
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::{CapKind, CgroupCap};
    use blockstone_base::load::{LoadSpec, Op};
    use blockstone_base::verdict::{Outcome, Verdict, Weight};
    use proptest::prelude::*;

    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, LARGE, load, saturating};

    /// A device behind a cap on I/Os: its own behaviour, or the cap.
    fn capped_ios(cap: f64, alone: impl Fn(u32) -> Behaviour) -> impl Fn(&LoadSpec) -> Behaviour {
        move |load| {
            let n = load.in_flight();
            let requests = if load.block_bytes == LARGE { 2.0 } else { 1.0 };
            let free =
                if load.block_bytes == LARGE { saturating(1700.0, 2.0, n) } else { alone(n) };
            let rate = free.slices.iter().sum::<f64>() / free.slices.len() as f64;
            let behaviour = if rate * requests <= cap {
                free
            } else {
                Behaviour::capped(cap / requests, n, f64::from(n) / rate * 1e9)
            };
            Behaviour { requests_per_op: requests, ..behaviour }
        }
    }

    fn disk(n: u32) -> Behaviour {
        saturating(80_000.0, 3.2, n)
    }

    /// The disk, with large reads that a single stream nearly saturates.
    fn saturated(load: &LoadSpec) -> Behaviour {
        match load.block_bytes {
            LARGE => saturating(1_700.0, 1.1, load.in_flight()),
            _ => disk(load.in_flight()),
        }
    }

    fn throttled(fixture: &Fixture) -> Verdict {
        fixture.verdict("throttled")
    }

    /// Returns the rate that the evidence states for a ladder.
    fn cap_of(verdict: &Verdict, ladder: &str) -> f64 {
        let text = verdict.evidence.split_once(&format!("{ladder}: cap of ")).unwrap().1;
        text.split(' ').next().unwrap().replace(',', "").parse().unwrap()
    }

    #[test]
    fn caps_on_ios_are_found_within_one_percent_and_called_that() {
        for cap in [437.0, 1_000.0, 5_000.0, 20_000.0] {
            let verdict = throttled(&Fixture::reads_as(capped_ios(cap, disk)));
            assert_eq!(verdict.outcome, Outcome::Fail, "{cap}: {}", verdict.evidence);
            assert_eq!(verdict.weight, Weight::Warns);
            let found = cap_of(&verdict, "random reads");
            assert!((found / cap - 1.0).abs() < 0.01, "{cap}: {}", verdict.evidence);
            assert!(verdict.evidence.contains("limits I/Os"), "{cap}: {}", verdict.evidence);
            assert!(verdict.concerns.contains(&"max_iops".to_owned()), "{:?}", verdict.concerns);
        }
    }

    #[test]
    fn a_cap_on_bytes_is_told_from_one_on_ios() {
        let bytes = 104_857_600.0;
        let fixture = Fixture::reads_as(|load| {
            let n = load.in_flight();
            let cap = bytes / load.block_bytes as f64;
            let requests_per_op = if load.block_bytes == LARGE { 2.0 } else { 1.0 };
            Behaviour { requests_per_op, ..Behaviour::capped(cap, n, 35e3 * f64::from(n)) }
        });
        let verdict = throttled(&fixture);
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!((cap_of(&verdict, "random reads") / 12_800.0 - 1.0).abs() < 0.01);
        assert!((cap_of(&verdict, "large sequential reads") / 104.86 - 1.0).abs() < 0.01);
        assert!(verdict.evidence.contains("limits bytes"), "{}", verdict.evidence);
        assert!(!verdict.evidence.contains("limits I/Os"), "{}", verdict.evidence);
    }

    #[test]
    fn reads_and_writes_are_judged_apart() {
        let mut fixture = Fixture::healthy().without(&[Group::RandomWrite]);
        fixture.writes_as(|load| Behaviour::capped(500.0, load.in_flight(), 40e3));
        let verdict = throttled(&fixture);
        assert!((cap_of(&verdict, "random writes") / 500.0 - 1.0).abs() < 0.01);
        assert!(!verdict.evidence.contains("random reads"), "{}", verdict.evidence);
        assert_eq!(verdict.concerns, ["max_write_iops", "write_latency_ns_p50"]);
    }

    #[test]
    fn a_matching_control_group_is_named() {
        let mut fixture = Fixture::reads_as(capped_ios(1_000.0, disk));
        let source = "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device";
        let cap = |limit| CgroupCap {
            device: "254:0".into(),
            kind: CapKind::ReadIops,
            limit,
            source: source.into(),
        };
        fixture.manifest.target.caps = vec![cap(1_500)];
        let elsewhere = throttled(&fixture);
        assert!(!elsewhere.cause.contains(source) && elsewhere.cause.contains("outside"));
        fixture.manifest.target.caps = vec![cap(1_000)];
        let named = throttled(&fixture);
        assert!(named.cause.contains(source), "{}", named.cause);
        assert!(named.evidence.contains("sets 1,000 I/Os"), "{}", named.evidence);
    }

    #[test]
    fn a_limit_that_a_disturbed_run_did_not_reach_stays_open() {
        let mut fixture = Fixture::reads_as(saturated);
        let cap = |limit| CgroupCap {
            device: "254:0".into(),
            kind: CapKind::ReadIops,
            limit,
            source: "read_iops_device".into(),
        };
        fixture.manifest.target.caps = vec![cap(1_000_000)];
        assert_eq!(throttled(&fixture).outcome, Outcome::Pass);
        let alone = disk(256).slices[0];
        fixture.manifest.target.caps = vec![cap((alone * 1.3) as u64)];
        let near = throttled(&fixture);
        assert_eq!(near.outcome, Outcome::Inconclusive, "{}", near.evidence);
        assert!(near.evidence.contains("read_iops_device sets"), "{}", near.evidence);
    }

    #[test]
    fn a_burst_of_saved_credit_does_not_hide_the_configured_limit() {
        let mut fixture = Fixture::reads_as(capped_ios(20_000.0, disk));
        let source = "read_iops_device".to_owned();
        let kind = CapKind::ReadIops;
        fixture.manifest.target.caps =
            vec![CgroupCap { device: "254:0".into(), kind, limit: 20_000, source }];
        let burst = Behaviour { slices: vec![32_000.0; 5], ..disk(48) };
        fixture.add("random-read/x48", Group::RandomRead, load(Op::Read, "psync", 48), &burst);
        let verdict = throttled(&fixture);
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!((cap_of(&verdict, "random reads") / 20_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn requests_held_above_an_idle_device_betray_a_cap_that_paces_evenly() {
        let fixture = Fixture::reads_as(|load| {
            let n = load.in_flight();
            let mean_ns = f64::from(n) / 3_000.0 * 1e9;
            match load.block_bytes {
                LARGE => saturating(1700.0, 2.0, n),
                _ => Behaviour { device_ns: 90e3, ..Behaviour::natural(3_000.0, mean_ns) },
            }
        });
        let verdict = throttled(&fixture);
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("wait above the device"), "{}", verdict.evidence);
    }

    /// A cache that answers six of ten reads immediately, and a device that holds the rest.
    fn mixture(slices: &[f64]) -> Fixture {
        Fixture::reads_as(|load| {
            let mean_ns = f64::from(load.in_flight()) / 375.0 * 1e9;
            let natural = Behaviour::natural(375.0, mean_ns);
            match load.block_bytes {
                LARGE => saturating(120.0, 1.01, load.in_flight()),
                _ => Behaviour {
                    latencies: vec![(50e3, 0.6), ((mean_ns - 0.6 * 50e3) / 0.4, 0.4)],
                    slices: if slices.is_empty() { natural.slices } else { slices.to_vec() },
                    device_ns: mean_ns,
                    ..natural
                },
            }
        })
    }

    #[test]
    fn hits_and_misses_at_an_even_rate_are_no_stalls() {
        let verdict = throttled(&mixture(&[]));
        assert_ne!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        // The same latencies, but the flow stops and goes: a cap beyond the device.
        let stalled: Vec<f64> = (0..20).map(|i| [750.0, 0.0][i % 2]).collect();
        let verdict = throttled(&mixture(&stalled));
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("burst and stall"), "{}", verdict.evidence);
    }

    /// A single server: the hardest natural case, flat from one request in flight.
    fn single_server(iops: f64) -> Fixture {
        Fixture::reads_as(move |load| match load.block_bytes {
            LARGE => saturating(iops / 20.0, 2.0, load.in_flight()),
            _ => Behaviour::natural(iops, f64::from(load.in_flight()) / iops * 1e9),
        })
    }

    #[test]
    fn a_device_at_its_own_ceiling_is_not_called_throttled() {
        // A disk on SATA: 32 in flight at most, flat beyond.
        let sata = Fixture::reads_as(|load| {
            let n = load.in_flight();
            let busy = saturating(97_000.0, 1.5, n.min(32));
            match load.block_bytes {
                LARGE => saturating(530.0, 1.01, n),
                _ => Behaviour::natural(busy.slices[0], f64::from(n) / busy.slices[0] * 1e9),
            }
        });
        for fixture in [sata, single_server(60_000.0), single_server(2_000.0)] {
            let verdict = throttled(&fixture);
            assert_ne!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        }
    }

    #[test]
    fn a_ceiling_is_that_of_the_device_only_where_no_one_else_can_set_one() {
        let ceiling = || {
            Fixture::reads_as(|load| match load.block_bytes {
                LARGE => saturating(1_700.0, 1.1, load.in_flight()),
                _ => saturating(50_000.0, 1.1, load.in_flight()),
            })
        };
        let own = throttled(&ceiling());
        assert_eq!(own.outcome, Outcome::Pass, "{}", own.evidence);
        assert!(own.evidence.contains("the limit of the device itself"), "{}", own.evidence);
        let mut virtual_disk = ceiling();
        virtual_disk.manifest.host.hypervisor = Some("KVM".into());
        let open = throttled(&virtual_disk);
        assert_eq!(open.outcome, Outcome::Inconclusive, "{}", open.evidence);
        assert!(open.evidence.contains("KVM"), "{}", open.evidence);
        // More even than any device, but too fast to be called a cap for that.
        let even = throttled(&Fixture::reads_as(|load| match load.block_bytes {
            LARGE => saturating(1_700.0, 1.1, load.in_flight()),
            _ => Behaviour {
                slices: vec![50_000.0; 20],
                ..Behaviour::natural(50_000.0, f64::from(load.in_flight()) * 20e3)
            },
        }));
        assert_eq!(even.outcome, Outcome::Inconclusive, "{}", even.evidence);
    }

    #[test]
    fn a_cap_above_what_was_reached_stays_open() {
        let verdict = throttled(&Fixture::reads_as(|load| {
            saturating(
                if load.block_bytes == LARGE { 1_700.0 } else { 400_000.0 },
                40.0,
                load.in_flight(),
            )
        }));
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("still rising at 128 in flight"), "{}", verdict.evidence);
    }

    #[test]
    fn an_even_virtual_disk_is_capped_and_an_even_real_one_stays_open() {
        let mut fixture = Fixture::reads_as(|load| {
            let n = load.in_flight();
            match load.block_bytes {
                LARGE => saturating(120.0, 1.01, n),
                _ => Behaviour {
                    slices: vec![3_000.0; 20],
                    ..Behaviour::natural(3_000.0, f64::from(n) / 3_000.0 * 1e9)
                },
            }
        });
        assert_eq!(throttled(&fixture).outcome, Outcome::Inconclusive);
        fixture.manifest.host.hypervisor = Some("KVM".into());
        let verdict = throttled(&fixture);
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!(verdict.cause.contains("cloud volume"));
    }

    #[test]
    fn rates_too_uncertain_for_a_plateau_leave_it_open() {
        let fixture = Fixture::reads_as(|load| {
            let natural = disk(load.in_flight());
            let swing = |(i, rate): (usize, f64)| rate * [0.2, 1.8][i % 2];
            let slices = natural.slices.iter().take(5).copied().enumerate().map(swing).collect();
            Behaviour { slices, ..natural }
        });
        let verdict = throttled(&fixture);
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
    }

    #[test]
    fn stalls_without_a_plateau_are_no_cap() {
        // A collector that stalls the device occasionally: the rate still rises.
        let fixture = Fixture::reads_as(|load| {
            let natural = saturated(load);
            let mean = natural.latencies[4].0;
            Behaviour { latencies: vec![(mean / 4.0, 0.9), (mean * 7.75, 0.1)], ..natural }
        });
        assert_eq!(throttled(&fixture).outcome, Outcome::Pass);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn saturation_of_any_device_is_never_called_a_cap(
            ceiling in 20_000.0_f64..500_000.0,
            units in 1.05_f64..40.0,
            large in 100.0_f64..5_000.0,
        ) {
            let fixture = Fixture::reads_as(|load| match load.block_bytes {
                LARGE => saturating(large, 1.0 + units / 20.0, load.in_flight()),
                _ => saturating(ceiling, units, load.in_flight()),
            });
            let verdict = throttled(&fixture);
            prop_assert!(verdict.outcome != Outcome::Fail, "{}", verdict.evidence);
        }

        #[test]
        fn any_cap_well_below_the_device_is_found(cap in 300.0_f64..30_000.0) {
            let verdict = throttled(&Fixture::reads_as(capped_ios(cap, disk)));
            prop_assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
            prop_assert!((cap_of(&verdict, "random reads") / cap - 1.0).abs() < 0.01);
        }
    }
}
