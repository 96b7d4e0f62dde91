use std::io;
use std::path::{Path, PathBuf};

/// Reason why a test environment could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TestkitError {
    /// A tool of the operating system failed.
    #[error("`{command}` failed: {message}\nhint: run it by hand to see why; devices need root")]
    Tool {
        command: String,
        /// The tool's standard error, or the reason why it could not be started.
        message: String,
    },
    /// A file or a kernel control file could not be used.
    #[error("cannot {verb} {path}: {source}\nhint: devices need root and free space in /var/tmp")]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    /// The loop device does not bypass the page cache of its backing file.
    #[error(
        "{device} refuses direct I/O over {backing}\n\
         hint: the file system that holds the backing file must support O_DIRECT"
    )]
    Buffered { device: PathBuf, backing: PathBuf },
    /// No control group can cap a block device on this machine.
    #[error(
        "no control group can cap a block device\n\
         hint: mount the blkio controller (cgroup v1) or enable io (cgroup v2)"
    )]
    NoThrottle,
    /// A device of that name already exists, or none exists.
    #[error("{what}: {name}\nhint: `cargo xtask device list` shows the devices that exist")]
    Name { what: &'static str, name: String },
}

impl TestkitError {
    /// A [`TestkitError::File`], to hand to `map_err`.
    pub(crate) fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }
}
