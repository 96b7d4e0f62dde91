//! Storage that is main memory of this machine.

use blockstone_base::identity::{ChainEnd, Keeps};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule, file_system, in_memory};

/// Advice for any storage that is main memory.
pub(in crate::rules) const NEXT: &str =
    "Choose a path on a storage device (findmnt -T PATH, lsblk -s).";

pub const ABOUT: About = About {
    id: "memory-backed",
    weight: Weight::Condemns,
    doc: "The storage is main memory: a file system in memory, a RAM disk, compressed memory, or a \
          loop device, partition or volume whose data end up in one of these.",
    threshold: "The chain of devices is followed from the path to its ends, through partitions, \
                volumes and the backing files of loop devices (/proc/self/mountinfo, \
                /sys/class/block). Every end is tmpfs, ramfs, devtmpfs, hugetlbfs, zram, brd \
                (ram0), null_blk (nullb0) or scsi_debug. It only warns if some ends are memory and \
                others are not, and for pmem, which is either persistent memory or a part of main \
                memory that the kernel presents as such. Inconclusive without a device beneath the \
                path, and for nbd, ublk and rbd devices, whose server may keep its data anywhere. \
                What a hypervisor or an array does with its side of a disk cannot be seen from \
                this machine.",
    cause: "The path lies on a RAM disk or in /dev/shm, /tmp or /run.",
    next: NEXT,
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

fn check(manifest: &Manifest) -> Judgement {
    let target = &manifest.target;
    if target.devices.is_empty() {
        return match in_memory(target) {
            Some(memory) => Judgement::fail(
                format!("{} is on {memory}, which is main memory", target.path),
                Vec::new(),
            ),
            None => Judgement::inconclusive(format!(
                "no block device is known beneath {} ({})",
                target.path,
                file_system(manifest)
            )),
        };
    }
    let ends: Vec<ChainEnd> = target.ends();
    let of = |keeps: Keeps| -> Vec<&str> {
        let wanted = ends.iter().filter(|end| end.keeps == keeps);
        wanted.map(|end| end.what.as_str()).collect()
    };
    let (memory, persistent, served) =
        (of(Keeps::Memory), of(Keeps::PersistentMemory), of(Keeps::Server));
    let fail = |found: &[&str]| {
        let evidence =
            format!("{} of {} ends of the chain: {}", found.len(), ends.len(), found.join(", "));
        Judgement::fail(evidence, Vec::new())
    };
    if !memory.is_empty() {
        let judgement = fail(&memory);
        return if memory.len() < ends.len() {
            judgement.weighing(Weight::Warns)
        } else {
            judgement
        };
    }
    if !persistent.is_empty() {
        let judgement = fail(&persistent).weighing(Weight::Warns);
        return judgement.caused_by(PERSISTENT_CAUSE).advising(PERSISTENT_NEXT);
    }
    if !served.is_empty() {
        return Judgement::inconclusive(format!(
            "a program serves {}; where it keeps the data cannot be seen from here",
            served.join(", ")
        ));
    }
    Judgement::pass(format!("the chain ends in {}", of(Keeps::Storage).join(", ")))
}

const PERSISTENT_CAUSE: &str =
    "Persistent memory, or memory that memmap= or a hypervisor (virtio-pmem) presents as such.";
const PERSISTENT_NEXT: &str = "\
    Check what it is (ndctl list -v, dmesg): only a module with its own power keeps data, and \
    latencies are those of memory in any case.";

#[cfg(test)]
mod tests {
    use blockstone_base::identity::{BlockDevice, DeviceKind};
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::{Fixture, device};

    fn judged(devices: Vec<BlockDevice>) -> Verdict {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices = devices;
        fixture.verdict("memory-backed")
    }

    fn over(upper: &str, kind: DeviceKind, lower: &[&str]) -> BlockDevice {
        let beneath = lower.iter().map(|&name| name.to_owned()).collect();
        BlockDevice { beneath, ..device(upper, kind) }
    }

    fn disk(name: &str) -> BlockDevice {
        device(name, DeviceKind::Disk)
    }

    #[test]
    fn devices_in_memory_are_condemned_and_their_namesakes_pass() {
        for name in ["zram0", "ram15", "nullb0"] {
            let verdict = judged(vec![disk(name)]);
            assert!(verdict.condemns() && !verdict.concerns.is_empty(), "{name}");
            assert!(verdict.evidence.contains(name), "{}", verdict.evidence);
        }
        let debug = BlockDevice { model: Some("Linux scsi_debug".to_owned()), ..disk("sda") };
        assert!(judged(vec![debug]).condemns());
        for name in ["vda", "nvme0n1", "rambler", "xvda", "mmcblk0"] {
            let verdict = judged(vec![disk(name)]);
            assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
        }
    }

    #[test]
    fn the_chain_is_followed_to_its_end() {
        let on = |kind: &str, mut lower: Vec<BlockDevice>| {
            let file = over("loop0", DeviceKind::Loop, &["/mnt/image"]);
            let looped = BlockDevice { backing_file_system: Some(kind.to_owned()), ..file };
            lower.insert(0, looped);
            lower.insert(0, over("dm-0", DeviceKind::DeviceMapper, &["loop0"]));
            judged(lower)
        };
        let verdict = on("tmpfs", Vec::new());
        assert!(verdict.condemns(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("/mnt/image lies on tmpfs"), "{}", verdict.evidence);
        assert!(on("ext4", vec![disk("zram1")]).condemns());
        assert_eq!(on("xfs", vec![disk("sda")]).outcome, Outcome::Pass);
    }

    #[test]
    fn a_mirror_with_one_leg_in_memory_warns() {
        let mirror = over("md0", DeviceKind::Raid, &["ram0", "sda"]);
        let verdict = judged(vec![mirror, disk("ram0"), disk("sda")]);
        assert!(verdict.warns() && verdict.evidence.starts_with("1 of 2 ends"), "{verdict:?}");
        let written_back = over("zram0", DeviceKind::Zram, &["sda1"]);
        let part = over("sda1", DeviceKind::Partition, &["sda"]);
        assert!(judged(vec![written_back, part, disk("sda")]).warns());
    }

    #[test]
    fn persistent_memory_warns_and_what_a_program_serves_stays_open() {
        let verdict = judged(vec![disk("pmem0")]);
        assert!(verdict.warns() && verdict.next.contains("ndctl"), "{verdict:?}");
        for name in ["nbd0", "ublkb0", "rbd1"] {
            assert_eq!(judged(vec![disk(name)]).outcome, Outcome::Inconclusive, "{name}");
        }
    }

    #[test]
    fn a_file_system_in_memory_is_memory_and_one_without_devices_is_open() {
        let on = |kind: &str| {
            let mut fixture = Fixture::healthy();
            fixture.manifest.target.devices.clear();
            fixture.manifest.target.file_system.as_mut().unwrap().kind = kind.to_owned();
            fixture.verdict("memory-backed")
        };
        assert!(on("tmpfs").condemns() && on("ramfs").condemns());
        assert_eq!(on("nfs4").outcome, Outcome::Inconclusive);
    }
}
