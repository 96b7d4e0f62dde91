//! A limit of a control group that a run reached.

use blockstone_base::identity::CapKind;
use blockstone_base::units::three_digits;

use blockstone_base::rule::Judgement;

use crate::rules::{RunCase, percent};

const REACHED: f64 = 0.95;

pub(super) fn check(case: &RunCase) -> Judgement {
    let caps = &case.manifest.target.caps;
    if caps.is_empty() {
        return Judgement::inconclusive(
            "no control group that can be seen here limits these devices; a limit outside of this \
             machine shows only in a calibration",
        );
    }
    let mut first = None;
    let mut figures = Vec::new();
    let mut measured = 0;
    for cap in caps {
        let (column, figure) = match cap.kind {
            CapKind::ReadIops => ("read_ios", "hardware_read_iops"),
            CapKind::WriteIops => ("write_ios", "hardware_write_iops"),
            CapKind::ReadBytesPerS => ("read_bytes", "read_mbps"),
            CapKind::WriteBytesPerS => ("write_bytes", "write_mbps"),
        };
        let named = case.manifest.target.devices.iter().find(|device| device.number == cap.device);
        let grown = named.map(|device| case.window.grown("block", &device.name, column));
        let Some(Ok(moved)) = grown else { continue };
        measured += 1;
        let share = moved as f64 / case.window.seconds() / cap.limit as f64;
        if share >= REACHED {
            let limit = three_digits(cap.limit as f64);
            first.get_or_insert_with(|| {
                let source = &cap.source;
                format!("{} of the {limit} {column} a second that {source} allows", percent(share))
            });
            figures.push(figure.to_owned());
        }
    }
    match (first, measured) {
        (Some(first), _) if figures.len() == 1 => failed(first, figures),
        (Some(first), _) => {
            let evidence = format!("{first}; {} of {measured} limits in all", figures.len());
            figures.sort();
            figures.dedup();
            failed(evidence, figures)
        }
        (None, 0) => Judgement::inconclusive("the limited devices were not measured"),
        (None, _) if measured < caps.len() => Judgement::inconclusive(format!(
            "{measured} of {} limits were not reached, the others not measured",
            caps.len()
        )),
        (None, _) => Judgement::pass("no limit of a control group was reached"),
    }
}

fn failed(evidence: String, figures: Vec<String>) -> Judgement {
    Judgement::fail(evidence, figures)
        .caused_by("io.max of the control group that this process runs in.")
        .advising(
            "The rate is that of the limit; run outside of the control group to measure the \
             device.",
        )
}
