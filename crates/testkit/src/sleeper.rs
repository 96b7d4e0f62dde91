use std::path::Path;
use std::process::{Child, Command};

use crate::error::TestkitError;

/// A process that sleeps and is killed when this value is dropped.
#[derive(Debug)]
pub struct Sleeper(Child);

impl Sleeper {
    /// Starts `program`, a copy of `sleep`, in `dir`.
    pub fn start(program: &Path, dir: &Path) -> Result<Self, TestkitError> {
        Self::spawn(Command::new(program).current_dir(dir))
    }

    /// Starts the copy of `sleep` that `command` names.
    pub fn spawn(command: &mut Command) -> Result<Self, TestkitError> {
        let child = command.arg("60").spawn();
        child.map(Self).map_err(TestkitError::file("start", Path::new(command.get_program())))
    }

    pub fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits for the process to end and returns whether it was killed.
    pub fn was_killed(&mut self) -> bool {
        self.0.wait().is_ok_and(|status| !status.success())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
