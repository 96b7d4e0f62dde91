//! Signals. The first Ctrl-C or SIGTERM asks the run to close its recording, the second ends it
//! immediately.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use blockstone_sys::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// Time that a database may take to respond after the user has asked for the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Proof that the handlers are installed.
#[derive(Clone, Debug)]
pub struct Interrupt(());

/// Number of the last signal that a handler of this process saw; zero before the first.
static SEEN: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Returns the name of the signal that asked this process to end, if a handler for it is installed.
pub fn signal() -> Option<&'static str> {
    match SEEN.load(Ordering::Relaxed) as i32 {
        0 => None,
        SIGINT => Some("SIGINT"),
        SIGTERM => Some("SIGTERM"),
        _ => Some("SIGHUP"),
    }
}

impl Interrupt {
    pub fn install() -> io::Result<Self> {
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // SIGHUP stays ignored if it was at the start, as under nohup(1).
            if signal == SIGHUP && process::is_ignored(signal) {
                continue;
            }
            // Registered first, so it sees the flag only from the second signal on.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&SEEN), signal as usize)?;
        }
        let mut asked = Signals::new([SIGINT, SIGTERM])?;
        let patience = move || {
            if asked.forever().next().is_some() {
                loop {
                    thread::sleep(PATIENCE);
                    blockstone_servers::hang_up();
                }
            }
        };
        let thread = thread::Builder::new().name("interrupt".to_owned()).spawn(patience);
        thread.map_err(|error| {
            const HINT: &str = "raise ulimit -v (memory) or ulimit -u (threads)";
            io::Error::other(Failure::new(format!("start a thread: {error}"), HINT))
        })?;
        Ok(Self(()))
    }

    /// Returns the name of the signal that arrived, if any.
    #[expect(clippy::unused_self, reason = "only where it was listened for, one has arrived")]
    pub fn signal(&self) -> Option<&'static str> {
        signal()
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail from now on, instead of ending the
/// process.
pub fn survive_size_limit() {
    // A handler instead of ignoring the signal, because children would inherit that.
    let _ = flag::register(SIGXFSZ, Arc::default());
}
