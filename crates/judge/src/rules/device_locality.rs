//! Whether the processors that did the I/O are close to the disk, and share its interrupts.

use std::collections::BTreeMap;

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{CalibrationRule, Case, labels, percent};
use crate::derive;
use crate::findings::Point;
use crate::window::Window;

const ABOUT: About = About {
    id: "device-locality",
    weight: Weight::Warns,
    doc: "The processors that did the I/O belong to another NUMA node than the disk, or a single \
          processor handled all interrupts of the disk and was full with it: the rate is a limit \
          of the machine's layout, not of the storage.",
    threshold: "Node: on a machine with several nodes, at least half of the time in which \
                processors were busy in the windows was spent outside of the node of the disk \
                (numa_node of the nearest device above it in /sys/devices). Interrupts: in the \
                window of a point with several operations in flight, one processor took at least \
                95 % of the interrupts of the disk's controller (msi_irqs and /proc/interrupts), \
                at least two processors were busy for 20 % of it, and that one for 90 %. Counted \
                just before the first and just after the last edge of each window. Windows in \
                which other programs used more than 10 % of the processor time are left out. \
                Inconclusive where none is left, where the node of a disk or its interrupts are \
                not visible, and in older recordings.",
    cause: "Threads or interrupts are bound to the wrong processors, the disk has fewer queues \
            than processors, or its interrupts were not spread.",
    next: "Bind the program to the node of the disk (numactl --cpunodebind); see \
           /proc/interrupts and /proc/irq/N/smp_affinity_list, and irqbalance; give a virtual disk \
           more queues.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

const REMOTE_SHARE_MIN: f64 = 0.5;
const ONE_TAKES: f64 = 0.95;
const AT_WORK: f64 = 0.2;
const FULL: f64 = 0.9;
/// Beyond this, work of other programs would be mistaken for the I/O of this one.
const FOREIGN_MAX: f64 = 0.1;

enum Locality {
    Fault(String, Vec<String>),
    Fine(String),
    Open(String),
}

fn check(case: &Case) -> Judgement {
    if case.storage_windows().next().is_none() {
        return Judgement::inconclusive("no load was measured");
    }
    let Some(processors) = &case.manifest.host.processors else {
        return Judgement::inconclusive("nodes and interrupts were not recorded");
    };
    let is_disk = |device: &&BlockDevice| device.kind == DeviceKind::Disk;
    let disks: Vec<_> = case.devices().iter().filter(is_disk).collect();
    let seen = [nodes(case, processors.numa_nodes, &disks), interrupts(case)];
    let mut faults = Vec::new();
    let mut places = Vec::new();
    let mut fine = Vec::new();
    let mut open = Vec::new();
    for seen in seen {
        match seen {
            Locality::Fault(text, labels) => {
                faults.push(text);
                places.extend(labels);
            }
            Locality::Fine(text) => fine.push(text),
            Locality::Open(text) => open.push(text),
        }
    }
    if !faults.is_empty() {
        return Judgement::fail(faults.join("; "), places);
    }
    if !open.is_empty() {
        return Judgement::inconclusive(open.join("; "));
    }
    Judgement::pass(fine.join("; "))
}

fn nodes(case: &Case, count: u32, disks: &[&BlockDevice]) -> Locality {
    if count <= 1 {
        return Locality::Fine("one NUMA node".to_owned());
    }
    let known: Option<Vec<u32>> = disks.iter().map(|disk| disk.numa_node).collect();
    let Some(near) = known.filter(|near| !near.is_empty()) else {
        return Locality::Open(format!(
            "the machine has {count} NUMA nodes; that of a disk is unknown"
        ));
    };
    let (mut busy, mut away) = (0, BTreeMap::new());
    for window in case.storage_windows().filter(|window| is_alone(window)) {
        for used in case.phase(window).processors.iter().flat_map(|used| &used.cpus) {
            busy += used.busy_ns;
            if let Some(node) = used.node.filter(|node| !near.contains(node)) {
                *away.entry(node).or_insert(0_u64) += used.busy_ns;
            }
        }
    }
    if busy == 0 {
        return Locality::Open("which processors did the I/O cannot be told".to_owned());
    }
    let share = away.values().sum::<u64>() as f64 / busy as f64;
    let list = |nodes: Vec<u32>| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
    let text = format!(
        "{} of the busy processor time was spent outside of NUMA node {} of the disk",
        percent(share),
        list(near)
    );
    if share >= REMOTE_SHARE_MIN {
        let text = format!("{text}, on node {}", list(away.into_keys().collect()));
        return Locality::Fault(text, labels(case.storage_points()));
    }
    Locality::Fine(text)
}

fn is_alone(window: &Window) -> bool {
    derive::foreign(&[window]).is_ok_and(|foreign| foreign.busy_ratio <= FOREIGN_MAX)
}

/// The processor that took the interrupts in the windows of a point.
struct Taken {
    /// The processor that took most interrupts, and its share of all.
    cpu: u32,
    share: f64,
    /// Share of the windows in which it was busy, and the number of processors at work.
    busy: f64,
    at_work: usize,
    all: u64,
}

fn interrupts(case: &Case) -> Locality {
    let several = case.storage_points().filter(|point| point.load.in_flight() > 1);
    let taken: Vec<(&Point, Taken)> =
        several.filter_map(|point| Some((point, taken(case, &point.label)?))).collect();
    let Some((_, most)) = taken.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy)) else {
        return Locality::Open(
            "the interrupts of the disk are not visible, or other programs kept the processors busy"
                .to_owned(),
        );
    };
    let is_full =
        |taken: &Taken| taken.share >= ONE_TAKES && taken.at_work > 1 && taken.busy >= FULL;
    let text = |taken: &Taken| {
        format!(
            "processor {} took {} of {} interrupts of the disk and was busy for {} of the time; {} \
             processors were at work",
            taken.cpu,
            percent(taken.share),
            taken.all,
            percent(taken.busy),
            taken.at_work
        )
    };
    let full: Vec<&(&Point, Taken)> = taken.iter().filter(|(_, taken)| is_full(taken)).collect();
    match full.first() {
        Some((point, first)) => {
            let places = full.iter().map(|(point, _)| point.label.clone()).collect();
            Locality::Fault(format!("{}: {}", point.label, text(first)), places)
        }
        None => Locality::Fine(text(most)),
    }
}

