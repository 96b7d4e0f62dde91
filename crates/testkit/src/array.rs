//! An array of disks of known limits, for programs that spread their data over several disks.

use std::ffi::OsStr;
use std::process::Command;

use crate::device::LoopDevice;
use crate::error::TestkitError;

/// Disks whose caps all apply to the commands that [`DiskArray::command`] starts.
#[derive(Debug)]
pub struct DiskArray {
    /// The control group of the first disk holds the caps of all, so the first is dropped first.
    disks: Vec<LoopDevice>,
}

impl DiskArray {
    pub fn new(disks: Vec<LoopDevice>) -> Result<Self, TestkitError> {
        if let [first, others @ ..] = &disks[..] {
            others.iter().try_for_each(|other| first.add_caps_of(other))?;
        }
        Ok(Self { disks })
    }

    /// Returns the disks in the order in which they were given.
    pub fn disks(&self) -> &[LoopDevice] {
        &self.disks
    }

    /// Returns a command that runs under the caps of all disks, with the processes it starts.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.disks.first() {
            Some(first) => first.command(program),
            None => Command::new(program),
        }
    }
}
