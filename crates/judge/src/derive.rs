//! Windows → points: rates with their intervals, latencies, processor cost and evidence. Repeats
//! of a label are pooled.

use blockstone_base::LatencyHistogram;
use blockstone_base::histogram::Buckets;
use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::stats::{self, Estimate};
use blockstone_figures::{CPU_USES, Grown, Known, Missing, Track, rate};
use blockstone_record::manifest::{Group, Manifest, Phase};

use crate::findings::{CpuCost, Evidence, Latency, Point, TargetShare};
use crate::window::{Tick, Window, by_label};

/// Returns one point for each label, in the order in which they were first measured. A window with
/// fewer than three ticks or without a completed operation yields no number, and therefore no
/// point.
pub fn points(manifest: &Manifest, windows: &[Window]) -> Vec<Point> {
    by_label(manifest, windows).iter().filter_map(|repeats| point(manifest, repeats)).collect()
}

/// Returns how far the reference moved: (greatest − least) ÷ mean of its windows' rates, less one
/// release of a device that completes in bursts: its short windows differ by that much depending on
/// where they begin. `None` with fewer than two windows.
pub fn drift_ratio(manifest: &Manifest, windows: &[Window]) -> Option<f64> {
    let tracks = windows
        .iter()
        .filter(|window| manifest.phases[window.phase].group == Group::Reference)
        .map(Window::rated_ops);
    let (rates, releases): (Vec<f64>, Vec<f64>) = tracks
        .filter_map(|track| Some((rate(&track).ok()?.value, stats::release_per_s(&track)?)))
        .unzip();
    let mean = stats::mean(&rates)?.value;
    if rates.len() < 2 || mean <= 0.0 {
        return None;
    }
    let (least, greatest) =
        rates.iter().fold((f64::MAX, 0_f64), |(low, high), &r| (low.min(r), high.max(r)));
    let release = releases.into_iter().fold(0.0, f64::max);
    Some((greatest - least - release).max(0.0) / mean)
}

fn point(manifest: &Manifest, repeats: &[&Window]) -> Option<Point> {
    let usable: Vec<&Window> = repeats
        .iter()
        .copied()
        .filter(|window| window.histogram.count() > 0)
        .filter(|window| window.completed_ops() > 0)
        .filter(|window| rate(&window.rated_ops()).is_ok())
        .collect();
    let phase: &Phase = &manifest.phases[usable.last()?.phase];
    let load = phase.load.clone()?;
    let iops = pooled(&usable, Window::rated_ops)?;
    let mb_per_s = pooled(&usable, Window::rated_bytes)?.scaled(1e-6);
    let background = phase.background.clone().and_then(|spec| {
        Some((spec, pooled(&usable, Window::rated_background_bytes)?.scaled(1e-6)))
    });
    let mut histogram = LatencyHistogram::new();
    for window in &usable {
        histogram.merge(&window.histogram);
    }
    Some(Point {
        label: phase.label.clone(),
        group: phase.group,
        background,
        windows: usable.len() as u32,
        iops,
        // The rate of bytes rests on operations, not on bytes.
        mb_per_s: Estimate { samples: iops.samples, ..mb_per_s },
        latency: latency(&usable, &histogram, u64::from(load.in_flight())),
        cpu: cpu(&usable),
        evidence: evidence(&load, &usable),
        targets: shares(&usable),
        slices: usable.iter().flat_map(|window| window.slices()).collect(),
        histogram,
        stop: phase.stop,
        condemned_by: Vec::new(),
        warned_by: Vec::new(),
        load,
    })
}

fn pooled(windows: &[&Window], track: impl Fn(&Window) -> Track) -> Option<Estimate> {
    let rates: Result<Vec<Estimate>, Missing> =
        windows.iter().map(|window| rate(&track(window))).collect();
    stats::pool(&rates.ok()?)
}

