//! The supported formats.

use crate::error::TraceError;
use crate::format::Format;
use crate::refused::{self, When};
use crate::{oracle, postgres, slow, tkprof};

/// All formats, in the order in which they are tried. A report of tkprof may contain the line of a
/// trace that names the session.
pub const FORMATS: &[Format] = &[tkprof::FORMAT, oracle::FORMAT, slow::FORMAT, postgres::FORMAT];

/// Recognises the format of a file from its start.
pub fn recognise(head: &[u8]) -> Result<&'static Format, TraceError> {
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(TraceError::Empty);
    }
    refused::check(head, When::BeforeFormats)?;
    if let Some(format) = FORMATS.iter().find(|it| (it.recognises)(head)) {
        return Ok(format);
    }
    refused::check(head, When::AfterFormats)?;
    if memchr::memchr(0, head).is_some() {
        let hint = "give the text of the log; compressed files are decompressed before";
        return Err(TraceError::Other { what: "binary", hint });
    }
    Err(TraceError::Unknown)
}
