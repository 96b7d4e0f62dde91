//! Saving by larger calls, measured by reading again from the page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::iosize::findings::{Class, Direction, Flow, IosizeFindings, exact};
use blockstone_base::units::format_ns;
use blockstone_sys::held::open_file;
use blockstone_sys::usage::thread_cpu_ns;

/// Large enough for the call itself to cost nothing, small enough for the processor's cache.
const LARGE: usize = 256 << 10;
/// Bytes that are read again, and how often: the fastest counts.
const BYTES: u64 = 32 << 20;
const ROUNDS: u32 = 3;
/// With fewer bytes there is nothing to save.
const LEAST: u64 = 1 << 20;
/// Share of calls that begin where the previous one ended, from which calls could be made larger.
const SEQUENTIAL: f64 = 0.9;

/// Measures the file from which most was read: the cost of calls of another size, if it was read in
/// order, in smaller calls and through the page cache.
pub fn measured(findings: &IosizeFindings) -> Option<String> {
    let is_read = |flow: &&Flow| flow.direction == Direction::Read;
    let flow = findings.flows.iter().filter(is_read).max_by_key(|flow| flow.asked_bytes)?;
    // The mean would be a size that no call has, because the last call is often shorter.
    let asked = usize::try_from(flow.calls.first()?.sizes.first()?.size_bytes).ok()?;
    let buffered = matches!(flow.class, Class::Merged | Class::Cached);
    let in_order = flow.sequential_share()? >= SEQUENTIAL;
    // Data that moves without a copy to the process has no calls that could be larger.
    let copied = flow.calls.iter().all(|calls| ["read", "pread"].contains(&calls.kind));
    if !buffered || !in_order || !copied || asked >= LARGE || flow.asked_bytes < LEAST {
        return None;
    }
    let file = open_file(Path::new(&flow.path)).ok()?;
    let size = file.metadata().ok()?.len().min(BYTES);
    // Brings the file into the page cache if it was dropped.
    cost(&file, size, LARGE)?;
    let best = |size_bytes| (0..ROUNDS).filter_map(|_| cost(&file, size, size_bytes)).min();
    let (now_ns, then_ns) = (best(asked.max(1))?, best(LARGE)?);
    let per_mib = |ns: u64| ns as f64 / (size as f64 / f64::from(1 << 20));
    let saved_ns = now_ns.saturating_sub(then_ns) as f64 / size as f64 * flow.asked_bytes as f64;
    let of = findings.cpu_ns.map_or(String::new(), |ns| format!(" of {}", format_ns(ns as f64)));
    Some(format!(
        "{} read again from the page cache takes {} of processor time per MiB in calls of {}, and \
         {} in calls of {}: larger calls would save {}{of} and no request to the device.",
        flow.path,
        format_ns(per_mib(now_ns)),
        exact(asked as u64),
        format_ns(per_mib(then_ns)),
        exact(LARGE as u64),
        format_ns(saved_ns)
    ))
}

/// Returns the processor time of this thread, in nanoseconds, from the clock that the kernel brings
/// up to date when it is asked: getrusage(2) is only as old as the last tick.
fn cost(file: &File, bytes: u64, size: usize) -> Option<u64> {
    let mut buffer = vec![0; size];
    let before_ns = thread_cpu_ns();
    let mut at = 0;
    while at < bytes {
        match file.read_at(&mut buffer, at).ok()? {
            0 => break,
            moved => at += moved as u64,
        }
    }
    Some(thread_cpu_ns() - before_ns)
}

#[cfg(test)]
mod tests {
    use blockstone_testkit::ScratchDir;

    use super::*;

    /// The account of getrusage(2) is as old as the last tick: most reads of 1 MiB took no time.
    #[test]
    fn a_short_read_takes_processor_time() {
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("short");
        std::fs::write(&path, vec![7; LEAST as usize]).unwrap();
        let file = File::open(&path).unwrap();
        for _ in 0..20 {
            assert!(cost(&file, LEAST, LARGE).unwrap() > 0);
        }
    }
}
