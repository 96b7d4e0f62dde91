//! Disk groups on files and on a hostile machine: what is guaranteed when disks fail, vanish,
//! return, or lose power.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod creation;
mod damage;
mod failure;
mod flush;
mod mirrors;
mod power;
mod ram;
mod real;
mod striping;

use std::sync::Arc;

use blockstone_base::Bytes;
use blockstone_instance::disk::Disk;
use blockstone_instance::group::{DiskGroup, FileSpec, GroupError, Member, Redundancy};
use blockstone_instance::testing::Machine;

/// Size of a block, the unit of verification.
const BLOCK: u64 = 4096;
const UNIT: Bytes = Bytes::mib(1);

/// Describes a file `name` of `mib` MiB.
fn file(name: &str, mib: u64, fine: bool) -> FileSpec {
    FileSpec { name: name.into(), size: Bytes::mib(mib), block: Bytes(BLOCK), fine }
}

/// Creates a machine with empty disks of `mib` MiB.
fn machine(disks: usize, mib: u64) -> Machine {
    Machine::new(disks, mib << 20, 1)
}

/// Puts each disk in a failure group of its own.
fn members(disks: Vec<Arc<dyn Disk>>) -> Vec<Member> {
    disks.into_iter().map(Member::from).collect()
}

/// Creates a group with files `data` (8 MiB, coarse) and `redo` (8 MiB, fine).
fn create(disks: Vec<Arc<dyn Disk>>, redundancy: Redundancy) -> Result<DiskGroup, GroupError> {
    let files = [file("data", 8, false), file("redo", 8, true)];
    DiskGroup::create_on(members(disks), redundancy, UNIT, &files)
}

/// Returns a block filled with its offset and its version throughout.
fn block(offset: u64, version: u64) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK as usize);
    while block.len() < BLOCK as usize {
        block.extend(offset.to_le_bytes());
        block.extend(version.to_le_bytes());
    }
    block
}

/// Returns the version of a whole block at `offset`.
fn version(offset: u64, found: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(found[8..16].try_into().unwrap());
    (found == block(offset, version)).then_some(version)
}

/// Whether a block is whole and in its place.
fn whole(offset: u64, found: &[u8]) -> bool {
    version(offset, found).is_some()
}
