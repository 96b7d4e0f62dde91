//! Database time: CPU, run queue, waits, and the remainder.

use std::collections::BTreeMap;

pub use blockstone_base::database::{CPU, NETWORK, RUN_QUEUE};
use blockstone_base::database::{ROW_LOCK, wait_class};

pub use super::blocked::SESSION;
use super::blocked::{Blocked, Threads, total_ns};
use super::window::RunWindow;
use super::{DbTime, Wait, WaitClass};

/// Returns `None` if the database does not report it, or was idle; in a part of a window it may be
/// idle.
pub fn db_time(window: &RunWindow) -> Option<DbTime> {
    let is_part = window.is_part();
    let db_time_ns = window.statistic("db_time_ns").ok().filter(|&ns| ns > 0 || is_part)?;
    let charged = Charged::of(window);
    let mut parts = DbTime {
        db_time_ns,
        waits_ns: charged.waits.iter().map(|(_, ns)| ns).sum(),
        session_cpu_ns: charged.cpu_ns,
        session_run_queue_ns: charged.run_queue_ns,
        background_cpu_ns: charged.background_cpu_ns,
        average_active_sessions: db_time_ns as f64 / window.duration_ns() as f64,
        ..DbTime::default()
    };
    let outside_ns = db_time_ns as f64 - parts.waits_ns as f64;
    let sampled = |column| window.statistic(column).map_or(0.0, |ns| ns as f64);
    let sampled_ns = sampled("outside_sampled_ns");
    let (cpu_ns, run_queue_ns) = if super::has_server(window) {
        if charged.cpu_ns > 0 && window.statistic("outside_sampled_ns").is_ok() {
            parts.of_server(window, &charged)
        } else {
            charged.at_work()
        }
    } else if sampled_ns > 0.0 && outside_ns > 0.0 {
        // A ratio estimate: the shares in the sample are taken as those of all time outside of
        // waits.
        let scale = outside_ns / sampled_ns;
        let sampled_cpu_ns = sampled("outside_sampled_cpu_ns");
        let ready_ns = sampled_ns - sampled_cpu_ns - sampled("outside_sampled_blocked_ns");
        ((sampled_cpu_ns * scale) as u64, (ready_ns.max(0.0) * scale) as u64)
    } else {
        charged.at_work()
    };
    Some(parts.outside_of_waits(cpu_ns, run_queue_ns))
}

/// Sums of the events of a window: of sessions, and of all others.
#[derive(Debug, Default)]
struct Charged<'a> {
    waits: Vec<(&'a str, u64)>,
    cpu_ns: u64,
    run_queue_ns: u64,
    background_cpu_ns: u64,
}

impl<'a> Charged<'a> {
    fn of(window: &'a RunWindow) -> Self {
        let mut charged = Self::default();
        for object in window.objects("event") {
            let (Some((role, event)), Ok(ns)) =
                (object.split_once('/'), window.grown("event", object, "time_ns"))
            else {
                continue;
            };
            match (role == SESSION, event) {
                (true, CPU) => charged.cpu_ns += ns,
                (true, RUN_QUEUE) => charged.run_queue_ns += ns,
                (true, _) => charged.waits.push((event, ns)),
                (false, CPU) => charged.background_cpu_ns += ns,
                (false, _) => {}
            }
        }
        // Sessions of a server are not the threads that waited for the intended start.
        if !super::has_server(window) {
            let spun_ns = window.grown_of_all("operation", "spin_ns_sum").unwrap_or(0);
            charged.cpu_ns = charged.cpu_ns.saturating_sub(spun_ns);
        }
        charged
    }

    fn at_work(&self) -> (u64, u64) {
        (self.cpu_ns, self.run_queue_ns)
    }
}

/// Time of calls outside of waits, by use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    pub cpu: f64,
    pub run_queue: f64,
    /// Blocked without an event.
    pub blocked: f64,
    /// Not worked on by a server: the call was in transit, or with the client.
    pub network: f64,
}

