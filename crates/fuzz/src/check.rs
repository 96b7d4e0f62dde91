//! One input fed to a target: the resources it took, and whether that is a finding.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use blockstone_sys::heap;
use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// Maximum heap in use; above it an allocation fails, which ends the process.
pub const HEAP_BYTES_MAX: u64 = 2 << 30;

/// Limits for one input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub heap_bytes: u64,
    /// Processor time of the thread that parses, so that load on the machine does not count.
    pub cpu: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub accepted: bool,
    pub peak_bytes: u64,
    pub cpu: Duration,
}

/// Reason why an input is a finding. Two of the same kind and place count as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Source location and message.
    Panic {
        place: String,
        said: String,
    },
    Memory {
        bytes: u64,
    },
    Time {
        ms: u128,
    },
    /// The process ended, or was ended because it hung.
    Abort {
        how: String,
    },
}

impl Fault {
    /// Returns the name by which findings are told apart.
    pub fn kind(&self) -> String {
        match self {
            Self::Panic { place, .. } => format!("panic-{place}"),
            Self::Memory { .. } => "memory".to_owned(),
            Self::Time { .. } => "time".to_owned(),
            Self::Abort { .. } => "abort".to_owned(),
        }
    }

    pub fn line(&self) -> String {
        match self {
            Self::Panic { place, said } => format!("panic at {place}: {said}"),
            Self::Memory { bytes } => format!("{bytes} bytes of memory"),
            Self::Time { ms } => format!("{ms} ms of processor time"),
            Self::Abort { how } => how.clone(),
        }
    }
}

/// Source location and message of a panic.
type Said = (String, String);

thread_local! {
    static LAST_PANIC: RefCell<Option<Said>> = const { RefCell::new(None) };
    /// Whether this thread feeds inputs: a panic here may be caught by the parser, as it should.
    static FEEDS: Cell<bool> = const { Cell::new(false) };
}

/// The first panic of another thread, which nothing catches.
static ELSEWHERE: Mutex<Option<Said>> = Mutex::new(None);

fn elsewhere() -> MutexGuard<'static, Option<Said>> {
    ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps panics from being printed, and records where they were.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let place = info.location().map_or_else(String::new, |at| {
                let file = at.file().rsplit_once("/crates/").map_or(at.file(), |(_, file)| file);
                format!("{file}:{}", at.line())
            });
            let said = info.payload_as_str().unwrap_or("a panic without words").to_owned();
            if FEEDS.get() {
                LAST_PANIC.set(Some((place, said)));
            } else {
                elsewhere().get_or_insert((place, said));
            }
        }));
    });
}

/// Feeds `input` to `target`.
///
/// # Errors
/// If the input is a finding.
pub fn feed(target: &Target, input: &[u8], limits: Limits) -> Result<Taken, Fault> {
    listen();
    FEEDS.set(true);
    heap::start(HEAP_BYTES_MAX);
    let before = thread_cpu();
    let ran = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let cpu = thread_cpu().saturating_sub(before);
    let peak_bytes = heap::peak_bytes();
    let accepted = match (ran, elsewhere().take()) {
        (Ok(accepted), None) => accepted,
        (_, other) => {
            let (place, said) = other.or(LAST_PANIC.take()).unwrap_or_default();
            return Err(Fault::Panic { place, said });
        }
    };
    if peak_bytes > limits.heap_bytes {
        return Err(Fault::Memory { bytes: peak_bytes });
    }
    if cpu > limits.cpu {
        return Err(Fault::Time { ms: cpu.as_millis() });
    }
    Ok(Taken { accepted, peak_bytes, cpu })
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
