//! Competing load on the processors.

use std::process::{Child, Command, Stdio};

use crate::error::TestkitError;

/// Processes that keep processors busy until the value is dropped or their parent exits. They are
/// processes because the CPU time of a thread would count as the test's own.
#[derive(Debug)]
pub struct CpuHog {
    hogs: Vec<Child>,
}

/// Checks for its parent now and then, and otherwise only counts.
const SPIN: &str =
    "while [ -d /proc/$PPID ]; do n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done; done";

impl CpuHog {
    /// Starts `count` processes.
    pub fn start(count: usize) -> Result<Self, TestkitError> {
        let mut hog = Self { hogs: Vec::with_capacity(count) };
        for _ in 0..count {
            let mut command = Command::new("sh");
            command.args(["-c", SPIN]).stdin(Stdio::null()).stdout(Stdio::null());
            let child = command.spawn().map_err(|error| TestkitError::Tool {
                command: "sh -c <spin>".to_owned(),
                message: error.to_string(),
            })?;
            hog.hogs.push(child);
        }
        Ok(hog)
    }
}

impl Drop for CpuHog {
    fn drop(&mut self) {
        for hog in &mut self.hogs {
            // Both calls fail only if the process has already ended.
            hog.kill().ok();
            hog.wait().ok();
        }
    }
}
