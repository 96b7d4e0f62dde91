//! Recognition of file systems, volumes and partition tables: a few bytes at a known place, as
//! defined by libblkid and the kernel's headers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes at a place that identify something.
struct Signature {
    name: &'static str,
    at: At,
    magic: &'static [u8],
}

/// Number of bytes from the beginning, or a place near the end.
#[derive(Clone, Copy)]
enum At {
    Start(u64),
    /// This many bytes before the end, rounded down to a multiple of the second number.
    End(u64, u64),
}

use At::{End, Start};

const fn signature(name: &'static str, at: At, magic: &'static [u8]) -> Signature {
    Signature { name, at, magic }
}

const SWAP: &str = "a swap area";
const MD: &str = "a member of a Linux RAID (md)";
const LVM: &str = "a physical volume of LVM";
const GPT: &str = "a GPT partition table";
const MD_MAGIC: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const BCACHE: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
const BCACHEFS: [u8; 16] = [
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];

/// Volumes come first: the signatures of their contents may show through.
const SIGNATURES: &[Signature] = &[
    signature("a disk group of Blockstone", Start(0), b"BLKSTDSK"),
    signature("data of an earlier calibration", Start(0), b"blkstone"),
    signature(LVM, Start(0), b"LABELONE"),
    signature(LVM, Start(512), b"LABELONE"),
    signature(LVM, Start(1024), b"LABELONE"),
    signature(LVM, Start(1536), b"LABELONE"),
    signature(MD, Start(0), MD_MAGIC),
    signature(MD, Start(4096), MD_MAGIC),
    signature(MD, End(8192, 4096), MD_MAGIC),
    signature(MD, End(65536, 65536), MD_MAGIC),
    signature("a LUKS volume", Start(0), b"LUKS\xba\xbe"),
    signature("a LUKS volume", Start(0x4000), b"SKUL\xba\xbe"),
    signature("a BitLocker volume", Start(3), b"-FVE-FS-"),
    signature("a device of bcache", Start(4096 + 24), &BCACHE),
    signature("bcachefs", Start(4096 + 24), &BCACHEFS),
    signature("a disk of Oracle ASM", Start(32), b"ORCLDISK"),
    signature("a volume of VDO", Start(0), b"dmvdo001"),
    signature("a pool member of Stratis", Start(516), b"!Stra0tis"),
    signature("a Ceph OSD (BlueStore)", Start(0), b"bluestore block device"),
    signature("a member of an Intel RAID", End(1024, 512), b"Intel Raid ISM Cfg"),
    signature("a member of a DDF RAID", End(512, 512), &[0xde, 0x11, 0xde, 0x11]),
    signature("a volume of VMware", Start(1 << 20), &[0x0d, 0xd0, 0x01, 0xc0]),
    signature("ext2, ext3 or ext4", Start(0x438), &[0x53, 0xef]),
    signature("XFS", Start(0), b"XFSB"),
    signature("btrfs", Start(0x1_0040), b"_BHRfS_M"),
    signature("F2FS", Start(0x400), &[0x10, 0x20, 0xf5, 0xf2]),
    signature("JFS", Start(0x8000), b"JFS1"),
    signature("ReiserFS", Start(0x1_0034), b"ReIsEr"),
    signature("NILFS2", Start(0x406), &[0x34, 0x34]),
    signature("GFS2", Start(0x1_0000), &[0x01, 0x16, 0x19, 0x70]),
    signature("OCFS2", Start(0x400), b"OCFSV2"),
    signature("OCFS2", Start(0x800), b"OCFSV2"),
    signature("OCFS2", Start(0x1000), b"OCFSV2"),
    signature("OCFS2", Start(0x2000), b"OCFSV2"),
    signature("EROFS", Start(0x400), &[0xe2, 0xe1, 0xf5, 0xe0]),
    signature("SquashFS", Start(0), b"hsqs"),
    signature("HFS+", Start(0x400), b"H+"),
    signature("APFS", Start(32), b"NXSB"),
    signature("NTFS", Start(3), b"NTFS    "),
    signature("exFAT", Start(3), b"EXFAT   "),
    signature("FAT", Start(0x52), b"FAT32   "),
    signature("FAT", Start(0x36), b"FAT1"),
    signature("an ISO 9660 image", Start(0x8001), b"CD001"),
    signature("UDF", Start(0x8001), b"BEA01"),
    signature(SWAP, Start(4096 - 10), b"SWAPSPACE2"),
    signature(SWAP, Start(8192 - 10), b"SWAPSPACE2"),
    signature(SWAP, Start(16384 - 10), b"SWAPSPACE2"),
    signature(SWAP, Start(65536 - 10), b"SWAPSPACE2"),
    signature(SWAP, Start(4096 - 10), b"SWAP-SPACE"),
    signature("a hibernated system", Start(4096 - 10), b"S1SUSPEND"),
    signature(GPT, Start(512), b"EFI PART"),
    signature(GPT, Start(4096), b"EFI PART"),
    signature(GPT, End(512, 512), b"EFI PART"),
    signature(GPT, End(4096, 4096), b"EFI PART"),
    signature("a partition table or boot sector", Start(510), &[0x55, 0xaa]),
];

