//! Words that a claim may have, beside numbers, units and links.

/// Words that precede a link.
pub const OVER: &[&str] = &["over", "through", "via", "across", "on", "with", "by", "using", "at"];
/// Those after which bytes per second are those of a link.
pub const THROUGH: &[&str] = &["through", "via", "across"];
pub const MEMORY: &[&str] = &["ram", "memory", "dram", "cache"];
pub const DATA: &[&str] = &[
    "file",
    "files",
    "data",
    "dataset",
    "database",
    "table",
    "tables",
    "lun",
    "luns",
    "volume",
    "volumes",
    "device",
    "devices",
    "area",
    "set",
    "partition",
    "image",
    "span",
    "filesystem",
];
pub const REQUESTS: &[&str] = &[
    "block",
    "blocks",
    "request",
    "requests",
    "reads",
    "writes",
    "read",
    "write",
    "i/o",
    "i/os",
    "io",
    "ios",
    "random",
    "pages",
    "page",
    "records",
    "record",
    "operations",
    "ops",
    "sequential",
    "chunks",
    "transfers",
    "blocksize",
];
/// Units of a number of requests in all.
pub const COUNTED: &[&str] = &[
    "block",
    "blocks",
    "request",
    "requests",
    "reads",
    "writes",
    "i/os",
    "ios",
    "pages",
    "records",
    "operations",
    "ops",
    "chunks",
    "transfers",
    "read",
    "write",
    "i/o",
    "io",
    "random",
];
pub const DISKS: &[&str] =
    &["disk", "disks", "spindle", "spindles", "drive", "drives", "hdd", "hdds", "ssd", "ssds"];
pub const ROTATING: &[&str] = &["spindle", "spindles", "hdd", "hdds"];
/// Words between a number and what it is a number of.
pub const KINDS: &[&str] = &[
    "different",
    "single",
    "separate",
    "equal",
    "small",
    "large",
    "random",
    "sequential",
    "sas",
    "sata",
    "fc",
    "nvme",
    "flash",
    "scsi",
    "hard",
    "enterprise",
    "nearline",
    "nl-sas",
    "of",
    "physical",
    "the",
    "same",
    "local",
    "raw",
];
/// Words before the value that another is compared with.
pub const AGAINST: &[&str] = &["against", "instead", "vs", "versus", "than", "compared", "→"];
pub const MORE: &[&str] = &[
    "more",
    "faster",
    "higher",
    "above",
    "better",
    "longer",
    "increase",
    "improvement",
    "speedup",
    "gain",
    "quicker",
];
pub const LESS: &[&str] = &[
    "less",
    "fewer",
    "slower",
    "lower",
    "below",
    "shorter",
    "decrease",
    "reduction",
    "saved",
    "drop",
];
pub const DIRECT: &[&str] =
    &["direct", "o_direct", "directio", "unbuffered", "uncached", "direct-io", "raw"];
pub const CACHED: &[&str] = &["cached", "tmpfs", "ramdisk", "arc", "in-memory", "/dev/shm"];
/// Words after a number of clients that wait for one request at a time each.
pub const WAITING: &[&str] = &[
    "reader",
    "readers",
    "writer",
    "writers",
    "session",
    "sessions",
    "thread",
    "threads",
    "process",
    "processes",
    "stream",
    "streams",
    "jobs",
    "workers",
];
pub const LATENCY: &[&str] = &["latency", "latencies", "response", "lat", "await", "clat"];
/// Statistics of latencies other than the mean.
pub const QUANTILES: &[&str] = &[
    "p50", "p90", "p95", "p99", "p99.9", "p999", "p99.99", "median", "99th", "95th", "99.9th",
    "max", "maximum", "worst", "tail",
];
pub const MEAN: &[&str] = &["average", "avg", "mean", "typical"];
pub const READ: &[&str] = &["read", "reads", "reading", "reader", "readers", "randread", "r"];
pub const WRITE: &[&str] =
    &["write", "writes", "writing", "writer", "writers", "written", "wrote", "randwrite", "w"];
