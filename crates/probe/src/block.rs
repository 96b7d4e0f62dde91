//! The block layer: the requests that reached each device of the target's chain, and how long they
//! took there.

use std::path::{Path, PathBuf};

use blockstone_base::column::{Column, Kind, Origin, Unit};
use blockstone_base::identity::DeviceKind;
use blockstone_sys::proc::{number, numbers, under};
use blockstone_sys::survey;

use crate::pages::Pages;
use crate::rising::Rising;
use crate::source::Source;
use crate::{Cell, Context, Probe, Row, Schema, Scope, Unmeasured};

/// The schema: one row per device.
///
/// The kernel keeps times in milliseconds in 32 bits whatever the machine (they wrap after 49.7
/// days of summed time: nine hours at 128 requests in flight), and on a 32-bit kernel numbers of
/// requests too. The probe continues a wrapped counter; it must be sampled at least once every
/// half range.
pub const SCHEMA: Schema = Schema {
    probe: "block",
    doc: "Each block device, of the target or of the host: requests, bytes, time in the device, \
          queue, flushes.",
    columns: &[
        DEVICE
            .state("device_kind", "What it is: `disk`, `partition`, `loop`, `dm`, `md` or `zram`."),
        DEVICE.state(
            "beneath",
            "Kernel names of the devices that it lies on, separated by blanks: their counters \
             include its I/O. The file of a loop device; the paths of an NVMe disk that has \
             several.",
        ),
        STAT.count("read_ios", "Reads completed."),
        STAT.count("read_merges", "Reads merged into a queued neighbour."),
        STAT.bytes("read_bytes", "Bytes read (kept in sectors of 512)."),
        STAT_TIME
            .time("read_ns", "Time reads spent from entering the queue to completion, summed."),
        STAT.count("write_ios", "Writes completed."),
        STAT.count("write_merges", "Writes merged into a queued neighbour."),
        STAT.bytes("write_bytes", "Bytes written (kept in sectors of 512)."),
        STAT_TIME
            .time("write_ns", "Time writes spent from entering the queue to completion, summed."),
        STAT.level("in_flight", Unit::Count, "Requests sent to the device and not yet completed."),
        STAT_TIME.time("busy_ns", "Time during which at least one request was in flight."),
        STAT_TIME.time(
            "queue_ns",
            "Time of all requests from entering the queue to completion, summed.",
        ),
        STAT.count("discard_ios", "Discards completed (kernel 4.18 and later)."),
        STAT.bytes("discard_bytes", "Bytes discarded (kernel 4.18 and later)."),
        STAT.count(
            "flush_ios",
            "Cache flushes completed; whole, request-based devices only (kernel 5.5 and later).",
        ),
        STAT_TIME.time(
            "flush_ns",
            "Time of cache flushes, summed; whole, request-based devices only (kernel 5.5 and \
             later).",
        ),
    ],
};

/// Totals that other monitors record for all disks of a host together instead of for each. No probe
/// records them.
pub const TOGETHER: Schema = Schema {
    probe: "disks",
    doc: "All disks of the host together, of an imported recording.",
    columns: &[
        IMPORTED.count("read_ios", "Reads completed."),
        IMPORTED.bytes("read_bytes", "Bytes read."),
        IMPORTED.count("write_ios", "Writes completed."),
        IMPORTED.bytes("write_bytes", "Bytes written."),
    ],
};

const IMPORTED: Origin = Origin("sadf -j: io");
const DEVICE: Origin = Origin("/sys/class/block/*");
const STAT: Origin = Origin("/sys/class/block/*/stat");
const STAT_TIME: Origin = Origin("/sys/class/block/*/stat (resolution 1 ms)");

const SECTOR_BYTES: u64 = 512;
const MILLISECOND_NS: u64 = 1_000_000;

