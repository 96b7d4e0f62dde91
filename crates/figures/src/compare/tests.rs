use blockstone_base::dist::normal;
use blockstone_base::rng::Rng;

use super::*;

/// A recording that began at `minute`, with figures by name; a figure that names a rule is
/// condemned by it.
fn source(minute: u64, figures: &[(&str, f64, &str)]) -> Source {
    let recorded = Recorded {
        recording: format!("r{minute}"),
        id: format!("id{minute}"),
        // One with and one without a fraction: as text they would sort the other way round.
        started_at: format!("2026-01-01T00:{minute:02}:00{}Z", if minute == 0 { ".5" } else { "" }),
        host: "db1".into(),
        target: "/data".into(),
        device: Some("vda".into()),
        block_bytes: Some(8_192),
        span_bytes: None,
        direct: Some(true),
        trustworthy: figures.iter().all(|(.., rule)| rule.is_empty()),
        from_ns: None,
        to_ns: None,
        facts: BTreeMap::default(),
    };
    let figure = |(name, value, rule): &(&str, f64, &str)| Figure {
        key: key(name),
        title: (*name).to_owned(),
        estimate: Estimate {
            value: *value,
            low: value - 0.01,
            high: value + 0.01,
            samples: 10,
            duration_ns: 1,
        },
        condemned_by: (!rule.is_empty()).then(|| (*rule).to_owned()).into_iter().collect(),
        warned_by: Vec::new(),
        doubted: false,
        drift_ratio: 0.0,
        load: None,
    };
    Source { recorded, figures: figures.iter().map(figure).collect() }
}

fn key(name: &str) -> Key {
    let lower_is_faster = name.ends_with("ns");
    let unit = if lower_is_faster { "ns" } else { "IOPS" }.to_owned();
    let subject = Subject::Measured { label: name.to_owned(), unit, lower_is_faster };
    Key { subject, figure: String::new() }
}

fn set(minutes: [u64; 3], values: [f64; 3]) -> Vec<Source> {
    minutes.into_iter().zip(values).map(|(at, value)| source(at, &[("iops", value, "")])).collect()
}

/// Returns the caveat on recordings that began at these minutes.
fn order(a: &[u64], b: &[u64]) -> &'static str {
    let [a, b] = [a, b].map(|minutes| {
        Side::of(&minutes.iter().map(|minute| source(*minute, &[])).collect::<Vec<_>>())
    });
    order::caveat(&a, &b)
}

#[test]
fn two_sets_of_three_have_the_known_answer() {
    let (a, b) = (set([0, 2, 4], [9.0, 10.0, 11.0]), set([1, 3, 5], [18.0, 20.0, 22.0]));
    let comparison = Comparison::of(&a, &b);
    let [row] = comparison.rows.as_slice() else { panic!("{comparison:?}") };
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
    // Student's t with two degrees of freedom: 4.303 × 1 ÷ √3, and twice that.
    let (of_a, of_b, ratio) = (row.a.unwrap(), row.b.unwrap(), row.ratio.unwrap());
    assert!(near(of_a.value, 10.0) && near(of_a.high, 12.4843) && of_a.samples == 30, "{of_a:?}");
    assert!(near(of_b.value, 20.0) && near(of_b.low, 15.0314), "{of_b:?}");
    // Relative errors of 0.057735 on either side, in quadrature; 2.7764 at four degrees of freedom.
    let (low, high) = (2.0 * (-0.22669_f64).exp(), 2.0 * 0.22669_f64.exp());
    assert!(near(ratio.value, 2.0) && near(ratio.low, low) && near(ratio.high, high), "{ratio:?}");
    // t = ln 2 ÷ 0.08165 = 8.489 with four degrees of freedom.
    assert!(near(row.p_value.unwrap(), 0.00106), "{row:?}");
    assert_eq!((row.outcome, row.n_a, row.n_b), (Outcome::Faster, 3, 3));
    assert_eq!(comparison.counts, Counts { faster: 1, ..Counts::default() });
    assert!(comparison.warnings.is_empty(), "{:?}", comparison.warnings);
    assert!(comparison.caveats[1].starts_with("The interval of each side covers"));

    let scattered = set([0, 2, 4], [4.0, 10.0, 16.0]);
    let row = &Comparison::of(&scattered, &b).rows[0];
    assert_eq!(row.outcome, Outcome::NotEstablished, "{row:?}");
}

