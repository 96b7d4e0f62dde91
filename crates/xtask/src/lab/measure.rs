//! Measuring with the product itself, as a user would: the built binary under the caps of devices.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_testkit::{DeviceSpec, DiskArray, LoopDevice, ScratchDir, build};
use serde_json::Value;

use super::Lab;
use crate::workspace::line;

/// Ran but not trustworthy: a run that finds the cap it is given says so, and that is no failure.
const NOT_TRUSTWORTHY: i32 = 3;

/// Devices of known limits, and the product to measure them with.
#[derive(Debug)]
pub struct Rig<'a> {
    lab: &'a Lab,
    array: DiskArray,
    binary: PathBuf,
    scratch: ScratchDir,
}

/// What `blockstone run --json` said.
#[derive(Debug)]
pub struct Run(Value);

#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub count: f64,
    pub time_ms: f64,
}

impl<'a> Rig<'a> {
    /// Builds the product, then these devices, full of random data.
    pub fn set_up(lab: &'a Lab, specs: Vec<DeviceSpec>) -> Result<Self> {
        eprintln!("building blockstone");
        let binary = build(&["--release", "--package", "blockstone", "--bin", "blockstone"])?;
        eprintln!("making {} devices", specs.len());
        let mut disks = Vec::with_capacity(specs.len());
        for spec in specs {
            lab.interrupt.check()?;
            disks.push(LoopDevice::create(spec)?);
        }
        Ok(Self { lab, array: DiskArray::new(disks)?, binary, scratch: ScratchDir::on_disk()? })
    }

    /// With empty devices, on which a run may make its files.
    pub fn blank(self) -> Result<Self> {
        self.array.disks().iter().try_for_each(LoopDevice::blank)?;
        Ok(self)
    }

    pub fn disks(&self) -> Vec<&Path> {
        self.array.disks().iter().map(LoopDevice::device).collect()
    }

    /// `blockstone run` with these arguments on all devices, which it leaves empty for the next.
    pub fn run(&self, what: &str, arguments: &[&str]) -> Result<Run> {
        self.lab.interrupt.check()?;
        eprintln!("{what}");
        let mut command = self.array.command(&self.binary);
        let options = &self.lab.options;
        command.args(["run", "--json", "--run-time", &format!("{}s", options.seconds)]);
        command.arg("--runs-dir").arg(self.runs_dir());
        command.args(arguments);
        for disk in self.disks() {
            command.arg("--destroy").arg(disk);
        }
        self.document(&mut command).map(Run)
    }

    /// `blockstone calibrate --quick` of a device; the recording.
    pub fn calibrate(&self, what: &str, disk: &Path) -> Result<PathBuf> {
        self.lab.interrupt.check()?;
        eprintln!("{what}");
        let mut command = self.array.command(&self.binary);
        command.args(["calibrate", "--quick", "--json", "--runs-dir"]).arg(self.runs_dir());
        let document = self.document(command.arg(disk))?;
        let id = document["id"].as_str().context("find the id of the recording")?;
        Ok(self.runs_dir().join(id))
    }

    /// `blockstone compare` of two recordings.
    pub fn compare(&self, a: &Path, b: &Path) -> Result<Value> {
        self.lab.interrupt.check()?;
        self.document(Command::new(&self.binary).args(["compare", "--json"]).arg(a).arg(b))
    }

    fn runs_dir(&self) -> &Path {
        self.lab.options.runs_dir.as_deref().unwrap_or(self.scratch.path())
    }

    fn document(&self, command: &mut Command) -> Result<Value> {
        let path = self.scratch.path().join("document.json");
        let output = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        command.stdin(Stdio::null()).stdout(output).process_group(0);
        let mut child = command.spawn().with_context(|| format!("start {}", line(command)))?;
        let status = self.lab.interrupt.wait(&mut child)?;
        let judged = status.success() || status.code() == Some(NOT_TRUSTWORTHY);
        ensure!(judged, "`{}` failed with {status}", line(command));
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("understand {}", line(command)))
    }
}

impl Run {
    pub fn figure(&self, name: &str) -> Result<f64> {
        let Self(document) = self;
        let condemned = &document["condemned"][name]["by"];
        let value = document["summary"][name].as_f64();
        value.with_context(|| format!("find {name} in the summary (condemned by: {condemned})"))
    }

    pub fn window_s(&self) -> Result<f64> {
        let duration_ns = self.0["window"]["duration_ns"].as_f64();
        Ok(duration_ns.context("find the length of the window")? / 1e9)
    }

    pub fn waits(&self, event: &str) -> Result<Waits> {
        let waits = self.0["waits"].as_array().context("find the waits")?;
        let mut of_sessions = waits.iter().filter(|wait| wait["role"] == "session");
        let wait = of_sessions.find(|wait| wait["event"] == event);
        let wait = wait.with_context(|| format!("find the event {event}"))?;
        let number = |key: &str| wait[key].as_f64().with_context(|| format!("find its {key}"));
        Ok(Waits { count: number("count")?, time_ms: number("time_ns")? / 1e6 })
    }
}
