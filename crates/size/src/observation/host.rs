//! Observations of a host, or of one database on it, between ticks of a recording.

use std::collections::BTreeMap;

use blockstone_base::database::{INSTANCE, IO, ROLE};
use blockstone_figures::{CPU_USES, Interval, Known, Missing, sum};

use super::{LeftOut, Observation, Source};

const BLOCK: &str = "block";
/// The object for all disks together, in an imported recording.
const TOGETHER: &str = "disks";
const HOST: &str = "host";
/// The number of leading [`CPU_USES`] in which a processor is busy, and that of those which every
/// monitor has: some count interrupts as system.
const WORKING: usize = 5;
const WORKING_OF_ALL: usize = 3;

/// Returns one observation per slice. A database's own counters are used if it counts its requests,
/// else those of `devices`, or of all disks if none of these was recorded.
pub fn observations(
    slices: &[Interval<'_>],
    devices: &[&str],
    name: &str,
) -> (Source, Vec<Observation>) {
    let own = [ROLE.probe, IO.probe];
    let probe = own.into_iter().find(|probe| {
        slices
            .iter()
            .any(|it| !it.objects(probe).is_empty() && moved(it, probe, "read_ios").is_ok())
    });
    let others = independent(slices);
    let of = |slice: &Interval<'_>| observation(slice, probe, devices, &others, name);
    let is_known = |it: &Interval<'_>| !it.topmost(devices).is_empty();
    let source = match probe {
        Some(_) => Source::Database,
        None if slices.iter().any(is_known) => Source::Devices,
        None => Source::Host,
    };
    let mut observations: Vec<Observation> = slices.iter().filter_map(of).collect();
    // A slice between two parts of a recording is no interval.
    let is_known = |it: &Observation| {
        [it.reads_per_s, it.writes_per_s, it.read_bytes_per_s, it.busy_processors]
            .iter()
            .any(Option::is_some)
    };
    if observations.iter().any(is_known) {
        observations.retain(is_known);
    }
    (source, observations)
}

fn observation(
    slice: &Interval<'_>,
    own: Option<&str>,
    devices: &[&str],
    others: &[&str],
    name: &str,
) -> Option<Observation> {
    let seconds = slice.seconds();
    if seconds <= 0.0 {
        return None;
    }
    let per_s = |known: Known| known.ok().map(|moved| moved / seconds);
    let devices = slice.topmost(devices);
    let disks = if devices.is_empty() { with(slice.disks(), others, slice) } else { devices };
    let of_each = |column: &str| {
        let each = sum(disks.iter().map(|disk| slice.moved(BLOCK, disk, column)));
        per_s(each).filter(|_| !disks.is_empty())
    };
    let transferred = |column: &str| {
        if let Some(probe) = own {
            return per_s(moved(slice, probe, column));
        }
        // Another monitor may separate reads from writes only for all disks together. Then bytes
        // are of all together too: some of these disks may lie on others.
        let together = || per_s(moved(slice, TOGETHER, column));
        if of_each("read_ios").is_some() {
            of_each(column).or_else(together)
        } else {
            together().or_else(|| of_each(column))
        }
    };
    let database = |column| per_s(moved(slice, INSTANCE.probe, column));
    let (of_all, of_some) = CPU_USES[..WORKING].split_at(WORKING_OF_ALL);
    let of_all = of_all.iter().map(|usage| moved(slice, HOST, usage));
    let of_some = of_some.iter().map(|usage| moved(slice, HOST, usage).or(Ok(0.0)));
    let working = of_all.chain(of_some);
    Some(Observation {
        database: name.to_owned(),
        begin_s: slice.history().local_s(slice.to_ns)? - seconds,
        seconds,
        reads_per_s: transferred("read_ios"),
        writes_per_s: transferred("write_ios"),
        read_bytes_per_s: transferred("read_bytes"),
        write_bytes_per_s: transferred("write_bytes"),
        redo_bytes_per_s: database("redo_bytes"),
        redo_writes_per_s: database("redo_writes"),
        commits_per_s: database("commits"),
        busy_processors: per_s(sum(working)).map(|ns| ns / 1e9),
        ticks_ns: (slice.from_ns, slice.to_ns),
        ..Observation::default()
    })
}

/// Bytes of a device that lies on disks are also bytes of these disks, but a report may end between
/// the two.
const SLACK: f64 = 1.1;

/// Returns devices whose names do not say what they are, and which moved more bytes than all disks
/// together: they do not lie on these.
fn independent<'a>(slices: &[Interval<'a>]) -> Vec<&'a str> {
    let bytes = |slice: &Interval<'a>, device: &str| {
        let columns = ["read_bytes", "write_bytes"];
        sum(columns.into_iter().map(|column| slice.moved(BLOCK, device, column))).ok()
    };
    let mut moved: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for slice in slices {
        let is_unknown = |name: &&str| {
            slice.text(BLOCK, name, "device_kind").is_none() && !name.starts_with(GROUP)
        };
        let unknown: Vec<&str> = slice.objects(BLOCK).into_iter().filter(is_unknown).collect();
        let disks = slice.disks();
        if unknown.is_empty() || disks.is_empty() {
            continue;
        }
        let beneath: Option<f64> = disks.into_iter().map(|disk| bytes(slice, disk)).sum();
        for name in unknown {
            if let Some((by, beneath)) = bytes(slice, name).zip(beneath) {
                let all = moved.entry(name).or_default();
                *all = (all.0 + by, all.1 + beneath);
            }
        }
    }
    let is_more = |(_, (by, beneath)): &(&str, (f64, f64))| *by > SLACK * beneath;
    moved.into_iter().filter(is_more).map(|(name, _)| name).collect()
}

