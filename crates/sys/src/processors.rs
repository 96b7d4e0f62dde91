//! Properties of processors from sysfs: idle states, frequencies and nodes; and their activity
//! between two points in time: how often they went idle, how busy they were and which took a disk's
//! interrupts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use blockstone_base::identity::{
    BlockDevice, CpuUse, DeviceKind, IdleState, IdleUse, ProcessorUse, Processors,
};

use crate::proc::{
    cpus_of_list, entries, name_of, names, number, numbers, own_status, text, under,
};

const CPU: &str = "/sys/devices/system/cpu";
/// `USER_HZ` is 100 on every architecture that Blockstone is built for.
const TICK_NS: u64 = 10_000_000;
/// Fields in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
const FIELDS: usize = 8;
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];

/// Describes the processors; `None` if sysfs does not show them.
pub fn describe(root: &Path) -> Option<Processors> {
    let cpu = under(root, CPU);
    let first = *allowed(root).first()?;
    let own = cpu.join(format!("cpu{first}"));
    if !own.exists() {
        return None;
    }
    let state = |directory: &PathBuf| {
        Some(IdleState {
            name: text(&directory.join("name"))?,
            exit_latency_ns: number(&directory.join("latency"))?.saturating_mul(1000),
            disabled: number(&directory.join("disable")).is_some_and(|flags| flags != 0),
        })
    };
    let frequency = own.join("cpufreq");
    let hertz = |file: &str| Some(number(&frequency.join(file))?.saturating_mul(1000));
    let nodes = nodes(root);
    Some(Processors {
        idle_driver: text(&cpu.join("cpuidle/current_driver")).filter(|name| name != "none"),
        idle_states: states(root, first).iter().filter_map(state).collect(),
        frequency_driver: text(&frequency.join("scaling_driver")),
        frequency_governor: text(&frequency.join("scaling_governor")),
        frequency_hz_min: hertz("scaling_min_freq"),
        frequency_hz_max: hertz("scaling_max_freq"),
        hardware_hz_max: hertz("cpuinfo_max_freq"),
        numa_nodes: nodes.values().collect::<BTreeSet<_>>().len().max(1) as u32,
    })
}

/// Returns the NUMA node of a device: that of the nearest ancestor that has one.
pub(crate) fn node_of_device(root: &Path, directory: &Path) -> Option<u32> {
    ancestors(root, directory).find_map(|ancestor| {
        // -1 if the firmware does not specify it.
        text(&ancestor.join("numa_node"))?.parse().ok()
    })
}

/// Returns the processors that this process may use.
fn allowed(root: &Path) -> Vec<u32> {
    let list = own_status(root, "Cpus_allowed_list:");
    let online = text(&under(root, CPU).join("online")).map(|list| cpus_of_list(&list));
    let online = online.unwrap_or_default();
    match list {
        Some(list) => cpus_of_list(&list).into_iter().filter(|cpu| online.contains(cpu)).collect(),
        None => online,
    }
}

fn states(root: &Path, cpu: u32) -> Vec<PathBuf> {
    let directory = under(root, CPU).join(format!("cpu{cpu}/cpuidle"));
    let is_state = |path: &PathBuf| name_of(path).is_some_and(|name| name.starts_with("state"));
    entries(&directory).into_iter().filter(is_state).collect()
}

/// Returns the node of each processor.
fn nodes(root: &Path) -> BTreeMap<u32, u32> {
    let mut nodes = BTreeMap::new();
    let directory = under(root, "/sys/devices/system/node");
    for entry in entries(&directory) {
        let node = name_of(&entry).and_then(|name| name.strip_prefix("node")?.parse().ok());
        let (Some(node), Some(list)) = (node, text(&entry.join("cpulist"))) else { continue };
        nodes.extend(cpus_of_list(&list).into_iter().map(|cpu| (cpu, node)));
    }
    nodes
}

/// Returns a device's directory and those above it, below /sys/devices of the root.
fn ancestors(root: &Path, directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let top = fs::canonicalize(under(root, "/sys/devices")).unwrap_or_default();
    let above: Vec<PathBuf> = directory.ancestors().map(Path::to_owned).collect();
    above.into_iter().take_while(move |ancestor| ancestor.starts_with(&top))
}

/// Returns the interrupt numbers of a disk's controller; empty if the kernel does not show them.
fn interrupts_of(root: &Path, disk: &str) -> Vec<u32> {
    let Ok(directory) = fs::canonicalize(under(root, "/sys/class/block").join(disk)) else {
        return Vec::new();
    };
    let of = |ancestor: PathBuf| {
        let messages = names(&ancestor.join("msi_irqs"));
        let line = || text(&ancestor.join("irq")).filter(|irq| irq != "0").into_iter().collect();
        let found: Vec<String> = if messages.is_empty() { line() } else { messages };
        Some(found).filter(|found| !found.is_empty())
    };
    let found = ancestors(root, &directory).find_map(of).unwrap_or_default();
    found.iter().filter_map(|irq| irq.parse().ok()).collect()
}

/// Reads counters of processors at two points in time.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    /// Directories of all processors, by name of the idle state.
    idle: Vec<(String, Vec<PathBuf>)>,
    interrupts: Vec<u32>,
    nodes: BTreeMap<u32, u32>,
    cpus: Vec<u32>,
}

