//! Sessions on a target that can be scripted to fail, to block, or to remember what it was sent.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Capability;
use blockstone_base::column::Reading;
use blockstone_base::database::TRANSACTIONS;
use blockstone_base::hint::Hint;
use blockstone_base::units::Nanos;
use blockstone_servers::{
    Canceller, Executed, Latencies, Operation, Progress, Statement, TableStep, Target, TargetError,
    TargetSession, TargetSpec, registry,
};
use blockstone_workload::order_entry::SHARES;
use blockstone_workload::{
    Every, Parameters, Population, Running, Schedule, Think, Work, WorkloadError, start,
};

/// Faults and behaviour of the scripted target.
#[derive(Debug, Default)]
struct Orders {
    refuse_session: Option<u32>,
    /// Session, and the operation, from 0, at which it fails.
    fail: Option<(u32, u64)>,
    panic: bool,
    /// Duration of each operation.
    service: Duration,
    /// An operation takes 50 ms for each session before this one, plus 50 ms.
    ends_late: bool,
    /// Operations do not return while this is set.
    hang: AtomicBool,
    /// Sessions have a canceller, which ends the hang.
    can_cancel: bool,
    remember: bool,
}

#[derive(Debug, Default)]
struct Scripted {
    orders: Orders,
    connected: AtomicU32,
    /// For the first operation of each session, its time and the number of sessions connected then.
    first: Mutex<Vec<(Instant, u32)>>,
    sent: Mutex<Vec<(u32, Operation)>>,
    transacted: Mutex<Vec<(u32, Vec<Statement>)>>,
    steps: Mutex<Vec<(u32, TableStep)>>,
}

#[derive(Debug)]
struct Handle(Arc<Scripted>);

struct ScriptedSession {
    index: u32,
    executed: u64,
    target: Arc<Scripted>,
}

#[derive(Debug, thiserror::Error, Hint)]
#[error("as ordered")]
struct AsOrdered;

impl Target for Handle {
    fn load(&self, _progress: &mut Progress<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    fn session(&self, index: u32) -> Result<Box<dyn TargetSession>, TargetError> {
        if self.0.orders.refuse_session == Some(index) {
            return Err(TargetError::own(AsOrdered));
        }
        // The last session to connect is slow.
        thread::sleep(Duration::from_millis(if index == 0 { 30 } else { 0 }));
        self.0.connected.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(ScriptedSession { index, executed: 0, target: Arc::clone(&self.0) }))
    }

    fn sample(&self, _exact: bool, _readings: &mut Vec<Reading>) {}

