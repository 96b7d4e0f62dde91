//! All probes. Adding one is a file and a line here.

use crate::{Context, Probe, Schema, block, host, io, process};

/// A probe as it is registered.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name and columns.
    pub schema: &'static Schema,
    /// Starts it. What cannot be opened becomes unmeasured, so this cannot fail.
    pub open: fn(&Context) -> Box<dyn Probe>,
}

/// Every probe, in the order in which they are sampled: nearest to the load first.
pub const ALL: &[Entry] = &[
    Entry { schema: &process::SCHEMA, open: process::open },
    Entry { schema: &block::SCHEMA, open: block::open },
    Entry { schema: &host::SCHEMA, open: host::open },
];

/// The columns of probes that run only when asked for: what they watch takes more than a context to
/// say, and each has an `open` of its own.
pub const ON_REQUEST: &[&Schema] = &[&io::SCHEMA];
