//! Devices that noise overwrites, which are left empty, as they were found.

use std::path::PathBuf;

use blockstone_measure::contents;

#[derive(Debug, Default)]
pub struct Devices(pub Vec<PathBuf>);

impl Drop for Devices {
    fn drop(&mut self) {
        self.0.iter().for_each(|device| contents::clear(device));
    }
}
