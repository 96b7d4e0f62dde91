//! Marks that tell a cap from a device's own ceiling.

use blockstone_base::identity::{CapKind, CgroupCap};
use blockstone_base::load::Op;
use blockstone_base::stats::{self, Estimate};
use blockstone_base::units::{Bytes, thousands};

use super::ladder::{Ladder, Plateau};
use super::{Case, iops_text, percent};
use crate::findings::Point;
use crate::rules::time;

/// Relative difference up to which a configured limit and a measured rate are the same.
const SAME_AS_CONFIGURED: f64 = 0.02;
/// They are also the same up to this difference if the interval of the measured rate contains the
/// limit.
const PERHAPS_AS_CONFIGURED: f64 = 0.10;
/// From this share of a configured limit on, a measured rate may have been shaped by it.
const IN_SIGHT_RATIO: f64 = 0.5;
/// Relative difference up to which two measured rates are the same.
const SAME_RATE: f64 = 0.03;
/// Mean ÷ median latency from which requests are taken to stall in groups; exponential tails give
/// 1.44.
const STALL_RATIO: f64 = 2.0;
/// Coefficient of variation of a rate that stops and goes. A throttle that releases every 100 ms,
/// read every 50 ms or more often, gives 1 or more; independent requests, four in each tick, 0.5.
const BURSTS_MIN: f64 = 0.75;
/// Latency ÷ time in the device from which requests are taken to wait elsewhere.
const HELD_RATIO: f64 = 2.0;
/// Least wait that counts, so that the kernel's own path to a fast device does not.
const HELD_NS_MIN: f64 = 200e3;
/// Fewest points that must show stalls or waits; one may be an accident.
const WITNESSES_MIN: usize = 2;
/// Factor between block sizes from which their costs to a device differ so much that equal request
/// rates are not an accident.
const SIZES_APART: u64 = 16;

const UNCANNY_SPREAD: f64 = 0.005;
const UNCANNY_DOUBLINGS: f64 = 4.0;
const UNCANNY_IOPS_MAX: f64 = 20_000.0;
const IDLE_BUSY_RATIO_MAX: f64 = 0.7;

pub struct Mark {
    pub evidence: String,
    /// Control file that sets the cap, if one does.
    pub control_file: Option<String>,
    /// Measured rate that is the cap.
    pub rate: Estimate,
    /// Quantity that the cap limits, if the mark itself shows that.
    pub kind: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ios,
    Bytes,
    /// There was no other block size to compare with.
    Unknown,
}

/// Returns the strongest mark of a cap on `ladder`. A configured limit needs no plateau: a ladder
/// with one rung shows it too.
pub fn find(
    case: &Case,
    ladder: &Ladder,
    plateau: Option<&Plateau>,
    ladders: &[Ladder],
) -> Option<Mark> {
    // A short window in which a stalled device used up its credit must not hide that the long one
    // shows the configured limit.
    let rates = [Some(ladder.level()), ladder.confirmed().map(|point| point.iops)];
    if let Some(mark) = rates.iter().flatten().find_map(|rate| configured(case, ladder, rate)) {
        return Some(mark);
    }
    let plateau = plateau?;
    let rate = plateau.level;
    let of_unknown_kind = |evidence| Mark { evidence, control_file: None, rate, kind: None };
    stalls(plateau)
        .or_else(|| held_above(case, plateau))
        .map(of_unknown_kind)
        .or_else(|| {
            same_requests(ladder, ladders)
                .map(|evidence| Mark { kind: Some(Kind::Ios), ..of_unknown_kind(evidence) })
        })
        .or_else(|| virtual_and_even(case, plateau).map(of_unknown_kind))
}

/// Returns whether a plateau is flatter than most devices, so that its origin stays open without a
/// mark.
pub fn uncannily_flat(plateau: &Plateau) -> bool {
    plateau.spread_ratio() <= UNCANNY_SPREAD
}

/// Returns whether a cap on `ladder` limits I/Os or bytes. It is compared with the other block size
/// of the same direction, which cannot be faster in what is limited.
pub fn kind(ladder: &Ladder, ladders: &[Ladder], mark: &Mark) -> Kind {
    if let Some(kind) = mark.kind {
        return kind;
    }
    let Some(other) = other_size(ladder, ladders) else { return Kind::Unknown };
    let bytes = |ladder: &Ladder| ladder.level().value * ladder.block_bytes as f64;
    if near(bytes(ladder), bytes(other), SAME_RATE) {
        Kind::Bytes
    } else if ladder.block_bytes < other.block_bytes {
        Kind::Ios
    } else {
        match (requests_per_s(ladder), requests_per_s(other)) {
            (Some(here), Some(there)) if near(here, there, SAME_RATE) => Kind::Ios,
            (Some(_), Some(_)) => Kind::Bytes,
            _ => Kind::Unknown,
        }
    }
}