/// Divides the time of the calls to a server `outside` of waits. By samples, the server worked
/// `at_work` of it and was `blocked` for a part of that. Processor time and run queue were also
/// charged inside waits, so that they count only up to the rest; what remains of it is unexplained.
pub fn of_server(
    outside: f64,
    at_work: f64,
    blocked: f64,
    (cpu, run_queue): (f64, f64),
) -> Outside {
    let network = (outside - at_work).max(0.0);
    let left = (outside - network).max(0.0);
    let blocked = blocked.min(left);
    let left = left - blocked;
    let charged = cpu + run_queue;
    let scale = if charged > left { left / charged } else { 1.0 };
    Outside { cpu: cpu * scale, run_queue: run_queue * scale, blocked, network }
}

impl DbTime {
    /// Adds what a server's waits do not contain: time in transit, and time blocked without an
    /// event. Returns processor time and run queue outside of all that.
    fn of_server(&mut self, window: &RunWindow, charged: &Charged) -> (u64, u64) {
        let ran_ns = charged.cpu_ns + charged.run_queue_ns;
        let threads = Threads::of(window, &charged.waits, self.db_time_ns, ran_ns);
        let outside = match &threads {
            Some(Threads { network_ns: Some(network_ns), in_waits_ns, blocked }) => {
                // The part of a wait that was not blocked was running, or ready to run.
                let ran_in_waits_ns = self.waits_ns.saturating_sub(*in_waits_ns) as f64;
                let scale = (1.0 - ran_in_waits_ns / ran_ns as f64).max(0.0);
                Outside {
                    cpu: charged.cpu_ns as f64 * scale,
                    run_queue: charged.run_queue_ns as f64 * scale,
                    blocked: total_ns(blocked) as f64,
                    network: *network_ns as f64,
                }
            }
            _ => self.by_samples_of_server(window, charged, threads.as_ref()),
        };
        let all_ns = threads.as_ref().map_or(0, |threads| total_ns(&threads.blocked));
        let scale = if all_ns > 0 { outside.blocked / all_ns as f64 } else { 0.0 };
        let scaled = |one: Blocked| Blocked { ns: (one.ns as f64 * scale) as u64, ..one };
        self.blocked_ns = threads.as_ref().map(|_| 0);
        let blocked = threads.into_iter().flat_map(|threads| threads.blocked);
        self.blocked = blocked.map(scaled).collect();
        self.network_ns = Some(outside.network as u64);
        self.waits_ns += outside.network as u64;
        self.add_blocked();
        (outside.cpu as u64, outside.run_queue as u64)
    }

    /// Estimates the same from samples of what the server works at, for recordings in which the
    /// kernel did not show when threads waited for their clients. All other time is taken as in
    /// transit.
    fn by_samples_of_server(
        &self,
        window: &RunWindow,
        charged: &Charged,
        threads: Option<&Threads>,
    ) -> Outside {
        let outside_ns = self.db_time_ns as f64 - self.waits_ns as f64;
        let sampled_ns = window.statistic("outside_sampled_ns").unwrap_or(0);
        let row_locks = charged.waits.iter().filter(|(event, _)| *event == ROW_LOCK);
        let row_lock_ns: u64 = row_locks.map(|(_, ns)| ns).sum();
        let at_work_ns = sampled_ns.saturating_sub(row_lock_ns) as f64;
        let all_ns = threads.map_or(0, |threads| total_ns(&threads.blocked));
        let at_work = (charged.cpu_ns as f64, charged.run_queue_ns as f64);
        of_server(outside_ns, at_work_ns, all_ns as f64, at_work)
    }

    /// Counts `blocked` among the waits, if it is known.
    fn add_blocked(&mut self) {
        let ns = total_ns(&self.blocked);
        self.waits_ns = self.waits_ns - self.blocked_ns.unwrap_or(0) + ns;
        self.blocked_ns = self.blocked_ns.map(|_| ns);
    }

