//! Commits that no flush made durable.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::load::{Op, SyncMethod};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::{Bytes, thousands};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;

use super::{
    CalibrationRule, Case, RunCase, RunRule, beyond_sight, commit_figures, labels, percent, time,
};
use crate::derive;
use crate::findings::Point;
use crate::flushes::FlushSlope;

pub const ABOUT: About = About {
    id: "lying-flush",
    weight: Weight::Condemns,
    doc: "Commits that returned before the data were durable: the device declares a volatile \
          write cache and nothing flushed it, or a commit takes no longer than a plain write.",
    threshold: "Condemns if a device with a volatile cache (`queue/write_cache`) received less \
                than half a flush per fdatasync or fsync of a single committer; each of them needs \
                one, while O_DSYNC may use forced-unit-access writes, which are not counted; or if \
                the drive itself declares a volatile cache (NVMe identity, SCSI caching page) that \
                the kernel takes for write through, so that no flush is sent. Warns \
                if, on such a device, the median commit takes less than 1.1 times the median plain \
                write; or if, on a rotating disk, it takes less than 2 ms, half a turn at 15,000 \
                rpm. Disks with random reads below 2 ms are not considered rotating, whatever they \
                report. Passes only where durability takes time that a medium needs: half a turn, \
                or 100 µs, which the fastest flash takes to program a page (Samsung's Z-NAND, \
                single-level cells, ISSCC 2018; 500 to 700 µs with three bits a cell); or where a \
                flush takes longer by as much, and for certain longer, after 8 MiB of writes than \
                after none: it wrote them out. Inconclusive where less is added, where a flush \
                takes less even after 8 MiB (a protected cache, or nothing was made durable), and \
                behind a hypervisor, controller or array, which may drop flushes: only a power cut \
                tells. In a check (docs/check.md): condemns what main memory or a file system \
                mounted without barriers holds, and less than half a flush of a device with a \
                volatile cache for each fdatasync after a write; passes where flushes write out a \
                cache.",
    cause: "Flushes are disabled (mount option nobarrier, an unsafe cache mode of the hypervisor) \
            or ignored by the device; by latency alone, a cache protected by a battery or \
            capacitors looks the same.",
    next: "Check mount options and the cache mode of the hypervisor; ask the vendor about \
           power-loss protection; test with a real power loss before trusting it with a database.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Fewest flushes for each fdatasync or fsync of a single committer; see the rule's threshold.
const FLUSHES_PER_COMMIT_MIN: f64 = 0.5;
/// Least cost of a commit, in plain writes.
const COMMIT_PER_WRITE_MIN: f64 = 1.1;
/// Half a turn at 15,000 rpm, the highest speed of rotating disks.
const HALF_TURN_NS: f64 = 2e6;
/// Least time that durability adds on flash without a protected cache: the time to program a page,
/// in the fastest flash used in SSDs. Source: Samsung's 48-layer Z-NAND at ISSCC 2018, 100 µs
/// (anandtech.com, "The Samsung 983 ZET Z-NAND SSD Review", 2019); ordinary single-level cells take
/// 200 µs (data sheet NAND128-A), three bits a cell 500 to 700 µs (the same review).
const PROGRAM_NS: f64 = 100e3;
const WRITE_THROUGH: &str = "write through";
const WRITE_BACK: &str = "write back";
const UNTESTED: &str = "untested until power is cut";

fn check(case: &Case) -> Judgement {
    let committed = |point: &&Point| point.load.op == Op::Commit;
    let commits: Vec<&Point> = case.points.iter().filter(committed).collect();
    if let Some(evidence) = unflushed(case.devices()) {
        // Without commits it says something of the disk, and nothing of a figure.
        let weight = if commits.is_empty() { Weight::Warns } else { Weight::Condemns };
        return Judgement::fail(evidence, labels(commits)).weighing(weight);
    }
    if commits.is_empty() {
        return Judgement::inconclusive("no commit was measured");
    }
    let Some(device) = case.devices().iter().find(|device| counts_flushes(device)) else {
        return Judgement::inconclusive("no underlying device counts flushes");
    };
    if let Some(evidence) = too_fast_for_a_turn(case, device, &commits) {
        return Judgement::fail(evidence, labels(commits)).weighing(Weight::Warns);
    }
    match device.write_cache.as_deref() {
        None => Judgement::inconclusive(format!("{} does not report its write cache", device.name)),
        Some(WRITE_THROUGH) => {
            durable(case, device, &commits, &format!("{}: write through", device.name))
        }
        Some(_) => volatile(case, device, &commits),
    }
}

/// Returns which drive has a volatile cache that the kernel takes for one that needs no flush: it
/// was told so, or a controller in between did.
fn unflushed(devices: &[BlockDevice]) -> Option<String> {
    let device = devices.iter().find(|device| {
        let declares = device.drive_cache.as_deref();
        let kernel = device.write_cache.as_deref();
        declares.is_some_and(|cache| cache.starts_with(WRITE_BACK)) && kernel == Some(WRITE_THROUGH)
    })?;
    Some(format!(
        "{0}: the drive declares a volatile write cache and the kernel sends it no flush \
         (/sys/block/{0}/queue/write_cache is write through)",
        device.name
    ))
}

/// Returns whether the device counts flushes. Partitions do not, and device-mapper and RAID pass
/// them on uncounted.
fn counts_flushes(device: &BlockDevice) -> bool {
    matches!(device.kind, DeviceKind::Disk | DeviceKind::Loop)
}

/// Returns a pass if there is evidence that commits reach the medium, not only that they were
/// requested to.
fn durable(case: &Case, device: &BlockDevice, commits: &[&Point], seen: &str) -> Judgement {
    let is_through = device.write_cache.as_deref() == Some(WRITE_THROUGH);
    // The kernel sends no flush to a device that writes through.
    let flushing = case.flush_slope.filter(|_| !is_through).and_then(Flushing::of);
    let seen = match &flushing {
        Some(flushing) => format!("{seen}; {}", flushing.text),
        None => seen.to_owned(),
    };
    if let Some(between) = beyond_sight(case.manifest) {
        return Judgement::inconclusive(format!(
            "{seen}; {between} and may acknowledge what only its memory holds: {UNTESTED}"
        ));
    }
    match flushing {
        Some(Flushing { grows: true, .. }) => return Judgement::pass(seen),
        Some(Flushing { short: true, .. }) => {
            return Judgement::inconclusive(format!(
                "{seen}: the cache is protected or nothing was made durable; {UNTESTED}"
            ));
        }
        _ => {}
    }
    // Time that durability adds to a plain write; the whole commit if the plain write is said to be
    // durable as well.
    let added = |commit: &'_ Point| {
        let plain = plain_write(case, commit).map(|write| write.latency.ns_p50.value);
        let plain_ns = if is_through { Some(0.0) } else { plain };
        Some((commit.label.clone(), commit.latency.ns_p50.value, plain_ns?))
    };
    let singles = commits.iter().filter(|commit| commit.load.in_flight() == 1);
    let all = singles.filter_map(|commit| added(commit));
    let Some((label, commit_ns, plain_ns)) = all.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Judgement::inconclusive(format!(
            "{seen}; no single committer and plain write of the same size to compare"
        ));
    };
    let median = time(commit_ns);
    if rotates(case, device) {
        // Faster commits were reported before.
        return Judgement::pass(format!("{seen}; {label} waits {median} (median) for the medium"));
    }
    let added_ns = commit_ns - plain_ns;
    let text = format!(
        "{seen}; of {median} (median) of {label}, {} made it durable",
        time(added_ns.max(0.0))
    );
    if added_ns < PROGRAM_NS {
        return Judgement::inconclusive(format!(
            "{text}: too little to tell a protected cache from flushes that are ignored; {UNTESTED}"
        ));
    }
    Judgement::pass(text)
}

