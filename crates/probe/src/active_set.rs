//! The active data set: which parts of devices and files are read and written from one sample to
//! the next, and which of them repeatedly. docs/active-set.md says what exactly is counted.
//!
//! It is not among the probes that always run: it needs privileges and adds a small cost to each
//! request to a device.

mod columns;
mod window;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blockstone_base::Capability;
pub use blockstone_sys::bpf::Device;
use blockstone_sys::bpf::active::{ActiveTracer, DeviceSums, Owner, UNIT_BYTES, UNITS_KEPT};
use blockstone_sys::bpf::{self, Audit, BpfError, Subject};
use blockstone_sys::path;
use blockstone_sys::proc::{number, under};

pub use columns::{SCHEMA, bucket_start};

use self::columns::LEADING;
use self::window::{ActiveUnits, LastLook, Window};
use crate::io::{Label, Names, Shelf, absent, reason};
use crate::source::all_unmeasured;
use crate::{Cell, Probe, Row, Schema, Unmeasured};

/// Maximum number of file names in rows; files beyond it count as `other files` of their type.
const FILES_MAX: usize = 1000;
/// While units are sampled, those that were not accessed for this many windows are forgotten to
/// make room for others.
const WINDOWS_KEPT: u64 = 16;
/// Object and kind of the row on the counting itself.
const TRACING: &str = "tracing";
const SECTOR_BYTES: u64 = 512;

/// Starts counting on the machine at `root`, on these devices or on all. If that is not possible,
/// everything is unmeasured.
pub fn open(root: &Path, devices: &[Device]) -> Box<dyn Probe> {
    let started = match bpf::capability(root) {
        Capability::Full => ActiveTracer::start(devices).map_err(|error| reason(&error)),
        Capability::Degraded { why } => Err(absent(why)),
    };
    let (tracer, why) = match started {
        Ok(tracer) => (Some(tracer), None),
        Err(why) => (None, Some(why)),
    };
    Box::new(ActiveSet {
        root: root.to_owned(),
        tracer,
        why,
        seen: LastLook::default(),
        windows: None,
        names: Names::new(root),
        shelf: Shelf::new(FILES_MAX),
        owners: HashMap::new(),
        sums: BTreeMap::new(),
    })
}

#[derive(Debug)]
struct ActiveSet {
    root: PathBuf,
    tracer: Option<ActiveTracer>,
    /// Reason why there is no tracer.
    why: Option<Unmeasured>,
    seen: LastLook,
    /// Number of windows that have ended; `None` before the first began.
    windows: Option<u64>,
    names: Names,
    shelf: Shelf,
    owners: HashMap<Owner, Named>,
    sums: BTreeMap<Object, Sums>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Device(Device),
    File(Label),
}

/// A file under the name by which it is counted, and its size when last checked.
#[derive(Clone, Debug)]
struct Named {
    label: Label,
    /// Path at which it was found; `None` if it has no name or is not a file.
    path: Option<PathBuf>,
    inode: u64,
    size_bytes: Option<u64>,
}

/// Sums over windows, in the order of the columns from `touched_bytes` to `accesses`.
#[derive(Clone, Copy, Debug, Default)]
struct Sums([u64; 9]);

impl Probe for ActiveSet {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let mut audit = None;
        if let Some(mut tracer) = self.tracer.take() {
            match self.read(&mut tracer, rows) {
                Ok(()) => {
                    audit = Some(tracer.audit());
                    self.tracer = Some(tracer);
                }
                Err(error) => {
                    rows.clear();
                    self.why = Some(reason(&error));
                }
            }
        }
        rows.push(tracing_row(audit.zip(self.windows)));
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        if let Some(why) = &self.why {
            return all_unmeasured(&SCHEMA, why);
        }
        if self.tracer.as_ref().is_some_and(|tracer| tracer.audit().own_ns.is_none()) {
            let why = "the kernel measures what programs cost for CAP_SYS_ADMIN only";
            let why = Unmeasured::NotPermitted(why.into());
            return ["runs", "own_ns"].map(|column| (column, why.clone())).into();
        }
        Vec::new()
    }
}

impl ActiveSet {
    /// Ends a window and begins the next one.
    fn read(&mut self, tracer: &mut ActiveTracer, rows: &mut Vec<Row>) -> Result<(), BpfError> {
        let mut units = Vec::new();
        tracer.each(|key, unit| units.push((*key, *unit)))?;
        let window = self.seen.end_window(&units, tracer.level()?);
        self.begin(tracer, &window)?;
        let alive: HashSet<Owner> = units.iter().map(|(_, unit)| unit.owner()).collect();
        self.owners.retain(|owner, _| alive.contains(owner));
        // Accesses before the first look belong to no window.
        self.windows = Some(self.windows.map_or(0, |windows| windows + 1));
        if self.windows != Some(0) {
            self.add(tracer, window)?;
        }
        let mut devices = HashMap::new();
        tracer.each_device(|device, sums| {
            devices.insert(device, *sums);
        })?;
        let mut sizes: BTreeMap<&Label, Option<u64>> = BTreeMap::new();
        for named in self.owners.values() {
            let size = sizes.entry(&named.label).or_default();
            *size = named.size_bytes.map(|bytes| size.unwrap_or(0) + bytes).or(*size);
        }
        for (object, sums) in &self.sums {
            rows.push(match object {
                Object::Device(device) => {
                    let size = self.size_of(*device);
                    let name = self.names.device_path(*device);
                    Self::row((&name, "device", ""), size, sums, devices.get(device))
                }
                Object::File(Label { file, file_type }) => {
                    let label = Label { file: file.clone(), file_type: *file_type };
                    let size = sizes.get(&label).copied().flatten();
                    Self::row((file, "file", file_type.name()), size, sums, None)
                }
            });
        }
        Ok(())
    }