    /// Sets the time outside of waits that was spent on a processor and in the run queue, and the
    /// remainder.
    fn outside_of_waits(self, cpu_ns: u64, run_queue_ns: u64) -> Self {
        let outside_ns = self.db_time_ns as f64 - self.waits_ns as f64;
        let remainder_ns = outside_ns - cpu_ns as f64 - run_queue_ns as f64;
        Self {
            cpu_ns,
            run_queue_ns,
            remainder_ns,
            remainder_ratio: remainder_ns / self.db_time_ns as f64,
            cpu_in_waits_ns: self.session_cpu_ns.saturating_sub(cpu_ns),
            run_queue_in_waits_ns: self.session_run_queue_ns.saturating_sub(run_queue_ns),
            ..self
        }
    }
}

/// Adjusts the database time of the parts that make up a window. The split of the time outside of
/// waits is estimated from samples in each part separately: the estimates are scaled so that they
/// add up to that of the window, as everything that is counted does.
pub fn add_up(parts: &mut [Option<DbTime>], window: Option<&DbTime>) {
    let Some(window) = window else { return };
    let sum = |of: fn(&DbTime) -> u64| parts.iter().flatten().map(of).sum::<u64>() as f64;
    if sum(|part| part.db_time_ns) as u64 != window.db_time_ns {
        return;
    }
    let scale = |whole: u64, sum: f64| if sum > 0.0 { whole as f64 / sum } else { 1.0 };
    let cpu = scale(window.cpu_ns, sum(|part| part.cpu_ns));
    let run_queue = scale(window.run_queue_ns, sum(|part| part.run_queue_ns));
    let network = |part: &DbTime| part.network_ns.unwrap_or(0);
    let by = scale(network(window), sum(|part| part.network_ns.unwrap_or(0)));
    share_blocked(parts, window);
    for part in parts.iter_mut().flatten() {
        let scaled = |ns: u64, by: f64| (ns as f64 * by).round() as u64;
        let network_ns = scaled(network(part), by);
        part.waits_ns = part.waits_ns - network(part) + network_ns;
        part.network_ns = part.network_ns.map(|_| network_ns);
        *part = part
            .clone()
            .outside_of_waits(scaled(part.cpu_ns, cpu), scaled(part.run_queue_ns, run_queue));
    }
}

/// Divides the window's blocked time without an event among its parts, in proportion to what the
/// kernel saw blocked there: in a part alone, samples establish less.
fn share_blocked(parts: &mut [Option<DbTime>], window: &DbTime) {
    for whole in &window.blocked {
        let seen_ns = |part: &DbTime| -> u64 {
            let of_place = part.blocked.iter().filter(|one| one.place == whole.place);
            of_place.map(|one| one.seen_ns).sum()
        };
        let all_ns: u64 = parts.iter().flatten().map(seen_ns).sum();
        let ratio = whole.ns as f64 / all_ns.max(1) as f64;
        for part in parts.iter_mut().flatten() {
            let of_place = part.blocked.iter_mut().filter(|one| one.place == whole.place);
            of_place.for_each(|one| one.ns = (one.seen_ns as f64 * ratio).round() as u64);
        }
    }
    parts.iter_mut().flatten().for_each(DbTime::add_blocked);
}

