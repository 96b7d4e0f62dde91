//! All views. Adding one takes a file and a line here.

use crate::table::View;
use crate::views::{
    active_sessions, active_set, all_disks, cgroups, database_io, dirty, disks, durability, events,
    host, interrupts, kernel_io, ledger, load_profile, memory, network, nfs, nvme, own, page_cache,
    processes, processors, profile, resources, samples, sessions, slices, snapper, statements,
    top_events, who, write_amplification,
};

/// Every view, in display order.
pub const ALL: &[&View] = &[
    &host::VIEW,
    &disks::VIEW,
    &all_disks::VIEW,
    &who::VIEW,
    &load_profile::VIEW,
    &load_profile::RECENT,
    &slices::VIEW,
    &active_sessions::VIEW,
    &sessions::VIEW,
    &statements::VIEW,
    &database_io::VIEW,
    &durability::VIEW,
    &kernel_io::VIEW,
    &processes::VIEW,
    &ledger::VIEW,
    &write_amplification::VIEW,
    &page_cache::VIEW,
    &events::VIEW,
    &active_sessions::CLASSES,
    &top_events::VIEW,
    &top_events::HISTOGRAMS,
    &samples::SESSIONS,
    &samples::STATEMENTS,
    &snapper::VIEW,
    &snapper::WAITS,
    &kernel_io::FILE_TYPES,
    &kernel_io::FILES,
    &kernel_io::CALLS,
    &active_set::VIEW,
    &active_set::CURVE,
    &profile::ROLES,
    &profile::MODULES,
    &profile::VIEW,
    &profile::ROLE_FUNCTIONS,
    &profile::SAMPLING,
    &processors::VIEW,
    &interrupts::VIEW,
    &memory::VIEW,
    &dirty::VIEW,
    &resources::VIEW,
    &network::VIEW,
    &nvme::VIEW,
    &nfs::VIEW,
    &cgroups::VIEW,
    &own::VIEW,
];

/// Their names.
pub const NAMES: [&str; ALL.len()] = {
    let mut names = [""; ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = ALL[index].name;
        index += 1;
    }
    names
};

/// Views under one heading of the live view.
pub struct Group {
    pub title: &'static str,
    pub views: &'static [&'static View],
}

/// The headings; every view is under one of them.
pub const GROUPS: [Group; 4] = [
    Group {
        title: "host",
        views: &[
            &host::VIEW,
            &processes::VIEW,
            &processors::VIEW,
            &interrupts::VIEW,
            &memory::VIEW,
            &dirty::VIEW,
            &resources::VIEW,
            &network::VIEW,
            &cgroups::VIEW,
            &own::VIEW,
        ],
    },
    Group {
        title: "storage",
        views: &[
            &disks::VIEW,
            &all_disks::VIEW,
            &who::VIEW,
            &kernel_io::VIEW,
            &kernel_io::FILE_TYPES,
            &kernel_io::FILES,
            &kernel_io::CALLS,
            &ledger::VIEW,
            &write_amplification::VIEW,
            &nvme::VIEW,
            &active_set::VIEW,
            &active_set::CURVE,
            &nfs::VIEW,
        ],
    },
    Group {
        title: "database",
        views: &[
            &load_profile::VIEW,
            &load_profile::RECENT,
            &slices::VIEW,
            &active_sessions::VIEW,
            &sessions::VIEW,
            &statements::VIEW,
            &database_io::VIEW,
            &page_cache::VIEW,
            &durability::VIEW,
            &events::VIEW,
            &active_sessions::CLASSES,
            &top_events::VIEW,
            &top_events::HISTOGRAMS,
            &samples::SESSIONS,
            &samples::STATEMENTS,
            &snapper::VIEW,
            &snapper::WAITS,
        ],
    },
    Group {
        title: "processor time",
        views: &[
            &profile::ROLES,
            &profile::MODULES,
            &profile::VIEW,
            &profile::ROLE_FUNCTIONS,
            &profile::SAMPLING,
        ],
    },
];

pub fn find(name: &str) -> Option<&'static View> {
    ALL.iter().find(|view| view.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_is_under_one_heading() {
        for view in ALL {
            let of = |group: &&Group| group.views.iter().any(|other| other.name == view.name);
            assert_eq!(GROUPS.iter().filter(of).count(), 1, "{}", view.name);
        }
        let count: usize = GROUPS.iter().map(|group| group.views.len()).sum();
        assert_eq!(count, ALL.len());
    }
}
