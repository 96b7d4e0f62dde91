//! All views. Adding one is a file and a line here.

use crate::table::View;
use crate::views::{cgroups, disks, host, memory, network, nfs, own, processes, processors};

/// Every view, in the order in which they are shown.
pub const ALL: &[&View] = &[
    &host::VIEW,
    &processors::VIEW,
    &disks::VIEW,
    &processes::VIEW,
    &memory::VIEW,
    &network::VIEW,
    &nfs::VIEW,
    &cgroups::VIEW,
    &own::VIEW,
];

/// The view of that name.
pub fn find(name: &str) -> Option<&'static View> {
    ALL.iter().find(|view| view.name == name).copied()
}
