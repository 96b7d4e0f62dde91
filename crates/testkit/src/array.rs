//! Several disks of known limits, for what spreads its data over all of them.

use std::ffi::OsStr;
use std::process::Command;

use crate::device::LoopDevice;
use crate::error::TestkitError;

/// Disks whose caps all hold for the commands that [`DiskArray::command`] starts.
#[derive(Debug)]
pub struct DiskArray {
    /// The control group of the first has the caps of all; it goes first when they are removed.
    disks: Vec<LoopDevice>,
}

impl DiskArray {
    pub fn new(disks: Vec<LoopDevice>) -> Result<Self, TestkitError> {
        if let [first, others @ ..] = &disks[..] {
            others.iter().try_for_each(|other| first.add_caps_of(other))?;
        }
        Ok(Self { disks })
    }

    /// The disks, in the order in which they were given.
    pub fn disks(&self) -> &[LoopDevice] {
        &self.disks
    }

    /// A command that runs under the caps of all disks, as do the processes it starts.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.disks.first() {
            Some(first) => first.command(program),
            None => Command::new(program),
        }
    }
}
