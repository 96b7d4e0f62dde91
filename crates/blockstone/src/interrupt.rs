//! Ctrl-C and SIGTERM: the first asks the run to close its recording, the second ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The signal that asked the run to end, if any.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Installs the handlers.
    pub fn install() -> io::Result<Self> {
        let seen = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered first, so it sees the flag only from the second signal on.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&seen), signal as usize)?;
        }
        Ok(Self(seen))
    }

    /// The name of the signal that arrived.
    pub fn signal(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) as i32 {
            0 => None,
            SIGINT => Some("SIGINT"),
            SIGTERM => Some("SIGTERM"),
            _ => Some("SIGHUP"),
        }
    }
}
