//! Foreign load on the processors.

use std::process::{Child, Command, Stdio};

use crate::error::TestkitError;

/// Processes that keep processors busy until the value goes out of scope, or their parent is gone.
/// Processes of their own, because a thread of the test would count as the test's own CPU time.
#[derive(Debug)]
pub struct CpuHog {
    hogs: Vec<Child>,
}

/// Looks for its parent once in a while; the rest of the time it only counts.
const SPIN: &str =
    "while [ -d /proc/$PPID ]; do n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done; done";

impl CpuHog {
    /// Starts `count` of them.
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
            // Either call fails only when the process has ended by itself.
            hog.kill().ok();
            hog.wait().ok();
        }
    }
}
