//! Result for the requested sizes: the class and its evidence.

use crate::iosize::findings::{Calls, Class, Direction, Flow, Size, exact, first_of};
use blockstone_base::units::three_digits;

/// Means that differ by less count as equal: the last call of a file is often shorter.
const SAME: f64 = 1.25;
/// Number of sizes named in the evidence.
const NAMED: usize = 3;

/// Sets class and evidence of a flow whose numbers are known.
pub fn classify(flow: &mut Flow) {
    let (class, evidence) = of(flow);
    flow.class = class;
    flow.evidence = evidence;
}

fn of(flow: &Flow) -> (Class, String) {
    let asked = asked(&flow.calls);
    let Some(asked_mean) = flow.asked_bytes_mean() else {
        let device = first_of(&flow.device, NAMED);
        return match flow.device_requests {
            0 => (Class::Unknown, "no call moved anything".to_owned()),
            _ => (Class::Unknown, format!("no call of these processes; device: {device}")),
        };
    };
    let Some(device_mean) = flow.device_bytes_mean() else {
        let what = match flow.direction {
            Direction::Read => "all of it was in the page cache",
            Direction::Write => "nothing of it was written to a device while it was observed",
        };
        return (Class::Cached, format!("asked: {asked}; no request to a device: {what}"));
    };
    let ratio = device_mean / asked_mean;
    let (class, how) = if ratio > SAME {
        (Class::Merged, format!("requests are {}× as large", three_digits(ratio)))
    } else if ratio < 1.0 / SAME {
        (Class::Split, format!("calls are {}× as large", three_digits(1.0 / ratio)))
    } else {
        (Class::AsAsked, "of the same size".to_owned())
    };
    let device = first_of(&flow.device, NAMED);
    let part = flow.device_bytes as f64 / flow.asked_bytes as f64;
    let part = match flow.direction {
        Direction::Read if part < 0.9 => {
            format!(" ({} % of the bytes; the page cache had the rest)", three_digits(part * 100.0))
        }
        _ => String::new(),
    };
    (class, format!("asked: {asked}; device: {device}{part}: {how}"))
}

/// Lists the requested sizes: `read 10 KiB × 1,639; page fault 4 KiB × 2`.
fn asked(calls: &[Calls]) -> String {
    let kinds = calls.iter().filter(|calls| calls.calls > 0).map(|calls| {
        let mut text = format!("{} {}", calls.kind, first_of(&calls.sizes, NAMED));
        // A request without a bound says nothing about what was moved.
        if calls.sizes.iter().any(|Size { size_bytes, .. }| *size_bytes >= 1 << 60) {
            text = format!("{text}, moved {}", exact(calls.bytes));
        }
        text
    });
    kinds.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(asked: (u64, u64), device: &[(u64, u64)]) -> Flow {
        let size = |&(size_bytes, count): &(u64, u64)| Size { size_bytes, count };
        let bytes = asked.0 * asked.1;
        Flow {
            path: "/x".to_owned(),
            direction: Direction::Read,
            class: Class::Unknown,
            evidence: String::new(),
            calls: vec![Calls {
                kind: "read",
                calls: asked.1,
                failed: 0,
                bytes,
                sizes: vec![size(&asked)],
            }],
            moved: asked.1,
            asked_bytes: bytes,
            sequential: 0,
            aligned: 0,
            added_pages: 0,
            device: device.iter().map(size).collect(),
            device_requests: device.iter().map(|(_, count)| count).sum(),
            device_bytes: device.iter().map(|(bytes, count)| bytes * count).sum(),
            transfers: Vec::new(),
        }
    }

    #[test]
    fn the_class_follows_from_the_mean_sizes() {
        let class = |asked, device: &[(u64, u64)]| of(&flow(asked, device)).0;
        assert_eq!(class((8192, 100), &[(8192, 100)]), Class::AsAsked);
        assert_eq!(class((10_240, 100), &[(8192, 50), (12_288, 50)]), Class::AsAsked);
        assert_eq!(class((10_240, 128), &[(1_310_720, 1)]), Class::Merged);
        assert_eq!(class((8 << 20, 2), &[(1 << 20, 16)]), Class::Split);
        assert_eq!(class((8192, 100), &[]), Class::Cached);
        assert_eq!(class((8192, 0), &[]), Class::Unknown);
        assert_eq!(class((8192, 0), &[(4096, 1)]), Class::Unknown);
    }

    #[test]
    fn the_evidence_names_the_sizes() {
        let (_, evidence) = of(&flow((10_240, 1_639), &[(1_310_720, 4)]));
        assert!(evidence.starts_with("asked: read 10 KiB × 1,639; device: 1,280 KiB × 4"));
        assert!(evidence.ends_with("requests are 128× as large"), "{evidence}");
    }
}
