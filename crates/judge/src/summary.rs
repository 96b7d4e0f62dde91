//! Points → the headline figures, each with its interval and the label it was read from. A figure
//! without support is absent, never zero.

use blockstone_base::load::{Access, Op, SyncMethod};
use blockstone_base::stats::Estimate;
use blockstone_figures::simultaneous;
use blockstone_record::manifest::{Figure, Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;

use crate::findings::Point;
use crate::visits::FIGURE as VISITS;

/// The bound on latency if the settings do not set one: 20 ms, the default of Oracle's
/// `CALIBRATE_IO`.
pub const MAX_LATENCY_NS: f64 = 20e6;

/// Names of all figures, in the order in which they should be read; a figure that was not measured
/// is absent.
pub const NAMES: [&str; 17] = names(&ABOUT);

/// Description of each of them.
pub const ABOUT: [(&str, &str); 17] = [
    ("max_iops", "Most random block reads a second with a mean latency within the bound."),
    ("max_mbps", "Most decimal megabytes a second, in reads of 1 MiB."),
    ("actual_latency_ns_mean", "Mean latency of a read at `max_iops`."),
    ("knee_iops", "Most random block reads a second with a p99 latency within the bound."),
    ("knee_latency_ns_p99", "99th percentile of read latency at the knee."),
    ("read_latency_ns_p50", "Median latency of one blocking reader."),
    ("read_latency_ns_p99", "99th percentile of the latency of one blocking reader."),
    ("max_write_iops", "Most random block writes a second."),
    ("write_mbps", "Decimal megabytes a second of sequential writes of the layout."),
    ("write_latency_ns_p50", "Median latency of one blocking writer."),
    ("commit_latency_ns_p50", "Median latency of a durable block write by one committer."),
    ("commit_latency_ns_p99", "99th percentile of that latency."),
    ("max_commits_per_s", "Most commits a second over the numbers of committers."),
    ("cached_read_mbps", "Sequential reads from the page cache, decimal megabytes a second."),
    ("buffered_read_mbps", "Sequential reads through the page cache, likewise."),
    ("direct_read_mbps", "Sequential reads past the page cache, likewise."),
    (VISITS, "Cached blocks that one session visits per second of processor time."),
];

pub(crate) const fn names<const N: usize>(about: &[(&'static str, &str); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = about[index].0;
        index += 1;
    }
    names
}

/// Returns the figures that were measured, in the order of [`NAMES`].
pub fn figures(
    manifest: &Manifest,
    points: &[Point],
    drift_ratio: Option<f64>,
) -> Vec<(String, Figure)> {
    let select = Select { manifest, points };
    let figure = |name: &str| {
        let (title, unit, Chosen { point, from }, of) = figure(name, &select)?;
        let estimate = simultaneous::chosen_from(from, point.windows, of(point));
        let estimate = with_drift(estimate, drift_ratio);
        let is_quantile = name.ends_with("_p99");
        let figure = Figure {
            title: title.to_owned(),
            unit: unit.to_owned(),
            estimate: if is_quantile {
                estimate.not_below(&point.latency.ns_p50)
            } else {
                estimate
            },
            phase: point.label.clone(),
            condemned_by: Vec::new(),
        };
        Some((name.to_owned(), figure))
    };
    NAMES.iter().filter_map(|name| figure(name)).collect()
}

/// The point that a figure is read from.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    point: &'a Point,
    /// Number of short windows from which it was chosen by its rate. One if it was named
    /// beforehand, or measured again afterwards.
    from: usize,
}

/// Title, unit, the point to read from, and how to read it.
type Found<'a> = (&'static str, &'static str, Chosen<'a>, fn(&Point) -> Estimate);