fn taken(case: &Case, label: &str) -> Option<Taken> {
    let (mut interrupts, mut busy) = (BTreeMap::new(), BTreeMap::new());
    let mut length_ns = 0;
    for window in case.windows_of(label).into_iter().filter(|window| is_alone(window)) {
        length_ns += window.duration_ns();
        for used in &case.phase(window).processors.as_ref()?.cpus {
            *busy.entry(used.cpu).or_insert(0) += used.busy_ns;
            *interrupts.entry(used.cpu).or_insert(0_u64) += used.interrupts?;
        }
    }
    let all: u64 = interrupts.values().sum();
    let (cpu, most) = interrupts.into_iter().max_by_key(|(_, count)| *count)?;
    if all == 0 || length_ns == 0 {
        return None;
    }
    let share_of = |busy_ns: u64| busy_ns as f64 / length_ns as f64;
    Some(Taken {
        cpu,
        share: most as f64 / all as f64,
        busy: share_of(*busy.get(&cpu)?).min(1.0),
        at_work: busy.values().filter(|busy_ns| share_of(**busy_ns) >= AT_WORK).count(),
        all,
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::{CpuUse, ProcessorUse};
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::Fixture;

    /// Processors by the share of the windows in which they were busy, and their part of ten
    /// thousand interrupts: one on each of two nodes, with the disk at the second.
    fn on(cpus: [(f64, Option<u64>); 2], numa_nodes: u32) -> Fixture {
        let mut fixture = Fixture::healthy();
        fixture.manifest.host.processors.as_mut().unwrap().numa_nodes = numa_nodes;
        fixture.top_device().numa_node = Some(1);
        for window in &fixture.windows {
            let used = |(cpu, &(busy, interrupts)): (u32, &(f64, Option<u64>))| CpuUse {
                cpu,
                node: Some(cpu),
                busy_ns: (window.duration_ns() as f64 * busy) as u64,
                interrupts,
            };
            let cpus = (0..).zip(&cpus).map(used).collect();
            let used = ProcessorUse { cpus, ..ProcessorUse::default() };
            fixture.manifest.phases[window.phase].processors = Some(used);
        }
        fixture
    }

    fn judged(fixture: &Fixture) -> Verdict {
        fixture.verdict("device-locality")
    }

    #[test]
    fn work_on_the_other_node_is_a_warning() {
        let verdict = judged(&on([(0.5, Some(5_000)), (0.1, Some(5_000))], 2));
        assert!(verdict.warns() && !verdict.concerns.is_empty(), "{}", verdict.evidence);
        let text = "outside of NUMA node 1 of the disk, on node 0";
        assert!(verdict.evidence.contains(text), "{}", verdict.evidence);
        let near = judged(&on([(0.1, Some(5_000)), (0.5, Some(5_000))], 2));
        assert_eq!(near.outcome, Outcome::Pass, "{}", near.evidence);
        let one = judged(&on([(0.5, Some(5_000)), (0.1, Some(5_000))], 1));
        assert_eq!(one.outcome, Outcome::Pass, "{}", one.evidence);
    }

    #[test]
    fn one_processor_that_is_full_with_all_interrupts_is_a_warning() {
        let verdict = judged(&on([(0.97, Some(10_000)), (0.4, Some(0))], 1));
        assert!(verdict.warns(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("processor 0 took 100 %"), "{}", verdict.evidence);
        assert!(!verdict.concerns.contains(&"read_latency_ns_p50".to_owned()));
    }

    #[test]
    fn one_processor_with_time_to_spare_or_alone_at_work_is_none() {
        for cpus in [
            [(0.6, Some(10_000)), (0.4, Some(0))],
            [(0.97, Some(10_000)), (0.05, Some(0))],
            [(0.97, Some(6_000)), (0.97, Some(4_000))],
        ] {
            let verdict = judged(&on(cpus, 1));
            assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
        }
    }

    #[test]
    fn processors_that_other_programs_kept_busy_are_not_blamed() {
        let mut fixture = on([(0.97, Some(10_000)), (0.4, Some(0))], 1);
        for window in &mut fixture.windows {
            let foreign_ns = window.duration_ns();
            let own_ns = window.host.get("cpu_user_ns").unwrap();
            window.host.set("cpu_user_ns", own_ns + foreign_ns);
        }
        let verdict = judged(&fixture);
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("other programs"), "{}", verdict.evidence);
    }

    #[test]
    fn what_cannot_be_seen_stays_open() {
        let unknown = judged(&on([(0.97, None), (0.4, None)], 1));
        assert_eq!(unknown.outcome, Outcome::Inconclusive, "{}", unknown.evidence);
        let mut fixture = on([(0.5, Some(5_000)), (0.1, Some(5_000))], 2);
        fixture.top_device().numa_node = None;
        assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive);
        fixture.manifest.host.processors = None;
        assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive);
    }
}