fn latency(windows: &[&Window], all: &LatencyHistogram, in_flight: u64) -> Latency {
    let duration_ns = windows.iter().map(|window| window.duration_ns()).sum();
    let mut unfinished = LatencyHistogram::new();
    windows.iter().filter_map(|w| w.unfinished.as_ref()).for_each(|one| unfinished.merge(one));
    let none = LatencyHistogram::new();
    let quantile = |q: f64| {
        let of = |window: &&Window| {
            let unfinished = window.unfinished.as_ref().unwrap_or(&none);
            let parts: Vec<&Buckets> = window.parts.iter().collect();
            window.histogram.quantile_with((unfinished, in_flight), q, &parts, duration_ns)
        };
        let repeats: Vec<Estimate> = windows.iter().map(of).collect();
        let in_flight = in_flight * windows.len() as u64;
        let parts: Vec<&Buckets> = windows.iter().flat_map(|window| &window.parts).collect();
        let of_all = all.quantile_with((&unfinished, in_flight), q, &parts, duration_ns);
        stats::with_repeats(of_all, &repeats)
    };
    let within: Vec<Estimate> = windows.iter().map(|window| mean_latency(window)).collect();
    let half = stats::pool(&within).map_or(0.0, |pooled| (pooled.high - pooled.low) / 2.0);
    let mean = all.mean_ns();
    let ops: u64 = windows.iter().map(|window| window.completed_ops()).sum();
    let lag_ns_sum: u64 = windows.iter().map(|window| window.lag_ns_sum).sum();
    let median = quantile(0.5);
    Latency {
        ns_mean: Estimate::around(mean, half, all.count(), duration_ns).not_negative(),
        ns_p50: median,
        ns_p90: quantile(0.9).not_below(&median),
        ns_p99: quantile(0.99).not_below(&median),
        ns_p999: quantile(0.999).not_below(&median),
        ns_p9999: quantile(0.9999).not_below(&median),
        ns_min: all.min_ns(),
        ns_max: all.max_ns().max(unfinished.max_ns()),
        unfinished: windows.iter().all(|w| w.unfinished.is_some()).then(|| unfinished.count()),
        lag_ns_mean: lag_ns_sum as f64 / ops.max(1) as f64,
        lag_ns_max: windows.iter().map(|window| window.lag_ns_max).max().unwrap_or(0),
    }
}

/// Returns the mean latency of a window: the growth of the latency sum over the operations, so that
/// its interval treats neighbouring slices as correlated, as that of the rate does.
fn mean_latency(window: &Window) -> Estimate {
    mean_of(&window.ticks).unwrap_or_else(|| {
        let value = window.histogram.mean_ns();
        Estimate { value, low: 0.0, high: 2.0 * value, samples: 1, duration_ns: 0 }
    })
}

fn mean_of(ticks: &[Tick]) -> Option<Estimate> {
    let track: Track = ticks.iter().map(|tick| (tick.ops, tick.latency_ns_sum)).collect();
    let mean = rate(&track).ok()?.scaled(1e-9);
    let (first, last) = (ticks.first()?, ticks.last()?);
    let (samples, duration_ns) = (last.ops - first.ops, last.t_ns - first.t_ns);
    Some(Estimate { samples, duration_ns, ..mean })
}

/// Returns the share of a point's load that each of several targets had.
fn shares(windows: &[&Window]) -> Vec<TargetShare> {
    let paths = windows.first().into_iter().flat_map(|window| &window.shares);
    paths.map(|(path, _)| share(windows, path)).collect()
}

fn share(windows: &[&Window], path: &str) -> TargetShare {
    let of = |count: fn(&Tick) -> u64| pooled(windows, |window| window.rated_share(path, count));
    let means: Option<Vec<Estimate>> =
        windows.iter().map(|window| mean_of(window.share(path))).collect();
    TargetShare {
        path: path.to_owned(),
        iops: of(|tick| tick.ops),
        mb_per_s: of(|tick| tick.bytes).map(|bytes| bytes.scaled(1e-6)),
        latency_ns_mean: means.and_then(|means| stats::pool(&means)),
    }
}

/// Shares of all processor time spent by anything but this process, interrupts excluded: by all
/// kinds of load, and by user code alone.
pub struct Foreign {
    pub busy_ratio: f64,
    /// User time only: no kernel thread that works for our own I/O is in it.
    pub user_ratio: f64,
}

/// Returns the foreign processor time of the windows.
pub fn foreign(windows: &[&Window]) -> Result<Foreign, Missing> {
    let host = |columns: &[&str]| total(windows, |w| w.host.sum(columns));
    let process = |column: &str| total(windows, |w| w.process.get(column));
    let all = host(&CPU_USES)?.max(1.0);
    let foreign_user = host(&["cpu_user_ns", "cpu_nice_ns"])? - process("cpu_user_ns")?;
    let foreign_system = host(&["cpu_system_ns"])? - process("cpu_system_ns")?;
    Ok(Foreign {
        busy_ratio: ((foreign_user + foreign_system) / all).max(0.0),
        user_ratio: (foreign_user / all).max(0.0),
    })
}