fn figure<'a>(name: &str, select: &Select<'a>) -> Option<Found<'a>> {
    let named = |point: Option<&'a Point>| Some(Chosen { point: point?, from: 1 });
    let (title, unit, chosen, of): (_, _, _, fn(&Point) -> Estimate) = match name {
        "max_iops" => ("Most random reads a second", "IOPS", select.max_iops(), |p| p.iops),
        "max_mbps" => {
            let title = "Most megabytes a second, random 1 MiB reads";
            (title, "MB/s", select.max_mbps(), |p| p.mb_per_s)
        }
        "actual_latency_ns_mean" => {
            ("Mean read latency at max_iops", "ns", select.max_iops(), |p| p.latency.ns_mean)
        }
        "knee_iops" => {
            ("Most random reads a second with p99 in bounds", "IOPS", select.knee(), |p| p.iops)
        }
        "knee_latency_ns_p99" => {
            ("Read latency p99 at the knee", "ns", select.knee(), |p| p.latency.ns_p99)
        }
        "read_latency_ns_p50" => {
            let reader = named(select.single(Group::RandomRead));
            ("Single-block read latency p50", "ns", reader, |p| p.latency.ns_p50)
        }
        "read_latency_ns_p99" => {
            let reader = named(select.single(Group::RandomRead));
            ("Single-block read latency p99", "ns", reader, |p| p.latency.ns_p99)
        }
        "max_write_iops" => {
            ("Most random writes a second", "IOPS", select.max_write_iops(), |p| p.iops)
        }
        "write_mbps" => {
            let layout = named(select.in_group(Group::Layout).next());
            ("Megabytes written a second", "MB/s", layout, |p| p.mb_per_s)
        }
        "write_latency_ns_p50" => {
            let writer = named(select.single(Group::RandomWrite));
            ("Single-block write latency p50", "ns", writer, |p| p.latency.ns_p50)
        }
        "commit_latency_ns_p50" => {
            ("Commit latency p50", "ns", named(select.commit()), |p| p.latency.ns_p50)
        }
        "commit_latency_ns_p99" => {
            ("Commit latency p99", "ns", named(select.commit()), |p| p.latency.ns_p99)
        }
        "max_commits_per_s" => {
            ("Most commits a second", "commits/s", select.max_commits(), |p| p.iops)
        }
        "cached_read_mbps" => {
            let point = named(select.labelled("cached-read/cached"));
            ("Sequential read from the page cache", "MB/s", point, |p| p.mb_per_s)
        }
        "buffered_read_mbps" => {
            let point = named(select.labelled("cached-read/buffered"));
            ("Sequential read through the page cache", "MB/s", point, |p| p.mb_per_s)
        }
        "direct_read_mbps" => {
            let point = named(select.labelled("cached-read/direct"));
            ("Sequential read past the page cache", "MB/s", point, |p| p.mb_per_s)
        }
        _ => return None,
    };
    Some((title, unit, chosen?, of))
}

/// Widens the interval of an estimate by half the drift of the reference point.
///
/// A point is measured once, at an instant at which the machine may have been anywhere between the
/// best and the worst level that the reference saw over the run. Its own samples cannot show that;
/// the distance from the middle of that range to either end is half the drift.
pub fn with_drift(estimate: Estimate, drift_ratio: Option<f64>) -> Estimate {
    estimate.widened(drift_ratio.unwrap_or(0.0) / 2.0).not_negative()
}

/// Returns the `max_latency` of the settings, in nanoseconds.
pub fn max_latency_ns(manifest: &Manifest) -> f64 {
    let set = manifest.parameters::<CalibrateParameters>().max_latency_ns;
    set.map_or(MAX_LATENCY_NS, |set| set.get() as f64)
}

struct Select<'a> {
    manifest: &'a Manifest,
    points: &'a [Point],
}

