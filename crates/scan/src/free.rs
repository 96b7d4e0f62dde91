//! Data that the free blocks of file systems still hold: all of them are read if they are few,
//! otherwise one of each of as many equal parts, from the device, past the page cache.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_base::rng::Rng;
use blockstone_base::text::shown;
use blockstone_reduce::scanned::{Discards, FreeSpace};
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::free_space::{self, FreeExtents};

use crate::error::ScanError;

/// Free blocks that are read of a file system: an interval of ±1.5 % of the free space, and seconds
/// on flash. A disk that seeks for each needs a minute.
const BLOCKS_MAX: u64 = 8192;

/// Looks at the free space of the file systems that hold these paths, each once. Reads at most
/// `rate` bytes per second; `watch` receives the part that is done and returns whether to go on.
pub fn free_space(
    paths: &[PathBuf],
    rate: Option<u64>,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<FreeSpace>, ScanError> {
    let mut found: Vec<FreeExtents> = Vec::new();
    for path in paths {
        let free = free_space::of(Path::new("/"), path)?;
        if !found.iter().any(|known| known.device == free.device) {
            found.push(free);
        }
    }
    found.iter().map(|free| look(free, BLOCKS_MAX, rate, watch)).collect()
}

fn look(
    free: &FreeExtents,
    blocks_max: u64,
    rate: Option<u64>,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<FreeSpace, ScanError> {
    let device = BlockFile::open(&free.device, Access::Read, true)?;
    let mut arena = Arena::new(1, free.block_bytes as usize)?;
    let block = arena.slot(0);
    let positions = drawn(&free.extents, free.block_bytes, blocks_max);
    let started = Instant::now();
    let mut holding = 0;
    for (&at, done) in positions.iter().zip(0_u64..) {
        if let Some(rate) = rate {
            let due = (done * free.block_bytes) as f64 / rate.max(1) as f64;
            let left = Duration::from_secs_f64(due.min(1e6)).saturating_sub(started.elapsed());
            std::thread::sleep(left.min(WAIT_MAX));
        }
        if !watch(done as f64 / positions.len() as f64) {
            return Err(ScanError::Ended);
        }
        let read = device.read_at(at, block).map_err(|errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            ScanError::Path { path: free.device.clone(), source }
        })?;
        holding += u64::from(block[..read].iter().any(|&byte| byte != 0));
    }
    let bytes: u64 = free.extents.iter().map(|extent| extent.end - extent.start).sum();
    let discards = free.discards.iter().map(|device| Discards {
        device: device.name.clone(),
        max_bytes: device.max_bytes,
        granularity_bytes: device.granularity_bytes,
    });
    Ok(FreeSpace {
        mount_point: shown(&free.mount_point),
        kind: free.kind.clone(),
        device: shown(&free.device),
        block_bytes: free.block_bytes,
        free_blocks: bytes / free.block_bytes,
        extents: free.extents.len() as u64,
        read_blocks: positions.len() as u64,
        read_blocks_holding: holding,
        mounted_with_discard: free.mounted_with_discard,
        discards: discards.collect(),
        backing_bytes: free.backing_bytes,
    })
}

/// Longest wait before `watch` is asked again.
const WAIT_MAX: Duration = Duration::from_millis(100);
const SEED: u64 = 1;

/// Returns the positions of the blocks to read, ascending, at most `blocks_max`.
fn drawn(extents: &[Range<u64>], block_bytes: u64, blocks_max: u64) -> Vec<u64> {
    let blocks = |extent: &Range<u64>| (extent.end - extent.start) / block_bytes;
    let all: u64 = extents.iter().map(blocks).sum();
    let parts = all.min(blocks_max);
    let mut rng = Rng::new(SEED, 0);
    let edge = |part: u64| (u128::from(all) * u128::from(part) / u128::from(parts.max(1))) as u64;
    let mut positions = Vec::with_capacity(parts as usize);
    let mut extents = extents.iter();
    let (mut extent, mut before) = (extents.next(), 0);
    for part in 0..parts {
        let number = edge(part) + rng.below(edge(part + 1) - edge(part));
        while let Some(here) = extent {
            if number - before < blocks(here) {
                positions.push(here.start + (number - before) * block_bytes);
                break;
            }
            before += blocks(here);
            extent = extents.next();
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use blockstone_base::Bytes;
    use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, require};

    use super::*;

    #[test]
    fn one_block_of_each_part_is_read_and_all_if_they_are_few() {
        assert_eq!(drawn(&[0..8192, 40_960..45_056], 4096, 8), [0, 4096, 40_960]);
        assert!(drawn(&[], 4096, 8).is_empty());
        let extents = [4096..4096 * 5001, 1 << 40..(1 << 40) + 4096 * 95_000];
        let positions = drawn(&extents, 4096, BLOCKS_MAX);
        assert_eq!(positions.len(), 8192);
        assert!(positions.is_sorted_by(|a, b| a < b));
        let first = positions.iter().filter(|&&at| at < 1 << 40).count();
        assert!((409..=411).contains(&first), "5 % of them: {first}");
        let inside = |at: &u64| extents.iter().any(|extent| extent.contains(at));
        assert!(positions.iter().all(|at| inside(at) && at % 4096 == 0));
    }

    #[test]
    fn blocks_of_a_removed_file_hold_data_until_they_are_discarded() {
        require!(Root, Loop);
        for (file_system, size) in [(FileSystem::Ext4, 64), (FileSystem::Xfs, 320)] {
            let (size, caps) = (Bytes::mib(size), Caps::default());
            let spec = DeviceSpec { size, file_system: Some(file_system), caps };
            let device = LoopDevice::create(spec).unwrap();
            let mount_point = device.mount_point().unwrap();
            let run = |program: &str| {
                let mut command = Command::new(program);
                command.args((program == "sync").then_some("-f")).arg(&mount_point);
                assert!(command.status().unwrap().success(), "{command:?}");
            };
            let free_bytes = || {
                let free = free_space::of(Path::new("/"), &mount_point).unwrap();
                free.extents.iter().map(|extent| extent.end - extent.start).sum::<u64>()
            };
            let found = || {
                let free = free_space::of(Path::new("/"), &mount_point).unwrap();
                let free = look(&free, 256, None, &mut |_| true).unwrap();
                let share = free.holding_share().unwrap();
                (free.clone(), share.scaled(free.free_bytes() as f64))
            };
            run("fstrim");
            let (empty, before) = found();
            assert!(before.value < 1.0, "{file_system:?}: {before:?}");
            let file = mount_point.join("file");
            fs::write(&file, vec![7; 24 << 20]).unwrap();
            run("sync");
            fs::remove_file(&file).unwrap();
            run("sync");
            // XFS frees the blocks of a removed file a moment later.
            let until = Instant::now() + Duration::from_mins(1);
            while free_bytes() + (1 << 20) < empty.free_bytes() && Instant::now() < until {
                std::thread::sleep(WAIT_MAX);
            }
            let (free, after) = found();
            assert!(free.takes_discards() && !free.mounted_with_discard);
            let inside = (after.low..=after.high).contains(&f64::from(24 << 20));
            assert!(inside, "{file_system:?}: {after:?}");
            run("fstrim");
            assert!(found().1.value < 1.0, "{file_system:?}");
        }
    }
}