/// Counters at one point in time.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Entries and microseconds of each idle state.
    idle: Vec<(u64, u64)>,
    /// Ticks by processor.
    ticks: BTreeMap<u32, [u64; FIELDS]>,
    interrupts: BTreeMap<u32, u64>,
    frequency_hz: Option<u64>,
}

impl Watch {
    /// Watches the processors that this process may use and the disks among these devices.
    pub fn new(root: &Path, devices: &[BlockDevice]) -> Self {
        let cpus = allowed(root);
        let mut idle: Vec<(String, Vec<PathBuf>)> = Vec::new();
        for state in cpus.iter().flat_map(|&cpu| states(root, cpu)) {
            let Some(name) = text(&state.join("name")) else { continue };
            match idle.iter_mut().find(|(known, _)| *known == name) {
                Some((_, directories)) => directories.push(state),
                None => idle.push((name, vec![state])),
            }
        }
        let disks = devices.iter().filter(|device| device.kind == DeviceKind::Disk);
        let interrupts = disks.flat_map(|disk| interrupts_of(root, &disk.name)).collect();
        Self { root: root.to_owned(), idle, interrupts, nodes: nodes(root), cpus }
    }

    pub fn counts(&self) -> Counts {
        let sum = |directories: &[PathBuf], file: &str| {
            directories.iter().filter_map(|state| number(&state.join(file))).sum()
        };
        let idle = self.idle.iter().map(|(_, at)| (sum(at, "usage"), sum(at, "time")));
        let frequency = |cpu: &u32| {
            let file = format!("cpu{cpu}/cpufreq/scaling_cur_freq");
            number(&under(&self.root, CPU).join(file))
        };
        let frequency_hz = self.cpus.iter().filter_map(frequency).max();
        Counts {
            idle: idle.collect(),
            ticks: self.ticks(),
            interrupts: self.taken(),
            frequency_hz: frequency_hz.map(|kilohertz| kilohertz.saturating_mul(1000)),
        }
    }

    fn ticks(&self) -> BTreeMap<u32, [u64; FIELDS]> {
        let stat = fs::read_to_string(under(&self.root, "/proc/stat")).unwrap_or_default();
        let line = |line: &str| {
            let (cpu, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
            let mut ticks = [0; FIELDS];
            ticks.iter_mut().zip(numbers(rest.as_bytes())).for_each(|(tick, value)| *tick = value);
            Some((cpu.parse().ok()?, ticks))
        };
        stat.lines().filter_map(line).collect()
    }

    /// Returns the interrupts of the disks by the processor that took them.
    fn taken(&self) -> BTreeMap<u32, u64> {
        let table = fs::read_to_string(under(&self.root, "/proc/interrupts")).unwrap_or_default();
        let mut lines = table.lines();
        let heading = lines.next().unwrap_or_default().split_whitespace();
        let cpus: Vec<u32> =
            heading.filter_map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect();
        let mut taken = BTreeMap::new();
        for line in lines {
            let Some((irq, counts)) = line.split_once(':') else { continue };
            if !irq.trim().parse().is_ok_and(|irq| self.interrupts.contains(&irq)) {
                continue;
            }
            for (cpu, count) in cpus.iter().zip(counts.split_whitespace()) {
                *taken.entry(*cpu).or_insert(0) += count.parse().unwrap_or(0_u64);
            }
        }
        taken
    }

    /// Returns the activity between two counts. Processors that were busy for less than 1 % and
    /// took no interrupt of a disk are left out.
    pub fn between(&self, before: &Counts, after: &Counts) -> ProcessorUse {
        let idle = self.idle.iter().zip(before.idle.iter().zip(&after.idle));
        let idle = idle.map(|((state, _), (before, after))| IdleUse {
            state: state.clone(),
            entries: after.0.saturating_sub(before.0),
            time_ns: after.1.saturating_sub(before.1).saturating_mul(1000),
        });
        let grown = |cpu: &u32, fields: &[usize]| {
            let sum = |ticks: &[u64; FIELDS]| fields.iter().map(|&field| ticks[field]).sum::<u64>();
            let [before, after] = [before, after].map(|counts| counts.ticks.get(cpu).map(sum));
            after.unwrap_or(0).saturating_sub(before.unwrap_or(0))
        };
        let of_cpu = |cpu: &u32| {
            let [before, after] =
                [before, after].map(|counts| counts.interrupts.get(cpu).copied().unwrap_or(0));
            let busy = grown(cpu, &BUSY);
            let all = grown(cpu, &[0, 1, 2, 3, 4, 5, 6, 7]);
            let interrupts = after.saturating_sub(before);
            (interrupts > 0 || busy > 0 && busy * 100 >= all).then(|| CpuUse {
                cpu: *cpu,
                node: self.nodes.get(cpu).copied(),
                busy_ns: busy.saturating_mul(TICK_NS),
                interrupts: (!self.interrupts.is_empty()).then_some(interrupts),
            })
        };
        ProcessorUse {
            idle: idle.collect(),
            frequency_hz_fastest: after.frequency_hz,
            cpus: after.ticks.keys().filter_map(of_cpu).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
