//! Derives the class of a mode from the observations. It is based on the share of time, never on
//! rates.

use crate::order::findings::{Class, Side};

use crate::evidence::{and_then, of_too_few};

/// Share of the longest possible wait of the threads from which they serialise.
const SERIALISES_FROM: f64 = 0.30;
/// Share up to which they scale.
const SCALES_UP_TO: f64 = 0.15;
/// Waits with separate files must be at most this share of those with one file.
const CONTROL_UP_TO: f64 = 1.0 / 3.0;
/// Waits of a thread per request, if the kernel does not count: one wait is for the device, a
/// second and third are for a lock.
const SWITCHES_ABOVE: f64 = 2.0;
const CONTROL_SWITCHES: f64 = 1.3;
/// Writers that do not sleep in the kernel spin while they wait, which is not counted. From this
/// multiple of the processor time per request, they may be spinning.
const SPINS_FROM: f64 = 1.5;
/// Fewer requests decide nothing.
const LEAST_REQUESTS: u64 = 16;

/// Observations of a mode.
#[derive(Clone, Debug)]
pub struct ModeEvidence {
    pub writers: u32,
    /// Whether the threads read, next to one writer.
    pub is_of_readers: bool,
    pub is_buffered: bool,
    pub error: Option<i32>,
    pub one_file: Side,
    /// `None` for a device.
    pub own_files: Option<Side>,
    /// Number of waits that were not counted.
    pub dropped: u64,
    /// Why nothing was counted.
    pub unseen: String,
}

/// Returns the class and its evidence.
pub fn classify(seen: &ModeEvidence) -> (Class, String) {
    let one_requests = seen.one_file.requests;
    let requests = seen.own_files.map_or(one_requests, |own| own.requests.min(one_requests));
    if requests < LEAST_REQUESTS {
        let few = format!("only {requests} requests in this time");
        return of_too_few(requests, seen.error, [Class::Refused, Class::Unknown], &few);
    }
    let (class, mut evidence) =
        match (seen.one_file.lock_time_share, seen.own_files.map(|own| own.lock_time_share)) {
            (Some(one), None) => by_shares(seen, one, None),
            (Some(one), Some(Some(own))) => by_shares(seen, one, Some(own)),
            _ => by_switches(seen),
        };
    if seen.one_file.lost > 0 {
        let (lost, all) = (seen.one_file.lost, seen.one_file.requests);
        let share = percent(lost as f64 / all as f64);
        evidence = format!("{evidence}; {lost} of {all} appends ({share}) overwrote others");
    }
    and_then((class, evidence), seen.error)
}

/// Returns the longest possible wait of the threads for each other, as a share of their time: all
/// but one wait.
fn most(seen: &ModeEvidence) -> f64 {
    if seen.is_of_readers { 0.75 } else { 1.0 - 1.0 / f64::from(seen.writers.max(1)) }
}

fn by_shares(seen: &ModeEvidence, one: f64, own: Option<f64>) -> (Class, String) {
    let (who, others) = if seen.is_of_readers {
        ("readers", "with the writer in another file")
    } else {
        ("writers", "with files of their own")
    };
    let mut evidence = format!("{who} wait {} of their time for the lock", percent(one));
    if let Some(own) = own {
        evidence = format!("{evidence} of the file, {} {others}", percent(own));
    }
    if seen.dropped > 0 {
        return (Class::Unknown, format!("{evidence}, but {} waits were lost", seen.dropped));
    }
    if most(seen) == 0.0 {
        return (Class::Unknown, format!("{evidence}: one writer has none to wait for"));
    }
    let cpu_ns = seen.one_file.cpu_ns_per_request;
    let spins = seen.own_files.map_or(0.0, |own| cpu_ns / own.cpu_ns_per_request.max(1.0));
    if one < SERIALISES_FROM * most(seen) && seen.is_buffered && spins >= SPINS_FROM {
        let why = "they may spin for the lock, which is not counted";
        let what = format!("a request takes {spins:.1} times the processor time: {why}");
        (Class::Unknown, format!("{evidence}; {what}"))
    } else if one <= SCALES_UP_TO * most(seen) {
        (Class::Scales, evidence)
    } else if one < SERIALISES_FROM * most(seen) {
        (Class::Unknown, format!("{evidence}: neither little nor much"))
    } else if own.is_some_and(|own| own > one * CONTROL_UP_TO) {
        (Class::Unknown, format!("{evidence}: it is not the sharing of the file"))
    } else {
        (Class::Serialises, evidence)
    }
}

