//! Commits that no flush made durable.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::load::{Op, SyncMethod};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;

use super::{Case, Check, Judgement, Rule, labels, percent, time};
use crate::derive;
use crate::findings::Point;

pub(super) const RULE: Rule = Rule {
    id: "lying-flush",
    weight: Weight::Condemns,
    doc: "Commits that returned before the data were durable: the device declares a volatile \
          write cache and nothing flushed it, or a commit takes no longer than a plain write.",
    threshold: "Condemns if a device with a volatile cache (`queue/write_cache`) received less \
                than half a flush per fdatasync or fsync of a single committer; each of them \
                needs one, while O_DSYNC may use forced-unit-access writes, which are not \
                counted. Warns if, on such a device, the median commit takes less than 1.1 times \
                the median plain write; or if, on a rotating disk, it takes less than 2 ms, half \
                a turn at 15,000 rpm. Disks with random reads below 2 ms are not considered \
                rotating, whatever they report.",
    cause: "Flushes are disabled (mount option nobarrier, an unsafe cache mode of the hypervisor) \
            or ignored by the device; by latency alone, a cache protected by a battery or \
            capacitors looks the same.",
    next: "Check mount options and the cache mode of the hypervisor; ask the vendor about \
           power-loss protection; test with a real power loss before trusting it with a database.",
    checks: &[Check::Calibration(check)],
};

/// Fewest flushes for each single committer's fdatasync or fsync; see the rule's threshold.
const FLUSHES_PER_COMMIT_MIN: f64 = 0.5;
/// Least cost of a commit in plain writes.
const COMMIT_PER_WRITE_MIN: f64 = 1.1;
/// Half a turn at 15,000 rpm, the fastest that rotating disks were built.
const HALF_TURN_NS: f64 = 2e6;

fn check(case: &Case) -> Judgement {
    let committed = |point: &&Point| point.load.op == Op::Commit;
    let commits: Vec<&Point> = case.points.iter().filter(committed).collect();
    if commits.is_empty() {
        return Judgement::inconclusive("no commit was measured");
    }
    // Partitions count no flushes, and device-mapper and RAID pass them on uncounted.
    let counts = |d: &&BlockDevice| matches!(d.kind, DeviceKind::Disk | DeviceKind::Loop);
    let Some(device) = case.devices().iter().find(counts) else {
        return Judgement::inconclusive("no underlying device counts flushes");
    };
    if let Some(evidence) = too_fast_for_a_turn(case, device, &commits) {
        return Judgement::fail(evidence, labels(commits)).weighing(Weight::Warns);
    }
    match device.write_cache.as_deref() {
        None => Judgement::inconclusive(format!("{} does not report its write cache", device.name)),
        Some("write through") => Judgement::pass(format!(
            "{} declares no volatile write cache: a completed write is durable",
            device.name
        )),
        Some(_) => volatile(case, device, &commits),
    }
}

fn volatile(case: &Case, device: &BlockDevice, commits: &[&Point]) -> Judgement {
    let flushed = flushes(case, device);
    let seen = flushed.map(|(flushes, commits)| {
        let ratio = flushes as f64 / commits.max(1) as f64;
        let text = format!(
            "{}: write back; {} flushes for {} fdatasync and fsync commits ({})",
            device.name,
            thousands(flushes as i64),
            thousands(commits as i64),
            percent(ratio)
        );
        (ratio, text)
    });
    if let Some((_, text)) = seen.as_ref().filter(|(ratio, _)| *ratio < FLUSHES_PER_COMMIT_MIN) {
        return Judgement::fail(text, labels(commits.iter().copied()));
    }
    if let Some(evidence) = as_cheap_as_a_write(case, commits) {
        if case.moved(1.0 - COMMIT_PER_WRITE_MIN.recip()) {
            return Judgement::inconclusive(format!("{evidence}; the reference moved by more"));
        }
        return Judgement::fail(evidence, labels(commits.iter().copied())).weighing(Weight::Warns);
    }
    seen.map_or_else(
        || {
            Judgement::inconclusive(format!(
                "{}: write back, and no fdatasync or fsync of a single committer was counted \
                 beside its flushes",
                device.name
            ))
        },
        |(_, text)| Judgement::pass(text),
    )
}

