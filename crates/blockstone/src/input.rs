//! Input files of the verbs, compressed or not. Reading stops on SIGINT, SIGTERM and SIGHUP.

use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_input::{Foreign, Members, Source, Unpacked};

use crate::failure::Failure;
use crate::interrupt;

fn go_on() -> bool {
    interrupt::signal().is_none()
}

/// Returns the failure to read a file. Its hint is that for the kind of file, if this is not text.
pub fn failure(what: &str, error: &io::Error, hint: &str) -> Failure {
    let kind = Foreign::in_error(error);
    Failure::new(format!("{what}: {error}"), kind.map_or(hint, |kind| kind.hint))
}

/// Opens a file for reading as text, piece by piece; `-` is standard input.
pub fn open(path: &Path) -> io::Result<Unpacked> {
    Unpacked::open_or_stdin(path, go_on)?.decoded()
}

/// Returns the files of an archive that are wanted; `None` if the file is not one.
pub fn members(
    path: &Path,
    choose: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> io::Result<Option<Members>> {
    blockstone_input::members(&Source::new(path), go_on, choose)
}

/// Opens a file of an archive for reading as text.
pub fn open_source(file: &Source) -> io::Result<Unpacked> {
    file.open(go_on)?.decoded()
}

/// Reads a whole text file in UTF-8 or UTF-16.
pub fn text(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::text(path, at_most, go_on)
}

/// Reads a whole report in any character set that contains ASCII.
pub fn report(path: &Path, at_most: Bytes) -> io::Result<String> {
    blockstone_input::report(path, at_most, go_on)
}
