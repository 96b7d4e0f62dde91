//! Placement of data, and the number of I/Os it takes.

use std::collections::BTreeMap;

use blockstone_base::Bytes;
use blockstone_instance::group::{BatchWrite, DiskGroup, FileSpec, Redundancy};

use crate::{BLOCK, block, file, machine, members, version, whole};

#[test]
fn every_block_comes_back_from_every_kind_of_file() {
    for redundancy in [Redundancy::External, Redundancy::Normal, Redundancy::High] {
        for unit in [Bytes::mib(1), Bytes::mib(4)] {
            let machine = machine(4, 128);
            let files = [file("data", 9, false), file("redo", 3, true)];
            let group =
                DiskGroup::create_on(members(machine.disks()), redundancy, unit, &files).unwrap();
            for name in group.file_names() {
                let file = group.file(&name).unwrap();
                let seed = name.len() as u64;
                let all: Vec<u8> =
                    (0..file.size() / BLOCK).flat_map(|b| block(b * BLOCK, seed)).collect();
                file.write(0, &all, true).unwrap();
            }
            drop(group);
            let group = DiskGroup::open_on(machine.disks()).unwrap();
            assert_eq!((group.redundancy(), group.allocation_unit()), (redundancy, unit));
            for name in group.file_names() {
                let file = group.file(&name).unwrap();
                let mut found = vec![0; file.size() as usize];
                file.read(0, &mut found, &whole).unwrap();
                for (number, found) in (0..).zip(found.chunks(BLOCK as usize)) {
                    assert_eq!(version(number * BLOCK, found), Some(name.len() as u64));
                }
            }
        }
    }
}

#[test]
fn reads_are_even_over_the_disks_and_writes_are_multiplied_by_the_copies() {
    for redundancy in [Redundancy::External, Redundancy::Normal, Redundancy::High] {
        let group = DiskGroup::create_on(
            members(machine(4, 64).disks()),
            redundancy,
            Bytes::mib(1),
            &[file("data", 16, false)],
        )
        .unwrap();
        let data = group.file("data").unwrap();
        let mut found = vec![0; BLOCK as usize];
        for number in 0..data.size() / BLOCK {
            let info = data.write(number * BLOCK, &block(number * BLOCK, 1), false).unwrap();
            let copies = redundancy.copies() as u64;
            assert_eq!((info.ios, info.bytes), (copies, copies * BLOCK));
            let info = data.read(number * BLOCK, &mut found, &whole).unwrap();
            assert_eq!((info.ios, info.degraded, info.repaired_blocks), (1, false, 0));
        }
        for disk in group.counters() {
            assert_eq!((disk.reads, disk.read_bytes), (1024, 1024 * BLOCK), "{}", disk.name);
            assert_eq!(disk.writes, 1024 * redundancy.copies() as u64, "{}", disk.name);
            assert_eq!(disk.errors, 0);
        }
    }
}

#[test]
fn adjacent_blocks_become_one_write_of_at_most_a_mebibyte() {
    let group = DiskGroup::create_on(
        members(machine(2, 64).disks()),
        Redundancy::Normal,
        Bytes::mib(4),
        &[file("data", 8, false)],
    )
    .unwrap();
    let data = group.file("data").unwrap();
    let batch = |numbers: &[u64]| {
        let blocks: Vec<Vec<u8>> = numbers.iter().map(|n| block(n * BLOCK, 1)).collect();
        let writes: Vec<_> = numbers
            .iter()
            .zip(&blocks)
            .map(|(number, data)| BatchWrite { offset: number * BLOCK, data })
            .collect();
        data.write_batch(&writes).unwrap()
    };
    assert_eq!(batch(&[5, 3, 4, 9]).ios, 4, "blocks 3 to 5 and 9, two copies");
    let whole_unit: Vec<u64> = (0..1024).rev().collect();
    let info = batch(&whole_unit);
    assert_eq!((info.ios, info.bytes), (8, 8 << 20), "4 MiB in four writes, two copies");
}

#[test]
fn one_megabyte_of_redo_occupies_eight_disks_at_once() {
    let small = FileSpec { block: Bytes(512), ..file("redo", 8, true) };
    let disks = machine(8, 32).disks();
    let group = DiskGroup::create_on(members(disks), Redundancy::External, Bytes::mib(1), &[small])
        .unwrap();
    let redo = group.file("redo").unwrap();
    let info = redo.write(0, &vec![7; 1 << 20], true).unwrap();
    assert_eq!(info.ios, 8);
    let by_disk: BTreeMap<String, u64> =
        group.counters().into_iter().map(|disk| (disk.name, disk.write_bytes)).collect();
    assert!(by_disk.values().all(|bytes| *bytes == 128 << 10), "{by_disk:?}");
}

#[test]
fn a_request_beyond_the_end_or_beside_the_blocks_is_refused() {
    let group = crate::create(machine(2, 32).disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    let mut found = vec![0; BLOCK as usize];
    for offset in [data.size(), data.size() - 512, 512, u64::MAX - 4095] {
        assert!(data.read(offset, &mut found, &whole).is_err(), "{offset}");
        assert!(data.write(offset, &found, false).is_err(), "{offset}");
    }
    assert!(data.read(0, &mut found[..512], &whole).is_err());
    assert!(group.file("none").unwrap_err().to_string().contains("open file none"));
}
