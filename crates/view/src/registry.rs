//! All views. Adding one is a file and a line here.

use crate::table::View;
use crate::views::{
    active_sessions, cgroups, database_io, disks, durability, events, host, kernel_io, ledger,
    load_profile, memory, network, nfs, own, processes, processors, profile, samples, sessions,
    snapper, statements, top_events,
};

/// Every view, in the order in which they are shown.
pub const ALL: &[&View] = &[
    &host::VIEW,
    &disks::VIEW,
    &load_profile::VIEW,
    &active_sessions::VIEW,
    &sessions::VIEW,
    &statements::VIEW,
    &database_io::VIEW,
    &durability::VIEW,
    &kernel_io::VIEW,
    &processes::VIEW,
    &ledger::VIEW,
    &events::VIEW,
    &active_sessions::CLASSES,
    &top_events::VIEW,
    &top_events::HISTOGRAMS,
    &samples::SESSIONS,
    &samples::STATEMENTS,
    &snapper::VIEW,
    &kernel_io::FILE_TYPES,
    &kernel_io::FILES,
    &kernel_io::CALLS,
    &profile::ROLES,
    &profile::MODULES,
    &profile::VIEW,
    &profile::ROLE_FUNCTIONS,
    &profile::SAMPLING,
    &processors::VIEW,
    &memory::VIEW,
    &network::VIEW,
    &nfs::VIEW,
    &cgroups::VIEW,
    &own::VIEW,
];

pub fn find(name: &str) -> Option<&'static View> {
    ALL.iter().find(|view| view.name == name).copied()
}
