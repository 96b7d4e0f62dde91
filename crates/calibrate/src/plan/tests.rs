//! Tests of the plan, and settings for tests of other modules.

use super::*;
use crate::settings::Subject;
use std::collections::BTreeSet;

pub(crate) fn settings(thoroughness: Thoroughness) -> Settings {
    let words: &[&str] = match thoroughness {
        Thoroughness::Brief => &["--brief"],
        Thoroughness::Quick => &["--quick"],
        Thoroughness::Standard => &[],
        Thoroughness::Full => &["--full"],
    };
    Settings {
        subjects: vec![Subject::Path(".".into())],
        options: Options::parse(words).unwrap(),
        seed: 1,
        argv: Vec::new(),
        recording: blockstone_record::RunDir { path: "/nowhere".into(), id: "0".into() },
    }
}

pub(crate) const FACTS: Facts = Facts {
    ours: true,
    writable: true,
    has_log: true,
    span: Bytes::gib(4),
    offset: Bytes(0),
    targets: 1,
    direct: true,
    uring: true,
    least_io: Bytes(512),
};

#[test]
fn longest_case_fits_the_promised_time() {
    for thoroughness in [Thoroughness::Quick, Thoroughness::Standard] {
        let settings = settings(thoroughness);
        let points: u64 =
            steps(&settings, FACTS).iter().map(|s| s.warm_up.get() + s.window.1.get()).sum();
        let total = points + budget(thoroughness).layout.get() + confirm_limit(thoroughness).get();
        let limit = budget(thoroughness).run.unwrap();
        // Survey, thread starts, draining and the report take the rest.
        assert!(
            total as f64 <= limit.get() as f64 * 0.93,
            "{thoroughness:?}: {} of {limit}",
            Nanos(total)
        );
    }
}

#[test]
fn steps_that_an_option_asks_for_do_not_take_the_time_of_others() {
    let mut settings = settings(Thoroughness::Quick);
    let extra = |settings: &Settings| -> BTreeSet<String> {
        let steps = steps(settings, FACTS).into_iter();
        steps
            .filter(|step| is_asked_for(step, &settings.options))
            .map(|step| step.label.split('/').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert!(extra(&settings).is_empty());
    let words = ["--quick", "--matrix", "--rate=50", "--streams=1,2,3", "--buffered-writes"];
    settings.options = Options::parse(&words).unwrap();
    let asked = ["buffered-write", "large-read", "matrix", "open-loop"];
    assert_eq!(extra(&settings), asked.map(str::to_owned).into());
}

#[test]
fn each_headline_is_confirmed_in_three_windows_with_the_others_between() {
    for (thoroughness, windows) in
        [(Thoroughness::Quick, 1), (Thoroughness::Standard, 3), (Thoroughness::Full, 3)]
    {
        let settings = settings(thoroughness);
        let load = layout(&settings, Bytes::gib(1), true, true);
        let headlines =
            ["max-iops", "max-mbps"].map(|name| confirm(&settings, name, load.clone(), 1));
        let steps = spaced(&settings, &headlines);
        assert_eq!(steps.len(), 2 * windows as usize);
        for (at, step) in steps.iter().enumerate() {
            assert_eq!((&step.label, step.repeat), (&headlines[at % 2].label, at as u32 / 2));
        }
        let seeds: BTreeSet<u64> = steps.iter().map(|step| step.load.seed).collect();
        assert_eq!(seeds.len(), steps.len(), "each visits other blocks");
        let together: u64 = steps.iter().map(|step| step.window.1.get()).sum();
        assert_eq!(together, 2 * budget(thoroughness).confirm.get());
        let longer = spaced(&settings, &[confirm(&settings, "max-iops", load.clone(), 3)]);
        for (step, longer) in steps.iter().step_by(2).zip(&longer) {
            assert_eq!(longer.window.1.get(), 3 * step.window.1.get());
            assert_eq!((&usual(&settings, longer), &usual(&settings, step)), (step, step));
        }
    }
}

#[test]
fn labels_are_unique_within_a_round_and_repeat_across_rounds() {
    let steps = steps(&settings(Thoroughness::Full), FACTS);
    let unique: BTreeSet<_> = steps.iter().map(|s| (&s.label, s.repeat)).collect();
    assert_eq!(unique.len(), steps.len());
    assert_eq!(steps.iter().filter(|s| s.label == "random-read/psync/x1").count(), 3);
    assert_eq!(steps.iter().filter(|s| s.label == "reference").count(), 9);
}

#[test]
fn a_target_that_must_not_be_written_gets_no_write() {
    let facts = Facts { writable: false, has_log: false, ..FACTS };
    assert!(
        steps(&settings(Thoroughness::Standard), facts).iter().all(|step| step.load.op == Op::Read)
    );
}

#[test]
fn labels_write_sizes_as_the_field_does() {
    assert_eq!(short_size(512), "512");
    assert_eq!(short_size(8192), "8K");
    assert_eq!(short_size(4 << 20), "4M");
    assert_eq!(short_size(1536), "1536");
}