/// Finds a limit of a control group that matches `rate`.
fn configured(case: &Case, ladder: &Ladder, rate: &Estimate) -> Option<Mark> {
    let reached = |(cap, units_per_op): &(&CgroupCap, f64)| {
        let [value, low, high] = [rate.value, rate.low, rate.high].map(|r| r * units_per_op);
        let limit = cap.limit as f64;
        near(value, limit, SAME_AS_CONFIGURED)
            || (near(value, limit, PERHAPS_AS_CONFIGURED) && (low..=high).contains(&limit))
    };
    let (cap, _) = limits(case, ladder).find(reached)?;
    let kind = if is_bytes(cap) { Kind::Bytes } else { Kind::Ios };
    Some(Mark {
        evidence: limit_text(case, cap),
        control_file: Some(cap.source.clone()),
        rate: *rate,
        kind: Some(kind),
    })
}

/// Describes a limit of a control group that `ladder` did not reach, but came close enough to for
/// the limit to affect the figures; `None` if there is no such limit.
pub fn within_sight(case: &Case, ladder: &Ladder) -> Option<String> {
    let level = ladder.level().value;
    let share = |(cap, units_per_op): &(&CgroupCap, f64)| level * units_per_op / cap.limit as f64;
    let (cap, units) = limits(case, ladder).find(|limit| share(limit) >= IN_SIGHT_RATIO)?;
    let share = percent(share(&(cap, units)));
    Some(format!("{}, {share} of which was reached", limit_text(case, cap)))
}

/// Returns the control groups' limits of the ladder's direction, and how much of each an operation
/// uses: a cap on I/Os counts the operation, or the pieces into which the block layer splits a
/// large one.
fn limits<'a>(case: &'a Case, ladder: &'a Ladder) -> impl Iterator<Item = (&'a CgroupCap, f64)> {
    let (ios, bytes) = match ladder.op {
        Op::Read => (CapKind::ReadIops, CapKind::ReadBytesPerS),
        Op::Write | Op::Commit | Op::Mixed => (CapKind::WriteIops, CapKind::WriteBytesPerS),
    };
    let pieces = requests_per_op(ladder.top()).unwrap_or(1.0).max(1.0);
    case.manifest.target.caps.iter().flat_map(move |cap| {
        let units = match cap.kind {
            kind if kind == ios => vec![1.0, pieces],
            kind if kind == bytes => vec![ladder.block_bytes as f64],
            _ => Vec::new(),
        };
        units.into_iter().map(move |units| (cap, units))
    })
}

fn is_bytes(cap: &CgroupCap) -> bool {
    matches!(cap.kind, CapKind::ReadBytesPerS | CapKind::WriteBytesPerS)
}

/// Returns the limit in words: `…/blkio.throttle.read_iops_device sets 1,000 I/Os a second on sda`.
fn limit_text(case: &Case, cap: &CgroupCap) -> String {
    let limit = if is_bytes(cap) {
        Bytes(cap.limit).to_string()
    } else {
        format!("{} I/Os", thousands(cap.limit as i64))
    };
    let device = case.devices().iter().find(|device| device.number == cap.device);
    let device = device.map_or(&cap.device, |device| &device.name);
    format!("{} sets {limit} a second on {device}", cap.source)
}

/// Tests whether most requests are answered immediately and a few wait very long: something stops
/// the flow and lets it go. Hits and misses of a cache have such latencies too, but the device is
/// busy with the misses all the time.
fn stalls(plateau: &Plateau) -> Option<String> {
    // Waiting for a processor stalls requests in groups as well.
    let waited = |p: &Point| p.latency.ns_mean.value - p.cpu.run_queue_ns_per_io.unwrap_or(0.0);
    let ratio = |p: &Point| waited(p) / p.latency.ns_p50.value.max(1.0);
    let outside =
        |p: &Point| p.evidence.device_ns_mean.is_some_and(|ns| ns * HELD_RATIO <= waited(p));
    let in_bursts = |p: &Point| stats::coefficient_of_variation(&p.slices) >= BURSTS_MIN;
    let shows = |p: &Point| ratio(p) >= STALL_RATIO && (outside(p) || in_bursts(p));
    let (count, worst) = witnesses(plateau, shows, ratio)?;
    Some(format!(
        "burst and stall at {count} points: {} answers half its requests within {}, but takes {} \
         on average and {} at most",
        worst.label,
        time(worst.latency.ns_p50.value),
        time(worst.latency.ns_mean.value),
        time(worst.latency.ns_max as f64)
    ))
}

