//! Schedules tests. A test that measures has the machine to itself, because other load would change
//! its results; tests of refusals, formats, interruptions and recordings share the machine; tests
//! of devices that the kernel throttles share it with one another, because they leave the
//! processors idle.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use blockstone_testkit::note_time;

/// The right of a test to run. Each test takes one; dropping it ends the turn.
pub struct Turn {
    kind: Kind,
    since: Instant,
    /// Makes sure that it is dropped in the thread that took it.
    _of_this_thread: PhantomData<MutexGuard<'static, ()>>,
}

/// Kinds in the order of execution: all tests of a kind run before one of the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Beside,
    Throttled,
    Alone,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Beside, Self::Throttled, Self::Alone];

    /// Number of tests of this kind that run at the same time. Most of those that share the machine
    /// wait for a window to end.
    const fn most(self) -> u32 {
        match self {
            Self::Beside => 6,
            Self::Throttled => 2,
            Self::Alone => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Beside => "beside",
            Self::Throttled => "throttled",
            Self::Alone => "alone",
        }
    }
}

/// Running and waiting tests by kind.
struct Machine {
    running: [u32; Kind::ALL.len()],
    waiting: [u32; Kind::ALL.len()],
}

impl Machine {
    fn must_wait(&self, kind: Kind) -> bool {
        let others = Kind::ALL.into_iter().filter(|other| *other != kind);
        let (mut running, mut before) = (0, 0);
        for other in others {
            running += self.running[other as usize];
            before +=
                if (other as usize) < kind as usize { self.waiting[other as usize] } else { 0 };
        }
        running + before > 0 || self.running[kind as usize] == kind.most()
    }
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine { running: [0; 3], waiting: [0; 3] });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    /// For a test that measures, or whose findings would differ on a busy machine. It waits for all
    /// tests that share the machine: there are many of them, and they would otherwise stop for
    /// each.
    pub fn alone() -> Self {
        Self::take(Kind::Alone)
    }

    /// For a test of devices that are throttled to a rate that a processor handles with time to
    /// spare.
    pub fn throttled() -> Self {
        Self::take(Kind::Throttled)
    }

    /// For a test whose outcome is the same on a busy machine.
    pub fn beside() -> Self {
        Self::take(Kind::Beside)
    }

    #[track_caller]
    fn take(kind: Kind) -> Self {
        let has_one = HAS_TURN.replace(true);
        assert!(!has_one, "this test has a turn, and would wait for itself: use that, or drop it");
        let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        machine.waiting[kind as usize] += 1;
        let must_wait = |machine: &mut Machine| machine.must_wait(kind);
        machine = CHANGED.wait_while(machine, must_wait).unwrap_or_else(PoisonError::into_inner);
        machine.waiting[kind as usize] -= 1;
        machine.running[kind as usize] += 1;
        Self { kind, since: Instant::now(), _of_this_thread: PhantomData }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        machine.running[self.kind as usize] -= 1;
        HAS_TURN.set(false);
        note_time(self.kind.name(), self.since.elapsed());
        CHANGED.notify_all();
    }
}

#[test]
fn a_second_turn_of_a_test_fails_instead_of_waiting_for_ever() {
    let turn = Turn::beside();
    for second in [Turn::alone, Turn::beside] {
        assert!(std::panic::catch_unwind(second).is_err());
    }
    drop(turn);
    drop(Turn::beside());
}
