//! The views, one file each.

pub mod cgroups;
pub mod disks;
pub mod host;
pub mod memory;
pub mod network;
pub mod nfs;
pub mod own;
pub mod processes;
pub mod processors;
