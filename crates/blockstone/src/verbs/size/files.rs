//! Small text files of users.

use std::path::Path;

use anyhow::Result;

/// More than this is no catalogue and no list.
const BYTES_MAX: u64 = 1 << 20;

pub fn text(what: &str, path: &Path) -> Result<String> {
    let read = || {
        let bytes = std::fs::metadata(path)?.len();
        if bytes > BYTES_MAX {
            return Err(std::io::Error::other(format!("it has {bytes} bytes")));
        }
        std::fs::read_to_string(path)
    };
    read().map_err(|error| {
        let path = path.display();
        anyhow::anyhow!("read {what} {path}: {error}\nhint: a text file of at most 1 MiB")
    })
}
