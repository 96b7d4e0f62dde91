//! Synthetic machines on which a disk is used in one way each. The program's tests try the same
//! with loop devices on the machine that runs them.

use super::*;

const SDB: &str = "/sys/devices/pci0000:00/0000:00:03.0/host0/block/sdb";
const LOOP: &str = "/sys/devices/virtual/block/loop";

/// Creates a machine on which nothing uses the disk sdb (8:16).
fn machine() -> Tree {
    let tree = Tree::new();
    tree.disk(VDA, "254:0", 536_870_912).mounts(&[ROOT_ON_VDA]).processes();
    tree.disk(SDB, "8:16", 536_870_912);
    tree
}

fn user(tree: &Tree, number: (u32, u32)) -> Option<String> {
    usage::user_of_number(tree.root(), number).unwrap()
}

#[track_caller]
fn unknown(tree: &Tree) -> String {
    usage::user_of_number(tree.root(), (8, 16)).unwrap_err().why
}

fn remove(tree: &Tree, path: &str) {
    let path = proc::under(tree.root(), path);
    fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).unwrap();
}

#[test]
fn a_disk_that_nothing_uses_is_free() {
    let tree = machine();
    assert_eq!(user(&tree, (8, 16)), None);
    tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/vda2 partition 1 0 -2");
    assert_eq!(user(&tree, (8, 16)), None);
}

#[test]
fn a_disk_with_partitions_is_used_and_a_partition_by_itself_is_not() {
    let tree = machine();
    tree.partition(&format!("{SDB}/sdb1"), "8:17", 1 << 20);
    tree.partition(&format!("{SDB}/sdb2"), "8:18", 1 << 20);
    assert_eq!(user(&tree, (8, 16)).unwrap(), "divided into partitions (sdb1, sdb2)");
    assert_eq!(user(&tree, (8, 17)), None);
    // The neighbour's mount does not concern the first partition.
    tree.mounts(&[ROOT_ON_VDA, "30 27 8:18 / /data rw - xfs /dev/sdb2 rw"]);
    assert_eq!(user(&tree, (8, 17)), None);
    assert_eq!(user(&tree, (8, 16)).unwrap(), "mounted at /data");
    // A mount of the whole disk does.
    tree.mounts(&[ROOT_ON_VDA, "30 27 8:16 / /data rw - xfs /dev/sdb rw"]);
    assert_eq!(user(&tree, (8, 17)).unwrap(), "mounted at /data");
    tree.mounts(&[ROOT_ON_VDA]);
    tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/sdb1 partition 1 0 -2");
    assert_eq!(user(&tree, (8, 17)).unwrap(), "used as swap");
}

#[test]
fn a_member_of_a_raid_or_volume_is_used() {
    let tree = machine();
    tree.disk("/sys/devices/virtual/block/dm-0", "253:0", 1 << 20);
    tree.stacked("/sys/devices/virtual/block/dm-0", SDB);
    assert_eq!(user(&tree, (8, 16)).unwrap(), "part of dm-0");
    assert_eq!(user(&tree, (253, 0)), None, "the volume itself is free");
}

#[test]
fn loop_devices_over_the_same_storage_are_seen_in_both_directions() {
    let tree = machine();
    for (number, backing) in [(0, "/dev/sdb"), (1, "/var/disk.img"), (2, "/var/disk.img")] {
        let directory = format!("{LOOP}{number}");
        tree.disk(&directory, &format!("7:{number}"), 1 << 20);
        tree.file(&format!("{directory}/loop/backing_file"), backing);
    }
    assert_eq!(user(&tree, (8, 16)).unwrap(), "the loop device loop0 stands on it");
    assert_eq!(user(&tree, (7, 0)), None, "alone on its disk");
    let shared = user(&tree, (7, 1)).unwrap();
    assert_eq!(shared, "the loop device loop2 stands on the same /var/disk.img");
    tree.mounts(&[ROOT_ON_VDA, "30 27 8:16 / /data rw - xfs /dev/sdb rw"]);
    assert_eq!(user(&tree, (7, 0)).unwrap(), "/dev/sdb beneath it is: mounted at /data");
}

#[test]
fn a_mount_in_another_namespace_is_seen() {
    let tree = machine();
    fs::create_dir_all(proc::under(tree.root(), "/proc/77/fd")).unwrap();
    fs::create_dir_all(proc::under(tree.root(), "/proc/77/ns")).unwrap();
    symlink("mnt:[4026532001]", proc::under(tree.root(), "/proc/77/ns/mnt")).unwrap();
    tree.file("/proc/77/mountinfo", "99 98 8:16 / /inside rw - ext4 /dev/sdb rw");
    let seen = user(&tree, (8, 16)).unwrap();
    assert_eq!(seen, "mounted at /inside in the mount namespace of process 77");
}

#[test]
fn what_cannot_be_told_is_not_free() {
    let tree = machine();
    remove(&tree, "/sys/dev");
    assert_eq!(unknown(&tree), "/sys/dev/block/8:16 cannot be read");
    let tree = machine();
    remove(&tree, &format!("{SDB}/holders"));
    assert!(unknown(&tree).contains("holders cannot be read"));
    let tree = machine();
    remove(&tree, "/sys/block");
    assert_eq!(unknown(&tree), "/sys/block cannot be read");
    let tree = machine();
    remove(&tree, "/proc/self/mountinfo");
    assert_eq!(unknown(&tree), "/proc/self/mountinfo cannot be read");
    let tree = machine();
    remove(&tree, "/proc/1");
    assert_eq!(unknown(&tree), "/proc does not show the processes of other users");
    let tree = machine();
    remove(&tree, "/proc/self/ns/pid");
    assert_eq!(unknown(&tree), "/proc/self/ns/pid cannot be read");
    symlink("pid:[4026532999]", proc::under(tree.root(), "/proc/self/ns/pid")).unwrap();
    assert_eq!(unknown(&tree), "processes outside of this container cannot be seen");
}