/// Index of each column in `stat`, and the factor that converts it to our unit (kernel
/// documentation, block/stat).
const FIELDS: [(usize, u64); 15] = [
    (0, 1),
    (1, 1),
    (2, SECTOR_BYTES),
    (3, MILLISECOND_NS),
    (4, 1),
    (5, 1),
    (6, SECTOR_BYTES),
    (7, MILLISECOND_NS),
    (8, 1),
    (9, MILLISECOND_NS),
    (10, MILLISECOND_NS),
    (11, 1),
    (13, SECTOR_BYTES),
    (15, 1),
    (16, MILLISECOND_NS),
];
/// Columns before those counters.
const STATES: usize = 2;
/// Number of fields in the newest layout, and in the one without flushes.
const NEWEST: usize = 17;
const WITHOUT_FLUSHES: usize = 15;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let root = context.root.clone();
    let (place, names) = match &context.scope {
        Scope::Target(devices) => (Discovery::Chain, devices.clone()),
        Scope::Host(_) => (Discovery::Machine(root.clone()), Vec::new()),
        Scope::Pages(pages) => (Discovery::Pages(pages.clone()), Vec::new()),
    };
    let devices = names.iter().map(|name| Device::open(&root, name)).collect();
    let mut block = Block { place, devices };
    block.list();
    Box::new(block)
}

/// Returns the kind of a device, derived from the name the kernel gave it; `None` for names chosen
/// by people. A path to an `NVMe` disk counts as a disk: requests are counted there.
pub fn kind_by_name(name: &str) -> Option<DeviceKind> {
    named(name).map(|(kind, _)| kind)
}

/// Returns the name of the device of which this one is a partition, if its name tells.
pub fn whole_by_name(name: &str) -> Option<&str> {
    match named(name) {
        Some((DeviceKind::Partition, whole)) => Some(whole),
        _ => None,
    }
}

/// Returns the kind of a device, and for a partition the name of its device.
fn named(name: &str) -> Option<(DeviceKind, &str)> {
    let after = |prefix: &str| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let disk = Some((DeviceKind::Disk, name));
    // Letters that number disks, then the number of a partition.
    let lettered = |prefix: &str| {
        let rest = after(prefix)?;
        let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_disk = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase());
        let whole = &name[..prefix.len() + letters.len()];
        let is_whole = whole.len() == name.len();
        is_disk.then_some(if is_whole {
            (DeviceKind::Disk, name)
        } else {
            (DeviceKind::Partition, whole)
        })
    };
    // `nvme0n1`, `nvme0n1p1`; `mmcblk0`, `mmcblk0p1`; `nbd0`; `md127p1`.
    let parted = |rest: &str, kind: DeviceKind| match rest.split_once('p') {
        Some((number, part)) if is_number(number) && is_number(part) => {
            Some((DeviceKind::Partition, &name[..name.len() - part.len() - 1]))
        }
        None if is_number(rest) => Some((kind, name)),
        _ => None,
    };
    let built = [
        ("loop", DeviceKind::Loop),
        ("dm-", DeviceKind::DeviceMapper),
        ("md", DeviceKind::Raid),
        ("zram", DeviceKind::Zram),
        ("sr", DeviceKind::Disk),
    ];
    let found = built.into_iter().find_map(|(prefix, kind)| parted(after(prefix)?, kind));
    if found.is_some() {
        return found;
    }
    let namespace = after("nvme").and_then(|rest| rest.split_once('n'));
    if let Some((controller, rest)) = namespace {
        // `nvme0c1n1` is a path.
        let is_path =
            || controller.split_once('c').is_some_and(|(a, b)| is_number(a) && is_number(b));
        return if is_number(controller) {
            parted(rest, DeviceKind::Disk)
        } else {
            disk.filter(|_| is_path() && is_number(rest))
        };
    }
    // Disks of array controllers: `cciss/c0d0p1`, which sysfs writes with `!`.
    let controllers = ["cciss", "ida", "rd"];
    if let Some((controller, rest)) = name.split_once(['/', '!'])
        && controllers.contains(&controller)
    {
        let (number, rest) = rest.strip_prefix('c')?.split_once('d')?;
        return parted(rest, DeviceKind::Disk).filter(|_| is_number(number));
    }
    let disks = ["sd", "vd", "xvd", "hd", "dasd", "fio", "rssd", "ubd"];
    let parts = ["mmcblk", "nbd", "qbd", "rbd", "pmem", "ublkb"];
    let named = disks.into_iter().find_map(lettered);
    let of_parts = |prefix: &str| after(prefix).and_then(|rest| parted(rest, DeviceKind::Disk));
    named.or_else(|| parts.into_iter().find_map(of_parts))
}