pub const SEQUENTIAL: &[&str] = &["sequential", "seq", "sequentially", "seq1m", "streaming"];
pub const RANDOM: &[&str] = &["random", "rand", "randomly", "rnd4k", "randread", "randwrite"];
/// Both directions, each at the rate that is stated.
pub const READ_WRITE: &[&str] = &["read/write", "r/w", "reads/writes", "rw"];
/// A rate that is the sum of both directions.
pub const BOTH: &[&str] =
    &["mixed", "mix", "duplex", "full-duplex", "bidirectional", "bi-directional", "both", "randrw"];
/// Machines, which are listed only.
pub const HOSTS: &[&str] = &[
    "hosts",
    "nodes",
    "servers",
    "clients",
    "vms",
    "cells",
    "instances",
    "cores",
    "cpus",
    "host",
    "node",
    "server",
    "client",
    "vm",
    "core",
    "machines",
    "controllers",
];
/// Words before bytes that were moved.
pub const MOVED: &[&str] =
    &["copied", "moved", "wrote", "transferred", "sent", "copying", "moving"];
/// Things of which a rate is stated for each.
pub const LINKS: &[&str] = &["port", "link", "hba", "path", "ports", "links", "nic", "interface"];
/// Words that say something which no arithmetic uses: they are listed as such.
pub const MENTIONED: &[&str] = &[
    "dd",
    "scp",
    "cp",
    "rsync",
    "fio",
    "hdparm",
    "orion",
    "iometer",
    "iperf",
    "iperf3",
    "bonnie",
    "ioping",
    "sysbench",
    "pgbench",
    "vdbench",
    "crystaldiskmark",
    "diskspd",
    "slob",
    "buffered",
    "raid",
    "raid0",
    "raid1",
    "raid5",
    "raid6",
    "raid10",
    "raidz",
    "raidz2",
    "raid-0",
    "raid-1",
    "raid-5",
    "raid-6",
    "raid-10",
    "zfs",
    "xfs",
    "ext4",
    "ext3",
    "btrfs",
    "ntfs",
    "nas",
    "san",
    "linux",
    "windows",
    "libaio",
    "io_uring",
    "m.2",
    "u.2",
    "nvme",
    "flash",
    "all-flash",
    "ssd",
    "hdd",
    "gp3",
    "gp2",
    "io1",
    "io2",
    "sustained",
    "peak",
    "burst",
    "cold",
    "sync",
    "fsync",
    "proxmox",
    "vmware",
    "postgresql",
    "oracle",
    "mysql",
    "solaris",
    "samsung",
    "intel",
    "optane",
    "enterprise",
    "sas",
    "sata",
    "compressed",
    "synthetic",
    "real-world",
    "consumer",
    "internal",
    "external",
    "mirror",
    "mirrored",
    "striped",
    "stripe",
    "lacp",
    "mpio",
    "multipath",
    "hba",
    "jobs",
];
/// Words without a meaning of their own.
pub const FILLERS: &str = "\
    a an the and of in at from to into on over through via across with by per using within took \
    takes take was were is are be moved copied copying copies transferred transfer transfers only \
    about around approximately approx roughly nearly almost some single one host server machine \
    system concurrent concurrently parallel stream streams process processes session sessions \
    thread threads copy storage array main different that has have physical for we i it its get \
    gets got getting see seen saw achieved achieves achieve delivers delivering deliver reached \
    reaches reaching hit hits hitting does did do doing can could = - / + , up max maximum \
    sequential queue time elapsed as each speed speeds rate rates throughput bandwidth bw \
    performance result results total aggregate aggregated combined overall timing disk disks drive \
    drives io i/o seconds second runtime run real new old before after average avg mean measured \
    test tested benchmark this my our out records transferring backup restore full large small \
    larger file files data when while running just local remote sent received or end wall clock \
    job reduced improved increased improvement increases increase improves read/write r/w dropped \
    went grew which so then under load capable gives give yields offers provides shows rated spec \
    sheet @ spindles spindle ssds hdds volume → blocks block requests request";

/// Whether a word is one of these, ignoring case.
pub fn is_one(word: &str, any: &[&str]) -> bool {
    any.iter().any(|it| it.eq_ignore_ascii_case(word))
}
