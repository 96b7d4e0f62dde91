//! Target of the requests, and their number.

use std::path::Path;

use blockstone_sys::survey::Layer;

/// Requests per cell: enough that a single odd page does not decide, few enough for a second.
pub const REQUESTS: usize = 32;

/// Target of the requests.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub path: &'a Path,
    pub id: u64,
    /// Type of the file system; empty for a device.
    pub file_system: &'a str,
    pub is_device: bool,
    /// Layer that stores its files, if it is an overlay.
    pub upper: Option<&'a Layer>,
}
