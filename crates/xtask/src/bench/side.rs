//! One side of a comparison at one point: how it is started, and what it says about itself.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_sys::process;
use blockstone_sys::usage::CpuUsage;
use blockstone_testkit::build;
use serde_json::Value;

use crate::workspace::line;

/// Random direct reads of 8 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub engine: &'static str,
    pub fio_engine: &'static str,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum Side {
    /// Our engine, by the path of the built example `points`.
    Ours(PathBuf),
    /// fio, set up as well as it can be for this.
    Fio,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Reads a second, as the side counts them.
    pub iops: f64,
    /// Median latency, as the side times it.
    pub latency_ns_p50: f64,
    pub count: f64,
    /// What the whole process consumed, starting and stopping included.
    usage: CpuUsage,
}

/// Processor time that one more read costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// In user mode.
    pub user_ns: f64,
    /// In the kernel, for this process and the kernel threads that work in its name.
    pub system_ns: f64,
}

impl Load {
    /// As the field writes it.
    pub fn name(&self) -> String {
        let sign = if self.engine == "psync" { "x" } else { "d" };
        format!("{} {sign}{}", self.engine, self.depth)
    }
}

impl Side {
    /// Our side, built as users get it.
    pub fn ours() -> Result<Self> {
        let package = ["--release", "--package", "blockstone-engine", "--example", "points"];
        Ok(Self::Ours(build(&package)?))
    }

    /// Reads at `point` from `target` for `seconds`.
    pub fn measure(&self, point: Load, target: &Path, seconds: u32) -> Result<Measured> {
        let mut command = self.command(point, target, seconds);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", line(&command)))?;
        let mut text = String::new();
        let mut output = child.stdout.take().context("its output was piped")?;
        output.read_to_string(&mut text).with_context(|| format!("read {}", line(&command)))?;
        let (status, usage) = process::wait(child).context("wait for it")?;
        ensure!(status.success(), "`{}` failed with {status}", line(&command));
        let said = serde_json::from_str(&text).unwrap_or_default();
        let (iops, latency_ns_p50, count) = self.figures(&said).with_context(|| {
            format!("find the figures in what `{}` said: {text}", line(&command))
        })?;
        Ok(Measured { iops, latency_ns_p50, count, usage })
    }

    /// Reads for `seconds` and for one second more, and charges a read with the difference: what
    /// starting and stopping a process costs, fio's 0.2 s above all, is no cost of a read.
    pub fn measure_cost(&self, point: Load, target: &Path, seconds: u32) -> Result<(f64, Cost)> {
        let short = self.measure(point, target, 1)?;
        let long = self.measure(point, target, seconds + 1)?;
        let reads = long.count - short.count;
        let each = |part: fn(&CpuUsage) -> u64| {
            (part(&long.usage) as f64 - part(&short.usage) as f64) / reads
        };
        let cost = Cost { user_ns: each(|u| u.cpu_user_ns), system_ns: each(|u| u.cpu_system_ns) };
        Ok((long.iops, cost))
    }

    fn command(&self, point: Load, target: &Path, seconds: u32) -> Command {
        match self {
            Self::Ours(points) => {
                let mut command = Command::new(points);
                command.arg(point.engine).arg(target);
                command.args([point.depth.to_string(), seconds.to_string()]);
                command
            }
            Self::Fio => {
                let mut command = Command::new("fio");
                command.args(["--name=point", "--rw=randread", "--bs=8k", "--direct=1"]);
                command.args(["--time_based", "--norandommap", "--randrepeat=0"]);
                command.args(["--lat_percentiles=1", "--clat_percentiles=0"]);
                command.arg("--output-format=json");
                command.arg(format!("--filename={}", target.display()));
                command.arg(format!("--runtime={seconds}"));
                command.arg(format!("--ioengine={}", point.fio_engine));
                if point.engine == "uring" {
                    command.args(["--fixedbufs=1", "--registerfiles=1", "--nonvectored=1"]);
                    command.arg(format!("--iodepth={}", point.depth));
                } else {
                    command.arg(format!("--numjobs={}", point.depth)).arg("--group_reporting");
                }
                command
            }
        }
    }

    /// IOPS, median latency in nanoseconds and the number of reads in all.
    fn figures(&self, said: &Value) -> Option<(f64, f64, f64)> {
        match self {
            Self::Ours(_) => Some((
                said["iops"].as_f64()?,
                said["latency_ns_p50"].as_f64()?,
                said["completed_ops"].as_f64()?,
            )),
            Self::Fio => {
                let read = &said["jobs"][0]["read"];
                Some((
                    read["iops"].as_f64()?,
                    read["lat_ns"]["percentile"]["50.000000"].as_f64()?,
                    read["total_ios"].as_f64()?,
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    impl Measured {
        pub fn of_iops(iops: f64) -> Self {
            let usage = CpuUsage::default();
            Self { iops, latency_ns_p50: 0.0, count: 0.0, usage }
        }
    }

    #[test]
    fn what_each_side_says_is_understood() {
        let ours = json!({"iops": 10.5, "latency_ns_p50": 7, "completed_ops": 42});
        let side = Side::Ours(PathBuf::new());
        assert_eq!(side.figures(&ours), Some((10.5, 7.0, 42.0)));
        let read = json!({
            "iops": 10.5, "total_ios": 42, "lat_ns": {"percentile": {"50.000000": 7}}
        });
        assert_eq!(Side::Fio.figures(&json!({"jobs": [{"read": read}]})), Some((10.5, 7.0, 42.0)));
        assert_eq!(Side::Fio.figures(&ours), None);
    }
}