/// (flushes, commits) of all windows in which one committer called fdatasync or fsync.
fn flushes(case: &Case, device: &BlockDevice) -> Option<(u64, u64)> {
    let mut sums = None;
    for window in case.windows {
        let Some(load) = &case.phase(window).load else { continue };
        let flushing = matches!(load.sync, Some(SyncMethod::Fdatasync | SyncMethod::Fsync));
        if !flushing || load.in_flight() != 1 {
            continue;
        }
        let flushes = derive::device(window, &device.name, "flush_ios").ok()?;
        let (all_flushes, all_commits) = sums.unwrap_or((0, 0));
        sums = Some((all_flushes + flushes, all_commits + window.completed_ops()));
    }
    sums.filter(|&(_, commits)| commits > 0)
}

fn as_cheap_as_a_write(case: &Case, commits: &[&Point]) -> Option<String> {
    let single = |p: &&Point| p.load.engine == "psync" && p.load.in_flight() == 1;
    let write = case.group(Group::RandomWrite).find(single)?;
    let commit = commits.iter().copied().find(|p| {
        single(p) && p.load.block_bytes == write.load.block_bytes && p.load.sync.is_some()
    })?;
    let (write_ns, commit_ns) = (write.latency.ns_p50.value, commit.latency.ns_p50.value);
    (commit_ns < write_ns * COMMIT_PER_WRITE_MIN).then(|| {
        format!(
            "volatile write cache, yet {} takes {} and a plain write {} (medians)",
            commit.label,
            time(commit_ns),
            time(write_ns)
        )
    })
}

fn too_fast_for_a_turn(case: &Case, device: &BlockDevice, commits: &[&Point]) -> Option<String> {
    let read = case.group(Group::RandomRead).find(|point| point.load.in_flight() == 1)?;
    let rotates = device.rotational == Some(true) && read.latency.ns_p50.value >= HALF_TURN_NS;
    let fastest =
        commits.iter().min_by(|a, b| a.latency.ns_p50.value.total_cmp(&b.latency.ns_p50.value))?;
    (rotates && fastest.latency.ns_p50.value < HALF_TURN_NS).then(|| {
        format!(
            "{} rotates, yet {} takes {} (median)",
            device.name,
            fastest.label,
            time(fastest.latency.ns_p50.value)
        )
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;
    use blockstone_base::verdict::{Outcome, Weight};
    use blockstone_record::manifest::Group;

    use crate::testing::{Fixture, saturating};

    #[test]
    fn a_write_through_device_needs_no_flush() {
        let mut fixture = Fixture::healthy();
        fixture.top_device().write_cache = Some("write through".into());
        fixture.windows_mut(Op::Commit).for_each(|w| w.devices[0].1.set("flush_ios", 0));
        assert_eq!(fixture.verdict("lying-flush").outcome, Outcome::Pass);
    }

    #[test]
    fn commits_as_cheap_as_writes_only_warn() {
        let mut fixture = Fixture::healthy().without(&[Group::Commit]);
        fixture.commits_as(|load| saturating(99_000.0, 3.0, load.in_flight()));
        let verdict = fixture.verdict("lying-flush");
        assert_eq!((verdict.outcome, verdict.weight), (Outcome::Fail, Weight::Warns));
        assert!(fixture.find().trustworthy());
    }

    #[test]
    fn a_rotating_disk_cannot_commit_faster_than_it_turns() {
        let mut fixture = Fixture::reads_as(|load| saturating(200.0, 2.0, load.in_flight()));
        fixture.commits_as(|load| saturating(5_000.0, 2.0, load.in_flight()));
        let verdict = fixture.verdict("lying-flush");
        assert_eq!((verdict.outcome, verdict.weight), (Outcome::Fail, Weight::Warns));
        assert!(verdict.evidence.contains("rotates"), "{}", verdict.evidence);
    }
}