/// Returns all events. CPU and run queue of the sessions are those outside of waits, so that the
/// shares of the database time add up. Events that never happened are listed only for the sessions,
/// and in a part of a window, since other parts may have them.
pub fn waits(window: &RunWindow, db_time: Option<&DbTime>) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::new();
    for object in window.objects("event") {
        let Some((role, event)) = object.split_once('/') else { continue };
        let grown = |column| window.grown("event", object, column).ok();
        let Some(time_ns) = grown("time_ns") else { continue };
        let foreground = role == SESSION;
        // Sampled waits are not counted: for these, no time means no wait.
        let count = grown("waits");
        if time_ns == 0 && (!foreground || count.is_none()) && !window.is_part() {
            continue;
        }
        let count = count.unwrap_or(0);
        let time_ns = match (db_time.filter(|_| foreground), event) {
            (Some(db_time), CPU) => db_time.cpu_ns,
            (Some(db_time), RUN_QUEUE) => db_time.run_queue_ns,
            _ => time_ns,
        };
        let db_time = db_time.filter(|_| foreground);
        waits.push(Wait {
            event: event.to_owned(),
            role: role.to_owned(),
            class: wait_class(event),
            count,
            time_ns,
            ns_mean: (count > 0).then(|| time_ns as f64 / count as f64),
            db_time_ratio: db_time.map(|all| time_ns as f64 / all.db_time_ns as f64),
            average_active: time_ns as f64 / window.duration_ns() as f64,
        });
    }
    if let Some(db_time) = db_time {
        let network = db_time.network_ns.map(|ns| (NETWORK, ns));
        let blocked = db_time.blocked.iter().map(|one| (one.event, one.ns));
        let blocked = blocked.filter(|(_, ns)| *ns > 0 || window.is_part());
        for (event, time_ns) in network.into_iter().chain(blocked) {
            waits.push(Wait {
                event: event.to_owned(),
                role: SESSION.to_owned(),
                class: wait_class(event),
                count: 0,
                time_ns,
                ns_mean: None,
                db_time_ratio: Some(time_ns as f64 / db_time.db_time_ns as f64),
                average_active: time_ns as f64 / window.duration_ns() as f64,
            });
        }
    }
    waits.sort_by(|a, b| {
        let key = |wait: &Wait| (wait.role != SESSION, std::cmp::Reverse(wait.time_ns));
        key(a).cmp(&key(b)).then_with(|| a.event.cmp(&b.event))
    });
    waits
}

pub fn classes(window: &RunWindow, waits: &[Wait], db_time: Option<&DbTime>) -> Vec<WaitClass> {
    let Some(db_time) = db_time else { return Vec::new() };
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    let listed = |wait: &&Wait| wait.role == SESSION && (wait.time_ns > 0 || window.is_part());
    for wait in waits.iter().filter(listed) {
        *sums.entry(wait.class).or_default() += wait.time_ns;
    }
    let mut classes: Vec<WaitClass> = sums
        .into_iter()
        .map(|(class, time_ns)| WaitClass {
            class,
            time_ns,
            db_time_ratio: time_ns as f64 / db_time.db_time_ns as f64,
            average_active_sessions: time_ns as f64 / window.duration_ns() as f64,
        })
        .collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.time_ns));
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_outside_of_a_servers_waits_is_divided_without_anything_counted_twice() {
        let of = |at_work, charged| {
            let Outside { cpu, run_queue, network, .. } = of_server(100.0, at_work, 0.0, charged);
            [cpu, run_queue, network].map(|ns| ns.round() as i64)
        };
        assert_eq!(of(40.0, (10.0, 30.0)), [10, 30, 60]);
        assert_eq!(of(40.0, (20.0, 60.0)), [10, 30, 60], "half of it was inside waits");
        assert_eq!(of(40.0, (5.0, 15.0)), [5, 15, 60], "the remainder is 20");
        assert_eq!(of(120.0, (20.0, 60.0)), [20, 60, 0], "the samples say too much");
        let blocked = |ns| {
            let Outside { cpu, run_queue, blocked, network } =
                of_server(100.0, 80.0, ns, (20.0, 20.0));
            [cpu, run_queue, blocked, network].map(|ns| ns.round() as i64)
        };
        assert_eq!(blocked(40.0), [20, 20, 40, 20]);
        assert_eq!(blocked(60.0), [10, 10, 60, 20], "half of the charged time was inside waits");
        assert_eq!(blocked(90.0), [0, 0, 80, 20], "the samples say too much");
    }
}
