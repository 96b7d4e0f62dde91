//! Cost of mirroring: a read goes to one copy, and the first copies are spread over all disks, so
//! readers have all of them whatever the redundancy; a write goes to all copies. 128 sessions on 8
//! disks, as the original ran it on a disk group of eight spindles, each of which is limited here
//! by the kernel to 300 reads and 300 writes a second.
//!
//! The original put the mean read at "900 ms"; 128 sessions that together get 2,400 reads a second
//! wait 53 ms for each (J. D. C. Little, 1961), and the run has to measure just that.

use anyhow::Result;
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec};

use super::Lab;
use super::measure::{Rig, Run};
use crate::goals::{Column, Goal, Point, Results, column};

const DISKS: usize = 8;
/// Number of disks that fail together. Three copies need three groups; four divide the disks
/// evenly.
const DISKS_A_GROUP: usize = 2;
/// Limit on a disk's reads per second, and on its writes.
const DISK_IOPS: u64 = 300;
const SESSIONS: u32 = 128;

/// Value of `--redundancy`, and the number of copies that it keeps.
const REDUNDANCIES: [(&str, f64); 3] = [("external", 1.0), ("normal", 2.0), ("high", 3.0)];

/// Relative tolerance for reads of a disk group against those of its disks.
const READS_WITHIN: f64 = 0.03;
/// Relative tolerance for ratios of writes, and for latency against Little's law.
const RATIOS_WITHIN: f64 = 0.05;

/// 256 MiB of rows and a cache of a sixteenth of that: nearly every visit is a read, and updates of
/// 16 rows return to a row while it is being written often enough to be counted. No protection
/// against torn writes, as in the original: whole blocks in the redo would share the disks.
const ARGUMENTS: &str = "--scale 2M --cache 16M --work-unit 16 --database-writers 4 \
    --torn-protection none --redo-size 32M --seed 1";

const COLUMNS: &[Column] = &[
    column("read_iops", "database\nreads/s", 0),
    column("write_iops", "database\nwrites/s", 0),
    column("hardware_read_iops", "disk\nreads/s", 0),
    column("hardware_write_iops", "disk\nwrites/s", 0),
    column("read_latency_ms_mean", "mean read\nms", 1),
    column("expected_latency_ms", "sessions\n÷ IOPS ms", 1),
    column("commits_per_s", "\ncommits/s", 0),
    column("free_buffer_waits_ms_per_commit", "free buffer\nwaits ms/commit", 1),
    column("write_complete_waits_ms_per_commit", "write complete\nwaits ms/commit", 1),
];

/// Figures of a run with one redundancy.
struct Measured {
    redundancy: &'static str,
    copies: f64,
    reads: f64,
    writes: f64,
    disk_reads: f64,
    disk_writes: f64,
    latency_ms: f64,
    commits: f64,
    /// Time of two events in milliseconds per commit; NaN without commits.
    free_buffer_ms: f64,
    write_complete_ms: f64,
}

pub fn run(lab: &Lab) -> Result<Results> {
    let caps = Caps { read_iops: Some(DISK_IOPS), write_iops: Some(DISK_IOPS), ..Caps::default() };
    let spec = DeviceSpec { size: Bytes::mib(256), file_system: None, caps };
    let rig = Rig::set_up(lab, vec![spec; DISKS])?.blank()?;
    let (readers, writers) = (measure(&rig, "readers")?, measure(&rig, "writers")?);
    let mut goals = goals_of_readers(&readers);
    goals.extend(goals_of_writers(&writers));
    let points = readers.iter().map(|measured| measured.point("readers"));
    let points = points.chain(writers.iter().map(|measured| measured.point("writers"))).collect();
    Ok(Results { columns: COLUMNS, points, goals })
}

/// Runs one kind of session, once for each redundancy.
fn measure(rig: &Rig<'_>, kind: &str) -> Result<Vec<Measured>> {
    let disks = rig.disks();
    let groups: Vec<String> = disks
        .chunks(DISKS_A_GROUP)
        .enumerate()
        .map(|(number, disks)| {
            let paths: Vec<_> = disks.iter().map(|disk| disk.to_string_lossy()).collect();
            format!("--failure-group=group{number}={}", paths.join(","))
        })
        .collect();
    let sessions = format!("--{kind}={SESSIONS}");
    let one = |(redundancy, copies): (&'static str, f64)| {
        let mut arguments = vec![sessions.as_str(), "--redundancy", redundancy];
        arguments.extend(ARGUMENTS.split_whitespace());
        arguments.extend(groups.iter().map(String::as_str));
        let run = rig.run(&format!("{SESSIONS} {kind}, {redundancy} redundancy"), &arguments)?;
        Measured::of(&run, redundancy, copies)
    };
    REDUNDANCIES.into_iter().map(one).collect()
}

