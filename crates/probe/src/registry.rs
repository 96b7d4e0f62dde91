//! All probes. To add one, write its file and add a line here.

use crate::{Context, Probe, Schema, Scope};
use crate::{active_set, block, cached_files, cgroup, cpu, host, interrupts, io, memory, network};
use crate::{nfs, nvme, page_cache, process, processes, profile, resources};

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub schema: &'static Schema,
    /// Whether it is useful during a load on one target, or only for whole hosts.
    pub beside_load: bool,
    /// Starts the probe. Anything that cannot be opened becomes unmeasured, so this cannot fail.
    pub open: fn(&Context) -> Box<dyn Probe>,
}

/// Every probe, in the order in which they are sampled: nearest to the load first.
pub const ALL: &[Entry] = &[
    Entry { schema: &process::SCHEMA, beside_load: true, open: process::open },
    Entry { schema: &processes::SCHEMA, beside_load: false, open: processes::open },
    Entry { schema: &cached_files::SCHEMA, beside_load: false, open: cached_files::open },
    Entry { schema: &block::SCHEMA, beside_load: true, open: block::open },
    Entry { schema: &nvme::SCHEMA, beside_load: false, open: nvme::open },
    Entry { schema: &nfs::SCHEMA, beside_load: false, open: nfs::open },
    Entry { schema: &cgroup::SCHEMA, beside_load: false, open: cgroup::open },
    Entry { schema: &network::SCHEMA, beside_load: false, open: network::open },
    Entry { schema: &memory::SCHEMA, beside_load: false, open: memory::open },
    Entry { schema: &resources::SCHEMA, beside_load: false, open: resources::open },
    Entry { schema: &cpu::SCHEMA, beside_load: false, open: cpu::open },
    Entry { schema: &interrupts::SCHEMA, beside_load: false, open: interrupts::open },
    Entry { schema: &host::SCHEMA, beside_load: true, open: host::open },
];

/// Probes that read only text files, so that saved files serve as well as a machine.
const OF_PAGES: &[&Schema] = &[
    &block::SCHEMA,
    &network::SCHEMA,
    &memory::SCHEMA,
    &cpu::SCHEMA,
    &host::SCHEMA,
    &interrupts::SCHEMA,
];

/// Returns the probes that are useful in `context`.
pub fn of(context: &Context) -> impl Iterator<Item = &'static Entry> {
    ALL.iter().filter(|entry| match context.scope {
        Scope::Host(_) => true,
        Scope::Target(_) => entry.beside_load,
        Scope::Pages(_) => OF_PAGES.contains(&entry.schema),
    })
}

/// Schemas of probes that run only on request: a context does not say what they should watch, so
/// each has its own `open`.
pub const ON_REQUEST: &[&Schema] =
    &[&page_cache::SCHEMA, &io::SCHEMA, &io::BY_PROCESS, &active_set::SCHEMA, &profile::SCHEMA];

/// Whether a column belongs to a histogram.
pub fn is_bucket(column: &str) -> bool {
    io::bucket_start_ns(column).is_some() || active_set::bucket_start(column).is_some()
}
