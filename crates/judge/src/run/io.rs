//! I/O by role and by disk.

use super::time::SESSION;
use super::window::RunWindow;
use super::{Transfer, Transfers};

/// Returns the transfers of every object of `probe` in the order of their names, the sessions
/// first.
pub fn transfers(window: &RunWindow, probe: &str) -> Vec<Transfers> {
    let of = |name: &&str| {
        Some(Transfers {
            name: (*name).to_owned(),
            reads: transfer(window, probe, name, ["read_ios", "read_bytes", "read_ns"])?,
            writes: transfer(window, probe, name, ["write_ios", "write_bytes", "write_ns"])?,
        })
    };
    let mut all: Vec<Transfers> = window.objects(probe).iter().filter_map(of).collect();
    all.sort_by_key(|one| one.name != SESSION);
    all
}

fn transfer(window: &RunWindow, probe: &str, object: &str, columns: [&str; 3]) -> Option<Transfer> {
    let [ios, bytes, service_ns] = columns.map(|column| window.grown(probe, object, column).ok());
    let (ios, bytes) = (ios?, bytes?);
    let mean = |sum: u64| (ios > 0).then(|| sum as f64 / ios as f64);
    Some(Transfer {
        ios,
        bytes,
        iops: window.rate(probe, object, columns[0]).ok(),
        bytes_mean: mean(bytes),
        service_ns_mean: service_ns.and_then(mean),
    })
}
