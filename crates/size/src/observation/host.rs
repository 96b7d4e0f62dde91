//! Observations of a host, or of one database on it, between ticks of a recording.

use blockstone_base::database::{INSTANCE, IO, ROLE};
use blockstone_figures::{CPU_USES, Interval, Known, Missing, sum};

use super::{Observation, Source};

const BLOCK: &str = "block";
/// The object for all disks together, in an imported recording.
const TOGETHER: &str = "disks";
const HOST: &str = "host";
/// The number of leading [`CPU_USES`] in which a processor is busy.
const WORKING: usize = 5;

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
    let of = |slice: &Interval<'_>| observation(slice, probe, devices, name);
    let is_known = |it: &Interval<'_>| !it.topmost(devices).is_empty();
    let source = match probe {
        Some(_) => Source::Database,
        None if slices.iter().any(is_known) => Source::Devices,
        None => Source::Host,
    };
    (source, slices.iter().filter_map(of).collect())
}

fn observation(
    slice: &Interval<'_>,
    own: Option<&str>,
    devices: &[&str],
    name: &str,
) -> Option<Observation> {
    let seconds = slice.seconds();
    if seconds <= 0.0 {
        return None;
    }
    let per_s = |known: Known| known.ok().map(|moved| moved / seconds);
    let devices = slice.topmost(devices);
    let disks = if devices.is_empty() { slice.disks() } else { devices };
    let transferred = |column: &str| {
        if let Some(probe) = own {
            return per_s(moved(slice, probe, column));
        }
        let each = sum(disks.iter().map(|disk| slice.moved(BLOCK, disk, column)));
        let each = per_s(each).filter(|_| !disks.is_empty());
        // Another monitor may separate reads from writes only for all disks together.
        each.or_else(|| per_s(moved(slice, TOGETHER, column)))
    };
    let database = |column| per_s(moved(slice, INSTANCE.probe, column));
    let working = CPU_USES[..WORKING].iter().map(|usage| moved(slice, HOST, usage));
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
