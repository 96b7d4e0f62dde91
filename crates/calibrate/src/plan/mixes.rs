//! Mixed random reads and writes, with as many in flight as at the highest rate of random reads.

use blockstone_base::load::Op;
use blockstone_record::manifest::Group;

use super::Step;
use crate::settings::Settings;

/// Returns a step for each mix, and for reads and writes alone: a mix must be compared with as many
/// in flight, measured at the same time.
pub fn mixes(settings: &Settings, headline: &Step) -> Vec<Step> {
    let step = |read_pct: u32| {
        let mut load = headline.load.clone();
        (load.op, load.read_pct) = match read_pct {
            100 => (Op::Read, None),
            0 => (Op::Write, None),
            _ => (Op::Mixed, Some(read_pct)),
        };
        let label = format!("mix/{read_pct}:{}", 100 - read_pct);
        Step { label, group: Group::Mix, load, ..headline.clone() }
    };
    let alone = [100, 0].into_iter().filter(|_| !settings.options.mixes_read_pct.is_empty());
    alone.chain(settings.options.mixes_read_pct.iter().copied()).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::settings;
    use crate::plan::{confirm, layout, spaced};
    use crate::settings::Thoroughness;
    use blockstone_base::units::Bytes;

    #[test]
    fn a_mix_stands_beside_reads_and_writes_alone_in_windows_of_the_same_times() {
        let plain = settings(Thoroughness::Standard);
        let load = layout(&plain, Bytes::gib(1), true, true);
        let headline = confirm(&plain, "max-iops", load, 3);
        assert!(mixes(&plain, &headline).is_empty());
        let mut settings = plain;
        settings.options.mixes_read_pct = vec![70, 50];
        let steps = mixes(&settings, &headline);
        let labels: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!(labels, ["mix/100:0", "mix/0:100", "mix/70:30", "mix/50:50"]);
        let all = spaced(&settings, &steps);
        assert_eq!(all.len(), 12);
        for (at, step) in all.iter().enumerate() {
            assert_eq!(step.load.in_flight(), headline.load.in_flight());
            assert_eq!((&step.label, step.repeat), (&steps[at % 4].label, at as u32 / 4));
            assert_eq!(step.load.op == Op::Mixed, step.load.read_pct.is_some());
        }
    }
}
