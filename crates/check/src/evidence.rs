//! Basis of a class: counters inside the kernel, or why there are none, and its errors.

use std::io;
use std::path::Path;

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_sys::bpf::{self, BpfError};
use rustix::io::Errno;

const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;

/// Counters inside the kernel, or why there are none. Once they fail they are discarded, because
/// their values are incomplete.
#[derive(Debug)]
pub struct Kernel<T>(Result<T, String>);

impl<T> Kernel<T> {
    pub fn start(start: impl FnOnce() -> Result<T, BpfError>) -> Self {
        Self(match bpf::capability(Path::new("/")) {
            Capability::Full => start().map_err(|error| error.in_a_line()),
            Capability::Degraded { why } => Err(why),
        })
    }

    pub fn capability(&self) -> Capability {
        match &self.0 {
            Ok(_) => Capability::Full,
            Err(why) => Capability::degraded(why.clone()),
        }
    }

    pub fn get(&self) -> Option<&T> {
        self.0.as_ref().ok()
    }

    /// Returns the reason why there are none; empty if there are.
    pub fn why(&self) -> &str {
        self.0.as_ref().err().map_or("", String::as_str)
    }

    pub fn ask<A>(&mut self, question: impl FnOnce(&mut T) -> Result<A, BpfError>) -> Option<A> {
        match question(self.0.as_mut().ok()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.0 = Err(error.in_a_line());
                None
            }
        }
    }

    /// Stops using the counters; the first reason is kept.
    pub fn lose(&mut self, why: &str) {
        if self.0.is_ok() {
            self.0 = Err(why.to_owned());
        }
    }
}

/// Returns class and evidence of requests that are too few to decide, for a refusal by the kernel
/// and for the unknown case.
pub fn of_too_few<C>(
    requests: u64,
    error: Option<i32>,
    [refused, unknown]: [C; 2],
    otherwise: &str,
) -> (C, String) {
    match error {
        Some(errno @ (EINVAL | EOPNOTSUPP)) if requests == 0 => (refused, name_of(errno)),
        Some(errno) => (unknown, format!("it failed: {}", name_of(errno))),
        None => (unknown, otherwise.to_owned()),
    }
}

/// Returns the evidence of requests of which the last failed.
pub fn and_then<C>((class, evidence): (C, String), error: Option<i32>) -> (C, String) {
    match error {
        Some(errno) => (class, format!("{evidence}; then {}", name_of(errno))),
        None => (class, evidence),
    }
}

/// Returns `EINVAL` and the like, or the text of a rarer error.
pub fn name_of(errno: i32) -> String {
    let known = [
        (Errno::INVAL, "EINVAL"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::IO, "EIO"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::PERM, "EPERM"),
        (Errno::ACCESS, "EACCES"),
        (Errno::ROFS, "EROFS"),
        (Errno::DQUOT, "EDQUOT"),
        (Errno::NODEV, "ENODEV"),
        (Errno::FAULT, "EFAULT"),
    ];
    let found = known.iter().find(|(known, _)| known.raw_os_error() == errno);
    found.map_or_else(
        || io::Error::from_raw_os_error(errno).to_string(),
        |(_, name)| (*name).to_owned(),
    )
}