impl<'a> Select<'a> {
    fn in_group(&self, group: Group) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(move |point| point.group == group)
    }

    fn labelled(&self, label: &str) -> Option<&'a Point> {
        self.points.iter().find(|point| point.label == label)
    }

    /// Returns the confirmed point if it was measured and keeps to `bound`, because its window is
    /// longer; else the best of the `candidates` that keep to it and that no longer window refuted,
    /// with the interval of the best of them all.
    fn confirmed(
        &self,
        name: &str,
        candidates: impl Iterator<Item = &'a Point>,
        rate: fn(&Point) -> f64,
        bound: impl Fn(&Point) -> bool,
    ) -> Option<Chosen<'a>> {
        let label = format!("confirm/{name}");
        let confirmed = self.in_group(Group::Confirm).find(|point| point.label == label);
        let refuted =
            |point: &Point| confirmed.is_some_and(|longer| longer.load.same_point(&point.load));
        if let Some(point) = confirmed.filter(|point| bound(point)) {
            return Some(Chosen { point, from: 1 });
        }
        let candidates: Vec<&Point> = candidates.collect();
        let keeps = |point: &&Point| !refuted(point) && bound(point);
        let point = best(candidates.iter().copied().filter(keeps), rate)?;
        let from = if point.group == Group::Confirm { 1 } else { candidates.len() };
        Some(Chosen { point, from })
    }

    /// Returns the figure as `CALIBRATE_IO` defines it: the most random reads whose mean latency
    /// keeps to the bound.
    fn max_iops(&self) -> Option<Chosen<'a>> {
        let limit = max_latency_ns(self.manifest);
        let bound = |p: &Point| p.latency.ns_mean.value <= limit;
        self.confirmed("max-iops", self.in_group(Group::RandomRead), |p| p.iops.value, bound)
    }

    /// As [`Self::max_iops`], with the 99th percentile in place of the mean. A load that was
    /// confirmed is judged by its longer window alone, and since p99 is the stricter bound no short
    /// window may claim more than `max_iops`.
    fn knee(&self) -> Option<Chosen<'a>> {
        let limit = max_latency_ns(self.manifest);
        let bound = |p: &Point| p.latency.ns_p99.value <= limit;
        let confirmed: Vec<&Point> =
            self.in_group(Group::Confirm).filter(|p| p.load.op == Op::Read).collect();
        let most = self.max_iops().map_or(f64::INFINITY, |most| most.point.iops.value);
        let eligible = |p: &Point| {
            p.group == Group::Confirm
                || p.iops.value <= most && confirmed.iter().all(|c| !c.load.same_point(&p.load))
        };
        let again = confirmed.iter().copied().filter(|p| p.label == "confirm/max-iops");
        let candidates = self.in_group(Group::RandomRead).chain(again);
        self.confirmed("knee", candidates, |p| p.iops.value, |p| eligible(p) && bound(p))
    }

    /// Returns the figure as `CALIBRATE_IO` defines it, for large reads at random places.
    fn max_mbps(&self) -> Option<Chosen<'a>> {
        let random = |p: &&Point| p.load.access == Access::Random;
        let candidates = self.in_group(Group::LargeRead).filter(random);
        self.confirmed("max-mbps", candidates, |p| p.mb_per_s.value, |_| true)
    }

    /// Applies no bound: block writes are background work of a database, no session waits for one.
    fn max_write_iops(&self) -> Option<Chosen<'a>> {
        let candidates = self.in_group(Group::RandomWrite);
        self.confirmed("max-write-iops", candidates, |p| p.iops.value, |_| true)
    }

    /// Returns the point of a single blocking reader or writer.
    fn single(&self, group: Group) -> Option<&'a Point> {
        self.in_group(group).find(|p| p.load.engine == "psync" && p.load.in_flight() == 1)
    }

    /// Returns the commits of one block.
    fn commits(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        let block = self.manifest.parameters::<CalibrateParameters>().block_bytes;
        self.in_group(Group::Commit).filter(move |p| {
            p.load.op == Op::Commit && block.is_none_or(|b| b.get() == p.load.block_bytes)
        })
    }

    /// Returns the point of one committer that overwrites with `O_DSYNC`, as a redo log of
    /// preallocated files does.
    fn commit(&self) -> Option<&'a Point> {
        self.commits().find(|p| {
            p.load.sync == Some(SyncMethod::Dsync)
                && p.load.access != Access::Append
                && p.load.in_flight() == 1
        })
    }

    fn max_commits(&self) -> Option<Chosen<'a>> {
        self.confirmed("max-commits", self.commits(), |p| p.iops.value, |_| true)
    }
}

