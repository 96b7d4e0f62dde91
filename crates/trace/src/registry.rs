//! The supported formats, and files that are often mistaken for them.

use memchr::memmem;

use crate::error::TraceError;
use crate::format::Format;
use crate::{oracle, postgres, slow};

/// All formats, in the order in which they are tried.
pub const FORMATS: &[Format] = &[oracle::FORMAT, slow::FORMAT, postgres::FORMAT];

/// A kind of file that is recognised and rejected with a specific hint.
struct Refused {
    /// A file with any of these marks is of this kind.
    marks: &'static [&'static str],
    what: &'static str,
    hint: &'static str,
}

const REFUSED: &[Refused] = &[
    Refused {
        marks: &[
            "TNSLSNR for",
            "Listener completed notification",
            "* (CONNECT_DATA=",
            "<msg_text>TNS",
        ],
        what: "a log of an Oracle listener",
        hint: "the trace of a session is in the directory of v$diag_info 'Diag Trace'",
    },
    Refused {
        marks: &[
            "DEADLOCK DETECTED ( ORA-00060 )",
            "Global Wait-For-Graph",
            "ENQUEUE DUMP REQUEST",
            "(LMD0)",
            "_lmd0_",
        ],
        what: "a dump of a deadlock",
        hint: "give the SQL trace (event 10046) of a session that waited",
    },
    Refused {
        marks: &[
            "BASE STATISTICAL INFORMATION",
            "QUERY BLOCK SIGNATURE",
            "Considering Query Transformations",
            "SINGLE TABLE ACCESS PATH",
            "Predicate Move-Around (PM)",
        ],
        what: "a trace of the optimizer (event 10053)",
        hint: "give a trace of event 10046, which says where time went",
    },
];

/// Recognises the format of a file from its start.
pub fn recognise(head: &[u8]) -> Result<&'static Format, TraceError> {
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(TraceError::Empty);
    }
    if let Some(format) = FORMATS.iter().find(|it| (it.recognises)(head)) {
        return Ok(format);
    }
    let marked = |it: &&Refused| it.marks.iter().any(|mark| contains(head, mark));
    if let Some(refused) = REFUSED.iter().find(marked) {
        return Err(TraceError::Other { what: refused.what, hint: refused.hint });
    }
    if memchr::memchr(0, head).is_some() {
        let hint = "give the text of the log; compressed files are decompressed before";
        return Err(TraceError::Other { what: "binary", hint });
    }
    Err(TraceError::Unknown)
}

fn contains(head: &[u8], mark: &str) -> bool {
    memmem::find(head, mark.as_bytes()).is_some()
}
