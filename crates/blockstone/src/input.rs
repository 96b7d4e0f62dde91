//! Inputs that a user names, compressed or not. Reading ends when a signal asks for the end.

use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_input::Unpacked;

use crate::interrupt;

fn go_on() -> bool {
    interrupt::signal().is_none()
}

/// The text of a file as it is read; `-` is standard input.
pub fn open(path: &Path) -> io::Result<Unpacked> {
    Unpacked::open_or_stdin(path, go_on)?.decoded()
}

/// The whole text of a file, in UTF-8 or UTF-16.
pub fn text(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::text(path, at_most, go_on)
}

/// The whole text of a report, in any character set that has ASCII.
pub fn report(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::report(path, at_most, go_on)
}
