//! Measuring with the product itself, as a user would: the built binary under the caps of devices.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_testkit::{DeviceSpec, DiskArray, LoopDevice, ScratchDir, build};
use serde_json::Value;

use super::Lab;
use crate::workspace::line;

/// Exit codes of commands that finished: `size` may answer no, and a run that finds the cap it is
/// given says so.
const FINISHED: [i32; 3] = [0, 1, 3];

/// The built binary, and where it keeps recordings.
#[derive(Debug)]
pub struct Product<'a> {
    lab: &'a Lab,
    binary: PathBuf,
    scratch: ScratchDir,
}

/// Devices of known limits, and the product to measure them with.
#[derive(Debug)]
pub struct Rig<'a> {
    product: Product<'a>,
    array: DiskArray,
}

/// Output of `blockstone run --json`.
#[derive(Debug)]
pub struct Run(Value);

#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub count: f64,
    pub time_ms: f64,
}

impl<'a> Product<'a> {
    pub fn build(lab: &'a Lab) -> Result<Self> {
        eprintln!("building blockstone");
        let binary = build(&["--release", "--package", "blockstone", "--bin", "blockstone"])?;
        Ok(Self { lab, binary, scratch: ScratchDir::on_disk()? })
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Returns a directory on a disk, empty except for what this value keeps there.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub fn runs_dir(&self) -> &Path {
        self.lab.options.runs_dir.as_deref().unwrap_or(self.scratch.path())
    }

    /// Announces the next step, unless an end has been requested.
    pub fn begin(&self, what: &str) -> Result<()> {
        self.lab.interrupt.check()?;
        eprintln!("{what}");
        Ok(())
    }

    /// Runs the command and returns the JSON document that it prints.
    pub fn document(&self, command: &mut Command) -> Result<Value> {
        self.document_while(command, |_| Ok(()))
    }

    /// Like [`Self::document`], while `meanwhile` acts on the command's process.
    pub fn document_while(
        &self,
        command: &mut Command,
        meanwhile: impl FnOnce(&Child) -> Result<()>,
    ) -> Result<Value> {
        let path = self.scratch.path().join("document.json");
        let output = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        command.stdin(Stdio::null()).stdout(output).process_group(0);
        let mut child = command.spawn().with_context(|| format!("start {}", line(command)))?;
        let done = meanwhile(&child);
        let status = self.lab.interrupt.wait(&mut child)?;
        done?;
        let is_finished = status.code().is_some_and(|code| FINISHED.contains(&code));
        ensure!(is_finished, "`{}` failed with {status}", line(command));
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("understand {}", line(command)))
    }
}

impl<'a> Rig<'a> {
    /// Builds the product, then makes these devices, filled with random data.
    pub fn set_up(lab: &'a Lab, specs: Vec<DeviceSpec>) -> Result<Self> {
        let product = Product::build(lab)?;
        eprintln!("making {} devices", specs.len());
        let mut disks = Vec::with_capacity(specs.len());
        for spec in specs {
            lab.interrupt.check()?;
            disks.push(LoopDevice::create(spec)?);
        }
        Ok(Self { product, array: DiskArray::new(disks)? })
    }

    /// Empties the devices, so that a run may make its files on them.
    pub fn blank(self) -> Result<Self> {
        self.array.disks().iter().try_for_each(LoopDevice::blank)?;
        Ok(self)
    }

    pub fn disks(&self) -> Vec<&Path> {
        self.array.disks().iter().map(LoopDevice::device).collect()
    }

    pub fn product(&self) -> &Product<'a> {
        &self.product
    }

    /// Runs `blockstone run` with these arguments on all devices, which it leaves empty for the
    /// next run.
    pub fn run(&self, what: &str, arguments: &[&str]) -> Result<Run> {
        self.run_while(what, arguments, |_| Ok(()))
    }

    /// Like [`Self::run`], while `meanwhile` acts on its process.
    pub fn run_while(
        &self,
        what: &str,
        arguments: &[&str],
        meanwhile: impl FnOnce(&Child) -> Result<()>,
    ) -> Result<Run> {
        self.product.begin(what)?;
        let mut command = self.array.command(self.product.binary());
        let seconds = self.product.lab.options.seconds;
        command.args(["run", "--json", "--for", &format!("{seconds}s")]);
        command.arg("--runs-dir").arg(self.product.runs_dir());
        command.args(arguments);
        for disk in self.disks() {
            command.arg("--destroy").arg(disk);
        }
        self.product.document_while(&mut command, meanwhile).map(Run)
    }

    /// Runs `blockstone calibrate` with these arguments on a device, without writing to it, and
    /// returns the path of the recording.
    pub fn calibrate(&self, what: &str, disk: &Path, arguments: &[&str]) -> Result<PathBuf> {
        self.product.begin(what)?;
        let (mut command, runs_dir) =
            (self.array.command(self.product.binary()), self.product.runs_dir());
        command.args(["calibrate", "--read-only", "--json", "--runs-dir"]).arg(runs_dir);
        let document = self.product.document(command.args(arguments).arg(disk))?;
        recording(&document)
    }

    /// Runs `blockstone compare` on two recordings.
    pub fn compare(&self, a: &Path, b: &Path) -> Result<Value> {
        self.product.lab.interrupt.check()?;
        let mut command = Command::new(self.product.binary());
        self.product.document(command.args(["compare", "--json"]).arg(a).arg(b))
    }
}

impl Run {
    pub fn figure(&self, name: &str) -> Result<f64> {
        let Self(document) = self;
        let figure = &document["figures"][name];
        figure["value"].as_f64().with_context(|| format!("find the figure {name}: it is {figure}"))
    }

    pub fn recording(&self) -> Result<PathBuf> {
        recording(&self.0)
    }

    pub fn window_s(&self) -> Result<f64> {
        let duration_ns = self.0["window_ns"].as_f64();
        Ok(duration_ns.context("find the length of the window")? / 1e9)
    }

    pub fn waits(&self, event: &str) -> Result<Waits> {
        let waits = self.0["tables"]["database-time"].as_array().context("find the waits")?;
        let wait = waits.iter().find(|wait| wait["event"] == event);
        let wait = wait.with_context(|| format!("find the event {event}"))?;
        let number = |key: &str| wait[key].as_f64().with_context(|| format!("find its {key}"));
        Ok(Waits { count: number("waits")?, time_ms: number("time_ns")? / 1e6 })
    }
}

fn recording(document: &Value) -> Result<PathBuf> {
    let path = document["recording"]["path"].as_str().context("find the recording")?;
    Ok(PathBuf::from(path))
}
