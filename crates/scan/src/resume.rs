//! Saved scans: continue after an interruption, look at results later, and count several machines
//! together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use blockstone_reduce::page::{self, Recognised};
use blockstone_reduce::scanned::Scanned;
use blockstone_sys::file::{Access, BlockFile, FileState};

use crate::error::{ScanError, first_line};
use crate::saved::{Document, KeptFile, load};
use crate::scan::{Outcome, Progress, Settings, Start, go_on};
use blockstone_base::text::shown;

use crate::survey::{Found, Survey};

/// Reads a saved scan.
pub fn read(dir: &Path) -> Result<Outcome, ScanError> {
    Ok(outcome(load(dir)?))
}

fn outcome(document: Document) -> Outcome {
    let mut scanned = document.scanned;
    if !document.complete && scanned.ended_by.is_none() {
        scanned.ended_by = Some("it was saved before its end".to_owned());
    }
    Outcome { counter: document.counter, scanned, unsaved: None, lacks_masks: false }
}

/// Reads several saved scans and counts them as one.
pub fn merge(dirs: &[PathBuf]) -> Result<Outcome, ScanError> {
    let mut merged: Option<Outcome> = None;
    let mut known: Vec<(String, Vec<KeptFile>)> = Vec::new();
    let mut seen = HashSet::new();
    for dir in dirs {
        // Every file of a scan given twice would be a copy of itself.
        if let Ok(resolved) = dir.canonicalize()
            && !seen.insert(resolved)
        {
            let hint = "name each saved scan once";
            return Err(ScanError::saved("merge", dir, "it is named twice", hint));
        }
        let document = load(dir)?;
        let files = (document.host.clone(), document.files.clone());
        if known.contains(&files) {
            let why = format!("it covers the same files of host {} as another one", files.0);
            return Err(ScanError::saved("merge", dir, why, "name each scan once"));
        }
        known.push(files);
        let next = outcome(document);
        let Some(all) = &mut merged else {
            merged = Some(next);
            continue;
        };
        let hint = "scan all with the same --block-size, --offset, --model and --codec; and with \
                    --no-headers, where only some of them hold databases";
        let merged = all.counter.merge(&next.counter);
        merged.map_err(|error| ScanError::saved("merge", dir, error.to_string(), hint))?;
        let scanned = &mut all.scanned;
        scanned.files.extend(next.scanned.files);
        scanned.skipped.extend(next.scanned.skipped);
        scanned.free.extend(next.scanned.free);
        scanned.read_bytes += next.scanned.read_bytes;
        scanned.elapsed_s += next.scanned.elapsed_s;
        scanned.cpu_s += next.scanned.cpu_s;
        scanned.memory_bytes = scanned.memory_bytes.max(next.scanned.memory_bytes);
        scanned.direct &= next.scanned.direct;
        scanned.ended_by = scanned.ended_by.take().or(next.scanned.ended_by);
    }
    let (what, hint) = ("nothing".to_owned(), "name saved scans to merge".to_owned());
    merged.ok_or(ScanError::Empty { what, hint })
}

/// Continues a scan from where it was saved, with the same plan and memory limit. A file that has
/// changed since is an error.
pub fn resume(
    dir: &Path,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    let document = load(dir)?;
    if document.complete {
        return Ok(outcome(document));
    }
    let mut survey = Survey { skipped: document.scanned.skipped.clone(), ..Survey::default() };
    for (index, file) in document.files.into_iter().enumerate() {
        let path = file.path.path();
        let found = BlockFile::open(&path, Access::Read, false).and_then(|open| open.state());
        let before = FileState { bytes: file.bytes, modified_ns: file.modified_ns };
        let same = found.as_ref().is_ok_and(|now| *now == before);
        // A file already counted may have disappeared.
        if !same && index >= document.position.file {
            let what = match found {
                Ok(_) => "has changed since the scan began".to_owned(),
                Err(error) => format!("can no longer be read ({})", first_line(&error)),
            };
            let why = format!("{} {what}", shown(&path));
            let hint = "put it back, or scan again from the beginning";
            return Err(ScanError::saved("resume", dir, why, hint));
        }
        let format = file.format.and_then(|(name, page_bytes)| {
            Some(Recognised { format: page::named(&name)?, page_bytes })
        });
        let KeptFile { bytes, modified_ns, .. } = file;
        survey.files.push(Found { path, bytes, modified_ns, format });
    }
    let scanned = Scanned { ended_by: None, ..document.scanned };
    let start = Start { counter: document.counter, scanned, position: document.position };
    go_on(&survey, start, settings, watch)
}