/// Returns the share of time in which the hypervisor ran other guests.
pub fn steal_ratio(windows: &[&Window]) -> Known {
    host_share(windows, &["cpu_steal_ns"])
}

fn host_share(windows: &[&Window], columns: &[&str]) -> Known {
    let all = total(windows, |w| w.host.sum(&CPU_USES));
    blockstone_figures::ratio(total(windows, |w| w.host.sum(columns)), all)
}

fn cpu(windows: &[&Window]) -> CpuCost {
    let ops = windows.iter().map(|window| window.completed_ops()).sum::<u64>().max(1) as f64;
    let per_io = |column: &str| total(windows, |w| w.process.get(column)).map(|all| all / ops).ok();
    // Spinning until an operation is due is not part of its cost.
    let spun = total(windows, |w| w.spin_ns_sum).map_or(0.0, |all| all / ops);
    CpuCost {
        user_ns_per_io: per_io("cpu_user_ns").map(|all| (all - spun).max(0.0)),
        system_ns_per_io: per_io("cpu_system_ns"),
        switches_voluntary_per_io: per_io("switches_voluntary"),
        switches_involuntary_per_io: per_io("switches_involuntary"),
        run_queue_ns_per_io: per_io("run_queue_ns"),
        host_busy_ratio: host_share(windows, &CPU_USES[..5]).ok(),
        foreign_busy_ratio: foreign(windows).map(|foreign| foreign.busy_ratio).ok(),
        steal_ratio: steal_ratio(windows).ok(),
    }
}

fn evidence(load: &LoadSpec, windows: &[&Window]) -> Evidence {
    let [bytes, ios, busy] = columns(load.op);
    let count = |get: &dyn Fn(&Window) -> Grown| -> Option<u64> {
        windows.iter().map(|window| get(window)).sum::<Grown>().ok()
    };
    let top = |columns: &[&str]| count(&|w| w.top(columns));
    let most = |column: &'static str| {
        count(&|w| {
            let counted = w.devices.iter().filter_map(|(_, device)| device.get(column).ok());
            counted.max().ok_or(Missing::Unknown)
        })
    };
    let sum = |get: fn(&Window) -> u64| windows.iter().map(|window| get(window)).sum::<u64>();
    let device_ios = top(ios);
    Evidence {
        completed_bytes: sum(|w| w.completed_bytes() + w.background_bytes()),
        process_bytes: count(&|w| w.process.sum(bytes)),
        process_overcharged: windows
            .iter()
            .any(|w| w.process.sum(bytes) == Err(Missing::NoEvidence)),
        added_pages: count(&|w| w.added_pages),
        device_bytes: top(bytes),
        device_ios,
        device_flushes: most("flush_ios"),
        device_ns_mean: device_ios
            .filter(|&ios| ios > 0)
            .and_then(|ios| Some(top(busy)? as f64 / ios as f64)),
        stamps_verified: sum(|w| w.checks.stamps_verified),
        checksums_verified: sum(|w| w.checks.checksums_verified),
        mismatches: sum(|w| w.checks.mismatches),
        failed_ops: sum(|w| w.checks.failed_ops),
    }
}

/// Returns the columns of bytes, requests and request time in an operation's direction, or in both;
/// `process` and `block` use the same name for bytes.
pub const fn columns(op: Op) -> [&'static [&'static str]; 3] {
    match op {
        Op::Read => [&["read_bytes"], &["read_ios"], &["read_ns"]],
        Op::Write | Op::Commit => [&["write_bytes"], &["write_ios"], &["write_ns"]],
        Op::Mixed => {
            [&["read_bytes", "write_bytes"], &["read_ios", "write_ios"], &["read_ns", "write_ns"]]
        }
    }
}

fn total(windows: &[&Window], get: impl Fn(&Window) -> Grown) -> Known {
    windows.first().ok_or(Missing::Unknown)?;
    windows.iter().map(|window| get(window)).sum::<Grown>().map(|sum| sum as f64)
}