fn by_switches(seen: &ModeEvidence) -> (Class, String) {
    let one = seen.one_file.switches_per_request;
    let Some(own) = seen.own_files.map(|own| own.switches_per_request) else {
        let why = format!("waits are not counted in the kernel: {}", seen.unseen);
        return (Class::Unknown, why);
    };
    let evidence =
        format!("a request waits {one:.2} times, {own:.2} times with files of their own");
    if one > SWITCHES_ABOVE && own <= CONTROL_SWITCHES {
        (Class::Serialises, evidence)
    } else {
        let why = format!("{evidence}, which does not decide; in the kernel: {}", seen.unseen);
        (Class::Unknown, why)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(share: Option<f64>, switches: f64) -> Side {
        Side {
            requests: 1000,
            iops: 1000.0,
            lock_time_share: share,
            waits_per_request: share,
            switches_per_request: switches,
            cpu_ns_per_request: 1000.0,
            lost: 0,
        }
    }

    fn seen(one: Side, own: Side) -> ModeEvidence {
        ModeEvidence {
            writers: 4,
            is_of_readers: false,
            is_buffered: false,
            error: None,
            one_file: one,
            own_files: Some(own),
            dropped: 0,
            unseen: "CAP_BPF is missing".to_owned(),
        }
    }

    #[track_caller]
    fn is(seen: &ModeEvidence, class: Class, said: &str) {
        let (found, evidence) = classify(seen);
        assert_eq!(found, class, "{evidence}");
        assert!(evidence.contains(said), "{evidence}");
    }

    #[test]
    fn shares_decide_with_their_control_and_rates_do_not() {
        let shares = |one, own| seen(side(Some(one), 3.2), side(Some(own), 1.0));
        is(&shares(0.71, 0.0), Class::Serialises, "71.0 %");
        is(&shares(0.0, 0.0), Class::Scales, "0.0 %");
        is(&shares(0.091, 0.0), Class::Scales, "9.1 %");
        is(&shares(0.18, 0.0), Class::Unknown, "neither");
        is(&shares(0.71, 0.6), Class::Unknown, "not the sharing");
        let slow = Side { iops: 10.0, ..side(Some(0.0), 1.0) };
        is(&seen(slow, side(Some(0.0), 1.0)), Class::Scales, "");
        is(&ModeEvidence { dropped: 3, ..shares(0.0, 0.0) }, Class::Unknown, "3 waits were lost");
        // Two writers can wait half of their time.
        is(&ModeEvidence { writers: 2, ..shares(0.2, 0.0) }, Class::Serialises, "");
        is(&ModeEvidence { writers: 1, ..shares(0.0, 0.0) }, Class::Unknown, "none to wait for");
        is(
            &ModeEvidence { is_of_readers: true, ..shares(0.6, 0.0) },
            Class::Serialises,
            "readers wait",
        );
        is(&ModeEvidence { error: Some(28), ..shares(0.6, 0.0) }, Class::Serialises, "then ENOSPC");
        let device = ModeEvidence { own_files: None, ..shares(0.0, 0.0) };
        is(&device, Class::Scales, "0.0 % of their time for the lock");
        is(&ModeEvidence { own_files: None, ..shares(0.6, 0.0) }, Class::Serialises, "60.0 %");
        let unseen = seen(side(None, 3.2), side(None, 1.0));
        is(&ModeEvidence { own_files: None, ..unseen }, Class::Unknown, "CAP_BPF");
        // Four writers on many processors spin, and none of them sleeps.
        let spinning = Side { cpu_ns_per_request: 3900.0, ..side(Some(0.01), 0.0) };
        let spinning = seen(spinning, side(Some(0.0), 0.0));
        is(
            &ModeEvidence { is_buffered: true, ..spinning },
            Class::Unknown,
            "3.9 times the processor",
        );
        let overlapping = Side { lost: 740, ..side(Some(0.0), 1.0) };
        let said = "740 of 1000 appends (74.0 %) overwrote others";
        is(&seen(overlapping, side(Some(0.0), 1.0)), Class::Scales, said);
    }

    #[test]
    fn switches_show_waits_and_never_that_there_are_none() {
        let switches = |one, own| seen(side(None, one), side(None, own));
        is(&switches(3.2, 1.1), Class::Serialises, "3.20 times");
        is(&switches(3.2, 1.7), Class::Unknown, "does not decide");
        is(&switches(1.0, 1.0), Class::Unknown, "CAP_BPF");
    }

    #[test]
    fn what_is_refused_or_too_little_is_no_class() {
        let none = Side { requests: 0, ..side(Some(0.0), 0.0) };
        is(&ModeEvidence { error: Some(22), ..seen(none, none) }, Class::Refused, "EINVAL");
        is(&ModeEvidence { error: Some(28), ..seen(none, none) }, Class::Unknown, "ENOSPC");
        let few = Side { requests: 5, ..side(Some(0.9), 0.0) };
        is(&seen(few, few), Class::Unknown, "only 5 requests");
    }
}
