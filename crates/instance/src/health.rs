//! Whether the instance is running, and if not, why: the state that every thread checks before it
//! continues.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::InstanceError;

/// Maximum time a thread waits before it checks whether the instance is still running.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const FAILED: u8 = 2;

/// The state of an instance. It only ever changes from running to one of the other states.
#[derive(Debug, Default)]
pub(crate) struct Health {
    state: AtomicU8,
    /// The first reason to fail, and what to do about it.
    why: Mutex<Option<(String, Option<String>)>>,
}

impl Health {
    #[inline]
    pub fn is_running(&self) -> bool {
        self.state.load(Ordering::Acquire) == RUNNING
    }

    #[inline]
    pub fn check(&self) -> Result<(), InstanceError> {
        if self.is_running() { Ok(()) } else { Err(self.error()) }
    }

    pub fn stop(&self) {
        let _ = self.state.compare_exchange(RUNNING, STOPPED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Fails the instance because `role` cannot continue; the first reason is kept.
    pub fn fail(&self, role: &str, why: &dyn std::fmt::Display, hint: Option<String>) {
        let mut kept = self.why.lock();
        if kept.is_none() && self.is_running() {
            *kept = Some((format!("{role}: {why}"), hint));
            self.state.store(FAILED, Ordering::Release);
        }
    }

    fn error(&self) -> InstanceError {
        match self.why.lock().clone() {
            Some((why, hint)) => InstanceError::Failed {
                why,
                hint: hint.unwrap_or_else(|| "open it again; recovery loses no commit".to_owned()),
            },
            None => InstanceError::Stopped,
        }
    }
}

/// A signal to a thread that may be asleep; several rings while it is awake count as one.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        let mut rung = self.rung.lock();
        if !*rung {
            *rung = true;
            self.heard.notify_all();
        }
    }

    /// Waits at most `limit` for a ring; an earlier ring ends the wait immediately.
    pub fn wait(&self, limit: Duration) {
        let mut rung = self.rung.lock();
        if !*rung {
            self.heard.wait_for(&mut rung, limit);
        }
        *rung = false;
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn the_first_reason_to_fail_is_kept_and_a_stop_is_no_failure() {
        let health = Health::default();
        assert!(health.check().is_ok());
        health.fail("lgwr", &"no room", Some("make some".to_owned()));
        health.fail("dbwr", &"later", None);
        health.stop();
        let text = health.check().unwrap_err().told();
        assert!(text.contains("lgwr: no room") && text.contains("\nhint: make some"), "{text}");
        let stopped = Health::default();
        stopped.stop();
        assert!(matches!(stopped.check(), Err(InstanceError::Stopped)));
    }

    #[test]
    fn a_ring_before_the_wait_is_heard_once() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        bell.wait(Duration::from_hours(1));
        bell.wait(Duration::from_millis(1));
    }
}
