//! Which tests run at the same time. A test that measures has the machine for itself, because a
//! neighbour would change what it finds; tests of refusals, formats, interruptions and recordings
//! share it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use blockstone_testkit::note_time;

/// Tests that share the machine at a time. Most of them wait for a window to end.
const BESIDE_MAX: u32 = 6;

/// The right of a test to run. Each test has one; it ends when it is dropped.
pub struct Turn {
    alone: bool,
    since: Instant,
    /// It ends in the thread that took it.
    _of_this_thread: PhantomData<MutexGuard<'static, ()>>,
}

struct Machine {
    /// A test has it for itself.
    alone: bool,
    /// Tests that share it.
    beside: u32,
    /// Tests that wait to share it.
    waiting: u32,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine { alone: false, beside: 0, waiting: 0 });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    /// For a test that measures, or that finds something which a busy machine would change. It
    /// waits for all tests that share the machine: these are many, and would stop for each.
    pub fn alone() -> Self {
        Self::take(true)
    }

    /// For a test whose outcome is the same on a busy machine.
    pub fn beside() -> Self {
        Self::take(false)
    }

    #[track_caller]
    fn take(alone: bool) -> Self {
        let has_one = HAS_TURN.replace(true);
        assert!(!has_one, "this test has a turn, and would wait for itself: use that, or drop it");
        let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        machine.waiting += u32::from(!alone);
        let must_wait = |machine: &mut Machine| {
            let shared = machine.beside + machine.waiting;
            machine.alone || if alone { shared > 0 } else { machine.beside == BESIDE_MAX }
        };
        machine = CHANGED.wait_while(machine, must_wait).unwrap_or_else(PoisonError::into_inner);
        if alone {
            machine.alone = true;
        } else {
            machine.waiting -= 1;
            machine.beside += 1;
        }
        Self { alone, since: Instant::now(), _of_this_thread: PhantomData }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if self.alone {
            machine.alone = false;
        } else {
            machine.beside -= 1;
        }
        HAS_TURN.set(false);
        note_time(if self.alone { "alone" } else { "beside" }, self.since.elapsed());
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
