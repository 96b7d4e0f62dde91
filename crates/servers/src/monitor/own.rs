//! This program's own share in the counters of a server.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::steady::Rising;

/// Activity of a monitor's own session, to be subtracted.
#[derive(Debug, Default)]
pub struct Own {
    transactions: i64,
    busy: Duration,
    commits: Option<Commits>,
    time: Option<Time>,
}

#[derive(Debug)]
struct Commits {
    total: Rising,
    /// Offset that makes the total continue from its last value after a reconnect.
    shift: Option<i64>,
    reported: i64,
}

#[derive(Debug)]
struct Time {
    /// The server's total and our own at the last look; `None` after a reconnect.
    last: Option<(u64, u64)>,
    /// Our own time of the last looks, which the server may not have counted yet.
    recent_ns: VecDeque<u64>,
    owed_ns: u64,
    told_ns: u64,
}

/// After at most this many looks, the server has counted our activity.
const LOOKS: usize = 3;

impl Own {
    /// Records a transaction that was sent at `started` and has been answered.
    pub fn sent(&mut self, started: Instant) {
        self.transactions += 1;
        self.busy += started.elapsed();
    }

    /// Call after a reconnect, whose own cost is not charged to any session.
    pub fn reconnected(&mut self) {
        self.commits.iter_mut().for_each(|commits| commits.shift = None);
        self.time.iter_mut().for_each(|time| time.last = None);
    }

    /// Returns `commits` without our own. The server may count ours later than we do, so the result
    /// never decreases.
    pub fn off_commits(&mut self, commits: u64) -> u64 {
        let (raw, own) = (commits as i64, self.transactions);
        let fresh = || Commits { total: Rising::new(raw), shift: None, reported: raw };
        let known = self.commits.get_or_insert_with(fresh);
        let others = known.total.at(raw).saturating_sub(own);
        let shift = *known.shift.get_or_insert(known.reported.saturating_sub(others));
        known.reported = known.reported.max(others.saturating_add(shift));
        known.reported as u64
    }

    /// Returns `db_time_ns` without our own. The server measures our time a little shorter than we
    /// do, and may count it some looks later; a remainder that it never counts is not subtracted
    /// from others' time.
    pub fn off_time(&mut self, db_time_ns: u64) -> u64 {
        let own_ns = self.busy.as_nanos() as u64;
        let known = self.time.get_or_insert_with(|| Time::new(db_time_ns));
        if let Some((last, own)) = known.last {
            known.add(db_time_ns.saturating_sub(last), own_ns - own);
        }
        known.last = Some((db_time_ns, own_ns));
        known.told_ns
    }
}

impl Time {
    fn new(told_ns: u64) -> Self {
        Self { last: None, recent_ns: VecDeque::new(), owed_ns: 0, told_ns }
    }

    /// Adds the time of others since the last look, given the total `all_ns` and our new time
    /// `own_ns`.
    fn add(&mut self, all_ns: u64, own_ns: u64) {
        self.recent_ns.push_back(own_ns);
        if self.recent_ns.len() > LOOKS {
            self.recent_ns.pop_front();
        }
        self.owed_ns = (self.owed_ns + own_ns).min(self.recent_ns.iter().sum());
        let taken_ns = all_ns.min(self.owed_ns);
        self.owed_ns -= taken_ns;
        self.told_ns = self.told_ns.saturating_add(all_ns - taken_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_keep_what_is_theirs() {
        let mut own = Own::default();
        assert_eq!((own.off_commits(10), own.off_time(500)), (10, 500));
        own.sent(Instant::now());
        own.busy = Duration::from_nanos(40);
        assert_eq!((own.off_commits(14), own.off_time(530)), (13, 500));
        assert_eq!((own.off_commits(14), own.off_time(540)), (13, 500), "counted late");
        assert_eq!((own.off_commits(14), own.off_time(640)), (13, 600));
        own.busy = Duration::from_nanos(50);
        (0..=LOOKS).for_each(|_| assert_eq!(own.off_time(640), 600));
        assert_eq!(own.off_time(650), 610, "what was never counted is not owed for ever");
    }

    #[test]
    fn what_the_server_counts_late_is_not_taken_for_somebody_elses() {
        let mut own = Own::default();
        assert_eq!(own.off_commits(50), 50);
        (0..3).for_each(|_| own.sent(Instant::now()));
        assert_eq!([50, 53, 54].map(|total| own.off_commits(total)), [50, 50, 51]);
    }

    #[test]
    fn counts_that_no_server_has_do_not_overflow() {
        let mut own = Own::default();
        own.sent(Instant::now());
        for count in [0, 1 << 63, u64::MAX, i64::MAX as u64, 1 << 63, 5] {
            own.off_commits(count);
            own.off_time(count);
        }
        own.reconnected();
        own.off_commits(1 << 63);
    }

    #[test]
    fn a_server_that_came_back_goes_on() {
        let mut own = Own::default();
        own.off_commits(50);
        assert_eq!((own.off_commits(60), own.off_time(9)), (60, 9));
        own.reconnected();
        assert_eq!((own.off_commits(4), own.off_time(2)), (60, 9));
        assert_eq!((own.off_commits(6), own.off_time(3)), (62, 10));
    }
}
