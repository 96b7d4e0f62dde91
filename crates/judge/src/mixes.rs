//! Reads and writes in a fixed proportion, compared with what the rates of reads and writes alone
//! predict.

use blockstone_base::load::Op;
use blockstone_base::stats::Estimate;
use blockstone_record::manifest::Group;

use crate::findings::Point;

/// A mix, with as many operations in flight as reads alone and writes alone had.
#[derive(Clone, Copy, Debug)]
pub struct Mix<'a> {
    /// Reads out of 100 operations.
    pub read_pct: u32,
    /// The mix as it was measured.
    pub point: &'a Point,
    /// Reads alone.
    pub reads: &'a Point,
    /// Writes alone.
    pub writes: &'a Point,
}

/// Returns the mixes that were measured, in their order, if reads and writes alone were measured
/// too.
pub fn of(points: &[Point]) -> Vec<Mix<'_>> {
    let group = || points.iter().filter(|point| point.group == Group::Mix);
    let alone = |op| group().find(|point| point.load.op == op);
    let (Some(reads), Some(writes)) = (alone(Op::Read), alone(Op::Write)) else {
        return Vec::new();
    };
    let share_of = |point: &Point| point.load.read_pct.filter(|pct| (1..100).contains(pct));
    let mix = |point| Some(Mix { read_pct: share_of(point)?, point, reads, writes });
    group().filter_map(mix).collect()
}

impl Mix<'_> {
    /// Returns 1 ÷ (r/R + w/W): the rate of a device that reads or writes, one at the expense of
    /// the other.
    pub fn formula_iops(&self) -> Estimate {
        self.follows(|share, reads, writes| 1.0 / (share / reads + (1.0 - share) / writes))
    }

    /// Returns the lesser of R/r and W/w: the rate if reads and writes have separate limits.
    pub fn separate_iops(&self) -> Estimate {
        self.follows(|share, reads, writes| (reads / share).min(writes / (1.0 - share)))
    }

    /// Evaluates a function that grows with both rates, at the low and the high ends of their
    /// intervals.
    fn follows(&self, rate: impl Fn(f64, f64, f64) -> f64) -> Estimate {
        let share = f64::from(self.read_pct) / 100.0;
        let (reads, writes) = (self.reads.iops, self.writes.iops);
        Estimate {
            value: rate(share, reads.value, writes.value),
            low: rate(share, reads.low, writes.low),
            high: rate(share, reads.high, writes.high),
            samples: reads.samples.min(writes.samples),
            duration_ns: reads.duration_ns.min(writes.duration_ns),
        }
    }

    /// Returns the rules that condemn the mix or what it is compared with.
    pub fn condemned_by(&self) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        for rule in [self.point, self.reads, self.writes].iter().flat_map(|p| &p.condemned_by) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use blockstone_record::testing::point;

    use crate::testing::{Behaviour, Fixture};

    fn measured(rates: &[(&str, f64)]) -> Fixture {
        let mut fixture = Fixture::healthy();
        for &(label, rate) in rates {
            let phase = point(label);
            let behaviour = Behaviour::natural(rate, 16e9 / rate);
            fixture.add(label, phase.group, phase.load.unwrap(), &behaviour);
        }
        fixture
    }

    #[test]
    fn a_mix_is_compared_with_reads_and_writes_alone() {
        let found =
            measured(&[("mix/100:0", 1e4), ("mix/0:100", 5e3), ("mix/70:30", 7.7e3)]).find();
        let mixes = super::of(&found.points);
        assert_eq!(mixes.len(), 1);
        let mix = &mixes[0];
        assert_eq!(mix.read_pct, 70);
        // 0.7 / 10,000 + 0.3 / 5,000 = 130 µs.
        assert!((mix.formula_iops().value / 7_692.3 - 1.0).abs() < 0.01);
        // 10,000 / 0.7 = 14,286; 5,000 / 0.3 = 16,667.
        assert!((mix.separate_iops().value / 14_286.0 - 1.0).abs() < 0.01);
        let formula = mix.formula_iops();
        assert!(formula.low < formula.value && formula.value < formula.high, "{formula:?}");
        assert!(mix.condemned_by().is_empty());
    }

    #[test]
    fn its_evidence_is_what_was_read_and_what_was_written() {
        let found =
            measured(&[("mix/100:0", 1e4), ("mix/0:100", 5e3), ("mix/70:30", 7.7e3)]).find();
        let evidence = &super::of(&found.points)[0].point.evidence;
        assert_eq!(evidence.process_bytes, Some(evidence.completed_bytes));
        assert_eq!(evidence.device_bytes, Some(evidence.completed_bytes));
    }

    #[test]
    fn without_either_alone_there_is_nothing_to_compare_with() {
        let found = measured(&[("mix/100:0", 1e4), ("mix/70:30", 7.7e3)]).find();
        assert!(super::of(&found.points).is_empty());
    }
}