#[test]
fn one_condemned_recording_condemns_the_row_and_every_rule_is_named() {
    let a = [source(0, &[("iops", 10.0, "hole")]), source(2, &[("iops", 10.0, "")])];
    let b = [source(1, &[("iops", 20.0, "throttled")]), source(3, &[("iops", 20.0, "hole")])];
    let comparison = Comparison::of(&a, &b);
    let row = &comparison.rows[0];
    assert_eq!((row.outcome, comparison.counts.condemned), (Outcome::Condemned, 1));
    assert_eq!(row.condemned_by, ["hole", "throttled"]);
    let sides = [&comparison.a, &comparison.b].map(|side| side.first.trustworthy);
    assert_eq!(sides, [false; 2], "the first of b is");
    assert!(comparison.a.recordings[1].trustworthy);
    let alone = Comparison::of(&a[..1], &[source(1, &[])]);
    assert_eq!(alone.rows[0].outcome, Outcome::OnlyInOne);
}

#[test]
fn a_figure_of_some_recordings_is_counted_and_keeps_its_place() {
    let a = [source(0, &[("first", 1.0, ""), ("last", 3.0, "")])];
    let b = [
        source(1, &[("first", 1.0, ""), ("middle", 2.0, ""), ("last", 3.0, "")]),
        source(2, &[("last", 3.0, ""), ("first", 1.0, "")]),
    ];
    let comparison = Comparison::of(&a, &b);
    let rows: Vec<_> = comparison.rows.iter().map(|row| (&row.key, row.n_a, row.n_b)).collect();
    let expected = [(&key("first"), 1, 2), (&key("middle"), 0, 1), (&key("last"), 1, 2)];
    assert_eq!(rows, expected);
    let caveats = comparison.caveats.join("\n");
    assert!(caveats.contains("some recordings of a set: 1."), "{caveats}");
    assert!(caveats.contains("A is a single recording"), "{caveats}");
}

#[test]
fn recordings_are_interleaved_if_they_alternate_in_time_whatever_their_order_in_the_set() {
    let one_after_the_other = order(&[0], &[1]);
    assert!(one_after_the_other.contains("one after the other, not interleaved"));
    assert_eq!(order(&[3, 4, 5], &[0, 1, 2]), one_after_the_other);
    assert_eq!(order(&[0, 0], &[0, 0]), one_after_the_other, "of the same time");
    let interleaved = order(&[4, 0, 2], &[5, 3, 1]);
    assert!(interleaved.contains("were interleaved"), "{interleaved}");
    assert_eq!(order(&[0, 3], &[1, 2]), interleaved, "ABBA");
    assert_eq!(order(&[1], &[0, 2]), interleaved);
    let partly = order(&[0, 1, 2, 4], &[3, 5, 6]);
    assert!(partly.contains("only partly interleaved"), "{partly}");

    let mut parts = [0, 1, 2, 3].map(|_| source(0, &[]));
    for (part, minute) in parts.iter_mut().zip(0..) {
        part.recorded.from_ns = Some(minute * 60_000_000_000);
    }
    let [a, b, c, d] = parts;
    let alternate = Side::of(&[a, c]);
    assert_eq!(order::caveat(&alternate, &Side::of(&[b, d])), interleaved, "parts of one");
    let mut unknown = source(0, &[]);
    unknown.recorded.started_at = "yesterday".into();
    assert!(order::caveat(&alternate, &Side::of(&[unknown])).contains("is unknown"));
}

#[test]
fn what_differs_within_a_set_is_said_too() {
    let mut b = set([1, 3, 5], [1.0; 3]);
    b[1].recorded.block_bytes = Some(4_096);
    b[2].recorded.device = None;
    let comparison = Comparison::of(&set([0, 2, 4], [1.0; 3]), &b);
    let expected = [
        "block size (bytes) differs: 8192 in A, 4096 and 8192 in B",
        "device differs: vda in A, unknown and vda in B",
    ];
    assert_eq!(comparison.warnings, expected);
}

/// A comparison of 1,000 rows by their differences in standard errors of Welch's t; `real` of them
/// are real, and far out.
fn many(real: usize) -> Comparison {
    let mut rng = Rng::new(7, 0);
    let names: Vec<String> = (0..1000).map(|row| format!("row{row:04}")).collect();
    let [a, b] = [0.0, 1.0].map(|side| {
        let shift = |row: usize| if row < real { side * 10.0 } else { 0.0 };
        let value = |row| 100.0 + shift(row) + 0.004 * normal(&mut rng);
        let values: Vec<f64> = (0..names.len()).map(value).collect();
        let figures: Vec<_> = names.iter().zip(values).map(|(n, v)| (n.as_str(), v, "")).collect();
        let mut points = source(side as u64, &figures);
        points.figures.iter_mut().for_each(|figure| figure.key.figure = "iops".to_owned());
        points
    });
    Comparison::of(&[a], &[b])
}

