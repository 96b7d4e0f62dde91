//! The border to a server: limits the memory of its answers, and converts panics of the driver that
//! reads them.
//!
//! Drivers trust the counts and lengths that a server sends, and some of their code panics if an
//! answer makes no sense. All calls of a driver are made inside [`Border::cross`], which turns such
//! a failure into one error; the connection is then not used again.

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

/// Maximum memory of one call: a few times that of the largest answer to our requests.
const MOST: Bytes = Bytes::mib(128);
const HINT: &str = "check that what listens there is the database, and its version";

/// The border to one server; the default belongs to no server and lets everything pass.
#[derive(Clone, Debug, Default)]
pub struct Border(Option<Arc<Server>>);

#[derive(Debug)]
struct Server {
    name: String,
    peers: Vec<Peer>,
}

impl Border {
    /// Creates the border to the server `name`, as shown in messages, with connections to `peers`.
    pub fn of(name: &str, peers: Vec<Peer>) -> Self {
        Self(Some(Arc::new(Server { name: name.to_owned(), peers })))
    }

    /// Runs `work`, which calls a driver. If `work` panics or takes more memory than [`MOST`], this
    /// fails and closes all connections to the server.
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

/// Place of the last driver panic on any thread, which joining a panicked thread does not tell.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// The last panic of a thread.
enum Panic {
    /// In a driver, with package, file and line.
    Foreign(String),
    Own,
}

/// Packages whose panics are never reported as panics, on any thread.
const DRIVERS: [&str; 6] = [
    "mysql-",
    "mysql_common-",
    "postgres-0",
    "postgres-protocol-",
    "postgres-types-",
    "tokio-postgres-",
];

/// Runs `work`. If a driver panics, on this thread or on one it joins, the error is the place in
/// the driver's source. Panics of this program are reported and resumed. If `crossing`, panics
/// outside this workspace's packages are attributed to a driver.
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

/// Returns the place of a driver's panic, or of one in the standard library if this thread has
/// crossed to a driver.
fn foreign(info: &PanicHookInfo<'_>) -> Option<String> {
    let place = info.location()?;
    let file = place.file();
    // Packages of the registry are in directories named by name and version.
    let parts: Vec<&str> = file.split('/').collect();
    let package = parts.iter().rposition(|part| *part == "src").unwrap_or(1).saturating_sub(1);
    let is_driver = DRIVERS.iter().any(|name| parts[package].starts_with(name));
    let is_own = file.starts_with("crates/");
    (is_driver || CROSSING.get() && !is_own)
        .then(|| format!("{}:{}", parts[package..].join("/"), place.line()))
}

/// Runs `work` and turns a panic of a driver into an error. For work that crosses no border itself.
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
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn a_panic_elsewhere_is_an_error_and_one_of_our_own_goes_on() {
        let border = Border::of("mysql://h", Vec::new());
        let foreign = || -> Result<u32, SqlError> { Ok(mysql::from_value(mysql::Value::NULL)) };
        let error = border.cross(foreign).unwrap_err().told();
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
        let error = without_panics(joined).unwrap_err().told();
        assert!(error.contains("(mysql_common-"), "{error}");
    }
}