fn best<'a>(points: impl Iterator<Item = &'a Point>, rate: fn(&Point) -> f64) -> Option<&'a Point> {
    points.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::{Access, Op, SyncMethod};
    use blockstone_base::stats::Estimate;
    use blockstone_record::manifest::{Figure, Group};
    use proptest::prelude::*;

    use crate::findings::Point;
    use crate::testing::{Behaviour, Fixture, commit, large, load, saturating};

    fn figure(fixture: &Fixture, name: &str) -> Option<Figure> {
        fixture.find().summary.into_iter().find(|(n, _)| n == name).map(|(_, figure)| figure)
    }

    #[test]
    fn a_healthy_calibration_has_every_figure_in_reading_order() {
        let summary = Fixture::healthy().find().summary;
        let names: Vec<&str> = summary.iter().map(|(name, _)| name.as_str()).collect();
        // The last name does not belong to a point.
        let of_points = super::NAMES.into_iter().filter(|name| *name != super::VISITS);
        assert_eq!(names, of_points.collect::<Vec<_>>());
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let fixture = Fixture::reads_as(|load| saturating(80_000.0, 3.2, load.in_flight()));
        assert!(figure(&fixture, "max_iops").is_some());
        for name in ["max_write_iops", "write_mbps", "commit_latency_ns_p50", "max_commits_per_s"] {
            assert!(figure(&fixture, name).is_none(), "{name}");
        }
        assert!(Fixture::empty().find().summary.is_empty());
    }

    #[test]
    fn the_bound_on_latency_holds_and_confirmed_points_are_preferred() {
        // 10,000 IOPS at most: 128 in flight take 12.8 ms, 256 take 25.6 ms.
        let mut fixture = Fixture::empty();
        for n in [64, 128, 256] {
            let label = format!("random-read/uring/d{n}");
            let load = load(Op::Read, "uring", n);
            let rate = 9_900.0 + f64::from(n);
            let behaviour = Behaviour::natural(rate, f64::from(n) / rate * 1e9);
            fixture.add(&label, Group::RandomRead, load, &behaviour);
        }
        assert_eq!(figure(&fixture, "max_iops").unwrap().phase, "random-read/uring/d128");
        let confirm = Behaviour::natural(10_000.0, 6.4e6);
        fixture.add("confirm/max-iops", Group::Confirm, load(Op::Read, "uring", 64), &confirm);
        assert_eq!(figure(&fixture, "max_iops").unwrap().phase, "confirm/max-iops");
        let mean = figure(&fixture, "actual_latency_ns_mean").unwrap();
        assert!((mean.estimate.value / 6.4e6 - 1.0).abs() < 0.02, "{mean:?}");
        let too_slow = Behaviour::natural(10_000.0, 25e6);
        fixture.add("confirm/knee", Group::Confirm, load(Op::Read, "uring", 250), &too_slow);
        // d128 was within the bound too, but claims more than the confirmed most.
        assert_eq!(figure(&fixture, "knee_iops").unwrap().phase, "confirm/max-iops");
    }

    #[test]
    fn the_most_commits_are_those_of_the_windows_that_confirm_them() {
        let mut fixture = Fixture::healthy();
        let shortly = figure(&fixture, "max_commits_per_s").unwrap();
        assert_eq!(shortly.phase, "commit/dsync/overwrite/8K/x16");
        let load = commit(SyncMethod::Dsync, 16);
        for rate in [40_000.0, 42_000.0, 44_000.0] {
            let behaviour = Behaviour::natural(rate, 16e9 / rate);
            fixture.add("confirm/max-commits", Group::Confirm, load.clone(), &behaviour);
        }
        let confirmed = figure(&fixture, "max_commits_per_s").unwrap();
        assert_eq!(confirmed.phase, "confirm/max-commits");
        let estimate = confirmed.estimate;
        assert!((estimate.value / 42_000.0 - 1.0).abs() < 0.01, "{estimate:?}");
        // Student's t with two degrees of freedom: 4.303 × 2,000 ÷ √3.
        assert!((estimate.high - estimate.value) / 4_969.0 > 0.95, "{estimate:?}");
    }

    #[test]
    fn the_best_of_short_windows_has_the_interval_of_all_and_a_confirmed_one_its_own() {
        let mut fixture = Fixture::empty();
        for n in [1, 2, 4, 8] {
            let rate = 10_000.0 + f64::from(n);
            let behaviour = Behaviour::natural(rate, f64::from(n) / rate * 1e9);
            let label = format!("random-read/uring/d{n}");
            fixture.add(&label, Group::RandomRead, load(Op::Read, "uring", n), &behaviour);
        }
        let wider = |fixture: &Fixture, name: &str, of: fn(&Point) -> Estimate| {
            let found = fixture.find();
            let (_, figure) = found.summary.iter().find(|(known, _)| known == name).unwrap();
            let point = found.points.iter().find(|point| point.label == figure.phase).unwrap();
            figure.estimate.relative_half_width() / of(point).relative_half_width()
        };
        // Student's t with 9 degrees of freedom: 3.099 for four at once, 2.262 for one.
        for (name, of) in [
            ("max_iops", (|p| p.iops) as fn(&Point) -> Estimate),
            ("knee_iops", |p| p.iops),
            ("actual_latency_ns_mean", |p| p.latency.ns_mean),
        ] {
            let wider = wider(&fixture, name, of);
            assert!((wider - 1.370).abs() < 0.005, "{name}: {wider}");
        }
        let behaviour = Behaviour::natural(10_000.0, 8e5);
        fixture.add("confirm/max-iops", Group::Confirm, load(Op::Read, "uring", 8), &behaviour);
        for name in ["max_iops", "knee_iops"] {
            assert!((wider(&fixture, name, |p| p.iops) - 1.0).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn megabytes_are_decimal() {
        let mut fixture = Fixture::empty();
        let behaviour = Behaviour::natural(1_000.0, 1e6);
        let load = large(Access::Random, 1);
        fixture.add("large-read/random/x1", Group::LargeRead, load, &behaviour);
        let rate = figure(&fixture, "max_mbps").unwrap().estimate.value;
        assert!((rate / 1048.576 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn drift_of_the_reference_widens_every_interval_by_its_half() {
        let drifting = |second| {
            let mut fixture = Fixture::healthy().without(&[Group::Reference]);
            for rate in [10_000.0, second] {
                let behaviour =
                    Behaviour { slices: vec![rate; 20], ..Behaviour::natural(rate, 1e9 / rate) };
                fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &behaviour);
            }
            fixture.find()
        };
        let (steady, moved) = (drifting(10_000.0), drifting(8_000.0));
        let drift = moved.drift_ratio.unwrap();
        assert!((drift - 2.0 / 9.0).abs() < 1e-6, "{drift}");
        assert!(steady.drift_ratio.unwrap() < 1e-9);
        for ((name, a), (_, b)) in steady.summary.iter().zip(&moved.summary) {
            let wider = (b.estimate.high - a.estimate.high) / a.estimate.value;
            assert!((wider - drift / 2.0).abs() < 1e-6, "{name}: {wider}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn every_figure_lies_in_its_interval_and_is_finite(
            ceiling in 500.0_f64..200_000.0, units in 1.1_f64..20.0, drift in 0.5_f64..1.0,
        ) {
            let mut fixture = Fixture::reads_as(|l| saturating(ceiling, units, l.in_flight()));
            fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1),
                &saturating(ceiling * drift, units, 1));
            for (name, figure) in fixture.find().summary {
                let e = figure.estimate;
                let ordered = e.low >= 0.0 && e.low <= e.value && e.value <= e.high;
                prop_assert!(ordered, "{name}: {e:?}");
                prop_assert!(e.high.is_finite() && e.samples > 0, "{name}: {e:?}");
            }
        }
    }
}
