//! Trees of `/proc` and `/sys` as such machines show them; none of these machines is available.

use super::*;
use crate::tree::Tree;

impl Tree {
    /// Adds idle states of a processor: name, exit latency in µs, entries, time in µs.
    fn idle(&self, cpu: u32, states: &[(&str, u64, u64, u64)]) -> &Self {
        for (at, (name, latency, usage, time)) in states.iter().enumerate() {
            let file = |file: &str, content: &str| {
                self.file(&format!("{CPU}/cpu{cpu}/cpuidle/state{at}/{file}"), content);
            };
            file("name", name);
            file("latency", &latency.to_string());
            file("usage", &usage.to_string());
            file("time", &time.to_string());
            file("disable", "0");
        }
        self
    }

    /// Adds busy and idle ticks of two processors, and a disk's interrupts that each took.
    fn counters(&self, ticks: [(u64, u64); 2], interrupts: [u64; 2]) -> &Self {
        let [a, b] = ticks;
        let stat = format!(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {} 0 0 {} 0 0 0 0 0 0\ncpu1 0 0 {} {} 0 0 0 0 0 0\n\
             intr 1 2",
            a.0, a.1, b.0, b.1
        );
        let [c, d] = interrupts;
        let table = format!(
            "           CPU0       CPU1\n 35:  7  7  PCI-MSIX-0000:00:02.0 0-edge other\n 36:  {c} \
             {d}  PCI-MSIX-0000:81:00.0 1-edge nvme0q1\nLOC:  55  66  Local timer interrupts"
        );
        self.file("/proc/stat", &stat).file("/proc/interrupts", &table)
    }
}

const PCI: &str = "/sys/devices/pci0000:80/0000:81:00.0";

/// Creates two sockets with a processor each, and an `NVMe` disk at the second.
fn server() -> Tree {
    let tree = Tree::new();
    let states = [("POLL", 0, 5, 10), ("C1", 2, 100, 1_000), ("C6", 133, 1_000, 500_000)];
    tree.file(&format!("{CPU}/online"), "0-1")
        .file("/proc/self/status", "Cpus_allowed_list:\t0-63")
        .file(&format!("{CPU}/cpuidle/current_driver"), "intel_idle")
        .idle(0, &states)
        .idle(1, &states)
        .file("/sys/devices/system/node/node0/cpulist", "0")
        .file("/sys/devices/system/node/node1/cpulist", "1")
        .file(&format!("{PCI}/numa_node"), "1")
        .file(&format!("{PCI}/irq"), "35")
        .file(&format!("{PCI}/msi_irqs/36"), "msix")
        .file(&format!("{PCI}/nvme/nvme0/nvme0n1/size"), "1000")
        .counters([(100, 900), (10, 990)], [40, 2]);
    for (file, content) in [
        ("scaling_driver", "intel_pstate"),
        ("scaling_governor", "powersave"),
        ("scaling_min_freq", "800000"),
        ("scaling_max_freq", "3500000"),
        ("cpuinfo_max_freq", "3500000"),
        ("scaling_cur_freq", "1200000"),
    ] {
        tree.file(&format!("{CPU}/cpu0/cpufreq/{file}"), content);
    }
    let class = under(tree.root(), "/sys/class/block");
    fs::create_dir_all(&class).unwrap();
    let directory = under(tree.root(), format!("{PCI}/nvme/nvme0/nvme0n1"));
    std::os::unix::fs::symlink(directory, class.join("nvme0n1")).unwrap();
    tree
}

fn disk(tree: &Tree) -> BlockDevice {
    crate::survey::device(tree.root(), "nvme0n1").unwrap()
}

#[test]
fn idle_states_frequencies_and_nodes_are_described() {
    let tree = server();
    tree.file(&format!("{CPU}/cpu0/cpuidle/state2/disable"), "1");
    let described = describe(tree.root()).unwrap();
    assert_eq!(described.idle_driver.as_deref(), Some("intel_idle"));
    let states: Vec<_> = described
        .idle_states
        .iter()
        .map(|state| (state.name.as_str(), state.exit_latency_ns, state.disabled))
        .collect();
    assert_eq!(states, [("POLL", 0, false), ("C1", 2_000, false), ("C6", 133_000, true)]);
    assert_eq!(described.frequency_governor.as_deref(), Some("powersave"));
    assert_eq!(described.frequency_hz_max, Some(3_500_000_000));
    assert_eq!(described.numa_nodes, 2);
    assert_eq!(disk(&tree).numa_node, Some(1));
    tree.file(&format!("{PCI}/numa_node"), "-1");
    assert_eq!(disk(&tree).numa_node, None);
    assert_eq!(describe(Tree::new().root()), None);
}

#[test]
fn what_happened_between_two_instants_is_counted() {
    let tree = server();
    let watch = Watch::new(tree.root(), &[disk(&tree)]);
    let before = watch.counts();
    tree.idle(0, &[("POLL", 0, 6, 12), ("C1", 2, 150, 1_500), ("C6", 133, 1_000, 500_000)])
        .idle(1, &[("POLL", 0, 5, 10), ("C1", 2, 100, 1_000), ("C6", 133, 4_000, 900_000)])
        .counters([(150, 950), (10, 1_090)], [40, 3_002]);
    let used = watch.between(&before, &watch.counts());
    let idle = |at: usize| (used.idle[at].entries, used.idle[at].time_ns);
    assert_eq!([idle(0), idle(1), idle(2)], [(1, 2_000), (50, 500_000), (3_000, 400_000_000)]);
    assert_eq!(used.frequency_hz_fastest, Some(1_200_000_000));
    let cpu = |cpu, node, busy_ns, interrupts| CpuUse { cpu, node, busy_ns, interrupts };
    let expected = [cpu(0, Some(0), 500_000_000, Some(0)), cpu(1, Some(1), 0, Some(3_000))];
    assert_eq!(used.cpus, expected);
    // A processor that did nothing is left out.
    let idle = watch.between(&watch.counts(), &watch.counts());
    assert!(idle.cpus.is_empty(), "{:?}", idle.cpus);
}

#[test]
fn a_disk_without_known_interrupts_has_none_rather_than_zero() {
    let tree = server();
    let watch = Watch::new(tree.root(), &[]);
    let before = watch.counts();
    tree.counters([(150, 950), (60, 1_040)], [50, 60]);
    let used = watch.between(&before, &watch.counts());
    assert_eq!(used.cpus.len(), 2);
    assert!(used.cpus.iter().all(|cpu| cpu.interrupts.is_none()));
}

#[test]
fn the_machine_that_tests_run_on_can_be_read() {
    let root = Path::new("/");
    let watch = Watch::new(root, &[]);
    let used = watch.between(&watch.counts(), &watch.counts());
    assert!(used.cpus.len() <= crate::proc::CPUS_MAX);
    if let Some(described) = describe(root) {
        assert!(described.numa_nodes >= 1);
    }
}