    /// Removes units that are no longer sampled, and samples more if there is room.
    fn begin(&mut self, tracer: &ActiveTracer, window: &Window) -> Result<(), BpfError> {
        for key in &window.unsampled {
            tracer.forget(key)?;
        }
        let forgotten =
            if window.level > 0 { self.seen.forget_idle(WINDOWS_KEPT) } else { Vec::new() };
        for key in &forgotten {
            tracer.forget(key)?;
        }
        let kept = self.seen.len();
        let level =
            if kept < UNITS_KEPT / 4 { window.level.saturating_sub(1) } else { window.level };
        if window.level > 0 {
            tracer.sample(level, window.level, kept)?;
        }
        Ok(())
    }

    fn add(&mut self, tracer: &ActiveTracer, window: Window) -> Result<(), BpfError> {
        let mut files: BTreeMap<Label, ActiveUnits> = BTreeMap::new();
        for (owner, part) in window.owners {
            if !self.owners.contains_key(&owner) {
                let named = self.name(&owner, tracer.path_of(&owner)?.as_deref());
                self.owners.insert(owner, named);
            }
            let Some(named) = self.owners.get_mut(&owner) else { continue };
            named.measure();
            if matches!(owner.subject(), Subject::File { .. }) {
                files.entry(named.label.clone()).or_default().join(part);
            }
        }
        let files = files.into_iter().map(|(label, part)| (Object::File(label), part));
        let devices =
            window.devices.into_iter().map(|(device, part)| (Object::Device(device), part));
        for (object, part) in files.chain(devices) {
            self.sums.entry(object).or_default().add(&part, window.level, window.compared_level);
        }
        Ok(())
    }

    fn name(&mut self, owner: &Owner, path: Option<&str>) -> Named {
        let (subject, device) = (owner.subject(), owner.device());
        let label = self.names.label(subject, device, path);
        let label = self.shelf.place(label);
        let path = path.map(|path| PathBuf::from(self.names.full_path(device, path)));
        let inode = if let Subject::File { inode, .. } = subject { inode } else { 0 };
        Named { label, path, inode, size_bytes: None }
    }

    fn size_of(&self, Device { major, minor }: Device) -> Option<u64> {
        let size = under(&self.root, format!("/sys/dev/block/{major}:{minor}/size"));
        Some(number(&size)?.saturating_mul(SECTOR_BYTES))
    }

    fn row(
        (object, kind, file_type): (&str, &str, &str),
        size_bytes: Option<u64>,
        sums: &Sums,
        device: Option<&DeviceSums>,
    ) -> Row {
        let states = [kind, file_type].map(|state| Cell::Text(state.to_owned()));
        let mut cells: Vec<Cell> = states.into();
        cells.push(size_bytes.into());
        cells.extend(sums.0.map(Cell::from));
        if let Some(device) = device {
            // The kernel counts every access of a device.
            cells.pop();
            cells.extend([device.accesses.into(), device.first.into()]);
            cells.resize(LEADING, Cell::Unmeasured);
            cells.extend(device.again.map(Cell::from));
        }
        cells.resize(SCHEMA.columns.len(), Cell::Unmeasured);
        Row { object: object.to_owned(), cells }
    }
}

impl Named {
    /// Updates the size of the file if the file now at its path is still the same one.
    fn measure(&mut self) {
        let found = self.path.as_ref().and_then(|path| path::look(path).ok());
        if let Some(found) = found.filter(|found| found.ino() == self.inode) {
            self.size_bytes = Some(found.size());
        }
    }
}

impl Sums {
    /// Adds the units of `part`, of which one in 2^`level` is sampled and, among those that could
    /// be compared, one in 2^`compared_level`.
    fn add(&mut self, part: &ActiveUnits, level: u32, compared_level: u32) {
        let bytes = |units: u64, level: u32| (units << level).saturating_mul(UNIT_BYTES);
        let [half, nine_tenths, all_but_one_percent] = part.hottest([50, 90, 99]);
        let more = [
            bytes(part.touched(), level),
            bytes(part.written, level),
            bytes(part.compared, compared_level),
            bytes(part.again, compared_level),
            bytes(half, level),
            bytes(nine_tenths, level),
            bytes(all_but_one_percent, level),
            part.touched(),
            part.accesses() << level,
        ];
        for (sum, more) in self.0.iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
    }
}

fn tracing_row(audit: Option<(Audit, u64)>) -> Row {
    let mut cells = vec![Cell::Unmeasured; SCHEMA.columns.len()];
    if let Some((Audit { dropped, runs, own_ns }, windows)) = audit {
        cells[0] = Cell::Text(TRACING.into());
        cells[LEADING - 4] = windows.into();
        cells[LEADING - 3] = dropped.into();
        cells[LEADING - 2] = runs.into();
        cells[LEADING - 1] = own_ns.into();
    }
    Row { object: TRACING.into(), cells }
}