#[test]
fn of_many_rows_without_a_difference_none_is_called_different_and_the_real_ones_are() {
    let Counts { faster, slower, .. } = many(0).counts;
    assert_eq!((faster, slower), (0, 0));
    let by_itself = many(0).rows.iter().filter(|row| row.p_value.unwrap() < 0.05).count();
    assert!((20..80).contains(&by_itself), "{by_itself} of 1000 at 5 % each");
    let some = many(100);
    assert!(some.rows[..100].iter().all(|row| row.outcome == Outcome::Faster));
    let wrong = some.rows[100..].iter().filter(|row| row.outcome != Outcome::NotEstablished);
    assert!(wrong.count() <= 12, "at most one in twenty of those called different, or so");
    let row = &some.rows[0];
    assert!(row.q_value >= row.p_value && row.q_value.unwrap() < 0.001, "{row:?}");
}

/// 42,179 [11,990–72,368] against 505 [473–536] IOPS, next to a hundred points without a
/// difference.
#[test]
fn a_headline_figure_is_not_held_against_the_points() {
    let sides = [(42_179.0, 30_189.0), (505.0, 31.5)].map(|(value, half)| {
        let mut side = source(0, &[("max_iops", value, "")]);
        let headline = &mut side.figures[0].estimate;
        (headline.low, headline.high) = (value - half, value + half);
        for n in 0..100 {
            let mut point = source(0, &[("point", 100.0, "")]).figures.remove(0);
            point.key.figure = format!("{n}");
            side.figures.push(point);
        }
        side
    });
    let comparison = Comparison::of(&sides[..1], &sides[1..]);
    let row = &comparison.rows[0];
    assert_eq!(row.outcome, Outcome::Slower, "{row:?}");
    let ratio = row.ratio.unwrap();
    assert!(ratio.low > 0.005 && ratio.high < 0.03, "{ratio:?}");
    assert_eq!((comparison.verdict, comparison.counts.slower), (Some(Judgement::Slower), 1));
}

#[test]
fn the_verdict_is_that_of_the_headline_figures() {
    let of = |b: &[(&str, f64, &str)]| {
        let a = source(0, &[("iops", 10.0, ""), ("latency_ns", 10.0, "")]);
        Comparison::of(&[a], &[source(1, b)]).verdict
    };
    let verdict = |iops, ns| of(&[("iops", iops, ""), ("latency_ns", ns, "")]).unwrap();
    assert_eq!(verdict(20.0, 10.0), Judgement::Faster);
    assert_eq!(verdict(20.0, 5.0), Judgement::Faster);
    assert_eq!(verdict(10.0, 20.0), Judgement::Slower);
    assert_eq!(verdict(20.0, 20.0), Judgement::Mixed);
    assert_eq!(verdict(10.0, 10.0), Judgement::Same);
    assert_eq!(of(&[("iops", 30.0, "hole")]), Some(Judgement::NotEstablished), "condemned");
}

#[test]
fn what_differs_is_named_with_both_values() {
    let side = |kernel: &str, scheduler: Option<&str>| {
        let mut side = source(0, &[]);
        let facts = &mut side.recorded.facts;
        facts.insert("kernel".to_owned(), kernel.to_owned());
        facts.insert("block".to_owned(), "8 KiB".to_owned());
        facts.extend(scheduler.map(|name| ("scheduler".to_owned(), name.to_owned())));
        side
    };
    let a = [side("6.1", Some("none"))];
    let b = [side("6.1", None), side("6.18", None)];
    let found = Comparison::of(&a, &b).differences;
    let expected = [("kernel", "6.1", "6.1 and 6.18"), ("scheduler", "none", "–")];
    let expected = expected.map(|(name, a, b)| Difference {
        name: name.to_owned(),
        a: a.to_owned(),
        b: b.to_owned(),
    });
    assert_eq!(found, expected);
}

#[test]
fn a_row_is_faster_unless_a_warning_has_a_cause_outside_the_storage() {
    let (a, mut b) = (source(0, &[("iops", 10.0, "")]), source(1, &[("iops", 20.0, "")]));
    let of = |b: &Source| Comparison::of(std::slice::from_ref(&a), std::slice::from_ref(b));
    assert_eq!(of(&b).rows[0].outcome, Outcome::Faster);
    b.figures[0].warned_by.push("throttled".into());
    assert_eq!(of(&b).rows[0].outcome, Outcome::Faster);
    b.figures[0].warned_by.push("noisy-neighbour".into());
    b.figures[0].doubted = true;
    let row = &of(&b).rows[0];
    assert_eq!((row.outcome, row.warned_by.len()), (Outcome::Higher, 2));
}