/// Returns what is beneath a disk as far as these names tell, separated by blanks: its paths, if it
/// is an `NVMe` disk that has them.
pub fn paths_by_name(name: &str, among: Vec<String>) -> Option<String> {
    let paths = survey::nvme_paths(name, among);
    (!paths.is_empty()).then(|| paths.join(" "))
}

#[derive(Debug)]
struct Block {
    place: Discovery,
    devices: Vec<Device>,
}

/// Where to look for devices at each tick.
#[derive(Debug)]
enum Discovery {
    /// Nowhere: the devices are given.
    Chain,
    /// Below this root directory.
    Machine(PathBuf),
    /// In saved files.
    Pages(Pages),
}

impl Block {
    /// Opens devices that appeared and forgets those that disappeared.
    fn list(&mut self) {
        let names = match &self.place {
            Discovery::Chain => return,
            Discovery::Machine(root) => survey::device_names(root),
            Discovery::Pages(pages) => pages.between("/sys/class/block/", "/stat"),
        };
        if self.devices.iter().map(|device| &device.name).eq(&names) {
            return;
        }
        self.devices.retain(|device| names.contains(&device.name));
        for name in names {
            if !self.devices.iter().any(|device| device.name == name) {
                self.devices.push(match &self.place {
                    Discovery::Pages(pages) => Device::saved(pages, &name),
                    Discovery::Machine(root) => Device::open(root, &name),
                    Discovery::Chain => return,
                });
            }
        }
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

#[derive(Debug)]
struct Device {
    name: String,
    /// Kind of the device, and the devices beneath it.
    states: [Cell; STATES],
    stat: Source,
    /// Whether its driver takes requests from hardware queues. Other devices (partitions, dm, md,
    /// zram) share the layout, but their flushes are never counted and stay zero.
    request_based: bool,
    counters: [Rising; FIELDS.len()],
    /// Number of fields the kernel had at the last look.
    fields: usize,
}

impl Probe for Block {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        self.list();
        rows.extend(self.devices.iter_mut().map(Device::sample));
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let missing = |(index, column): (usize, &Column)| {
            let reasons = self.devices.iter().map(|device| device.unmeasured(index));
            // A column counts as unmeasured if no device has it.
            Some((column.name, reasons.collect::<Option<Vec<_>>>()?.into_iter().next()?))
        };
        SCHEMA.columns.iter().enumerate().filter_map(missing).collect()
    }
}

impl Device {
    fn open(root: &Path, name: &str) -> Self {
        let directory = under(root, format!("/sys/class/block/{name}"));
        let path = format!("/sys/class/block/{name}/stat");
        let request_based = directory.join("mq").exists();
        // Counters that are switched off do not move, which looks like no I/O. Only devices with
        // hardware queues honour the switch.
        let off = request_based && number(&directory.join("queue/iostats")) == Some(0);
        let stat = if off {
            let switch = format!("/sys/class/block/{name}/queue/iostats");
            Source::off(&path, format!("{switch} is 0; root may set it to 1"))
        } else {
            Source::open(root, &path, "the device is not there")
        };
        let counters = [Rising::default(); FIELDS.len()];
        let states = states(root, name);
        Self { name: name.to_owned(), states, stat, request_based, counters, fields: NEWEST }
    }

