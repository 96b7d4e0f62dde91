//! Findings of `check iosize`: the sizes in which programs request I/O, and those that reach the
//! page cache and the device. Data only: it is measured elsewhere.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::capability::Capability;
use blockstone_base::named;
use blockstone_base::stats::Estimate;
use blockstone_base::units::thousands;

named! {
    /// Result for the requested sizes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// The device gets requests of the requested size.
        AsAsked = "as-asked",
        /// The device gets larger requests.
        Merged = "merged",
        /// The device gets smaller requests.
        Split = "split",
        /// The device gets no requests: the page cache has served them.
        Cached = "cached",
        /// The evidence does not decide.
        Unknown = "unknown",
    }
}

named! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Direction {
        Read = "read",
        Write = "write",
    }
}

/// An exact size, and its frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub size_bytes: u64,
    pub count: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", exact(self.size_bytes), thousands(self.count as i64))
    }
}

/// Formats a size without rounding: `10 KiB`, `16,320 B`; `no bound` for sizes larger than any
/// file.
pub fn exact(bytes: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    if bytes >= 1 << 60 {
        return "no bound".to_owned();
    }
    let fits = |&&(shift, _): &&(u32, &str)| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift);
    match UNITS.iter().find(fits) {
        Some(&(shift, unit)) => format!("{} {unit}", thousands((bytes >> shift) as i64)),
        None => format!("{} B", thousands(bytes as i64)),
    }
}

/// Lists the first few, and how many more there are.
pub fn first_of(sizes: &[Size], most: usize) -> String {
    let shown: Vec<String> = sizes.iter().take(most).map(Size::to_string).collect();
    let more = sizes.len().saturating_sub(most);
    let more = if more > 0 { format!(" +{more} sizes") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Calls of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// `read`, `pwrite`, `copy_file_range`, `page fault`, `io_uring` …
    pub kind: &'static str,
    /// Calls that did not fail.
    pub calls: u64,
    pub failed: u64,
    /// Bytes that the calls moved.
    pub bytes: u64,
    /// Requested sizes, the most common first, including failed calls.
    pub sizes: Vec<Size>,
}

/// I/O of one file, or of all, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    pub path: String,
    pub direction: Direction,
    pub class: Class,
    /// Observations, with numbers.
    pub evidence: String,
    pub calls: Vec<Calls>,
    /// Calls that moved something.
    pub moved: u64,
    /// Bytes that these calls moved.
    pub asked_bytes: u64,
    /// Calls, of those that moved something, that begin where the previous one ended.
    pub sequential: u64,
    /// Calls, of those that moved something, that begin and end at a multiple of 4 KiB.
    pub aligned: u64,
    /// Pages of 4 KiB added to the page cache.
    pub added_pages: u64,
    /// Requests to the device, the most common size first.
    pub device: Vec<Size>,
    pub device_requests: u64,
    pub device_bytes: u64,
    /// Calls that copied data between the file and the program's memory, by requested size.
    pub transfers: Vec<Transfer>,
}

/// Calls of one requested size that moved something, and the bytes that they moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub calls: u64,
    pub bytes: u64,
}

/// Predicted cost of the calls of a flow if each of them bypassed the page cache.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectCost {
    pub path: String,
    pub direction: Direction,
    /// Calls that copied data, and their bytes.
    pub calls: u64,
    pub bytes: u64,
    /// Mean time of a direct call of these sizes, and of all of them one after the other, in
    /// nanoseconds.
    pub call_ns: Estimate,
    pub direct_ns: Estimate,
    /// Time of direct calls of 1 MiB for the same bytes, in nanoseconds.
    pub large_ns: Estimate,
    /// How many times as fast these are.
    pub gain: Estimate,
}

impl Flow {
    /// Returns the mean number of bytes that a call moved.
    pub fn asked_bytes_mean(&self) -> Option<f64> {
        (self.moved > 0).then(|| self.asked_bytes as f64 / self.moved as f64)
    }

    pub fn device_bytes_mean(&self) -> Option<f64> {
        (self.device_requests > 0).then(|| self.device_bytes as f64 / self.device_requests as f64)
    }

    pub fn sequential_share(&self) -> Option<f64> {
        (self.moved > 0).then(|| self.sequential as f64 / self.moved as f64)
    }

    pub fn aligned_share(&self) -> Option<f64> {
        (self.moved > 0).then(|| self.aligned as f64 / self.moved as f64)
    }
}

/// A program that was run on a scratch file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    /// Version as the program prints it.
    pub version: String,
    pub command: String,
    /// I/O on the scratch file and on its output, by direction.
    pub flows: Vec<Flow>,
    pub exit: Option<i32>,
    /// Sizes that were published for its version in Red Hat Enterprise Linux 4, of 2005.
    pub published: &'static [(Direction, u64)],
}

/// Counts that the kernel charges to a process, without BPF: calls, whichever files they access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    pub read_calls: u64,
    pub read_bytes: u64,
    pub write_calls: u64,
    pub write_bytes: u64,
    /// Bytes fetched from storage.
    pub fetched_bytes: u64,
}

/// Findings of `check iosize`.
#[derive(Clone, Debug, PartialEq)]
pub struct IosizeFindings {
    /// The command, process or path.
    pub subject: String,
    /// Whether sizes are counted in the kernel.
    pub kernel: Capability,
    /// All files together, by direction; empty for tools.
    pub total: Vec<Flow>,
    /// By file and direction, most bytes first.
    pub flows: Vec<Flow>,
    pub tools: Vec<Tool>,
    /// Tools that were not run, and why.
    pub absent: Vec<String>,
    /// Predicted cost of the same calls past the page cache, and why some of it is missing.
    pub direct_costs: Vec<DirectCost>,
    pub direct_unmeasured: Vec<String>,
    /// Counters from `/proc/PID/io`.
    pub charged: Option<Charged>,
    /// Processor time of the command, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Exit code of the command, or 128 plus its signal.
    pub exit: Option<i32>,
    /// Processes of the command that were still running when it had ended.
    pub left_processes: u64,
    /// Time of observation in seconds.
    pub observed_s: f64,
    /// Saving by larger calls, if it was measured.
    pub saving: Option<String>,
    /// Kinds of I/O that are not counted here, such as page faults.
    pub blind: Vec<String>,
    /// Calls and requests that were not counted for lack of space.
    pub dropped: u64,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl IosizeFindings {
    /// Returns the processor time per requested MiB, in microseconds.
    pub fn cpu_us_per_mib(&self) -> Option<f64> {
        let bytes: u64 = self.total.iter().map(|flow| flow.asked_bytes).sum();
        let cpu_ns = self.cpu_ns.filter(|_| bytes > 0)?;
        Some(cpu_ns as f64 / 1e3 / (bytes as f64 / f64::from(1 << 20)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        assert_eq!(exact(0), "0 B");
        assert_eq!(exact(16_320), "16,320 B");
        assert_eq!(exact(10_240), "10 KiB");
        assert_eq!(exact(1_280 << 10), "1,280 KiB");
        assert_eq!(exact(16 << 20), "16 MiB");
        assert_eq!(exact(i64::MAX as u64), "no bound");
        let sizes = [(4096, 1_234), (8192, 2)];
        let sizes = sizes.map(|(size_bytes, count)| Size { size_bytes, count });
        assert_eq!(first_of(&sizes, 2), "4 KiB × 1,234, 8 KiB × 2");
        assert_eq!(first_of(&sizes, 1), "4 KiB × 1,234 +1 sizes");
    }
}
