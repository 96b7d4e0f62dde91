//! Time in which threads of a server's sessions were blocked without any event of the server.
//!
//! The kernel shows where a thread is blocked, whatever the server reports. The waits that the
//! server does report are subtracted from that, kind by kind: what is left has no event.

use blockstone_base::database::{BLOCKED, BLOCKED_IN, PEER, ROW_LOCK, RUNNING};

use super::window::RunWindow;

/// Role of the processes and threads that work for the sessions.
pub const SESSION: &str = "session";

/// Smaller shares of the database time are within the error of samples of this length.
const LEAST_RATIO: f64 = 0.01;

/// A place in which the kernel showed threads blocked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocked {
    /// Name of the place among the events.
    pub event: &'static str,
    /// Object under which it is recorded, less the role.
    pub place: &'static str,
    /// Time blocked, including the waits that the server reports.
    pub seen_ns: u64,
    /// Time blocked without them.
    pub ns: u64,
}

/// Threads of the sessions, as the kernel showed them.
#[derive(Debug, Default)]
pub struct Threads {
    /// Blocked time without any event of the server.
    pub blocked: Vec<Blocked>,
    /// Time blocked in waits that the server reports.
    pub in_waits_ns: u64,
    /// Time in which threads waited for their clients during a call; `None` if that was not
    /// recorded.
    pub network_ns: Option<u64>,
}

impl Threads {
    /// Returns `None` if it was not recorded. `waits` are those of the sessions as the server
    /// reports them; `ran_ns` is what the kernel charged their threads as running or ready.
    pub fn of(
        window: &RunWindow,
        waits: &[(&str, u64)],
        db_time_ns: u64,
        ran_ns: u64,
    ) -> Option<Self> {
        let seen_ns = |object: &str| {
            let object = format!("{SESSION}/{object}");
            window.grown_from_zero(BLOCKED.probe, &object, "time_ns").ok()
        };
        let seen = BLOCKED_IN.map(|(place, event)| {
            let seen_ns = seen_ns(place)?;
            Some(Blocked { event, place, seen_ns, ns: seen_ns })
        });
        let mut seen = seen.into_iter().collect::<Option<Vec<Blocked>>>()?;
        let client = seen_ns(PEER).zip(seen_ns(RUNNING));
        let network_ns = client.map(|(peer_ns, running_ns)| {
            let off_ns = total_ns(&seen) + peer_ns;
            let all_ns = off_ns + running_ns;
            // The sampler needs a processor too, so that samples see threads run too often or too
            // rarely. The time they ran is known: for the rest they were off the processors.
            let ratio = all_ns.saturating_sub(ran_ns) as f64 / off_ns.max(1) as f64;
            for one in &mut seen {
                one.ns = (one.seen_ns as f64 * ratio) as u64;
            }
            // While sessions were outside of calls, their threads waited for them.
            let outside_ns = all_ns.saturating_sub(db_time_ns);
            ((peer_ns as f64 * ratio) as u64).saturating_sub(outside_ns)
        });
        let blocked_ns = total_ns(&seen);
        let mut blocked = without_events(seen, waits);
        let in_waits_ns = blocked_ns - total_ns(&blocked);
        leave_out_little(&mut blocked, db_time_ns);
        Some(Self { blocked, in_waits_ns, network_ns })
    }
}

pub fn total_ns(blocked: &[Blocked]) -> u64 {
    blocked.iter().map(|one| one.ns).sum()
}

/// Returns the part of `seen` that no wait covers.
fn without_events(mut seen: Vec<Blocked>, waits: &[(&str, u64)]) -> Vec<Blocked> {
    let mut waits: Vec<_> = waits.iter().map(|&(event, ns)| (places_of(event), ns)).collect();
    // Waits that can be in few places first.
    waits.sort_by_key(|(places, _)| places.len());
    for (places, mut ns) in waits {
        for place in places {
            if let Some(one) = seen.iter_mut().find(|one| one.place == *place) {
                let covered = ns.min(one.ns);
                ns -= covered;
                one.ns -= covered;
            }
        }
    }
    seen
}

fn leave_out_little(blocked: &mut [Blocked], db_time_ns: u64) {
    let least_ns = db_time_ns as f64 * LEAST_RATIO;
    for one in blocked {
        if (one.ns as f64) < least_ns {
            one.ns = 0;
        }
    }
}

/// Returns the places in which a thread may be blocked during a wait, likeliest first.
fn places_of(event: &str) -> &'static [&'static str] {
    match event {
        ROW_LOCK => &["futex"],
        // One session writes and flushes the log for others, which wait for that.
        "stage/sql/Commit" => &["flush", "futex", "write"],
        // Sessions read from it; others write what they change there.
        "wait/io/file/innodb/innodb_data_file" => &["read"],
        event if event.starts_with("wait/io/") => &["flush", "write", "read"],
        event if event.starts_with("wait/") => &["futex"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what remains of blocks of 100 ns each, in the order of [`BLOCKED_IN`].
    fn left(waits: &[(&str, u64)], db_time_ns: u64) -> [u64; BLOCKED_IN.len()] {
        let seen = |(place, event)| Blocked { event, place, seen_ns: 100, ns: 100 };
        let mut left = without_events(BLOCKED_IN.map(seen).to_vec(), waits);
        leave_out_little(&mut left, db_time_ns);
        assert!(left.iter().all(|one| one.seen_ns == 100), "{left:?}");
        BLOCKED_IN.map(|(place, _)| left.iter().find(|one| one.place == place).unwrap().ns)
    }

    #[test]
    fn what_the_server_reports_is_not_counted_again() {
        let data = "wait/io/file/innodb/innodb_data_file";
        assert_eq!(left(&[], 1000), [100; 7]);
        assert_eq!(left(&[(data, 70)], 1000), [30, 100, 100, 100, 100, 100, 100]);
        assert_eq!(left(&[(data, 900)], 1000), [0, 100, 100, 100, 100, 100, 100], "at work in it");
        let log = "wait/io/file/innodb/innodb_log_file";
        assert_eq!(left(&[(log, 170)], 1000), [100, 30, 0, 100, 100, 100, 100]);
        // A lock waits in a futex only, so that a commit covers what the lock leaves.
        let waits = [("stage/sql/Commit", 150), ("wait/synch/mutex/x", 80), (ROW_LOCK, 10)];
        assert_eq!(left(&waits, 1000), [100, 60, 0, 0, 100, 100, 100]);
        assert_eq!(left(&[("wait/lock/table/sql/handler", 40)], 1000)[3], 60);
        assert_eq!(left(&[("Timeout/PgSleep", 40)], 1000), [100; 7]);
    }

    #[test]
    fn what_samples_cannot_establish_is_not_listed() {
        let data = "wait/io/file/innodb/innodb_data_file";
        assert_eq!(left(&[(data, 95)], 499)[0], 5, "1 % is listed");
        assert_eq!(left(&[(data, 95)], 501)[0], 0, "less is not");
    }
}
