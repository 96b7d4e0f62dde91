//! Names of the results of a copy, for documents and people.

use std::collections::BTreeMap;

use blockstone_copy::file::{Method, Verified};
use blockstone_copy::tree::{CopiedFile, Outcome};

/// Returns the method of all files; `mixed` if they have several.
pub fn method(outcome: &Outcome) -> Option<&'static str> {
    let mut methods = outcome.files.iter().map(|file| file.copied.method);
    let first = methods.next()?;
    Some(if methods.all(|it| it == first) { name(first) } else { "mixed" })
}

pub fn name(method: Method) -> &'static str {
    match method {
        Method::Reflink => "reflink",
        Method::Server => "server",
        Method::Direct => "direct",
        Method::Dontcache => "dontcache",
        Method::Buffered => "buffered",
        Method::Mmap => "mmap",
        Method::CopyFileRange => "copy-file-range",
    }
}

/// Counts files by the method that was used and the reason why no cheaper one was.
pub fn reasons(outcome: &Outcome) -> BTreeMap<(Method, &str), u64> {
    let mut reasons = BTreeMap::new();
    for CopiedFile { copied, .. } in &outcome.files {
        if !copied.why.is_empty() {
            *reasons.entry((copied.method, copied.why.as_str())).or_default() += 1;
        }
    }
    reasons
}

/// Whether all files were read again from the medium; `None` if that was not requested.
pub fn verified(outcome: &Outcome) -> Option<bool> {
    let copied = outcome.files.iter().map(|file| &file.copied.verified);
    let all = copied.chain(outcome.kept.iter().map(|file| &file.kept.verified));
    let mut asked = all.filter(|verified| **verified != Verified::NotAsked);
    let is_proven = |verified: &Verified| matches!(verified, Verified::Equal { .. });
    let first = asked.next()?;
    Some(is_proven(first) && asked.all(is_proven))
}
