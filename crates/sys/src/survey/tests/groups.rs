use blockstone_base::identity::{CapKind, CgroupCap};

use super::*;

fn caps(tree: &Tree, devices: &[&str]) -> Vec<(String, CapKind, u64)> {
    let caps = Groups::read(tree.root()).io_caps(devices);
    caps.into_iter().map(|cap: CgroupCap| (cap.source, cap.kind, cap.limit)).collect()
}

/// As on the machine on which these tests were written: version 1 together with version 2.
fn hybrid(group: &str) -> Tree {
    let tree = Tree::new();
    tree.file("/proc/self/cgroup", &format!("7:blkio:{group}\n4:memory:/m\n1:cpu,cpuacct:/\n0::/"))
        .mounts(&[
            "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct",
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
            "38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio",
            "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw",
        ]);
    tree
}

#[test]
fn version_1_caps_of_the_group_and_its_ancestors_hold() {
    let tree = hybrid("/a/b");
    let blkio = "/sys/fs/cgroup/blkio";
    tree.file(&format!("{blkio}/a/b/blkio.throttle.read_iops_device"), "7:3 437\n8:0 99")
        .file(&format!("{blkio}/a/blkio.throttle.write_bps_device"), "7:3 104857600")
        .file(&format!("{blkio}/other/blkio.throttle.read_iops_device"), "7:3 1")
        .file(&format!("{blkio}/a/blkio.throttle.write_iops_device"), "");
    assert_eq!(
        caps(&tree, &["7:3", "254:0"]),
        [
            (format!("{blkio}/a/b/blkio.throttle.read_iops_device"), CapKind::ReadIops, 437),
            (
                format!("{blkio}/a/blkio.throttle.write_bps_device"),
                CapKind::WriteBytesPerS,
                104_857_600
            ),
        ]
    );
    assert_eq!(caps(&tree, &["9:9"]), []);
}

#[test]
fn version_2_caps_are_read_and_max_is_none() {
    let tree = Tree::new();
    tree.file("/proc/self/cgroup", "0::/user.slice/run.scope")
        .mounts(&["31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate"]);
    let base = "/sys/fs/cgroup/user.slice";
    tree.file(
        &format!("{base}/run.scope/io.max"),
        "254:0 rbps=max wbps=1048576 riops=5000 wiops=max",
    )
    .file(&format!("{base}/io.max"), "254:0 rbps=2097152 wbps=max riops=max wiops=500");
    assert_eq!(
        caps(&tree, &["254:0"]),
        [
            (format!("{base}/run.scope/io.max"), CapKind::WriteBytesPerS, 1_048_576),
            (format!("{base}/run.scope/io.max"), CapKind::ReadIops, 5000),
            (format!("{base}/io.max"), CapKind::ReadBytesPerS, 2_097_152),
            (format!("{base}/io.max"), CapKind::WriteIops, 500),
        ]
    );
}

#[test]
fn a_container_sees_its_group_at_the_mount() {
    let tree = Tree::new();
    tree.file("/proc/self/cgroup", "7:blkio:/docker/c0ffee\n0::/../outside").mounts(&[
        "38 31 0:35 /docker/c0ffee /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio",
        "41 31 0:38 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw",
    ]);
    let blkio = "/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device";
    let unified = "/sys/fs/cgroup/unified/io.max";
    tree.file(blkio, "254:0 1000").file(unified, "254:0 riops=7");
    assert_eq!(
        caps(&tree, &["254:0"]),
        [
            (unified.to_owned(), CapKind::ReadIops, 7),
            (blkio.to_owned(), CapKind::ReadBytesPerS, 1000),
        ]
    );
}

#[test]
fn the_tightest_processor_quota_counts() {
    let tree = hybrid("/");
    let cpu = "/sys/fs/cgroup/cpu";
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), None);
    tree.file(&format!("{cpu}/cpu.cfs_quota_us"), "-1")
        .file(&format!("{cpu}/cpu.cfs_period_us"), "100000");
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), None);
    tree.file(&format!("{cpu}/cpu.cfs_quota_us"), "150000");
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), Some(1500));
    tree.file("/sys/fs/cgroup/unified/cpu.max", "max 100000");
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), Some(1500));
    tree.file("/sys/fs/cgroup/unified/cpu.max", "50000 100000");
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), Some(500));
}

#[test]
fn what_a_memory_limit_leaves_is_less_than_what_is_available() {
    let tree = hybrid("/");
    let memory = "/sys/fs/cgroup/memory";
    tree.file("/proc/meminfo", "MemTotal: 24684092 kB\nMemAvailable: 1048576 kB");
    assert_eq!(mem_available_bytes(tree.root()), Some(1 << 30));
    tree.file(&format!("{memory}/m/memory.limit_in_bytes"), "9223372036854771712")
        .file(&format!("{memory}/m/memory.usage_in_bytes"), "100");
    assert_eq!(mem_available_bytes(tree.root()), Some(1 << 30), "no limit");
    tree.file(&format!("{memory}/memory.limit_in_bytes"), "1000")
        .file(&format!("{memory}/memory.usage_in_bytes"), "400");
    assert_eq!(mem_available_bytes(tree.root()), Some(600));
    let stat = "cache 300\ntotal_cache 300\ntotal_inactive_file 200\ntotal_active_file 50";
    tree.file(&format!("{memory}/memory.stat"), stat);
    assert_eq!(mem_available_bytes(tree.root()), Some(850), "pages of files are taken back");
    tree.file("/sys/fs/cgroup/unified/memory.max", "1000")
        .file("/sys/fs/cgroup/unified/memory.current", "900")
        .file("/sys/fs/cgroup/unified/memory.stat", "anon 700\ninactive_file 90\nactive_file 10");
    assert_eq!(mem_available_bytes(tree.root()), Some(200));
}

#[test]
fn a_machine_without_groups_has_no_limits() {
    let tree = Tree::new();
    assert_eq!(caps(&tree, &["254:0"]), []);
    assert_eq!(Groups::read(tree.root()).cpu_quota_milli(), None);
    assert_eq!(mem_available_bytes(tree.root()), None);
}
