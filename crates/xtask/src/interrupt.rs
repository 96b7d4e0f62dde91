//! Ctrl-C and SIGTERM: the first asks for an orderly end, in which everything that was made is
//! removed; the second ends the process immediately, and what is left is removed at the next use.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Interval at which a running child and the signals are polled.
const LOOK: Duration = Duration::from_millis(50);

/// Set once an end has been requested.
#[derive(Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn install() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered first, so it sees the flag only from the second signal on.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .context("install signal handlers")?;
        }
        Ok(Self(asked))
    }

    /// Fails if an end has been requested.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Waits for a child, and asks it to end if this process is asked to. The child has its own
    /// process group, so that Ctrl-C reaches it only once, from here.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let mut asked = false;
        loop {
            if let Some(status) = child.try_wait().context("wait for a child")? {
                self.check()?;
                return Ok(status);
            }
            if !asked && self.check().is_err() {
                asked = true;
                kill_process(Pid::from_child(child), Signal::TERM).context("end a child")?;
            }
            sleep(LOOK);
        }
    }
}