/// Evidence on a volatile cache from the times of flushes.
struct Flushing {
    text: String,
    /// Whether the flushes write out what was written before: their time certainly grows, by what
    /// that takes.
    grows: bool,
    /// Whether they take less than that even after the most bytes.
    short: bool,
}

impl Flushing {
    fn of(slope: &FlushSlope) -> Option<Self> {
        let (least, most) = slope.ends()?;
        let (least_ns, most_ns) = (least.flush_ns_p50.value, most.flush_ns_p50.value);
        let longer_ns = slope.grows_by_ns();
        let (least, most) = (time(least_ns), Bytes(most.unflushed_bytes));
        let text = match longer_ns {
            Some(_) => {
                let longer = time(most_ns);
                format!("a flush takes {least} (median) after no write and {longer} after {most}")
            }
            None => format!(
                "a flush takes {least} (median) after no write, and not certainly longer after \
                 {most}"
            ),
        };
        let grows = longer_ns.is_some_and(|longer_ns| longer_ns >= PROGRAM_NS);
        Some(Self { text, grows, short: most_ns < PROGRAM_NS })
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
        |(_, text)| durable(case, device, commits, &text),
    )
}

/// Returns (flushes, commits) over all windows in which one committer called fdatasync or fsync.
fn flushes(case: &Case, device: &BlockDevice) -> Option<(u64, u64)> {
    let mut sums = None;
    for window in case.windows {
        let Some(load) = &case.phase(window).load else { continue };
        let flushing = matches!(load.sync, Some(SyncMethod::Fdatasync | SyncMethod::Fsync));
        if !flushing || load.in_flight() != 1 {
            continue;
        }
        let flushes = derive::device(window, &device.name, &["flush_ios"]).ok()?;
        let (all_flushes, all_commits) = sums.unwrap_or((0, 0));
        sums = Some((all_flushes + flushes, all_commits + window.completed_ops()));
    }
    sums.filter(|&(_, commits)| commits > 0)
}

