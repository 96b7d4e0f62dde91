//! Fates of the writes of one writer: the blocks found, compared with what the witness knows.

use crate::durability::findings::{Class, Stream, StreamFindings};

use super::found::{Content, Mix};

/// A block that is looked for, and what is found where it belongs.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Sequence of the last acknowledged write in this place.
    pub sequence: u64,
    /// Hash of that block, if the witness still has it.
    pub hash: Option<u64>,
    pub content: Content,
}

/// Knowledge of the witness about a writer.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Sequence of the last acknowledged write.
    pub last: u64,
    /// Last write that can have been started: the writer waits for the witness before it continues.
    pub started: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    Torn,
    /// The acknowledged block was intact until a later write, which the cut tore.
    TornInFlight,
    Misplaced,
}

fn fate(observed: &Observed, known: Known) -> Fate {
    let Observed { sequence: acknowledged, hash, content } = observed;
    match content {
        Content::Nothing => Fate::Lost,
        Content::Foreign { .. } => Fate::Misplaced,
        Content::Whole { sequence, .. } if sequence > &known.started => Fate::Misplaced,
        Content::Whole { sequence, .. } if sequence < acknowledged => Fate::Lost,
        Content::Whole { sequence, hash: found } => {
            let differs = sequence == acknowledged && hash.is_some_and(|hash| hash != *found);
            if differs { Fate::Misplaced } else { Fate::Kept }
        }
        Content::Mixed(mix) => fate_of_mixed(mix, *acknowledged, known),
    }
}

fn fate_of_mixed(mix: &Mix, acknowledged: u64, known: Known) -> Fate {
    let current = |&(sequence, _): &(u64, u64)| sequence >= acknowledged;
    if mix.sequences.iter().any(|&(sequence, _)| sequence > known.started) {
        return Fate::Misplaced;
    }
    if mix.damaged == 0 && !mix.sequences.iter().any(current) {
        return Fate::Lost;
    }
    if mix.damaged == 0 && mix.blank == 0 && mix.sequences.iter().all(current) {
        return Fate::TornInFlight;
    }
    Fate::Torn
}

/// Judges one writer by its blocks, in the order in which they were written.
pub fn judge(stream: Stream, known: Known, blocks: &[Observed]) -> StreamFindings {
    let fates: Vec<Fate> = blocks.iter().map(|block| fate(block, known)).collect();
    let count = |wanted: Fate| fates.iter().filter(|&&fate| fate == wanted).count() as u64;
    let last_kept = fates.iter().rposition(|&fate| fate == Fate::Kept);
    let before = last_kept.map_or(&[][..], |last| &fates[..last]);
    let first = |wanted: Fate| {
        let at = fates.iter().position(|&fate| fate == wanted)?;
        Some(blocks.get(at)?.sequence)
    };
    let mut findings = StreamFindings {
        stream,
        class: Class::Unknown,
        evidence: String::new(),
        acknowledged: known.last,
        checked: blocks.len() as u64,
        lost: count(Fate::Lost),
        torn: count(Fate::Torn),
        misplaced: count(Fate::Misplaced),
        reordered: before.iter().filter(|&&fate| fate == Fate::Lost).count() as u64,
        torn_in_flight: count(Fate::TornInFlight),
    };
    let example = first(Fate::Lost).or(first(Fate::Torn)).or(first(Fate::Misplaced));
    findings.evidence = evidence(&findings, example);
    findings
}

fn evidence(findings: &StreamFindings, example: Option<u64>) -> String {
    let StreamFindings { acknowledged, checked, lost, torn, misplaced, .. } = findings;
    if *acknowledged == 0 {
        return "nothing was acknowledged before the cut".to_owned();
    }
    let mut text = format!("{acknowledged} acknowledged; of the last {checked}, {lost} lost");
    for (count, what) in [(torn, "torn"), (misplaced, "misplaced")] {
        if *count > 0 {
            text = format!("{text}, {count} {what}");
        }
    }
    if let Some(example) = example {
        text = format!("{text} (the first is number {example})");
    }
    if findings.reordered > 0 {
        text = format!("{text}; {} of them before a later one that is there", findings.reordered);
    }
    if findings.torn_in_flight > 0 {
        let count = findings.torn_in_flight;
        text = format!("{text}; {count} torn by the write that was replacing it");
    }
    text
}

/// Assigns each writer its class: that nothing is missing means something only if the controls lost
/// something. Returns whether they did.
///
/// The page cache is lost with the machine, the cache of the device with the power of the device.
/// So if a control wrote past the page cache, that control decides.
pub fn classify(streams: &mut [StreamFindings]) -> bool {
    let is_past = |it: &&StreamFindings| it.stream.method.is_direct();
    let controls = |it: &&StreamFindings| it.stream.method.is_control() && it.acknowledged > 0;
    let has_past = streams.iter().filter(controls).any(|it| is_past(&it));
    let deciding = streams.iter().filter(controls).filter(|it| !has_past || is_past(it));
    let conclusive = deciding.clone().any(|it| it.lost + it.torn > 0);
    for stream in streams {
        stream.class = if stream.acknowledged == 0 {
            Class::Unknown
        } else if stream.lost + stream.misplaced > 0 {
            Class::Lost
        } else if stream.torn > 0 {
            Class::Torn
        } else if conclusive && !stream.stream.method.is_control() {
            Class::Durable
        } else {
            Class::Inconclusive
        };
    }
    conclusive
}

#[cfg(test)]
mod tests {
    use crate::durability::findings::{Method, Pattern};
    use blockstone_base::rng::Rng;
    use proptest::prelude::*;