    /// Creates a device of which only the counters were saved.
    fn saved(pages: &Pages, name: &str) -> Self {
        let kind = kind_by_name(name);
        let word = kind.map(|kind| kind.name().to_owned());
        let beneath = paths_by_name(name, pages.between("/sys/class/block/", "/stat"));
        let stat = Source::saved(pages, &format!("/sys/class/block/{name}/stat"));
        Self {
            name: name.to_owned(),
            states: [word, beneath].map(|text| text.map_or(Cell::Unmeasured, Cell::Text)),
            stat,
            request_based: matches!(kind, Some(DeviceKind::Disk | DeviceKind::Loop)),
            counters: [Rising::default(); FIELDS.len()],
            fields: NEWEST,
        }
    }

    fn sample(&mut self) -> Row {
        let mut raw = [None; NEWEST];
        if let Some(text) = self.stat.read() {
            let known = if self.request_based { NEWEST } else { WITHOUT_FLUSHES };
            for (field, value) in raw[..known].iter_mut().zip(numbers(text)) {
                *field = Some(value);
            }
            self.fields = numbers(text).count();
        }
        let cell = |(index, &(field, unit)): (usize, &(usize, u64))| {
            let value = raw[field].map(|value| match SCHEMA.columns[STATES + index].kind {
                Kind::Counter => self.counters[index].at(value).saturating_mul(unit),
                Kind::Gauge | Kind::State => value.saturating_mul(unit),
            });
            Cell::from(value)
        };
        let cells = self.states.iter().cloned();
        let cells = cells.chain(FIELDS.iter().enumerate().map(cell)).collect();
        Row { object: self.name.clone(), cells }
    }

    fn unmeasured(&self, column: usize) -> Option<Unmeasured> {
        let Some(index) = column.checked_sub(STATES) else {
            let missing = self.states[column] == Cell::Unmeasured;
            let why = || Unmeasured::NotInVersion(format!("no /sys/class/block/{}", self.name));
            return missing.then(why);
        };
        if let Some(why) = self.stat.unmeasured() {
            return Some(why.clone());
        }
        let field = FIELDS[index].0;
        let why = if field >= self.fields {
            format!("this kernel has {} fields in {}", self.fields, STAT.0)
        } else if field >= WITHOUT_FLUSHES && !self.request_based {
            "the kernel counts flushes of whole devices with request queues only".to_owned()
        } else {
            return None;
        };
        Some(Unmeasured::NotInVersion(why))
    }
}

fn states(root: &Path, name: &str) -> [Cell; STATES] {
    let Some(device) = survey::device(root, name) else { return [const { Cell::Unmeasured }; 2] };
    [Cell::Text(device.kind.name().to_owned()), Cell::Text(device.beneath.join(" "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_gives_say_what_a_device_is() {
        use DeviceKind::{DeviceMapper, Disk, Loop, Partition, Raid, Zram};
        for (name, kind) in [
            ("sda", Some(Disk)),
            ("sdaa12", Some(Partition)),
            ("vda", Some(Disk)),
            ("xvdb1", Some(Partition)),
            ("nvme0n1", Some(Disk)),
            ("nvme10n2p3", Some(Partition)),
            ("nvme0c1n1", Some(Disk)),
            ("nvmec1n1", None),
            ("mmcblk0", Some(Disk)),
            ("mmcblk0p2", Some(Partition)),
            ("loop7", Some(Loop)),
            ("dm-0", Some(DeviceMapper)),
            ("md127", Some(Raid)),
            ("zram0", Some(Zram)),
            ("md127p2", Some(Partition)),
            ("fiob", Some(Disk)),
            ("cciss/c0d1", Some(Disk)),
            ("cciss!c0d1p3", Some(Partition)),
            ("cciss/x", None),
            ("emcpowera", None),
            ("vg-root", None),
            ("", None),
        ] {
            assert_eq!(kind_by_name(name), kind, "{name}");
        }
        for (name, whole) in [
            ("sdaa12", Some("sdaa")),
            ("nvme10n2p3", Some("nvme10n2")),
            ("md127p2", Some("md127")),
            ("cciss/c0d1p3", Some("cciss/c0d1")),
            ("sda", None),
            ("vg-root", None),
        ] {
            assert_eq!(whole_by_name(name), whole, "{name}");
        }
    }
}
