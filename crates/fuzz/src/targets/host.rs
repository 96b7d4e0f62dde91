//! Texts of /proc and /sys. The kernel is trusted, but not every kernel is known, and copies of
//! these files come from anywhere.

use std::collections::BTreeMap;
use std::fs;

use blockstone_probe::nvme::log;
use blockstone_probe::{Context, Pages, registry};
use blockstone_sys::cgroup::Groups;
use blockstone_sys::{account, proc};

use crate::scratch::{self, put};

/// Files of a machine; an input is their texts, each followed by a zero byte.
const FILES: &[(&str, &str)] = &[
    (
        "/sys/class/block/vda/stat",
        "92975 381570 2455443927 510590 22567 885170 16864 249881 0 378 76470 7 3 11 18 3 23\n",
    ),
    (
        "/proc/stat",
        "cpu  2022519 149110 816086 1401897 373260 0 35605 17768 0 0\ncpu0 975983 75265 356232 \
         852863 144569 0 2802 8597 0 0\nctxt 211337281\nprocesses 922911\nprocs_running 8\n",
    ),
    ("/proc/meminfo", "MemTotal:       24684084 kB\nMemFree:        20345620 kB\nDirty: 1 kB\n"),
    ("/proc/vmstat", "pgpgin 5472\npgpgout 330144\npgfault 16206\npgmajfault 12\npswpin 0\n"),
    ("/proc/net/dev", "Inter-|\n face |\n  eth0: 9393 543 0 0 0 0 0 0 9393 527 0 0 0 0 0 0\n"),
    (
        "/proc/net/snmp",
        "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 5403580 5393698 527\n",
    ),
    ("/proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=14093239\n"),
    ("/proc/loadavg", "4.08 3.77 5.88 8/138 14520\n"),
];

pub fn pages() -> Vec<Vec<u8>> {
    vec![FILES.iter().flat_map(|(_, text)| [text.as_bytes(), b"\0"]).flatten().copied().collect()]
}

/// Runs every probe that reads texts, at three ticks: these texts, the next ones, these again.
pub fn probes(input: &[u8]) -> bool {
    let pages = Pages::default();
    let context = Context::of_pages(pages.clone());
    let turn = |by: usize| {
        let texts = input.split(|&byte| byte == 0).map(<[u8]>::to_vec);
        let paths = FILES.iter().cycle().skip(by).map(|(path, _)| (*path).to_owned());
        pages.turn(paths.zip(texts).take(FILES.len()).collect::<BTreeMap<_, _>>());
    };
    turn(0);
    let mut probes: Vec<_> =
        registry::of(&context).map(|entry| (entry, (entry.open)(&context))).collect();
    let mut rows = Vec::new();
    for by in [0, 1, 0] {
        turn(by);
        for (entry, probe) in &mut probes {
            rows.clear();
            probe.sample(&mut rows);
            let width = entry.schema.columns.len();
            assert!(rows.iter().all(|row| row.cells.len() == width), "a row lacks cells");
        }
    }
    true
}

const PROCESS: &[(&str, &str)] = &[
    ("proc/7/stat", "7 (a) name) S 1 7 7 0 -1 4194560 1 2 3 4 5 6\n"),
    ("proc/7/schedstat", "123456789 987654 321\n"),
    (
        "proc/7/io",
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
         cancelled_write_bytes: 0\n",
    ),
    ("proc/7/maps", "55d0c0000000-55d0c0001000 r-xp 00000000 fe:00 123      /usr/bin/cat\n"),
    ("proc/7/cgroup", "0::/system.slice/postgresql.service\n3:cpu,cpuacct:/a\n"),
    (
        "proc/self/mountinfo",
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
         30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    ),
    ("sys/fs/cgroup/system.slice/postgresql.service/cpu.stat", "usage_usec 5\nnr_throttled 1\n"),
    ("sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "200000 100000\n"),
    ("sys/fs/cgroup/system.slice/postgresql.service/memory.max", "1073741824\n"),
    (
        "sys/fs/cgroup/system.slice/postgresql.service/io.stat",
        "254:0 rbytes=5 wbytes=7 rios=1 wios=2 dbytes=0 dios=0\n",
    ),
];

pub fn process_files() -> Vec<Vec<u8>> {
    vec![PROCESS.iter().flat_map(|(_, text)| [text.as_bytes(), b"\0"]).flatten().copied().collect()]
}

/// Reads the files of one process, its control groups and its mounts.
pub fn process(input: &[u8]) -> bool {
    let root = scratch::dir("process", |root| {
        for (path, _) in PROCESS {
            let parent = root.join(path);
            let parent = parent.parent().unwrap_or(root);
            fs::create_dir_all(parent).expect("temporary directories can be made");
        }
    });
    for ((path, _), text) in PROCESS.iter().zip(input.split(|&byte| byte == 0)) {
        put(&root.join(path), text);
    }
    let _ = (account::process(&root, 7), account::account(&root, 7, None), account::code(&root, 7));
    let groups = Groups::of_process(&root, 7);
    let _ = (groups.usage(), groups.name().len());
    proc::cpus_of_list(&String::from_utf8_lossy(&input[..input.len().min(64)]));
    true
}

/// Returns a SMART log with all its counters, and an OCP log.
pub fn log_pages() -> Vec<Vec<u8>> {
    let mut health = vec![0; 512];
    for (index, byte) in health[..192].iter_mut().enumerate() {
        *byte = if index < 32 || index % 16 < 4 { index as u8 } else { 0 };
    }
    let mut ocp = vec![0; 512];
    (ocp[0], ocp[16]) = (7, 3);
    let guid = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5_u128;
    ocp[496..].copy_from_slice(&guid.to_le_bytes());
    vec![health, ocp]
}

pub fn log_page(input: &[u8]) -> bool {
    let health = log::health(input);
    if let Some(health) = &health {
        assert!(!log::warnings(health.critical_warning).is_empty());
    }
    health.is_some() || log::ocp_health(input).is_some()
}
