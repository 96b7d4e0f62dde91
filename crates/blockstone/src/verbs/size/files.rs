//! Small text files of users.

use std::path::Path;

use anyhow::Result;
use blockstone_base::units::Bytes;

use crate::input;

/// A larger file is neither a catalogue nor a list.
const TEXT_BYTES: Bytes = Bytes::mib(1);

pub fn text(what: &str, path: &Path) -> Result<String> {
    input::text(path, TEXT_BYTES).map_err(|error| {
        let read = format!("read {what} {}", path.display());
        anyhow::anyhow!(input::failure(&read, &error, "a text file of at most 1 MiB"))
    })
}