fn single(point: &Point) -> bool {
    point.load.engine == "psync" && point.load.in_flight() == 1
}

/// Returns the plain write of the same size.
fn plain_write<'a>(case: &Case<'a>, commit: &Point) -> Option<&'a Point> {
    case.group(Group::RandomWrite)
        .find(|write| single(write) && write.load.block_bytes == commit.load.block_bytes)
}

fn fastest<'a>(commits: impl Iterator<Item = &'a Point>) -> Option<&'a Point> {
    commits.min_by(|a, b| a.latency.ns_p50.value.total_cmp(&b.latency.ns_p50.value))
}

fn as_cheap_as_a_write(case: &Case, commits: &[&Point]) -> Option<String> {
    let mut singles = commits.iter().copied().filter(|commit| single(commit));
    let (write, commit) = singles.find_map(|commit| Some((plain_write(case, commit)?, commit)))?;
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

/// Returns whether the device is reported to rotate and is slow enough for it: controllers and
/// virtual disks report it wrongly.
fn rotates(case: &Case, device: &BlockDevice) -> bool {
    let read = case.group(Group::RandomRead).find(|point| point.load.in_flight() == 1);
    device.rotational == Some(true)
        && read.is_some_and(|read| read.latency.ns_p50.value >= HALF_TURN_NS)
}

fn too_fast_for_a_turn(case: &Case, device: &BlockDevice, commits: &[&Point]) -> Option<String> {
    let fastest = fastest(commits.iter().copied())?;
    (rotates(case, device) && fastest.latency.ns_p50.value < HALF_TURN_NS).then(|| {
        format!(
            "{} rotates, yet {} takes {} (median)",
            device.name,
            fastest.label,
            time(fastest.latency.ns_p50.value)
        )
    })
}

/// Least share of the flushes requested by a database that must reach the device: the kernel serves
/// several at a time with one.
const SEEN_RATIO_MIN: f64 = 0.01;
/// Fewest requested flushes for which their share is meaningful.
const ENOUGH_FLUSHES: u64 = 100;

fn check_run(case: &RunCase) -> Judgement {
    if case.window.grown_of_all("operation", "commits").unwrap_or(0) == 0 {
        return Judgement::inconclusive("no commit was counted");
    }
    let devices = &case.manifest.target.devices;
    let Some(device) = devices.iter().find(|device| counts_flushes(device)) else {
        return Judgement::inconclusive("no underlying device counts flushes");
    };
    let name = &device.name;
    let grown = |column| case.window.grown("block", name, column);
    let (Ok(flushes), Ok(flush_ns)) = (grown("flush_ios"), grown("flush_ns")) else {
        return Judgement::inconclusive(format!("the flushes of {name} were not measured"));
    };
    let Some(cache) = device.write_cache.as_deref() else {
        return Judgement::inconclusive(format!("{name} does not report its write cache"));
    };
    if let Some(evidence) = unflushed(devices) {
        return Judgement::fail(evidence, commit_figures());
    }
    let seen = format!("{name}: {cache}; {} flushes", thousands(flushes as i64));
    let asked = case.window.grown("sql", "", "flushes").unwrap_or(0);
    let few = (flushes as f64) < asked as f64 * SEEN_RATIO_MIN;
    if cache != WRITE_THROUGH && asked >= ENOUGH_FLUSHES && few {
        let asked = thousands(asked as i64);
        let evidence = format!("{seen} reached it, of {asked} that the database asked for");
        return Judgement::fail(evidence, commit_figures());
    }
    if let Some(between) = beyond_sight(case.manifest) {
        return Judgement::inconclusive(format!(
            "{seen}; {between} and may acknowledge what only its memory holds: {UNTESTED}"
        ));
    }
    if flushes == 0 {
        return Judgement::inconclusive(format!(
            "{seen}: what made commits durable is not counted; {UNTESTED}"
        ));
    }
    let each_ns = flush_ns as f64 / flushes as f64;
    let evidence = format!("{seen} of {} on average", time(each_ns));
    if each_ns < PROGRAM_NS {
        return Judgement::inconclusive(format!(
            "{evidence}: too short to tell a protected cache from flushes that are ignored; \
             {UNTESTED}"
        ));
    }
    Judgement::pass(evidence)
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;
    use blockstone_base::verdict::{Outcome, Weight};
    use blockstone_record::manifest::Group;

    use crate::testing::{Fixture, flushes, saturating};

    #[test]
    fn a_write_through_device_needs_no_flush() {
        let mut fixture = Fixture::healthy();
        fixture.top_device().write_cache = Some("write through".into());
        fixture.windows_mut(Op::Commit).for_each(|w| w.devices[0].1.set("flush_ios", 0));
        assert_eq!(fixture.verdict("lying-flush").outcome, Outcome::Pass);
    }

    #[test]
    fn a_cache_of_the_drive_that_the_kernel_does_not_flush_condemns() {
        let judged = |drive: Option<&str>, kernel: &str| {
            let mut fixture = Fixture::healthy();
            fixture.top_device().write_cache = Some(kernel.into());
            fixture.top_device().drive_cache = drive.map(str::to_owned);
            let verdict = fixture.verdict("lying-flush");
            (verdict.outcome, verdict.weight)
        };
        for drive in ["write back", "write back, no read (daft)"] {
            let found = judged(Some(drive), "write through");
            assert_eq!(found, (Outcome::Fail, Weight::Condemns), "{drive}");
            assert_eq!(judged(Some(drive), "write back").0, Outcome::Pass, "{drive}");
        }
        let mut fixture = Fixture::healthy().without(&[Group::Commit]);
        fixture.top_device().write_cache = Some("write through".into());
        fixture.top_device().drive_cache = Some("write back".into());
        let verdict = fixture.verdict("lying-flush");
        assert!(verdict.warns(), "nothing is condemned where no commit was measured: {verdict:?}");
        for drive in [Some("none"), Some("write through"), None] {
            assert_eq!(judged(drive, "write through").0, Outcome::Pass, "{drive:?}");
        }
    }

    #[test]
    fn a_commit_too_short_for_a_medium_and_a_virtual_disk_stay_untested() {
        for cache in ["write through", "write back"] {
            let mut fixture = Fixture::healthy();
            fixture.top_device().write_cache = Some(cache.into());
            assert_eq!(fixture.verdict("lying-flush").outcome, Outcome::Pass, "{cache}");
            fixture.manifest.host.hypervisor = Some("KVM".into());
            let verdict = fixture.verdict("lying-flush");
            assert_eq!(verdict.outcome, Outcome::Inconclusive, "{cache}: {}", verdict.evidence);
            assert!(verdict.evidence.ends_with("untested until power is cut"), "{cache}");
            let mut fixture = Fixture::healthy().without(&[Group::Commit]);
            fixture.top_device().write_cache = Some(cache.into());
            fixture.commits_as(|load| saturating(60_000.0, 3.5, load.in_flight()));
            let verdict = fixture.verdict("lying-flush");
            assert_eq!(verdict.outcome, Outcome::Inconclusive, "{cache}: {}", verdict.evidence);
            assert!(verdict.evidence.contains("protected cache"), "{}", verdict.evidence);
        }
    }

    /// Judges commits too short to be told from a protected cache, or as long as a medium takes.
    fn with_flushes(commits_per_s: f64, time_ns: impl Fn(f64) -> f64) -> (Outcome, String) {
        let mut fixture = Fixture::healthy().without(&[Group::Commit]);
        fixture.commits_as(|load| saturating(commits_per_s, 3.5, load.in_flight()));
        fixture.flushes = flushes(time_ns);
        let verdict = fixture.verdict("lying-flush");
        (verdict.outcome, verdict.evidence)
    }

    #[test]
    fn a_flush_that_grows_with_what_was_written_before_wrote_it_out() {
        let (outcome, evidence) = with_flushes(60_000.0, |mib| 40e3 + 300e3 * mib);
        assert_eq!(outcome, Outcome::Pass, "{evidence}");
        assert!(evidence.contains("after no write and 2.4"), "{evidence}");
        assert!(evidence.contains("after 8 MiB"), "{evidence}");
        // Growth by less than the time to program a page: not for the medium.
        let (outcome, evidence) = with_flushes(60_000.0, |mib| 40e3 + 5e3 * mib);
        assert_eq!(outcome, Outcome::Inconclusive, "{evidence}");
    }

    #[test]
    fn a_short_flush_whatever_was_written_stays_untested() {
        for commits_per_s in [60_000.0, 6_000.0] {
            let (outcome, evidence) = with_flushes(commits_per_s, |_| 12e3);
            assert_eq!(outcome, Outcome::Inconclusive, "{evidence}");
            assert!(evidence.contains("the cache is protected or nothing"), "{evidence}");
            assert!(evidence.ends_with("untested until power is cut"), "{evidence}");
        }
        // A cache that is empty again right after it was written: commits take as long as a medium
        // takes.
        let (outcome, evidence) = with_flushes(6_000.0, |_| 900e3);
        assert_eq!(outcome, Outcome::Pass, "{evidence}");
    }

    #[test]
    fn no_flush_is_sent_to_a_device_without_a_volatile_cache() {
        let mut fixture = Fixture::healthy();
        fixture.top_device().write_cache = Some("write through".into());
        fixture.flushes = flushes(|_| 2e3);
        let verdict = fixture.verdict("lying-flush");
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
        assert!(!verdict.evidence.contains("a flush"), "{}", verdict.evidence);
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