/// Returns the summed growth of counters of the named device in a window.
pub fn device(window: &Window, name: &str, columns: &[&str]) -> Grown {
    let device = window.devices.iter().find(|(device, _)| device == name);
    device.ok_or(Missing::Unknown)?.1.sum(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Behaviour, Fixture, load};

    fn repeats(behaviours: &[Behaviour]) -> Fixture {
        let mut fixture = Fixture::empty();
        for behaviour in behaviours {
            let load = load(Op::Read, "psync", 4);
            fixture.add("random-read/psync/x4", Group::RandomRead, load, behaviour);
        }
        fixture
    }

    fn single(fixture: &Fixture) -> Point {
        let points = points(&fixture.manifest, &fixture.windows);
        assert_eq!(points.len(), 1);
        points.into_iter().next().unwrap()
    }

    #[test]
    fn a_point_has_the_rate_latency_and_cost_of_its_window() {
        let point = single(&repeats(&[Behaviour::natural(20_000.0, 200e3)]));
        assert!((point.iops.value / 20_000.0 - 1.0).abs() < 0.01, "{:?}", point.iops);
        assert!(point.iops.relative_half_width() < 0.02);
        assert!((point.mb_per_s.value / 163.84 - 1.0).abs() < 0.01, "{:?}", point.mb_per_s);
        assert!((point.latency.ns_mean.value / 200e3 - 1.0).abs() < 0.01);
        assert!(point.latency.ns_p50.value <= point.latency.ns_p99.value);
        assert!((point.cpu.user_ns_per_io.unwrap() - 300.0).abs() < 1.0);
        assert!((point.cpu.switches_voluntary_per_io.unwrap() - 1.0).abs() < 0.01);
        assert!(point.cpu.foreign_busy_ratio.unwrap() < 1e-9);
        assert_eq!(point.evidence.process_bytes, Some(point.evidence.completed_bytes));
        assert!((point.evidence.device_ns_mean.unwrap() - 180e3).abs() < 1.0);
        assert_eq!((point.slices.len(), point.windows), (20, 1));
    }

    #[test]
    fn the_mean_of_a_target_stands_on_its_requests_and_their_time() {
        let mut fixture = repeats(&[Behaviour::natural(20_000.0, 200e3)]);
        let window = &mut fixture.windows[0];
        window.shares = vec![("/data".to_owned(), window.ticks.clone())];
        let (requests, duration_ns) = (window.completed_ops(), window.duration_ns());
        let mean = single(&fixture).targets[0].latency_ns_mean.unwrap();
        assert!((mean.value / 200e3 - 1.0).abs() < 0.01, "{mean:?}");
        assert_eq!((mean.samples, mean.duration_ns), (requests, duration_ns));
    }

    #[test]
    fn what_a_window_cut_off_makes_the_tail_a_lower_bound() {
        let mut fixture = repeats(&[Behaviour::natural(20_000.0, 200e3)]);
        assert_eq!(single(&fixture).latency.unfinished, None);
        // The four requests in flight hung for the last half second.
        let mut lasted = LatencyHistogram::new();
        (0..4).for_each(|_| lasted.record(500_000_000));
        fixture.windows[0].unfinished = Some(lasted);
        let latency = single(&fixture).latency;
        assert_eq!(latency.unfinished, Some(4));
        assert!(!latency.ns_p50.is_lower_bound() && latency.ns_p50.value < 300e3);
        assert!(latency.ns_p9999.is_lower_bound() && latency.ns_p9999.value > 490e6);
        assert!(latency.ns_max > 490_000_000);
    }

    #[test]
    fn repeats_are_pooled_and_their_disagreement_shows() {
        let near = single(&repeats(&[
            Behaviour::natural(20_000.0, 200e3),
            Behaviour::natural(20_010.0, 200e3),
            Behaviour::natural(19_990.0, 200e3),
        ]));
        let far = single(&repeats(&[
            Behaviour::natural(18_000.0, 220e3),
            Behaviour::natural(20_000.0, 200e3),
            Behaviour::natural(22_000.0, 180e3),
        ]));
        assert_eq!((near.windows, near.slices.len()), (3, 60));
        assert!(near.iops.relative_half_width() < 0.02 && far.iops.relative_half_width() > 0.2);
        let width = |point: &Point| point.latency.ns_p50.relative_half_width();
        assert!(width(&far) > 3.0 * width(&near), "{} {}", width(&far), width(&near));
    }

    #[test]
    fn a_load_that_stops_and_goes_has_the_rate_of_its_whole_bursts() {
        let mut fixture = repeats(&[Behaviour::natural(500.0, 8e6)]);
        // 50 reads at 30, 130, 230 … ms.
        fixture.windows[0].ticks = (0..=36)
            .map(|tick| {
                let t_ms = 20 * tick;
                let bursts = (t_ms + 70) / 100;
                let ops = 1_000 + 50 * bursts;
                Tick {
                    t_ns: (1_000 + t_ms) * 1_000_000,
                    ops,
                    bytes: ops * 8192,
                    latency_ns_sum: ops * 8_000_000,
                    last_completed_ns: Some((930 + 100 * bursts) * 1_000_000),
                }
            })
            .collect();
        let point = single(&fixture);
        assert!((point.iops.value - 500.0).abs() < 0.1, "{:?}", point.iops);
        assert!((point.mb_per_s.value - 4.096).abs() < 0.001, "{:?}", point.mb_per_s);
        assert_eq!((point.iops.samples, point.iops.duration_ns), (350, 700_000_000));
        assert!(point.iops.relative_half_width() < 0.02);
        for tick in &mut fixture.windows[0].ticks {
            tick.last_completed_ns = None;
        }
        let older = single(&fixture).iops;
        assert!(
            (older.value - 486.1).abs() < 0.1 && older.relative_half_width() > 0.1,
            "{older:?}"
        );
    }

    #[test]
    fn what_cannot_be_a_number_is_no_point() {
        let mut fixture = repeats(&[Behaviour::natural(20_000.0, 200e3)]);
        let ticks = fixture.windows[0].ticks.clone();
        fixture.windows[0].ticks.truncate(2);
        assert!(points(&fixture.manifest, &fixture.windows).is_empty());
        // Three ticks of which two are at the same instant bound nothing either.
        fixture.windows[0].ticks = vec![ticks[0], ticks[0], ticks[1]];
        assert!(points(&fixture.manifest, &fixture.windows).is_empty());
    }

    #[test]
    fn foreign_time_is_neither_ours_nor_that_of_interrupts() {
        let mut fixture = repeats(&[Behaviour::natural(20_000.0, 200e3)]);
        let window = &mut fixture.windows[0];
        let all_ns = 2 * window.duration_ns();
        let own_ns = window.process.get("cpu_user_ns").unwrap();
        window.host.set("cpu_user_ns", own_ns + all_ns / 4);
        let idle = window.host.get("cpu_idle_ns").unwrap();
        window.host.set("cpu_idle_ns", idle - all_ns / 4 - all_ns / 8);
        let irq = window.host.get("cpu_softirq_ns").unwrap();
        window.host.set("cpu_softirq_ns", irq + all_ns / 8);
        let point = single(&fixture);
        assert!((point.cpu.foreign_busy_ratio.unwrap() - 0.25).abs() < 1e-6);
        assert!(point.cpu.host_busy_ratio.unwrap() > 0.375);
        // Two clocks that disagree must not yield a negative time.
        fixture.windows[0].host.set("cpu_user_ns", 0);
        fixture.windows[0].host.set("cpu_system_ns", 0);
        assert!(single(&fixture).cpu.foreign_busy_ratio.unwrap().abs() < 1e-12);
    }

    #[test]
    fn drift_is_the_range_over_the_mean_and_needs_two_windows() {
        let mut fixture = Fixture::empty();
        for (index, rate) in [9_000.0, 10_000.0, 11_000.0].into_iter().enumerate() {
            assert!(drift_ratio(&fixture.manifest, &fixture.windows).is_none() || index > 1);
            let behaviour =
                Behaviour { slices: vec![rate; 20], ..Behaviour::natural(rate, 1e9 / rate) };
            fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &behaviour);
        }
        let drift = drift_ratio(&fixture.manifest, &fixture.windows).unwrap();
        assert!((drift - 0.2).abs() < 1e-6, "{drift}");
    }

    /// Returns the drift of windows of 12 ticks under a throttle that releases at every fifth tick.
    fn drift_in_bursts(levels: [f64; 3]) -> f64 {
        let mut fixture = Fixture::empty();
        for (index, level) in levels.into_iter().enumerate() {
            let of = |at: usize| if (2 * index + at) % 5 == 3 { 5.0 * level } else { 0.0 };
            let slices = (0..12).map(of).collect();
            let behaviour = Behaviour { slices, ..Behaviour::natural(level, 1e9 / level) };
            fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &behaviour);
        }
        drift_ratio(&fixture.manifest, &fixture.windows).unwrap()
    }

    #[test]
    fn windows_that_hold_a_release_more_or_less_have_not_moved() {
        // The windows count two, three and two releases: a difference of 43 % of their mean.
        assert!(drift_in_bursts([3_000.0; 3]).abs() < 1e-9);
        assert!(drift_in_bursts([3_000.0, 6_000.0, 3_000.0]) > 0.4);
    }
}
