//! The border to a server: what its answers may take of memory, and what becomes of a panic of a
//! driver that reads them.
//!
//! Drivers believe what a server says of counts and lengths, and some of their code panics where
//! an answer makes no sense. All calls of a driver are made inside of [`Border::cross`]. What goes
//! wrong there is one error; the connection is not used again.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::sync::{Arc, Once};

use blockstone_base::units::Bytes;
use blockstone_sys::heap;
use blockstone_sys::peer::{self, Peer};
use parking_lot::Mutex;

use super::error::SqlError;

#[cfg(not(panic = "unwind"))]
compile_error!("a panic of a driver is caught: build with panic = \"unwind\"");

/// What one call may take of memory: a few times what the largest answer takes that is asked for.
const MOST: Bytes = Bytes::mib(128);
const HINT: &str = "check that what listens there is the database, and its version";

/// To one server; the default is to none, and lets everything pass.
#[derive(Clone, Debug, Default)]
pub struct Border(Option<Arc<Server>>);

#[derive(Debug)]
struct Server {
    name: String,
    peers: Vec<Peer>,
}

impl Border {
    /// To the server `name`, for messages, to which connections lead by `peers`.
    pub fn of(name: &str, peers: Vec<Peer>) -> Self {
        Self(Some(Arc::new(Server { name: name.to_owned(), peers })))
    }

    /// Does `work`, which calls a driver. Fails where that panics, or takes more than [`MOST`] of
    /// memory: then all connections to the server are ended.
    pub fn cross<T, E: From<SqlError>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let Some(server) = &self.0 else { return work() };
        let unfit = |why: String| Err(SqlError::unsuitable(&server.name, why, HINT).into());
        let exceeded = Cell::new(false);
        let excess = || {
            exceeded.set(true);
            for peer in &server.peers {
                peer::hang_up(peer);
            }
        };
        match caught(true, || heap::bounded(MOST, &excess, work)) {
            _ if exceeded.get() => unfit(format!("its answer takes more than {MOST} of memory")),
            Err(place) => unfit(format!("the driver cannot read its answer ({place})")),
            Ok(done) => done,
        }
    }
}

thread_local! {
    static CROSSING: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Where a driver panicked last, on any thread: what a thread is joined with does not say.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// The last panic of a thread.
enum Panic {
    /// The package, file and line of a driver.
    Foreign(String),
    Own,
}

/// Packages whose panics are never reported as such, on no thread.
const DRIVERS: [&str; 6] = [
    "mysql-",
    "mysql_common-",
    "postgres-0",
    "postgres-protocol-",
    "postgres-types-",
    "tokio-postgres-",
];

/// Does `work`; where a driver panics, on this thread or on one that is joined, the error is the
/// place in its source. A panic of this program's own is reported and goes on. Where `crossing`,
/// what panics in no package of this workspace is taken for a driver.
pub fn caught<T>(crossing: bool, work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(place) = foreign(info) {
                *LAST.lock() = Some(place.clone());
                PANIC.set(Some(Panic::Foreign(place)));
            } else {
                PANIC.set(Some(Panic::Own));
                report(info);
            }
        }));
    });
    PANIC.take();
    let before = CROSSING.replace(crossing);
    let done = catch_unwind(AssertUnwindSafe(work));
    CROSSING.set(before);
    done.map_err(|panic| match PANIC.take() {
        Some(Panic::Foreign(place)) => place,
        Some(Panic::Own) => resume_unwind(panic),
        None => LAST.lock().clone().unwrap_or_else(|| resume_unwind(panic)),
    })
}

/// The place of a panic of a driver; of the standard library's where this thread has crossed to
/// one.
fn foreign(info: &PanicHookInfo<'_>) -> Option<String> {
    let place = info.location()?;
    let file = place.file();
    // A package of the registry is in a directory of its name and version.
    let parts: Vec<&str> = file.split('/').collect();
    let package = parts.iter().rposition(|part| *part == "src").unwrap_or(1).saturating_sub(1);
    let is_driver = DRIVERS.iter().any(|name| parts[package].starts_with(name));
    let is_own = file.starts_with("crates/");
    (is_driver || CROSSING.get() && !is_own)
        .then(|| format!("{}:{}", parts[package..].join("/"), place.line()))
}

/// Does `work`; a panic of a driver in it is an error. For what crosses no border of its own.
pub fn without_panics<T>(work: impl FnOnce() -> T) -> Result<T, SqlError> {
    caught(false, work).map_err(|place| {
        SqlError::unsuitable(
            "the server",
            format!("the driver cannot read its answer ({place})"),
            HINT,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_elsewhere_is_an_error_and_one_of_our_own_goes_on() {
        let border = Border::of("mysql://h", Vec::new());
        let foreign = || -> Result<u32, SqlError> { Ok(mysql::from_value(mysql::Value::NULL)) };
        let error = border.cross(foreign).unwrap_err().to_string();
        assert!(error.starts_with("use mysql://h: the driver cannot read"), "{error}");
        assert!(error.contains("(mysql_common-") && error.contains("\nhint: "), "{error}");
        let own = || border.cross(|| -> Result<(), SqlError> { panic!("on purpose") });
        assert!(catch_unwind(AssertUnwindSafe(own)).is_err());
        assert!(!CROSSING.get());
        border.cross(|| Ok::<_, SqlError>(())).unwrap();
        let joined = || {
            let thread = std::thread::spawn(|| mysql::from_value::<u32>(mysql::Value::NULL));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        let error = without_panics(joined).unwrap_err().to_string();
        assert!(error.contains("(mysql_common-"), "{error}");
    }
}
