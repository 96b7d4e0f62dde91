//! Scans of sessions: as the registry declares, and until they are cancelled.

use blockstone_base::hint::Hint as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use blockstone_base::database;
use blockstone_base::units::Nanos;
use blockstone_servers::registry::ALL;
use blockstone_servers::{DirectScan, Executed, Operation, ScanHow, Scans, Target, TargetSpec};

use super::{SCAN_ROWS, Subject, statistic};

pub fn sessions_scan_as_the_registry_says(subject: &Subject) {
    subject.with(|name, target| {
        let entry = ALL.iter().find(|entry| entry.name == name).unwrap();
        let scans =
            (entry.scans)(&TargetSpec { address: "scratch".to_owned(), ..TargetSpec::default() });
        let scans = scans.unwrap();
        let can = scans == Scans::Direct;
        let mut session = target.session(0).unwrap();
        let by_statement = session.arrange_scans(ScanHow::Statement { multiblock: None });
        assert_eq!(by_statement.is_ok(), matches!(scans, Scans::Statement(_)), "{name}");
        if by_statement.is_ok() {
            let executed = session.execute(&Operation::Scan { schema: 0 }).unwrap();
            assert_eq!(executed.rows, SCAN_ROWS, "{name}");
        }
        let direct = DirectScan { multiblock: 4, slots: 2, row_cost: Nanos(0) };
        let set = session.arrange_scans(ScanHow::Direct(direct));
        assert_eq!(set.is_ok(), can, "{name}");
        if can {
            let before = statistic(target.as_ref(), "direct_reads");
            let executed = session.execute(&Operation::Scan { schema: 0 }).unwrap();
            assert_eq!(executed.rows, SCAN_ROWS, "{name}");
            let reads = statistic(target.as_ref(), "direct_reads") - before;
            assert_eq!(reads as u64, SCAN_ROWS / 4, "{name}");
            let all = target.take_latencies();
            let direct = all.iter().find(|of| of.name == database::DIRECT_READ).unwrap();
            assert_eq!(direct.histogram.count(), SCAN_ROWS / 4, "{name}: every read is timed");
        } else {
            let text = set.unwrap_err().told();
            assert!(text.contains("hint: "), "{name}: {text}");
        }
        is_cancelled(name, target);
    });
}

/// Cancels a statement from another thread. If the session is to end, that is not an error.
fn is_cancelled(name: &str, target: &Arc<dyn Target>) {
    for is_to_end in [false, true] {
        let (hand_over, canceller) = mpsc::channel();
        let scan_on = move || {
            let mut session = target.session(0).unwrap();
            session.set_stop_flag(&Arc::new(AtomicBool::new(is_to_end)));
            hand_over.send(session.canceller()?).unwrap();
            let mut scan = || session.execute(&Operation::Scan { schema: 0 });
            let whole = |done: &Result<Executed, _>| {
                done.as_ref().is_ok_and(|executed| executed.rows == SCAN_ROWS)
            };
            Some(std::iter::repeat_with(&mut scan).find(|done| !whole(done)).unwrap())
        };
        let ended = std::thread::scope(|scope| {
            let session = scope.spawn(scan_on);
            let canceller = canceller.recv().ok();
            while let Some(canceller) = canceller.as_ref().filter(|_| !session.is_finished()) {
                canceller.cancel();
                std::thread::sleep(Duration::from_millis(5));
            }
            session.join().unwrap()
        });
        match ended {
            None => assert!(["instance", "null"].contains(&name), "{name}"),
            Some(Ok(executed)) => {
                assert!(is_to_end && executed == Executed::default(), "{name}: {executed:?}");
            }
            Some(Err(error)) => assert!(!is_to_end, "{name}: {error}"),
        }
    }
}
