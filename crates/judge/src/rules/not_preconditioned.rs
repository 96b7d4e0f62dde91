//! Write rates of flash that had hardly been written to before.

use super::burst::coarse;
use super::{CalibrationRule, Case, beyond_sight, labels, megabytes, percent};
use crate::precondition::{Precondition, is_pass};
use crate::window::Window;
use blockstone_base::identity::DeviceKind;
use blockstone_base::load::Op;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::Bytes;
use blockstone_base::verdict::Weight;

const ABOUT: About = About {
    id: "not-preconditioned",
    weight: Weight::Warns,
    doc: "Writes to flash that was fresh, trimmed or little written: its rate falls once the fast \
          cells of its cache are full or it has to collect garbage.",
    threshold: "Warns if the rate fell for good while the test file or device was laid out: over \
                slices of half a second (of a long layout, of a two-hundredth of it), nine of ten \
                after the fall are below 60 % of nine of ten before it, for at least one second \
                before and two after; not so once --precondition has settled. Passes on disks that \
                rotate and on drives of which all was written twice, with rounds of --precondition \
                only if these settled, if they are attached directly. Inconclusive otherwise: a \
                layout writes each place once, and how full a drive is beneath a file system is \
                not known, nor what lies behind a hypervisor, controller or array.",
    cause: "A cache of single-level cells was full, or the drive ran out of erased blocks; in a \
            cloud, the credits of the volume were used up.",
    next: "Size by the lower rate; measure the whole drive with --precondition, which writes it \
           twice and goes on until the rate no longer falls.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

const FELL_TO_MAX: f64 = 0.6;
const SLICE_NS: u64 = 500_000_000;
/// Number of slices of a long window.
const SLICES: u64 = 200;
/// Fewest slices on either side of the fall.
const BEFORE: usize = 2;
const AFTER: usize = 4;
/// Share of the slices before the fall that are at least as fast as the rate before, and of those
/// after it that are at most as fast as the rate after.
const MOST: f64 = 0.9;

fn check(case: &Case) -> Judgement {
    let writes = labels(case.storage_points().filter(|point| point.load.op != Op::Read));
    if writes.is_empty() {
        return Judgement::inconclusive("no write was measured");
    }
    let hidden = beyond_sight(case.manifest);
    let disks = || case.devices().iter().filter(|device| device.kind == DeviceKind::Disk);
    if hidden.is_none() && disks().all(|disk| disk.rotational == Some(true)) {
        let names: Vec<&str> = disks().map(|disk| disk.name.as_str()).collect();
        return Judgement::pass(format!("{} rotates: it has no cells", names.join(", ")));
    }
    let passes: Vec<&Window> =
        case.storage_windows().filter(|window| is_pass(case.phase(window))).collect();
    let fall = passes.iter().find_map(|window| Some((window, Fall::of(window)?)));
    let settled = case.precondition.is_some_and(|done| done.settled);
    if let Some((window, fall)) = fall.filter(|_| !settled) {
        let evidence = format!(
            "{}: {} a second or more until {} were written, then {} a second or less ({})",
            case.phase(window).label,
            megabytes(fall.before as u64),
            megabytes(fall.written_bytes),
            megabytes(fall.after as u64),
            percent(fall.after / fall.before)
        );
        return Judgement::fail(evidence, writes);
    }
    let disks_bytes = disks().map(|disk| disk.size_bytes).fold(0, u64::saturating_add);
    let written = passes.iter().map(|window| window.completed_bytes());
    let written = Bytes(written.fold(0, u64::saturating_add));
    let layout =
        || (format!("the rate did not fall for good in the {written} of the layout"), false);
    let (seen, all_twice) =
        case.precondition.map_or_else(layout, |done| of_preconditioning(done, disks_bytes));
    match hidden {
        Some(between) => Judgement::inconclusive(format!(
            "{seen}; what of its flash was written is not known: {between}"
        )),
        None if all_twice => Judgement::pass(seen),
        None => Judgement::inconclusive(format!("{seen}; the rate of a full drive may be lower")),
    }
}

/// Describes what was written of disks of this size. Also returns whether everything was written
/// twice and, if there were rounds, until the rate settled.
fn of_preconditioning(done: &Precondition, disks_bytes: u64) -> (String, bool) {
    // A remainder of less than a large block is not written.
    let twice = done.pass_bytes / 2 + Bytes::mib(1).get() > disks_bytes;
    let unsettled = !done.rounds.is_empty() && !done.settled;
    let pass = Bytes(done.pass_bytes / 2);
    let seen = format!("{pass} of {} written twice, {}", Bytes(disks_bytes), done.outcome());
    (seen, twice && !unsettled)
}

/// A permanent fall of the rate within a window.
#[derive(Debug, PartialEq)]
struct Fall {
    /// Bytes a second.
    before: f64,
    after: f64,
    /// Bytes written before the fall.
    written_bytes: u64,
}

impl Fall {
    fn of(window: &Window) -> Option<Self> {
        let track: Vec<(u64, u64)> =
            window.ticks.iter().map(|tick| (tick.t_ns, tick.bytes)).collect();
        let slices = coarse(&track, SLICE_NS.max(window.duration_ns() / SLICES));
        let start_bytes = track.first()?.1;
        (BEFORE..=slices.len().checked_sub(AFTER)?).find_map(|at| {
            let before = rate_of_most(&slices[..at], 1.0 - MOST);
            let after = rate_of_most(&slices[at..], MOST);
            let until = track.iter().find(|tick| tick.0 >= slices[at - 1].0)?;
            let written_bytes = until.1.saturating_sub(start_bytes);
            (after < before * FELL_TO_MAX).then_some(Self { before, after, written_bytes })
        })
    }
}

/// Returns the rate that this share of slices does not exceed; with few slices, the extreme.
fn rate_of_most(slices: &[(u64, f64)], share: f64) -> f64 {
    let mut rates: Vec<f64> = slices.iter().map(|slice| slice.1).collect();
    rates.sort_by(f64::total_cmp);
    let last = rates.len().saturating_sub(1) as f64;
    let at = if share < 0.5 { (last * share).floor() } else { (last * share).ceil() };
    rates.get(at as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};
    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, TICK_NS};

    /// A drive that is laid out at these shares of 1,000 MiB/s, each for this many seconds.
    fn laid_out(levels: &[(f64, u64)]) -> Fixture {
        let mut fixture = Fixture::healthy().without(&[Group::Layout]);
        fixture.top_device().rotational = Some(false);
        let load = blockstone_record::testing::point("layout").load.unwrap();
        let ticks = |seconds: u64| (seconds * 1_000_000_000 / TICK_NS) as usize;
        let level = |&(share, seconds): &(f64, u64)| vec![1_000.0 * share; ticks(seconds)];
        let slices = levels.iter().flat_map(level).collect();
        let behaviour = Behaviour { slices, ..Behaviour::natural(1_000.0, 1e6) };
        fixture.add("layout", Group::Layout, load, &behaviour);
        fixture
    }

    fn verdict(levels: &[(f64, u64)]) -> Verdict {
        laid_out(levels).verdict("not-preconditioned")
    }

    #[test]
    fn a_cliff_is_named_with_what_was_written_before_it() {
        let verdict = verdict(&[(1.0, 4), (0.3, 4)]);
        assert!(verdict.warns(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("until 4,194 MB"), "{}", verdict.evidence);
        assert!(verdict.concerns.iter().any(|name| name == "max_write_iops"));
        assert!(!verdict.concerns.iter().any(|name| name == "max_iops"), "reads stand");
    }

    #[test]
    fn one_slow_moment_before_and_a_fast_one_after_do_not_hide_a_cliff_in_a_long_layout() {
        let levels = [(1.0, 20), (0.2, 1), (1.0, 20), (0.3, 20), (1.0, 1), (0.3, 40)];
        let verdict = verdict(&levels);
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
    }

    #[test]
    fn a_dip_a_slow_decline_and_a_slow_last_second_are_no_cliff() {
        for levels in [
            &[(1.0, 3), (0.3, 2), (1.0, 3)][..],
            &[(1.0, 3), (0.7, 5)],
            &[(1.0, 2), (0.9, 2), (0.8, 2), (0.7, 2), (0.6, 2)],
            &[(1.0, 7), (0.3, 1)],
            &[(1.0, 8)],
        ] {
            let verdict = verdict(levels);
            assert_eq!(verdict.outcome, Outcome::Inconclusive, "{levels:?}: {}", verdict.evidence);
            assert!(verdict.evidence.contains("did not fall"), "{}", verdict.evidence);
        }
    }

    #[test]
    fn a_cliff_is_seen_behind_a_hypervisor_and_its_absence_is_not() {
        let outcome = |levels: &[(f64, u64)], rotational| {
            let mut fixture = laid_out(levels);
            fixture.top_device().rotational = Some(rotational);
            fixture.manifest.host.hypervisor = Some("KVM".into());
            fixture.verdict("not-preconditioned").outcome
        };
        assert_eq!(outcome(&[(1.0, 4), (0.3, 4)], false), Outcome::Fail);
        assert_eq!(outcome(&[(1.0, 8)], false), Outcome::Inconclusive);
        assert_eq!(outcome(&[(1.0, 8)], true), Outcome::Inconclusive, "the hypervisor says so");
    }

    #[test]
    fn what_was_preconditioned_passes_if_it_is_all_of_the_drive_and_settled() {
        const SIZE: u64 = 8 << 30;
        let steady = [9e4, 1e4, 1e4, 1e4, 1e4, 1e4];
        let judged = |written, rates: &[f64], change: fn(&mut Fixture)| {
            let mut fixture = Fixture::healthy().preconditioned(written, rates);
            fixture.top_device().rotational = Some(false);
            fixture.top_device().size_bytes = SIZE;
            change(&mut fixture);
            fixture.verdict("not-preconditioned")
        };
        let passed = judged(2 * SIZE, &steady, |_| {});
        assert_eq!(passed.outcome, Outcome::Pass, "{}", passed.evidence);
        assert!(passed.evidence.contains("settled after 6 rounds"), "{}", passed.evidence);
        let only_filled = judged(2 * SIZE, &[], |_| {});
        assert_eq!(only_filled.outcome, Outcome::Pass, "{}", only_filled.evidence);
        let hidden = |fixture: &mut Fixture| fixture.manifest.host.hypervisor = Some("KVM".into());
        for verdict in [
            judged(2 * SIZE, &steady[..5], |_| {}),
            judged(SIZE, &steady, |_| {}),
            judged(2 * SIZE, &steady, hidden),
        ] {
            assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        }
    }

    #[test]
    fn a_cliff_in_the_first_pass_warns_until_the_rounds_have_settled() {
        for (rates, outcome) in
            [(&[][..], Outcome::Fail), (&[1e4; 4], Outcome::Fail), (&[1e4; 5], Outcome::Pass)]
        {
            let mut fixture = Fixture::healthy().preconditioned(8 << 30, rates);
            fixture.top_device().rotational = Some(false);
            fixture.top_device().size_bytes = 4 << 30;
            let ticks = &mut fixture.window_mut("precondition/fill").ticks;
            let full_ns = ticks[20].t_ns;
            for tick in &mut ticks[20..] {
                tick.t_ns = full_ns + 5 * (tick.t_ns - full_ns);
            }
            let verdict = fixture.verdict("not-preconditioned");
            assert_eq!(verdict.outcome, outcome, "{}", verdict.evidence);
        }
    }

    #[test]
    fn a_rotating_disk_has_no_cells() {
        let mut fixture = laid_out(&[(1.0, 4), (0.3, 4)]);
        fixture.top_device().rotational = Some(true);
        assert_eq!(fixture.verdict("not-preconditioned").outcome, Outcome::Pass);
    }
}
