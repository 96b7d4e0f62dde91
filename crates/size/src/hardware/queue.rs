//! Waiting by the Erlang C formula: Poisson arrivals, exponential service times, a number of
//! `servers` and one queue (M/M/c). Times are in units of the mean service time.
//!
//! For disks it is a rough guide if there is no measurement. A flash drive is not one server: it
//! has dozens of dies, and M/M/1 at the same utilisation predicts waits that are several times too
//! long. Its number of dies as `servers` is closer, but writes and garbage collection are not
//! exponential: measure it.

/// Above this many servers the recursion takes too long to be useful.
const SERVERS_MOST: u64 = 1_000_000;

/// An M/M/c queue at a given utilisation of each server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    servers: u64,
    utilisation: f64,
    waits: f64,
}

impl Queue {
    /// Returns the queue; `None` if there is no steady state: utilisation outside 0 to 1 (1
    /// excluded).
    pub fn new(servers: u64, utilisation: f64) -> Option<Self> {
        if !(1..=SERVERS_MOST).contains(&servers) || !(0.0..1.0).contains(&utilisation) {
            return None;
        }
        let offered = utilisation * servers as f64;
        // Erlang B by its recursion, which neither overflows nor suffers cancellation.
        let blocked = (1..=servers).fold(1.0, |blocked, server| {
            let carried = offered * blocked;
            carried / (server as f64 + carried)
        });
        let waits = blocked / (1.0 - utilisation * (1.0 - blocked));
        Some(Self { servers, utilisation, waits })
    }

    /// Returns the queue for a `load` of arrivals × service time, in busy servers.
    pub fn of_load(servers: u64, load: f64) -> Option<Self> {
        Self::new(servers, load / servers as f64)
    }

    /// Returns the probability that a request waits, C.
    pub fn waiting_probability(&self) -> f64 {
        self.waits
    }

    /// Returns the mean of wait plus service.
    pub fn mean_response(&self) -> f64 {
        1.0 + self.waits / (self.servers as f64 * (1.0 - self.utilisation))
    }

    /// Returns the wait that a share of all requests does not exceed; `None` outside 0 to 1.
    pub fn wait_quantile(&self, share: f64) -> Option<f64> {
        if !(0.0..1.0).contains(&share) {
            return None;
        }
        let beyond = 1.0 - share;
        if self.waits <= beyond {
            return Some(0.0);
        }
        Some((self.waits / beyond).ln() / (self.servers as f64 * (1.0 - self.utilisation)))
    }
}

/// Returns the fewest servers whose p99 of the wait is at most `p99_wait` service times; `None` if
/// the load is not a number or is too large.
pub fn servers_for(load: f64, p99_wait: f64) -> Option<u64> {
    if !(load >= 0.0 && load < SERVERS_MOST as f64 / 2.0 && p99_wait >= 0.0) {
        return None;
    }
    let enough = |servers: u64| {
        let wait = Queue::of_load(servers, load).and_then(|queue| queue.wait_quantile(0.99));
        wait.is_some_and(|wait| wait <= p99_wait)
    };
    let (mut low, mut high) = (load as u64, (load as u64 + 16) * 2);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle }
    }
    enough(high).then_some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_to_the_printed_digit() {
        let at = |servers, utilisation| Queue::new(servers, utilisation).unwrap();
        let p99 = |queue: Queue| queue.wait_quantile(0.99).unwrap();
        assert_eq!(format!("{:.3}", at(1, 0.5).mean_response()), "2.000");
        assert_eq!(format!("{:.3}", at(1, 0.8).mean_response()), "5.000");
        assert_eq!(format!("{:.2}", p99(at(1, 0.8))), "21.91");
        let eight = at(8, 0.8);
        assert_eq!(format!("{:.4}", eight.waiting_probability()), "0.4576");
        assert_eq!(format!("{:.4}", eight.mean_response()), "1.2860");
        assert_eq!(format!("{:.3}", p99(eight)), "2.390");
        let many = at(64, 0.9);
        assert_eq!(format!("{:.4}", many.waiting_probability()), "0.3107");
        assert_eq!(format!("{:.4}", many.mean_response()), "1.0485");
        assert_eq!(format!("{:.3}", p99(many)), "0.537");
        let design = at(84, 0.992);
        assert_eq!(format!("{:.2}", design.mean_response()), "2.36");
        assert_eq!(format!("{:.1}", p99(design)), "6.7");
    }

    #[test]
    fn no_answer_where_there_is_none() {
        for bad in [1.0, 1.5, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Queue::new(4, bad), None);
        }
        assert_eq!(Queue::new(0, 0.5), None);
        assert_eq!(Queue::new(u64::MAX, 0.5), None);
        assert_eq!(Queue::new(1, 0.5).unwrap().wait_quantile(1.0), None);
        assert_eq!(Queue::new(1, 0.001).unwrap().wait_quantile(0.99), Some(0.0));
        assert_eq!(servers_for(f64::NAN, 1.0), None);
        assert_eq!(servers_for(f64::INFINITY, 1.0), None);
    }

    #[test]
    fn the_fewest_servers_are_enough_and_one_less_is_not() {
        for (load, p99) in [(0.0, 0.0), (0.5, 1.0), (83.3, 0.5), (83.3, 0.0), (5000.0, 0.01)] {
            let servers = servers_for(load, p99).unwrap();
            let wait = |servers| Queue::of_load(servers, load)?.wait_quantile(0.99);
            assert!(wait(servers).unwrap() <= p99, "{load} {p99}: {servers}");
            assert!(wait(servers - 1).is_none_or(|wait| wait > p99), "{load} {p99}: {servers}");
        }
    }
}
