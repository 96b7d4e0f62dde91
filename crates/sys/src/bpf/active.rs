//! Which parts of devices are read and written, and how soon they are accessed again: accesses by
//! unit of 4 KiB, counted inside the kernel in tables of fixed size. docs/active-set.md has the
//! definitions.

use super::file::{FileKey, Files};
use super::load::Loaded;
use super::table::{Plain, Table};
use super::{Audit, BpfError, Device, Subject, object, on, open};

/// Size of the unit in which accesses are counted.
pub const UNIT_BYTES: u64 = 4096;
/// Units kept. When there are more, sampling drops half of them.
pub const UNITS_KEPT: u64 = 65_536;

/// Buckets of the number of accesses between two accesses to the same unit: 1, 2, 3, then four per
/// power of two, then from 2³³ on.
pub const BUCKETS: usize = 128;

/// Returns the lowest number of accesses in a bucket.
pub const fn bucket_start(bucket: usize) -> u64 {
    if bucket < 3 {
        return bucket as u64 + 1;
    }
    (4 + (bucket as u64 - 3) % 4) << ((bucket - 3) / 4)
}

/// A unit of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitKey {
    number: u64,
    device: u32,
    zero: u32,
}

// SAFETY: its fields fill 16 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for UnitKey {}

impl UnitKey {
    pub fn device(&self) -> Device {
        Device::of(self.device)
    }

    /// Returns whether a sample at this level includes the unit: one in 2^`level` units.
    pub fn is_sampled(&self, level: u32) -> bool {
        self.hash().trailing_zeros() >= level
    }

    /// Hashes the key with the same function as the kernel program.
    fn hash(&self) -> u64 {
        let hash = (self.number ^ u64::from(self.device) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^ hash >> 32
    }
}

/// Number of accesses to a unit since it has been kept, and its owner at the last access.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    file: FileKey,
    last: u64,
    pub reads: u32,
    pub writes: u32,
    kind: u32,
    zero: u32,
}

// SAFETY: its fields fill 40 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Unit {}

/// The file, or other owner, that a unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    file: FileKey,
    kind: u8,
}

impl Owner {
    pub fn subject(&self) -> Subject {
        self.file.subject(self.kind)
    }

    /// Returns the device, or the one that holds the file.
    pub fn device(&self) -> Device {
        self.file.device()
    }
}

impl Unit {
    pub fn owner(&self) -> Owner {
        Owner { file: self.file, kind: self.kind as u8 }
    }
}

/// Sums for one device, cumulative since the start.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSums {
    /// Accesses to units, counted without sampling.
    pub accesses: u64,
    /// Accesses to units that were not kept, estimated from the sample.
    pub first: u64,
    /// Accesses to units that were kept, by number of accesses to the device since the previous
    /// one; estimated.
    pub again: [u64; BUCKETS],
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for DeviceSums {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Sampling {
    level: u32,
    counted_level: u32,
    kept: u64,
}

// SAFETY: its fields fill 16 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Sampling {}

/// Counts accesses until it is dropped.
#[derive(Debug)]
pub struct ActiveTracer {
    units: Table<UnitKey, Unit>,
    devices: Table<u32, DeviceSums>,
    files: Files,
    sampling: Table<u32, Sampling>,
    lost: Table<u32, u64>,
    loaded: Loaded,
}

impl ActiveTracer {
    /// Counts accesses to these devices, or to all if none is named. Fails when the kernel does not
    /// accept the programs.
    pub fn start(wanted: &[Device]) -> Result<Self, BpfError> {
        let loaded = Loaded::new(object!("active"))?;
        let mut tracer = Self {
            units: open(&loaded, "units")?,
            devices: open(&loaded, "devices")?,
            files: Files::open(&loaded)?,
            sampling: open(&loaded, "sampling")?,
            lost: open(&loaded, "lost")?,
            loaded,
        };
        for device in wanted {
            let none = DeviceSums { accesses: 0, first: 0, again: [0; BUCKETS] };
            tracer.devices.set(&device.number(), &none).map_err(on("write", "devices"))?;
        }
        let settings: Table<u32, u32> = open(&tracer.loaded, "settings")?;
        let filtered = u32::from(!wanted.is_empty());
        settings.set(&0, &filtered).map_err(on("write", "settings"))?;
        tracer.loaded.attach(&["block_rq_requeue", "block_rq_issue"], [])?;
        Ok(tracer)
    }

    /// Returns the current level: one in 2^level units is sampled. The level rises on its own when
    /// there are too many units.
    pub fn level(&self) -> Result<u32, BpfError> {
        let sampling = self.sampling.get(&0).map_err(on("read", "sampling"))?;
        Ok(sampling.map_or(0, |sampling| sampling.level))
    }

    /// Samples one in 2^`level` units from now on, of which `kept` are kept. Accesses count as
    /// first or repeated only if `counted_level` samples their unit too: for units sampled only
    /// from now on, the previous access is unknown.
    pub fn sample(&self, level: u32, counted_level: u32, kept: u64) -> Result<(), BpfError> {
        let sampling = Sampling { level, counted_level, kept };
        self.sampling.set(&0, &sampling).map_err(on("write", "sampling"))
    }

    /// Visits every unit that is kept; some may no longer be sampled.
    pub fn each(&mut self, visit: impl FnMut(&UnitKey, &Unit)) -> Result<(), BpfError> {
        self.units.each(visit).map_err(on("read", "units"))
    }

    pub fn forget(&self, unit: &UnitKey) -> Result<(), BpfError> {
        self.units.remove(unit).map_err(on("write", "units"))
    }

    /// Visits the sums of every device.
    pub fn each_device(
        &mut self,
        mut visit: impl FnMut(Device, &DeviceSums),
    ) -> Result<(), BpfError> {
        let each = |number: &u32, sums: &DeviceSums| visit(Device::of(*number), sums);
        self.devices.each(each).map_err(on("read", "devices"))
    }

    /// Returns the path of a file within its file system when first seen; `None` if it has no name.
    pub fn path_of(&self, owner: &Owner) -> Result<Option<String>, BpfError> {
        self.files.path_of(&owner.file, owner.kind)
    }

    /// Returns the accesses that found no room in a table, and what the programs cost.
    pub fn audit(&self) -> Audit {
        Audit::of(&self.lost, &self.loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_the_one_before_ends() {
        assert_eq!((0..8).map(bucket_start).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((bucket_start(8), bucket_start(11)), (10, 16));
        assert_eq!(bucket_start(BUCKETS - 1), 1 << 33);
        assert!((1..BUCKETS).all(|bucket| bucket_start(bucket - 1) < bucket_start(bucket)));
    }

    #[test]
    fn a_level_more_samples_half() {
        let keys: Vec<_> =
            (0..100_000).map(|number| UnitKey { number, device: 7 << 20, zero: 0 }).collect();
        for level in 0..6 {
            let sampled = keys.iter().filter(|key| key.is_sampled(level)).count() as f64;
            let expected = 100_000.0 / f64::from(1 << level);
            assert!((sampled / expected - 1.0).abs() < 0.05, "{level}: {sampled}");
        }
    }
}