/// ZFS keeps four labels of 256 KiB, and in the upper half of each a ring of uberblocks.
const ZFS: &str = "a member of a ZFS pool";
const ZFS_LABEL_BYTES: u64 = 256 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Returns what a device is known to be; `None` if none of the signatures is present.
pub fn find(file: &File, size_bytes: u64) -> io::Result<Option<&'static str>> {
    for Signature { name, at, magic } in SIGNATURES {
        let offset_bytes = match *at {
            Start(bytes) => Some(bytes),
            End(bytes, unit) => size_bytes.checked_sub(bytes).map(|start| start / unit * unit),
        };
        let end = offset_bytes.map(|offset| offset + magic.len() as u64);
        if let (Some(offset_bytes), Some(true)) = (offset_bytes, end.map(|end| end <= size_bytes)) {
            let mut bytes = [0; 32];
            let bytes = &mut bytes[..magic.len()];
            file.read_exact_at(bytes, offset_bytes)?;
            if bytes == *magic {
                return Ok(Some(name));
            }
        }
    }
    Ok(is_zfs(file, size_bytes)?.then_some(ZFS))
}

fn is_zfs(file: &File, size_bytes: u64) -> io::Result<bool> {
    let end = size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let Some(third) = end.checked_sub(2 * ZFS_LABEL_BYTES) else { return Ok(false) };
    let mut ring = vec![0; (ZFS_LABEL_BYTES / 2) as usize];
    for label in [0, ZFS_LABEL_BYTES, third, third + ZFS_LABEL_BYTES] {
        file.read_exact_at(&mut ring, label + ZFS_LABEL_BYTES / 2)?;
        let magics = [ZFS_MAGIC.to_le_bytes(), ZFS_MAGIC.to_be_bytes()];
        if ring.chunks(1024).any(|uberblock| magics.iter().any(|m| uberblock.starts_with(m))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the places of superblocks, or of copies of them, beyond the first MiB of a device of
/// this size: the beginning of a first partition, the copies of btrfs, those of ext4 in block
/// groups 1, 3, 5, 7, 9 and 25, and the allocation groups of XFS, of which mkfs creates four.
pub fn superblocks(size_bytes: u64) -> impl Iterator<Item = u64> {
    const MIB: u64 = 1 << 20;
    let partition = (0..32).map(|block| MIB + block * 4096);
    let btrfs = [64 * MIB, 256 << 30];
    let groups = [1, 3, 5, 7, 9, 25];
    // A group has 8 bits for each byte of a block; with blocks of 1 KiB groups begin at block 1.
    let ext4 = [(1024_u64, 1024), (2048, 0), (4096, 0)].into_iter();
    let ext4 = ext4.flat_map(move |(block, first)| {
        groups.into_iter().map(move |group| group * block * 8 * block + first)
    });
    // The last group may be smaller: the others round up to whole blocks of 4 KiB.
    let group = size_bytes.div_ceil(4 * 4096) * 4096;
    let xfs = (1..4).flat_map(move |number| [number * (size_bytes / 4), number * group]);
    partition.chain(btrfs).chain(ext4).chain(xfs)
}

#[cfg(test)]
pub(super) fn all(size_bytes: u64) -> impl Iterator<Item = (&'static str, u64, &'static [u8])> {
    SIGNATURES.iter().map(move |Signature { name, at, magic }| match *at {
        Start(bytes) => (*name, bytes, *magic),
        End(bytes, unit) => (*name, (size_bytes - bytes) / unit * unit, *magic),
    })
}
