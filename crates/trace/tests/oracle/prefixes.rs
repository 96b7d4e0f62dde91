//! Traces that end anywhere, and bytes in pieces of any size.

use blockstone_trace::{Component, Limits, Reader, Trace};
use proptest::prelude::*;

use super::support::{call, parsing, wait};

/// Recursive calls, waits, a plan, binds, two sessions.
fn whole() -> String {
    let mut text = "Trace file /u01/orcl_ora_1.trc\n*** SESSION ID:(10.1) 2026-03-01\n".to_owned();
    let mut tim = 1_000_000;
    for round in 0..40 {
        if round == 20 {
            text += "*** SESSION ID:(20.2) 2026-03-01\n";
        }
        text += &parsing(round % 5 + 1, "select a\nfrom t\nwhere b = :1");
        text += "BINDS #1:\n Bind#0\n  kxsbbbfp=7f  bln=32  avl=3  flg=05\n  value=\"a\nb\"\n";
        tim += 1_000;
        text += &wait(7, "db file sequential read", 300, tim);
        text += &call("FETCH", 7, (50, 500), 1, tim + 50);
        text += &call("EXEC", round % 5 + 1, (90, 900), 0, tim + 100);
        text += &wait(round % 5 + 1, "SQL*Net message from client", 400, tim + 600);
        text += "STAT #7 id=1 cnt=5 pid=0 pos=1 obj=7 op='TABLE ACCESS FULL T (cr=3 pr=1 pw=0 \
                 time=9 us)'\n";
    }
    text + "XCTEND rlbk=0, rd_only=0, tim=9000000\n"
}

fn read(pieces: &[&[u8]]) -> Option<Trace> {
    let mut reader = Reader::new(Limits::default());
    for piece in pieces {
        reader.feed(piece).ok()?;
    }
    reader.finish().ok()
}

#[test]
fn totals_grow_with_every_line_of_a_trace() {
    let whole = whole();
    let steps = 1_000;
    let mut before: Option<Trace> = None;
    for step in 0..=steps {
        let trace = read(&[&whole.as_bytes()[..whole.len() * step / steps]]);
        let (Some(last), Some(trace)) = (&before, &trace) else {
            assert!(before.is_none() || trace.is_some(), "nothing left after {step}");
            before = trace.or(before);
            continue;
        };
        for (component, spent) in &last.components {
            if *component != Component::Unaccounted {
                let now = &trace.components[component];
                assert!(now.ns >= spent.ns && now.calls >= spent.calls, "{component:?} at {step}");
            }
        }
        assert!(trace.span_ns >= last.span_ns, "{step}");
        assert!(trace.skipped_lines == 0 && trace.lines >= last.lines, "{step}");
        before = Some(trace.clone());
    }
    let trace = before.unwrap();
    assert!((trace.components[&Component::Cpu].ns - 40.0 * 90_000.0).abs() < 1e-3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pieces_make_no_difference(cuts in proptest::collection::vec(0..10_000_usize, 0..20)) {
        let whole = whole();
        let expected = read(&[whole.as_bytes()]).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % whole.len()).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|pair| &whole.as_bytes()[pair[0]..pair[1]]).collect();
        let trace = read(&pieces).unwrap();
        prop_assert_eq!(trace.components, expected.components);
        prop_assert_eq!(trace.lines, expected.lines);
        prop_assert_eq!(trace.statements.len(), expected.statements.len());
    }

    #[test]
    fn damage_does_not_stop_the_reader(
        at in 0..10_000_usize,
        bytes in proptest::collection::vec(any::<u8>(), 1..30),
    ) {
        let mut text = whole().into_bytes();
        let at = at % text.len();
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
        let trace = read(&[&text]).unwrap();
        prop_assert!(trace.components.values().all(|it| it.ns.is_finite()));
    }
}
