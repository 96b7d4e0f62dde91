//! A small instance on a hostile machine.

use blockstone_base::Bytes;
use blockstone_instance::group::{DiskGroup, GroupError, Member, Redundancy};
use blockstone_instance::testing::Machine;
use blockstone_instance::{Instance, InstanceError, InstanceSpec, OpenSpec, TornProtection};

pub const ROWS: u64 = 300;

/// Two schemas of [`ROWS`] rows in 4 KiB blocks, and the smallest possible redo logs.
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

pub fn machine(disks: usize, seed: u64) -> Machine {
    Machine::new(disks, 64 << 20, seed)
}

pub fn group_on(machine: &Machine, redundancy: Redundancy) -> Result<DiskGroup, GroupError> {
    let members = machine.disks().into_iter().map(Member::from).collect();
    DiskGroup::create_on(members, redundancy, Bytes::mib(1), &spec().files().unwrap())
}

/// Creates a new instance, not yet open.
pub fn create(redundancy: Redundancy, disks: usize, seed: u64) -> (Machine, DiskGroup) {
    let machine = machine(disks, seed);
    let group = group_on(&machine, redundancy).unwrap();
    Instance::create(&spec(), &group).unwrap();
    (machine, group)
}

/// Opens the instance on the disks of `machine`.
pub fn open_on(machine: &Machine, spec: &OpenSpec) -> Result<Instance, InstanceError> {
    Instance::open(&DiskGroup::open_on(machine.disks())?, spec)
}
