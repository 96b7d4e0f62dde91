//! The views, one file each.

pub mod active_sessions;
pub mod cgroups;
pub mod database_io;
pub mod dirty;
pub mod disks;
pub mod durability;
pub mod events;
pub mod host;
pub mod kernel_io;
pub mod ledger;
pub mod load_profile;
pub mod memory;
pub mod network;
pub mod nfs;
pub mod nvme;
pub mod own;
pub mod processes;
pub mod processors;
pub mod profile;
pub mod resources;
pub mod samples;
pub mod sessions;
pub mod snapper;
pub mod statements;
pub mod top_events;
pub mod write_amplification;
