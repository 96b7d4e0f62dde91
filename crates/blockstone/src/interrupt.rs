//! Signals. Of Ctrl-C and SIGTERM the first asks the run to close its recording, the second ends it
//! at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use blockstone_sys::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// How long a database may keep silent after the user asked for the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The handlers are installed.
#[derive(Clone, Debug)]
pub struct Interrupt(());

/// What all handlers of this process saw.
static SEEN: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The name of the signal that asked this process to end, where a handler for it is installed.
pub fn signal() -> Option<&'static str> {
    match SEEN.load(Ordering::Relaxed) as i32 {
        0 => None,
        SIGINT => Some("SIGINT"),
        SIGTERM => Some("SIGTERM"),
        _ => Some("SIGHUP"),
    }
}

impl Interrupt {
    /// Installs the handlers.
    pub fn install() -> io::Result<Self> {
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // As nohup(1) starts a program.
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
                    blockstone_target::hang_up();
                }
            }
        };
        let thread = thread::Builder::new().name("interrupt".to_owned()).spawn(patience);
        thread.map_err(|error| {
            const HINT: &str = "raise ulimit -v (memory) or ulimit -u (threads)";
            io::Error::other(format!("start a thread: {error}\nhint: {HINT}"))
        })?;
        Ok(Self(()))
    }

    /// The name of the signal that arrived.
    #[expect(clippy::unused_self, reason = "only where it was listened for, one has arrived")]
    pub fn signal(&self) -> Option<&'static str> {
        signal()
    }
}

/// A file that reaches the limit of its size (`ulimit -f`) is an error of that write from now on,
/// and does not end the process.
pub fn survive_size_limit() {
    // A handler, in place of ignoring the signal, which children would inherit.
    let _ = flag::register(SIGXFSZ, Arc::default());
}
