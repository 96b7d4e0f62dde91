//! A small instance on simulated disks.

use std::sync::Arc;

use blockstone_base::Bytes;
use blockstone_engine::{SimDisk, SimSpec};
use blockstone_instance::disk::{Disk, SimulatedDisk};
use blockstone_instance::group::{DiskGroup, GroupError, Member, Redundancy};
use blockstone_instance::{Instance, InstanceSpec, OpenSpec, TornProtection};

pub const ROWS: u64 = 300;

/// Two schemas of [`ROWS`] rows in 4 KiB blocks, and the smallest redo logs there can be.
pub fn spec() -> InstanceSpec {
    InstanceSpec {
        block: Bytes::kib(4),
        schemas: 2,
        rows: ROWS,
        scan_blocks: 40,
        redo_logs: 3,
        redo: Bytes::kib(512),
        seed: 11,
        random_percent: 50,
    }
}

pub fn open_spec(protection: TornProtection) -> OpenSpec {
    OpenSpec {
        cache: Bytes::kib(4 * 160),
        writers: 2,
        log_buffer: Bytes::kib(256),
        protection,
        ..OpenSpec::default()
    }
}

pub struct World {
    pub disks: Vec<SimDisk>,
}

impl World {
    pub fn new(disks: usize, seed: u64) -> Self {
        let disk = |number| SimDisk::new(SimSpec::new(64 << 20, seed ^ number as u64));
        Self { disks: (0..disks).map(disk).collect() }
    }

    pub fn members(
        &self,
        wrap: &dyn Fn(usize, Arc<dyn Disk>) -> Arc<dyn Disk>,
    ) -> Vec<Arc<dyn Disk>> {
        let disk = |(number, disk): (usize, &SimDisk)| {
            let plain: Arc<dyn Disk> =
                Arc::new(SimulatedDisk::new(format!("sim-{number}"), disk.clone()).unwrap());
            wrap(number, plain)
        };
        self.disks.iter().enumerate().map(disk).collect()
    }

    pub fn group_or(
        redundancy: Redundancy,
        disks: Vec<Arc<dyn Disk>>,
    ) -> Result<DiskGroup, GroupError> {
        let members = disks
            .into_iter()
            .map(|disk| Member { failure_group: disk.name().to_owned(), disk })
            .collect();
        let files = spec().files().unwrap();
        DiskGroup::create_on(members, redundancy, Bytes::mib(1), &files)
    }

    pub fn create(redundancy: Redundancy, disks: usize, seed: u64) -> (Self, DiskGroup) {
        let world = Self::new(disks, seed);
        let plain = world.members(&|_, disk| disk);
        let group = Self::group_or(redundancy, plain).unwrap();
        Instance::create(&spec(), &group).unwrap();
        (world, group)
    }
}
