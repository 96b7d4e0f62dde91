use super::*;

const SIZE: u64 = 256 << 20;

struct Disk(tempfile::NamedTempFile);

impl Disk {
    fn new(size_bytes: u64) -> Self {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(size_bytes).unwrap();
        Self(file)
    }

    fn write(&self, offset_bytes: u64, bytes: &[u8]) -> &Self {
        self.0.as_file().write_all_at(bytes, offset_bytes).unwrap();
        self
    }

    fn fill(&self, offset_bytes: u64, len: usize) -> &Self {
        let mut bytes = vec![0; len];
        rng::fill(offset_bytes ^ 7, &mut bytes);
        self.write(offset_bytes, &bytes)
    }

    fn contents(&self) -> Contents {
        look(self.0.as_file()).unwrap()
    }

    fn open(&self) -> BlockFile {
        BlockFile::open(self.0.path(), Access::ReadWrite, true).unwrap()
    }
}

#[test]
fn every_signature_is_recognised_where_it_lies() {
    for (name, at, magic) in signatures::all(SIZE) {
        assert_eq!(Disk::new(SIZE).write(at, magic).contents(), Contents::Known(name), "{at}");
    }
    // In the second label, as ZFS writes it on a little-endian machine.
    let disk = Disk::new(SIZE);
    disk.write((256 << 10) + (128 << 10) + 5 * 1024, &0x00ba_b10c_u64.to_le_bytes());
    assert_eq!(disk.contents(), Contents::Known("a member of a ZFS pool"));
}

#[test]
fn one_byte_at_either_end_or_a_block_at_a_superblock_is_data() {
    let disk = Disk::new(SIZE);
    assert_eq!(disk.contents(), Contents::Empty);
    for at in [4096 * 9 + 17, SIZE - 1, SIZE - (1 << 20)] {
        let found = Disk::new(SIZE).write(at, &[1]).contents();
        assert_eq!(found, Contents::Unknown { offset_bytes: at });
    }
    // A first partition whose table was wiped, the copies of btrfs, of ext4 at 4 KiB blocks, of
    // XFS.
    for at in [(1 << 20) + 1024, (64 << 20) + 64, 128 << 20, SIZE / 4, SIZE / 4 * 3] {
        let found = Disk::new(SIZE).write(at, &[1; 8]).contents();
        let offset_bytes = at / BLOCK_BYTES * BLOCK_BYTES;
        assert_eq!(found, Contents::Unknown { offset_bytes }, "{at}");
    }
}

#[test]
fn data_in_the_middle_of_a_device_are_found() {
    // A 25th of the device, so about 41 of 1,024 draws fall into it.
    let disk = Disk::new(SIZE);
    disk.fill(101 << 20, (SIZE / 25) as usize);
    assert!(matches!(disk.contents(), Contents::Unknown { .. }));
    // Every block of a 4 MiB device is examined.
    let small = Disk::new(4 << 20);
    assert_eq!(small.contents(), Contents::Empty);
    let unknown = Contents::Unknown { offset_bytes: (2 << 20) + 8192 };
    assert_eq!(small.write((2 << 20) + 8200, &[1]).contents(), unknown);
}

#[test]
fn what_a_measurement_left_counts_as_empty_until_something_else_is_written() {
    for size_bytes in [2 << 20, 15 << 20, 64 << 20] {
        let disk = Disk::new(size_bytes);
        disk.fill(0, size_bytes as usize);
        clear_open(&disk.open());
        assert_eq!(disk.contents(), Contents::Empty, "{size_bytes}");
        assert!(!ends_hold_data(disk.0.as_file()).unwrap());
    }
    let disk = Disk::new(64 << 20);
    disk.fill(0, 64 << 20);
    clear_open(&disk.open());
    disk.write(20 << 20, &vec![3; 4 << 20]);
    assert!(matches!(disk.contents(), Contents::Unknown { .. }), "a sixteenth was overwritten");

    let other = Disk::new(128 << 20);
    let mark = std::fs::read(disk.0.path()).unwrap()[(63 << 20) - 4096..][..4096].to_vec();
    other.fill(5 << 20, 100 << 20).write((127 << 20) - 4096, &mark);
    assert!(matches!(other.contents(), Contents::Unknown { .. }), "the mark of another device");
}

#[test]
fn a_measurement_that_was_cut_short_is_marked_only_when_both_ends_are_clear() {
    let disk = Disk::new(64 << 20);
    disk.fill(1 << 20, 62 << 20);
    mark_open_if_clear(&disk.open());
    assert_eq!(disk.contents(), Contents::Empty);
    let disk = Disk::new(64 << 20);
    disk.fill(0, 63 << 20);
    mark_open_if_clear(&disk.open());
    disk.write(0, &vec![0; 1 << 20]);
    assert!(matches!(disk.contents(), Contents::Unknown { .. }), "it was not marked");
}

#[test]
fn a_device_without_bytes_is_no_empty_device() {
    let disk = Disk::new(0);
    assert_eq!(disk.contents(), Contents::NoBytes);
    clear_open(&disk.open());
    mark_open_if_clear(&disk.open());
    assert!(!ends_hold_data(disk.0.as_file()).unwrap());
}