    fn take_latencies(&self) -> Vec<Latencies> {
        Vec::new()
    }

    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }

    fn shutdown(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetSession for ScriptedSession {
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError> {
        let Scripted { orders, connected, first, sent, .. } = self.target.as_ref();
        if self.executed == 0 {
            first.lock().unwrap().push((Instant::now(), connected.load(Ordering::SeqCst)));
        }
        if orders.remember {
            sent.lock().unwrap().push((self.index, *operation));
        }
        while orders.hang.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        if orders.fail == Some((self.index, self.executed)) {
            assert!(!orders.panic, "as ordered");
            return Err(TargetError::own(AsOrdered));
        }
        thread::sleep(orders.service);
        if orders.ends_late {
            thread::sleep(Duration::from_millis(50 * u64::from(self.index + 1)));
        }
        self.executed += 1;
        Ok(match *operation {
            Operation::Select { rows, .. } => {
                Executed { rows: rows.into(), commits: 0, ..Executed::default() }
            }
            Operation::Update { rows, .. } => {
                Executed { rows: rows.into(), commits: 1, ..Executed::default() }
            }
            Operation::Scan { .. } => Executed { rows: 128, commits: 0, ..Executed::default() },
        })
    }

    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError> {
        let mut transacted = self.target.transacted.lock().unwrap();
        transacted.push((self.index, statements.to_vec()));
        Ok(Executed { rows: statements.len() as u64, commits: 1, ..Executed::default() })
    }

    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError> {
        self.target.steps.lock().unwrap().push((self.index, *step));
        let made = matches!(step, TableStep::Create { .. });
        Ok(if made {
            Executed { rows: 10, commits: 1, bytes: 81_920 }
        } else {
            Executed::default()
        })
    }

    fn canceller(&self) -> Option<Canceller> {
        let target = Arc::clone(&self.target);
        let cancel = move || target.orders.hang.store(false, Ordering::SeqCst);
        self.target.orders.can_cancel.then(|| Canceller::new(cancel))
    }
}

const GRACE: Duration = Duration::from_secs(5);

fn mixed(threads: u32) -> Parameters {
    let population = Population::Mixed { schemas: 2, threads };
    Parameters { population, update_pct: 30, ..Parameters::default() }
}

fn begin(orders: Orders, parameters: &Parameters) -> (Arc<Scripted>, Running) {
    let scripted = Arc::new(Scripted { orders, ..Scripted::default() });
    let target: Arc<dyn Target> = Arc::new(Handle(Arc::clone(&scripted)));
    let running = start(&target, parameters, &mut || false).unwrap();
    (scripted, running)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < patience, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn all_sessions_are_connected_before_the_first_operation() {
    let service = Duration::from_millis(1);
    let (scripted, running) = begin(Orders { service, ..Orders::default() }, &mixed(16));
    wait_until("all have sent", || scripted.first.lock().unwrap().len() == 32);
    running.stop(GRACE);
    let first = scripted.first.lock().unwrap();
    assert!(first.iter().all(|&(_, connected)| connected == 32), "{first:?}");
    let earliest = first.iter().map(|first| first.0).min().unwrap();
    let latest = first.iter().map(|first| first.0).max().unwrap();
    assert!(latest - earliest < Duration::from_millis(500), "{:?}", latest - earliest);
}

#[test]
fn loops_of_a_bulk_write_are_tables_and_their_bytes_are_counted() {
    let parameters = Parameters { loops: Some(7), bulk_write: true, ..mixed(2) };
    let (scripted, running) = begin(Orders::default(), &parameters);
    wait_until("loops end", || running.all_ended());
    let outcome = running.stop(GRACE);
    let steps = scripted.steps.lock().unwrap();
    for session in 0..4 {
        let of = steps.iter().filter(|(index, _)| *index == session).map(|(_, step)| *step);
        let expected = Schedule::new(&parameters, session).take(21).map(|step| match step.work {
            Work::Table(step) => step,
            other => panic!("{other:?}"),
        });
        assert!(of.eq(expected), "{session}");
    }
    let [create, flush, drop] = outcome.totals.0[parameters.kinds()] else { panic!("three kinds") };
    let counts = [create, flush, drop].map(|kind| kind.completed_ops);
    assert_eq!(counts, [28; 3]);
    assert_eq!((create.rows, create.commits, create.bytes), (280, 28, 28 * 81_920));
    assert_eq!((flush.rows, drop.bytes), (0, 0));
}

#[test]
fn what_is_sent_is_the_schedule_and_nothing_else() {
    let parameters = Parameters { loops: Some(200), ..mixed(2) };
    let (scripted, running) = begin(Orders { remember: true, ..Orders::default() }, &parameters);
    wait_until("loops end", || running.all_ended());
    let outcome = running.stop(GRACE);
    let sent = scripted.sent.lock().unwrap();
    for index in 0..4 {
        let of_session = sent.iter().filter(|(from, _)| *from == index);
        let seen: Vec<Operation> = of_session.map(|(_, operation)| *operation).collect();
        let steps = Schedule::new(&parameters, index).take(200);
        let expected: Vec<Work> = steps.map(|step| step.work).collect();
        let seen: Vec<Work> = seen.into_iter().map(Work::Operation).collect();
        assert_eq!(seen, expected);
    }
    let [select, update, scan, ..] = outcome.totals.0;
    assert_eq!((select.completed_ops, update.completed_ops, scan.completed_ops), (560, 240, 0));
    assert_eq!((select.rows, update.rows), (560 * 64, 240 * 64), "64 rows are 64, not 63");
    assert_eq!(update.commits, 240);
    assert_eq!((outcome.first_error, outcome.failed_sessions), (None, 0));
}

#[test]
fn transactions_are_sent_as_scheduled_and_counted_by_kind() {
    let parameters = Parameters { loops: Some(100), order_entry: true, ..mixed(2) };
    let (scripted, running) = begin(Orders::default(), &parameters);
    wait_until("loops end", || running.all_ended());
    assert_eq!(running.unfinished().map(|(name, ..)| name).collect::<Vec<_>>(), TRANSACTIONS);
    let latencies = running.take_latencies();
    assert_eq!(latencies.iter().map(|of| of.name).collect::<Vec<_>>(), TRANSACTIONS);
    let outcome = running.stop(GRACE);
    let transacted = scripted.transacted.lock().unwrap();
    for index in 0..4 {
        let of_session = transacted.iter().filter(|(from, _)| *from == index);
        let mut schedule = Schedule::new(&parameters, index);
        for (_, statements) in of_session {
            assert_eq!(schedule.step().work, Work::Transaction);
            assert_eq!(statements, schedule.statements());
        }
    }
    let counted = outcome.totals.0.map(|kind| kind.completed_ops);
    let asked = SHARES.map(|share| 4 * u64::from(share));
    assert_eq!(counted[parameters.kinds()], asked);
    assert_eq!(counted.iter().sum::<u64>(), asked.iter().sum::<u64>(), "nothing else is sent");
    let mut readings = Vec::new();
    outcome.totals.readings(parameters.kinds(), &mut readings);
    assert_eq!(readings.iter().map(|row| row.object.as_str()).collect::<Vec<_>>(), TRANSACTIONS);
}

#[test]
fn counters_and_latencies_are_read_while_all_sessions_work() {
    let service = Duration::from_millis(2);
    let (_, running) = begin(Orders { service, ..Orders::default() }, &mixed(4));
    thread::sleep(Duration::from_millis(100));
    let before = running.totals();
    running.take_latencies();
    thread::sleep(Duration::from_millis(400));
    let after = running.totals();
    let latencies = running.take_latencies();
    assert!(!running.any_ended(), "the window closes under load");
    let window = after.completed_ops() - before.completed_ops();
    assert!((80..=1600).contains(&window), "{window} of 1,600 at most");
    let recorded: u64 = latencies.iter().map(|kind| kind.latency.count()).sum();
    assert!(recorded.abs_diff(window) <= 16, "{recorded} latencies of {window} operations");
    for kind in &latencies {
        assert!(kind.latency.min_ns() >= 1_980_000, "{}: {}", kind.name, kind.latency.min_ns());
        assert!(kind.service.is_none(), "in a closed loop the two are one");
    }
    let outcome = running.stop(GRACE);
    assert!(outcome.totals.completed_ops() > after.completed_ops());
}

#[test]
fn a_failed_session_fails_the_run() {
    for panic in [false, true] {
        let orders = Orders { fail: Some((3, 50)), panic, ..Orders::default() };
        let (_, running) = begin(orders, &mixed(4));
        wait_until("the others end, too", || running.all_ended());
        let outcome = running.stop(GRACE);
        assert_eq!((outcome.failed_sessions, outcome.stuck_sessions), (1, 0));
        let why = outcome.first_error.unwrap();
        assert!(why.contains("session 3"), "{why}");
        assert!(why.contains(if panic { "panicked" } else { "as ordered" }), "{why}");
    }
}

#[test]
fn a_session_that_cannot_connect_keeps_all_from_starting() {
    let orders = Orders { refuse_session: Some(5), ..Orders::default() };
    let scripted = Arc::new(Scripted { orders, ..Scripted::default() });
    let target: Arc<dyn Target> = Arc::new(Handle(Arc::clone(&scripted)));
    let error = start(&target, &mixed(4), &mut || false).unwrap_err();
    assert!(matches!(&error, WorkloadError::Connect { why, .. } if why.contains("session 5")));
    assert!(scripted.first.lock().unwrap().is_empty(), "nothing was sent");
    wait_until("the others are gone", || Arc::strong_count(&target) == 1);
}

#[test]
fn a_session_that_hangs_is_counted_and_not_waited_for() {
    let orders = Orders { hang: AtomicBool::new(true), ..Orders::default() };
    let (scripted, running) = begin(orders, &mixed(1));
    wait_until("both have sent", || scripted.first.lock().unwrap().len() == 2);
    let started = Instant::now();
    let outcome = running.stop(Duration::from_millis(100));
    assert_eq!(outcome.stuck_sessions, 2);
    assert!(started.elapsed() < Duration::from_secs(2));
    scripted.orders.hang.store(false, Ordering::SeqCst);
}

#[test]
fn operations_that_outlast_the_end_are_cancelled() {
    let orders = Orders { hang: AtomicBool::new(true), can_cancel: true, ..Orders::default() };
    let (scripted, running) = begin(orders, &mixed(1));
    wait_until("both have sent", || scripted.first.lock().unwrap().len() == 2);
    let outcome = running.stop(GRACE);
    assert_eq!((outcome.stuck_sessions, outcome.failed_sessions), (0, 0));
}

#[test]
fn sessions_that_end_one_after_the_other_are_waited_for() {
    // Session n ends n × 50 ms after it was told to stop: in total later than the grace period.
    let (scripted, running) = begin(Orders { ends_late: true, ..Orders::default() }, &mixed(5));
    wait_until("all have sent", || scripted.first.lock().unwrap().len() == 10);
    let outcome = running.stop(Duration::from_millis(250));
    assert_eq!((outcome.stuck_sessions, outcome.failed_sessions), (0, 0));
}

#[test]
fn pauses_are_taken_and_do_not_delay_the_end() {
    let pause = |min, max| Some(Think { min, max, every: Every(1) });
    let short = Parameters {
        think: pause(Nanos::millis(20), Nanos::millis(20)),
        loops: Some(5),
        ..mixed(1)
    };
    let started = Instant::now();
    let (_, running) = begin(Orders::default(), &short);
    wait_until("loops end", || running.all_ended());
    assert!(started.elapsed() >= Duration::from_millis(100), "{:?}", started.elapsed());
    let thought: u64 = running.totals().0.iter().map(|kind| kind.think_ns_sum).sum();
    assert_eq!(thought, 2 * 5 * 20_000_000);

    let long =
        Parameters { think: pause(Nanos::millis(60_000), Nanos::millis(60_000)), ..mixed(1) };
    let (scripted, running) = begin(Orders::default(), &long);
    wait_until("both think", || scripted.first.lock().unwrap().len() == 2);
    let started = Instant::now();
    let outcome = running.stop(GRACE);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(outcome.stuck_sessions, 0);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_waiting_for_a_slow_target() {
    let parameters = Parameters { rate_per_s: Some(400.0), ..mixed(2) };
    let (_, running) = begin(Orders::default(), &parameters);
    thread::sleep(Duration::from_millis(1500));
    let ops = running.stop(GRACE).totals.completed_ops();
    // 600 expected, standard deviation 24.
    assert!((480..=720).contains(&ops), "{ops}");

    let service = Duration::from_millis(20);
    let (_, running) = begin(Orders { service, ..Orders::default() }, &parameters);
    thread::sleep(Duration::from_secs(1));
    let latencies = running.take_latencies();
    let unfinished: u64 = running.unfinished().map(|(.., lasted)| lasted.count()).sum();
    let longest_ns = running.unfinished().map(|(.., lasted)| lasted.max_ns()).max().unwrap();
    let totals = running.stop(GRACE).totals;
    // 400 were due, of which four sessions completed 50 each: the remaining ones count as well.
    assert!((100..=300).contains(&unfinished), "{unfinished}");
    assert!(longest_ns > 200_000_000, "{longest_ns}");
    // Each session is asked for 100 a second and can do 50: it falls behind by half the time.
    let lag: u64 = totals.0.iter().map(|kind| kind.lag_ns_sum).sum();
    assert!(lag / totals.completed_ops() > 100_000_000, "{lag}");
    for kind in &latencies {
        let service = kind.service.as_ref().unwrap();
        assert!(kind.latency.mean_ns() > 3.0 * service.mean_ns(), "{}", kind.name);
    }
}

#[test]
fn open_loop_latency_is_the_target_s_and_not_that_of_the_timer() {
    for threads in [1, 4] {
        let rate_per_s = Some(1000.0);
        let parameters = Parameters { rate_per_s, update_pct: 0, ..mixed(threads) };
        let (_, running) = begin(Orders::default(), &parameters);
        thread::sleep(Duration::from_millis(200));
        running.take_latencies();
        thread::sleep(Duration::from_millis(800));
        let latencies = running.take_latencies();
        let totals = running.stop(GRACE).totals.0[0];
        // A quarter, not a half: if other programs use the processors, most sessions may be late.
        // No sleep ends within 5 µs of its deadline.
        let latency_ns = latencies[0].latency.quantile_ns(0.25);
        let service_ns = latencies[0].service.as_ref().unwrap().quantile_ns(0.25);
        assert!(
            latency_ns <= service_ns + 5_000,
            "{threads} × 2 sessions: a quarter within {latency_ns} ns, of which service \
             {service_ns} ns; median {} ns",
            latencies[0].latency.quantile_ns(0.5)
        );
        assert!(totals.late_ns_sum <= totals.lag_ns_sum, "{totals:?}");
        // At most half of the processors spin; the test itself takes little time.
        let processors = thread::available_parallelism().unwrap().get() as u64;
        assert!(totals.spin_ns_sum < processors * 1_000_000_000, "{totals:?}");
    }
}

#[test]
fn thousands_of_sessions_start_and_stop() {
    let parameters = Parameters {
        population: Population::Mixed { schemas: 2, threads: 1024 },
        ..Parameters::default()
    };
    // Long enough that 2,048 sessions leave the processors time to start the others.
    let service = Duration::from_millis(100);
    let (scripted, running) = begin(Orders { service, ..Orders::default() }, &parameters);
    wait_until("all have sent", || scripted.first.lock().unwrap().len() == 2048);
    // If other programs use the processors, 2,048 threads take seconds to end.
    let outcome = running.stop(12 * GRACE);
    assert_eq!((outcome.stuck_sessions, outcome.failed_sessions), (0, 0));
}

#[test]
fn the_null_target_shows_what_the_workload_costs() {
    let target = (registry::find("null").unwrap().open)(&TargetSpec::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    let parameters = Parameters { loops: Some(100_000), ..mixed(1) };
    let running = start(&target.unwrap(), &parameters, &mut || false).unwrap();
    wait_until("loops end", || running.all_ended());
    assert_eq!(running.stop(GRACE).totals.rows(), 2 * 100_000 * 64);
}
