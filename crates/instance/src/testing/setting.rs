//! The small instance under test, and how its rows are found on its disks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use blockstone_base::Bytes;
use parking_lot::Mutex;

use super::history::History;
use super::image::Image;
use super::machine::Machine;
use super::rows::{ROWS, Row, RowState};
use crate::block::{self, COLUMNS, Fill};
use crate::control::Control;
use crate::error::InstanceError;
use crate::files::Files;
use crate::group::locate::Atlas;
use crate::group::{DiskGroup, DiskState, Member, Redundancy};
use crate::instance::{Instance, recovered};
use crate::recovery::Recovery;
use crate::redo::Lsn;
use crate::spec::{InstanceSpec, OpenSpec, TornProtection};
use crate::verify;

pub const BLOCK_BYTES: u64 = 4096;
const DISK_BYTES: u64 = 32 << 20;
const SPEC_SEED: u64 = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    pub copies: usize,
    pub protection: TornProtection,
}

/// Disks of an instance without redo, and the location of its files.
#[derive(Clone, Debug)]
pub struct Ground {
    pub disks: Vec<Image>,
    pub(super) atlas: Arc<Atlas>,
}

/// Result of one recovery.
#[derive(Debug)]
pub struct Recovered {
    /// Its writes.
    pub history: History,
    pub recovery: Recovery,
    pub rows: Vec<Row>,
    /// Content of the disks when it had ended.
    pub disks: Vec<Image>,
    pub offline: Vec<bool>,
}

impl Setting {
    pub const ALL: [Self; 6] = {
        use TornProtection::{DoubleWrite, FullPage, None};
        [
            Self { copies: 1, protection: FullPage },
            Self { copies: 1, protection: DoubleWrite },
            Self { copies: 1, protection: None },
            Self { copies: 3, protection: FullPage },
            Self { copies: 3, protection: DoubleWrite },
            Self { copies: 3, protection: None },
        ]
    };

    pub fn spec() -> InstanceSpec {
        InstanceSpec {
            block: Bytes(BLOCK_BYTES),
            schemas: 1,
            rows: ROWS,
            scan_blocks: 0,
            redo_logs: 2,
            redo: Bytes::kib(256),
            seed: SPEC_SEED,
            random_percent: 10,
        }
    }

    pub fn open_spec(self) -> OpenSpec {
        OpenSpec {
            cache: Bytes(64 * BLOCK_BYTES),
            writers: 2,
            log_buffer: Bytes::kib(128),
            protection: self.protection,
            ..OpenSpec::default()
        }
    }

    pub fn name(self) -> String {
        format!("{}/{}", self.protection.name(), self.copies)
    }

    /// Returns the disks after creation and load; prepared once for each number of copies.
    pub fn ground(self) -> Ground {
        static MADE: OnceLock<Mutex<HashMap<usize, Ground>>> = OnceLock::new();
        let mut made = MADE.get_or_init(Mutex::default).lock();
        made.entry(self.copies).or_insert_with(|| self.make()).clone()
    }

    fn make(self) -> Ground {
        let machine = Machine::new(self.copies, DISK_BYTES, 0);
        let members = machine.disks().into_iter().map(Member::from).collect();
        let redundancy = Redundancy::ALL[self.copies - 1];
        let spec = Self::spec();
        let make = || -> Result<Atlas, InstanceError> {
            let group = DiskGroup::create_on(members, redundancy, Bytes::mib(1), &spec.files()?)?;
            Instance::create(&spec, &group)?;
            let instance = Instance::open(&group, &self.open_spec())?;
            instance.load(1, &mut |_, _| {})?;
            let atlas = group.atlas();
            instance.shutdown()?;
            Ok(atlas)
        };
        let atlas = make().expect("an instance is made on disks without faults");
        Ground { disks: machine.images(), atlas: Arc::new(atlas) }
    }

    /// Recovers the instance on `disks`, in one thread and always in the same way. The error is the
    /// reason why it refused.
    pub fn recover(self, disks: Vec<Image>) -> Result<Recovered, String> {
        let machine = Machine::with(disks, 0, false);
        let work = || -> Result<Recovered, String> {
            let group = DiskGroup::open_on(machine.disks()).map_err(|error| error.to_string())?;
            let (files, control, _, recovery) =
                recovered(&group, &self.open_spec()).map_err(|error| error.to_string())?;
            let (history, disks) = (machine.take_history(), machine.images());
            let rows = rows(&files, control.identity().id);
            let offline =
                group.counters().iter().map(|disk| disk.state != DiskState::Online).collect();
            Ok(Recovered { history, recovery, rows, disks, offline })
        };
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(format!("recovery panicked: {}", text_of(&*panic))))
    }
}

impl Setting {
    /// Brings every absent disk back into its group. Returns the content of the disks afterwards.
    /// The error is the reason why one cannot be brought back.
    pub fn resync(self, disks: Vec<Image>) -> Result<Vec<Image>, String> {
        let machine = Machine::with(disks, 0, false);
        let group = DiskGroup::open_on(machine.disks()).map_err(|error| error.to_string())?;
        let register = || -> Result<(), InstanceError> {
            let control = Control::open(group.file("control")?)?;
            let files = Files::open(&group, Self::spec().redo_logs)?;
            verify::register(&files, control.identity().id);
            Ok(())
        };
        register().map_err(|error| error.to_string())?;
        for (number, disk) in machine.disks().iter().enumerate() {
            if group.counters()[number].state != DiskState::Online {
                let done = group.online_and_resync_on(number, disk);
                done.map_err(|error| error.to_string())?;
            }
        }
        Ok(machine.images())
    }
}

fn text_of(panic: &dyn std::any::Any) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Returns all rows as the group serves them, by key.
pub(super) fn rows(files: &Files, instance: u64) -> Vec<Row> {
    let order = Setting::spec().order(0);
    let mut memory = vec![0; BLOCK_BYTES as usize];
    let row = |key| {
        let number = order.at(key);
        let is_whole = |_, bytes: &[u8]| block::check(bytes, instance, number).is_ok();
        match files.data.read(number * BLOCK_BYTES, &mut memory, &is_whole) {
            Ok(_) => parse(key, &memory),
            Err(error) => Row::Damaged(error.to_string()),
        }
    };
    (0..ROWS).map(row).collect()
}

pub(super) fn block_of(key: u64) -> u64 {
    Setting::spec().order(0).at(key)
}

/// Parses the row in a whole block.
pub(super) fn parse(key: u64, bytes: &[u8]) -> Row {
    let spec = Setting::spec();
    let fill = Fill::new(spec.seed, spec.random_percent);
    let number = block::number(bytes);
    if block::key(bytes) != key {
        return Row::Wrong(format!("block {number} holds key {}", block::key(bytes)));
    }
    let mut columns = [0; COLUMNS];
    for (index, version) in columns.iter_mut().enumerate() {
        let column = block::column(bytes, index);
        if !fill.is_whole(number, index, column) {
            return Row::Wrong(format!("column {index} of block {number} is not whole"));
        }
        *version = block::get(column, 0);
    }
    let state = RowState { version: block::version(bytes), columns };
    Row::Whole { state, scn: Lsn(block::scn(bytes)) }
}

impl Recovered {
    /// Returns the result for an instance that refused to open and reported why.
    pub(super) fn refused() -> Self {
        Self {
            history: History::default(),
            recovery: Recovery::default(),
            rows: Vec::new(),
            disks: Vec::new(),
            offline: Vec::new(),
        }
    }
}