    use super::super::layout::{HORIZON, SLOTS, WINDOW, first_checked};
    use super::*;

    fn stream(method: Method) -> Stream {
        Stream { method, pattern: Pattern::Overwrite }
    }

    fn seen(sequence: u64, content: Content) -> Observed {
        Observed { sequence, hash: Some(sequence * 3), content }
    }

    fn whole(sequence: u64) -> Content {
        Content::Whole { sequence, hash: sequence * 3 }
    }

    fn mixed(sequences: &[u64], blank: u64, damaged: u64) -> Content {
        let sequences = sequences.iter().map(|&sequence| (sequence, 2)).collect();
        Content::Mixed(Mix { sequences, blank, damaged })
    }

    #[test]
    fn each_fate() {
        let known = Known { last: 200, started: 232 };
        for (content, expected) in [
            (Content::Nothing, Fate::Lost),
            (whole(0), Fate::Lost),
            (whole(100), Fate::Kept),
            (Content::Whole { sequence: 100, hash: 1 }, Fate::Misplaced),
            (whole(228), Fate::Kept),
            (whole(356), Fate::Misplaced),
            (Content::Foreign { sectors: 1 }, Fate::Misplaced),
            (mixed(&[0], 6, 0), Fate::Lost),
            (mixed(&[0, 100], 0, 0), Fate::Torn),
            (mixed(&[100], 6, 0), Fate::Torn),
            (mixed(&[100, 228], 0, 0), Fate::TornInFlight),
            (mixed(&[100, 228], 0, 1), Fate::Torn),
            (mixed(&[100, 356], 0, 0), Fate::Misplaced),
            (mixed(&[], 0, 8), Fate::Torn),
        ] {
            assert_eq!(fate(&seen(100, content.clone()), known), expected, "{content:?}");
        }
    }

    #[test]
    fn a_cut_that_loses_nothing_proves_nothing() {
        use Class::{Durable, Inconclusive, Lost};
        let known = Known { last: 2, started: 34 };
        let kept = [seen(1, whole(1)), seen(2, whole(2))];
        let lost = [seen(1, Content::Nothing), seen(2, whole(2))];
        let of = |method, blocks: &[Observed]| judge(stream(method), known, blocks);
        let classes = |mut streams: Vec<StreamFindings>| {
            let conclusive = classify(&mut streams);
            (conclusive, streams.iter().map(|it| it.class).collect::<Vec<_>>())
        };
        assert_eq!(
            classes(vec![of(Method::Fsync, &kept), of(Method::None, &lost)]),
            (true, vec![Durable, Lost])
        );
        assert_eq!(
            classes(vec![of(Method::Fsync, &kept), of(Method::None, &kept)]),
            (false, vec![Inconclusive, Inconclusive])
        );
        // The machine lost its memory, but the device nothing: it kept power, or is protected.
        let device_kept =
            vec![of(Method::Fsync, &kept), of(Method::None, &lost), of(Method::DirectNone, &kept)];
        assert_eq!(classes(device_kept), (false, vec![Inconclusive, Lost, Inconclusive]));
        assert_eq!(classes(vec![of(Method::Fsync, &lost)]), (false, vec![Lost]));
        let found = of(Method::Fsync, &lost);
        assert!(found.is_broken() && found.reordered == 1, "{found:?}");
        assert!(!of(Method::None, &lost).is_broken(), "nothing was promised");
    }

    /// Content of a device after a cut: writes reach it in order, in any order, or in part.
    struct Device {
        slots: Vec<Content>,
    }

    impl Device {
        fn after(durable: u64, applied: impl Fn(u64) -> bool, started: u64) -> Self {
            let mut slots = vec![whole(0); SLOTS as usize];
            for sequence in 1..=started {
                if sequence <= durable || applied(sequence) {
                    slots[(sequence % SLOTS) as usize] = whole(sequence);
                }
            }
            Self { slots }
        }

        fn observed(&self, last: u64) -> Vec<Observed> {
            let first = first_checked(Pattern::Overwrite, last);
            let block = |sequence| seen(sequence, self.slots[(sequence % SLOTS) as usize].clone());
            (first..=last).map(block).collect()
        }
    }

    proptest! {
        /// Whichever unacknowledged writes reached an honest device, and in whatever order, no loss
        /// is reported.
        #[test]
        fn an_honest_device_is_never_blamed(
            last in 0_u64..600, unknown in 0_u64..WINDOW, seed in any::<u64>(),
        ) {
            let started = last + unknown + 1;
            let pick = |sequence| Rng::new(seed, sequence).below(2) == 0;
            // The witness may know less than was durable.
            let device = Device::after(last + unknown, pick, started);
            let known = Known { last, started: last + WINDOW + 1 };
            let found = judge(stream(Method::Fsync), known, &device.observed(last));
            prop_assert!(!found.is_broken(), "{:?}", found);
            prop_assert_eq!(found.checked, last.min(HORIZON));
        }

        /// A device that drops one write within the horizon is detected, unless a later write
        /// replaced it.
        #[test]
        fn a_dropped_write_is_found(last in 1_u64..600, back in 0_u64..HORIZON) {
            let dropped = last.saturating_sub(back).max(1);
            let device = Device::after(0, |sequence| sequence != dropped, last);
            let known = Known { last, started: last + WINDOW + 1 };
            let found = judge(stream(Method::Fsync), known, &device.observed(last));
            let expected = u64::from(dropped >= first_checked(Pattern::Overwrite, last));
            prop_assert_eq!(found.lost, expected, "{:?}", found);
            prop_assert_eq!(found.reordered, u64::from(expected == 1 && dropped < last));
        }
    }
}
