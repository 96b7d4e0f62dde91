//! The rates of a recording as phases of a simulation: reads and writes second by second, at random
//! places, because a recording does not store addresses.

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_flash::simulate::{Phase, Plan, Rate};
use blockstone_record::Recording;
use blockstone_record::manifest::Group;

use crate::failure::Failure;
use crate::recordings;
use crate::verb::Global;

/// Whether a path is the directory of a recording.
pub fn is_recording(path: &Path) -> bool {
    path.join("manifest.json").is_file() || path.as_os_str() == "last"
}

/// Puts the rates of the recording into the plan.
pub fn apply(path: &Path, global: &Global, plan: &mut Plan) -> Result<()> {
    let recording = recordings::open(&path.display().to_string(), &global.runs_dir)?;
    let request_bytes = f64::from(plan.device.page_bytes * plan.workload.pages_per_request);
    let requests = |bytes: f64| bytes / request_bytes;
    let seconds = bytes_by_second(&recording, |_| true)?;
    let reads: f64 = seconds.iter().map(|second| requests(second.0)).sum();
    let writes: f64 = seconds.iter().map(|second| requests(second.1)).sum();
    if writes < 1.0 {
        bail!(Failure::new(
            format!("replay {}: the recording has no writes", recording.dir.display()),
            "garbage collection is caused by writes"
        ));
    }
    plan.workload.reads = reads / (reads + writes);
    let phase = |&(read, written): &(f64, f64)| Phase {
        duration_ns: 1_000_000_000,
        pace: Rate::Open(requests(read + written)),
    };
    plan.phases = seconds.iter().map(phase).collect();
    Ok(())
}

/// Returns the reads and writes of each second in the phase of `recording` that wrote most: a curve
/// is that of a single load, and laying out, preconditioning and loading are others.
pub fn longest_curve(recording: &Recording) -> Result<Vec<(f64, f64)>> {
    let of = |index: usize| bytes_by_second(recording, |other| other == index);
    let mut most = (0.0, Vec::new());
    for (index, phase) in recording.manifest.phases.iter().enumerate() {
        if matches!(phase.group, Group::Layout | Group::Precondition | Group::Load) {
            continue;
        }
        let seconds = of(index)?;
        let written = seconds.iter().map(|second| second.1).sum();
        if written > most.0 {
            most = (written, seconds);
        }
    }
    Ok(most.1)
}

/// Returns the bytes read and written in each second of the phases that `wanted` selects by index,
/// as the kernel charged them to the process.
pub fn bytes_by_second(
    recording: &Recording,
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<(f64, f64)>> {
    let process = recording.series("process")?;
    let mut seconds: Vec<(f64, f64)> = Vec::new();
    for (index, phase) in recording.manifest.phases.iter().enumerate() {
        if !wanted(index) {
            continue;
        }
        let track = |column: &str| {
            let (from_ns, to_ns) = (phase.start_ns, phase.end_ns.max(phase.window_end_ns));
            process.track(index as i32, "", from_ns, to_ns, column)
        };
        let mut add = |column: &str, pick: fn(&mut (f64, f64)) -> &mut f64| {
            for pair in track(column).windows(2) {
                let second = (pair[1].0 / 1_000_000_000) as usize;
                if seconds.len() <= second {
                    seconds.resize(second + 1, (0.0, 0.0));
                }
                *pick(&mut seconds[second]) += pair[1].1.saturating_sub(pair[0].1) as f64;
            }
        };
        add("read_bytes", |second| &mut second.0);
        add("write_bytes", |second| &mut second.1);
    }
    Ok(seconds)
}
