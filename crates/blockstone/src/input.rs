//! Input files of the verbs, compressed or not. Reading stops on SIGINT, SIGTERM and SIGHUP.

use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_input::Unpacked;

use crate::interrupt;

fn go_on() -> bool {
    interrupt::signal().is_none()
}

/// Opens a file for reading as text, piece by piece; `-` is standard input.
pub fn open(path: &Path) -> io::Result<Unpacked> {
    Unpacked::open_or_stdin(path, go_on)?.decoded()
}

/// Reads a whole text file in UTF-8 or UTF-16.
pub fn text(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::text(path, at_most, go_on)
}

/// Reads a whole report in any character set that contains ASCII.
pub fn report(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::report(path, at_most, go_on)
}