fn goals_of_readers(readers: &[Measured]) -> Vec<Goal> {
    let disks_iops = DISKS as f64 * DISK_IOPS as f64;
    let reads = readers.iter().map(|measured| {
        let what = format!("readers at {}: reads of all disks a second", measured.redundancy);
        Goal::near(what, measured.disk_reads, disks_iops, READS_WITHIN)
    });
    let law = readers.iter().map(|measured| {
        let what = format!("readers at {}: sessions ÷ IOPS ÷ latency", measured.redundancy);
        Goal::near(what, measured.expected_ms() / measured.latency_ms, 1.0, RATIOS_WITHIN)
    });
    reads.chain(law).collect()
}

/// Compares each redundancy with the one without copies, and its waits with those of one copy
/// fewer.
fn goals_of_writers(writers: &[Measured]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let Some(base) = writers.first() else { return goals };
    for mirrored in &writers[1..] {
        let pair = format!("writers: {} ÷ {}", mirrored.redundancy, base.redundancy);
        let workload = mirrored.writes / base.writes;
        let aim = base.copies / mirrored.copies;
        goals.push(Goal::near(format!("{pair}, workload writes"), workload, aim, RATIOS_WITHIN));
        let hardware = mirrored.disk_writes / base.disk_writes;
        goals.push(Goal::near(format!("{pair}, hardware writes"), hardware, 1.0, RATIOS_WITHIN));
    }
    for pair in writers.windows(2) {
        let [less, more] = pair else { continue };
        let pair = format!("writers: {} ÷ {}", more.redundancy, less.redundancy);
        let growth = |what: &str, time_ms: fn(&Measured) -> f64| {
            let growth = time_ms(more) / time_ms(less);
            Goal::at_least(format!("{pair}, {what} waits a commit"), growth, 1.0)
        };
        goals.push(growth("free buffer", |measured| measured.free_buffer_ms));
        goals.push(growth("write complete", |measured| measured.write_complete_ms));
    }
    goals
}

impl Measured {
    fn of(run: &Run, redundancy: &'static str, copies: f64) -> Result<Self> {
        let commits = run.figure("commits_per_s")?;
        let commits_seen = commits * run.window_s()?;
        let a_commit = |event| Ok::<_, anyhow::Error>(run.waits(event)?.time_ms / commits_seen);
        let latency = run.waits("db file sequential read")?;
        Ok(Self {
            redundancy,
            copies,
            reads: run.figure("read_iops")?,
            writes: run.figure("write_iops")?,
            disk_reads: run.figure("hardware_read_iops")?,
            disk_writes: run.figure("hardware_write_iops")?,
            latency_ms: latency.time_ms / latency.count,
            commits,
            free_buffer_ms: a_commit("free buffer waits")?,
            write_complete_ms: a_commit("write complete waits")?,
        })
    }

    /// Returns the latency by Little's law, for sessions that do nothing but read.
    fn expected_ms(&self) -> f64 {
        f64::from(SESSIONS) * 1e3 / self.reads
    }

    fn point(&self, kind: &str) -> Point {
        // Writers spend their time on more than reads, so the law says nothing about their latency.
        let expected_ms = if self.commits > 0.0 { f64::NAN } else { self.expected_ms() };
        let values = vec![
            self.reads,
            self.writes,
            self.disk_reads,
            self.disk_writes,
            self.latency_ms,
            expected_ms,
            self.commits,
            self.free_buffer_ms,
            self.write_complete_ms,
        ];
        Point { name: format!("{SESSIONS} {kind}, {}", self.redundancy), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(redundancy: &'static str, copies: f64, waits_ms: f64) -> Measured {
        Measured {
            redundancy,
            copies,
            reads: 2_400.0,
            writes: 2_400.0 / copies,
            disk_reads: 2_400.0,
            disk_writes: 2_400.0,
            latency_ms: 53.3,
            commits: 100.0,
            free_buffer_ms: waits_ms,
            write_complete_ms: waits_ms,
        }
    }

    #[test]
    fn what_theory_gives_meets_all_goals_and_waits_that_do_not_grow_miss() {
        let all = REDUNDANCIES.map(|(name, copies)| measured(name, copies, copies));
        let goals: Vec<Goal> =
            goals_of_readers(&all).into_iter().chain(goals_of_writers(&all)).collect();
        assert_eq!(goals.len(), 3 + 3 + 4 + 4);
        assert!(goals.iter().all(Goal::is_met), "{goals:#?}");
        let falling = REDUNDANCIES.map(|(name, copies)| measured(name, copies, 1.0 / copies));
        assert_eq!(goals_of_writers(&falling).iter().filter(|goal| !goal.is_met()).count(), 4);
    }
}