/// Tests whether the requests spent their time above the device.
fn held_above(case: &Case, plateau: &Plateau) -> Option<String> {
    // Requests beyond the queue's depth wait for a place in it, which no counter shows.
    let depth = case.devices().first()?.queue_depth?;
    let outside = |p: &Point| {
        let in_device = p.evidence.device_ns_mean?;
        // Waiting for a processor does not count as waiting for the storage either.
        let on_queue = p.cpu.run_queue_ns_per_io?;
        let whole = requests_per_op(p).is_some_and(|requests| requests < 1.1);
        let fits = p.load.in_flight() <= depth / 2;
        (whole && fits).then_some((p.latency.ns_mean.value - on_queue, in_device))
    };
    let held = |p: &Point| {
        outside(p)
            .is_some_and(|(all, device)| all >= HELD_RATIO * device && all - device >= HELD_NS_MIN)
    };
    let (count, worst) = witnesses(plateau, held, |p| p.latency.ns_mean.value)?;
    Some(format!(
        "requests wait above the device at {count} points: {} takes {}, of which the device {}",
        worst.label,
        time(worst.latency.ns_mean.value),
        time(worst.evidence.device_ns_mean.unwrap_or(0.0))
    ))
}

/// Tests whether small and large blocks reach the same number of requests, which no device's own
/// ceiling causes.
fn same_requests(ladder: &Ladder, ladders: &[Ladder]) -> Option<String> {
    let other = other_size(ladder, ladders)?;
    let (here, there) = (requests_per_s(ladder)?, requests_per_s(other)?);
    near(here, there, SAME_RATE).then(|| {
        format!(
            "{here:.0} device requests a second at {} and {there:.0} at {} a block",
            Bytes(ladder.block_bytes),
            Bytes(other.block_bytes)
        )
    })
}

/// Tests for a virtual disk that is more even than a host's I/O path, far below what that path can
/// do, while this machine's processors idle.
fn virtual_and_even(case: &Case, plateau: &Plateau) -> Option<String> {
    let hypervisor = case.manifest.host.hypervisor.as_ref()?;
    let idle = plateau
        .members
        .iter()
        .all(|member| member.cpu.host_busy_ratio.is_some_and(|busy| busy <= IDLE_BUSY_RATIO_MAX));
    let is_low =
        plateau.doublings() >= UNCANNY_DOUBLINGS && plateau.level.value <= UNCANNY_IOPS_MAX;
    (idle && is_low && uncannily_flat(plateau)).then(|| {
        format!(
            "on {hypervisor}, {} points agree within {} at {}",
            plateau.members.len(),
            percent(plateau.spread_ratio()),
            iops_text(&plateau.level)
        )
    })
}

/// Returns how many members show something, and which shows it most; `None` if too few do.
fn witnesses<'a>(
    plateau: &Plateau<'a>,
    shows: impl Fn(&Point) -> bool,
    how_much: impl Fn(&Point) -> f64,
) -> Option<(usize, &'a Point)> {
    let all: Vec<&Point> = plateau.members.iter().copied().filter(|p| shows(p)).collect();
    let most = all.iter().copied().max_by(|a, b| how_much(a).total_cmp(&how_much(b)))?;
    (all.len() >= WITNESSES_MIN).then_some((all.len(), most))
}

/// Returns the ladder of the same direction whose blocks are at least [`SIZES_APART`] times larger
/// or smaller; of several, the one with the most bytes a second.
fn other_size<'a, 'b>(ladder: &Ladder, ladders: &'a [Ladder<'b>]) -> Option<&'a Ladder<'b>> {
    let apart = |other: &&Ladder| {
        let (a, b) = (ladder.block_bytes, other.block_bytes);
        other.op == ladder.op && a.max(b) >= SIZES_APART * a.min(b)
    };
    ladders
        .iter()
        .filter(apart)
        .max_by(|a, b| a.top().mb_per_s.value.total_cmp(&b.top().mb_per_s.value))
}

/// Returns the device requests a second at the upper end.
fn requests_per_s(ladder: &Ladder) -> Option<f64> {
    Some(ladder.level().value * requests_per_op(ladder.top())?)
}

/// Returns the device requests for each operation.
fn requests_per_op(point: &Point) -> Option<f64> {
    let ops = point.evidence.completed_bytes as f64 / point.load.block_bytes as f64;
    Some(point.evidence.device_ios? as f64 / ops.max(1.0))
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(f64::MIN_POSITIVE)
}
