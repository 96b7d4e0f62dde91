//! One side of a comparison at one point: how it is started, and what it reports.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_sys::process;
use blockstone_testkit::build;
use serde_json::Value;

use crate::workspace::line;

/// Longer than any comparison; a standing side is ended from outside.
const STANDING_SECONDS: u32 = 86_400;

/// Random direct reads of 8 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub engine: &'static str,
    pub fio_engine: &'static str,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum Side {
    /// Our engine, as the path of the built example `points`.
    Ours(PathBuf),
    /// fio, set up as well as it can be for this load.
    Fio,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Reads per second, as the side counts them.
    pub iops: f64,
    /// Median latency, as the side measures it.
    pub latency_ns_p50: f64,
}

impl Load {
    /// Returns engine and concurrency in the usual notation of the field.
    pub fn name(&self) -> String {
        let sign = if self.engine == "psync" { "x" } else { "d" };
        format!("{} {sign}{}", self.engine, self.depth)
    }
}

impl Side {
    /// Builds our side as users get it.
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
        let status = process::wait(child).context("wait for it")?.status;
        ensure!(status.success(), "`{}` failed with {status}", line(&command));
        let said = serde_json::from_str(&text).unwrap_or_default();
        let (iops, latency_ns_p50) = self.figures(&said).with_context(|| {
            format!("find the figures in what `{}` said: {text}", line(&command))
        })?;
        Ok(Measured { iops, latency_ns_p50 })
    }

    /// Returns the command that reads at `point` from `target` for longer than any comparison
    /// takes, all of it in one process.
    pub fn standing(&self, point: Load, target: &Path) -> Command {
        let mut command = self.command(point, target, STANDING_SECONDS);
        if matches!(self, Self::Fio) {
            command.arg("--thread");
        }
        command
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

    /// Returns IOPS and the median latency in nanoseconds.
    fn figures(&self, said: &Value) -> Option<(f64, f64)> {
        let (iops, latency) = match self {
            Self::Ours(_) => (&said["iops"], &said["latency_ns_p50"]),
            Self::Fio => {
                let read = &said["jobs"][0]["read"];
                (&read["iops"], &read["lat_ns"]["percentile"]["50.000000"])
            }
        };
        Some((iops.as_f64()?, latency.as_f64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    impl Measured {
        pub fn of_iops(iops: f64) -> Self {
            Self { iops, latency_ns_p50: 0.0 }
        }
    }

    #[test]
    fn what_each_side_says_is_understood() {
        let ours = json!({"iops": 10.5, "latency_ns_p50": 7});
        let side = Side::Ours(PathBuf::new());
        assert_eq!(side.figures(&ours), Some((10.5, 7.0)));
        let read = json!({"iops": 10.5, "lat_ns": {"percentile": {"50.000000": 7}}});
        assert_eq!(Side::Fio.figures(&json!({"jobs": [{"read": read}]})), Some((10.5, 7.0)));
        assert_eq!(Side::Fio.figures(&ours), None);
    }
}
