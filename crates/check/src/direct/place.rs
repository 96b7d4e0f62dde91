//! Where requests go, and how many.

use std::path::Path;

use blockstone_sys::survey::Layer;

/// Requests of a cell: enough that one odd page does not decide, few enough for a second.
pub const REQUESTS: usize = 32;

/// Where requests go.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub path: &'a Path,
    pub id: u64,
    /// Its type; empty for a device.
    pub file_system: &'a str,
    pub is_device: bool,
    /// Where its files are, if it is an overlay.
    pub upper: Option<&'a Layer>,
}