/// Adds the devices that are in the interval.
fn with<'a>(mut disks: Vec<&'a str>, others: &[&str], slice: &Interval<'a>) -> Vec<&'a str> {
    if !others.is_empty() {
        disks.extend(slice.objects(BLOCK).into_iter().filter(|name| others.contains(name)));
    }
    disks
}

/// Prefix of the totals that iostat prints of groups of devices.
const GROUP: &str = "group ";

/// Returns the devices that are not counted by themselves.
pub fn left_out(whole: &Interval<'_>, slices: &[Interval<'_>], devices: &[&str]) -> Vec<LeftOut> {
    let of_load = whole.topmost(devices);
    let disks = || with(whole.disks(), &independent(slices), whole);
    let counted = if of_load.is_empty() { disks() } else { of_load.clone() };
    let why = |name: &str| match whole.text(BLOCK, name, "device_kind") {
        _ if !of_load.is_empty() => "it is not the topmost device of the load",
        Some("partition") => "a part of a disk that is counted",
        Some("loop") => "a file on a disk that is counted",
        Some("dm" | "md") => "it lies on disks that are counted",
        Some("zram") => "it lies in memory",
        Some(_) => "its paths are counted",
        None if name.starts_with(GROUP) => "the total of devices that are counted",
        None => "its name does not say whether it lies on a disk that is counted",
    };
    let is_out = |name: &&str| !counted.contains(name);
    let left_out = whole.objects(BLOCK).into_iter().filter(is_out);
    left_out.map(|name| LeftOut { name: name.to_owned(), why: why(name) }).collect()
}

/// Sums over all objects of a probe. Some kinds of process cannot send such requests at all.
fn moved(slice: &Interval<'_>, probe: &str, column: &str) -> Known {
    let objects = slice.objects(probe);
    let mut known = Err(Missing::NotInVersion);
    for object in objects {
        match slice.moved_from_zero(probe, object, column) {
            Ok(by) => known = Ok(known.unwrap_or(0.0) + by),
            Err(Missing::Nothing | Missing::NotInVersion) => {}
            Err(why) => return Err(why),
        }
    }
    known
}
