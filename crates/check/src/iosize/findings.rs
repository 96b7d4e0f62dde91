//! What `check iosize` finds: the sizes in which programs ask for I/O, and those that reach the
//! page cache and the device. Data only: it is measured elsewhere.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::capability::Capability;
use blockstone_base::named;
use blockstone_base::units::thousands;

named! {
    /// What becomes of the sizes that were asked for.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// The device gets requests of the size that was asked for.
        AsAsked = "as-asked",
        /// It gets larger ones.
        Merged = "merged",
        /// It gets smaller ones.
        Split = "split",
        /// It gets none: the page cache has served them.
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

/// An exact size, and how often.
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

/// A size without rounding: `10 KiB`, `16,320 B`; `no bound` for what is larger than any file.
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

/// The first few, and how many more there are.
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
    /// Those that did not fail.
    pub calls: u64,
    pub failed: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// What they asked for, the commonest first; failed ones are among them.
    pub sizes: Vec<Size>,
}

/// I/O of one file, or of all, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    pub path: String,
    pub direction: Direction,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    pub calls: Vec<Calls>,
    /// Calls that moved something.
    pub moved: u64,
    /// Bytes that they moved.
    pub asked_bytes: u64,
    /// Of the calls that moved something, those that begin where the last one ended.
    pub sequential: u64,
    /// Of the calls that moved something, those that begin and end at a multiple of 4 KiB.
    pub aligned: u64,
    /// Pages of 4 KiB added to the page cache.
    pub added_pages: u64,
    /// Requests to the device, the commonest first.
    pub device: Vec<Size>,
    pub device_requests: u64,
    pub device_bytes: u64,
}

impl Flow {
    /// Mean of what a call moved.
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
    /// What it says of itself.
    pub version: String,
    pub command: String,
    /// Its I/O on the scratch file and on what it makes of it, by direction.
    pub flows: Vec<Flow>,
    pub exit: Option<i32>,
}

/// What the kernel charges to a process without BPF: calls, whichever files they go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    pub read_calls: u64,
    pub read_bytes: u64,
    pub write_calls: u64,
    pub write_bytes: u64,
    /// Fetched from storage.
    pub fetched_bytes: u64,
}

/// What `check iosize` found.
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
    /// From `/proc/PID/io`.
    pub charged: Option<Charged>,
    /// Processor time of the command, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// How the command ended: its exit code, or 128 and its signal.
    pub exit: Option<i32>,
    /// Processes of the command that still ran when it had ended.
    pub left_processes: u64,
    /// Seconds for which it was observed.
    pub observed_s: f64,
    /// What larger calls would save, where it was measured.
    pub saving: Option<String>,
    /// What is not counted here, such as page faults.
    pub blind: Vec<String>,
    /// Calls and requests that were not counted for want of room.
    pub dropped: u64,
    /// The signal that ended it early.
    pub signal: Option<String>,
}

impl IosizeFindings {
    /// Processor time for each MiB that was asked for, in microseconds.
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
