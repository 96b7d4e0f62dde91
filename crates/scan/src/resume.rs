//! Saved scans: to go on after an interruption, to look again, and to count the files of several
//! machines together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use blockstone_reduce::page::{Recognised, registry};
use blockstone_reduce::scanned::Scanned;

use crate::error::ScanError;
use crate::saved::{Document, KeptFile, load};
use crate::scan::{Outcome, Progress, Settings, Start, go_on};
use crate::survey::{Found, Survey, shown};

/// Reads a saved scan.
///
/// # Errors
/// When there is none in `dir`, or it is damaged.
pub fn read(dir: &Path) -> Result<Outcome, ScanError> {
    Ok(outcome(load(dir)?))
}

fn outcome(document: Document) -> Outcome {
    let mut scanned = document.scanned;
    if !document.complete && scanned.ended_by.is_none() {
        scanned.ended_by = Some("it was saved before its end".to_owned());
    }
    Outcome { counter: document.counter, scanned, unsaved: None }
}

/// Reads several saved scans and counts them as one.
///
/// # Errors
/// When one cannot be read or is named twice, or they did not count the same.
pub fn merge(dirs: &[PathBuf]) -> Result<Outcome, ScanError> {
    let mut merged: Option<Outcome> = None;
    let mut known: Vec<(String, Vec<KeptFile>)> = Vec::new();
    let mut seen = HashSet::new();
    for dir in dirs {
        // Every file of it would be a copy of itself.
        if let Ok(resolved) = dir.canonicalize()
            && !seen.insert(resolved)
        {
            return Err(ScanError::Saved {
                verb: "merge",
                path: dir.clone(),
                why: "it is named twice".to_owned(),
                hint: "name each saved scan once",
            });
        }
        let document = load(dir)?;
        let files = (document.host.clone(), document.files.clone());
        if known.contains(&files) {
            return Err(ScanError::Saved {
                verb: "merge",
                path: dir.clone(),
                why: format!("it covers the same files of host {} as another one", files.0),
                hint: "name each scan once",
            });
        }
        known.push(files);
        let next = outcome(document);
        let Some(all) = &mut merged else {
            merged = Some(next);
            continue;
        };
        all.counter.merge(&next.counter).map_err(|error| ScanError::Saved {
            verb: "merge",
            path: dir.clone(),
            why: error.to_string(),
            hint: "scan all with the same --block-size, --offset, --model and --codec; and with \
                   --no-headers, where only some of them hold databases",
        })?;
        let scanned = &mut all.scanned;
        scanned.files.extend(next.scanned.files);
        scanned.skipped.extend(next.scanned.skipped);
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

/// Goes on with a scan where it was saved. What is counted, and within which memory, stays.
///
/// # Errors
/// As reading it, and when a file is no longer what it was.
pub fn resume(
    dir: &Path,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    let document = load(dir)?;
    let refuse =
        |why: String, hint| ScanError::Saved { verb: "resume", path: dir.to_owned(), why, hint };
    if document.complete {
        return Ok(outcome(document));
    }
    let mut survey = Survey { skipped: document.scanned.skipped.clone(), ..Survey::default() };
    for (index, file) in document.files.into_iter().enumerate() {
        let path = file.path.path();
        let found =
            blockstone_sys::file::BlockFile::open(&path, blockstone_sys::file::Access::Read, false)
                .and_then(|open| open.state());
        let same = found
            .as_ref()
            .is_ok_and(|now| (now.bytes, now.modified_ns) == (file.bytes, file.modified_ns));
        // A file that is done may have gone its way.
        if !same && index >= document.position.file {
            let what = match found {
                Ok(_) => "has changed since the scan began".to_owned(),
                Err(error) => format!("can no longer be read ({})", first_line(&error)),
            };
            let why = format!("{} {what}", shown(&path));
            return Err(refuse(why, "put it back, or scan again from the beginning"));
        }
        survey.files.push(Found {
            format: file.format.and_then(|(name, page_bytes)| recognised(&name, page_bytes)),
            path,
            bytes: file.bytes,
            modified_ns: file.modified_ns,
        });
    }
    let scanned = Scanned { ended_by: None, ..document.scanned };
    let start = Start { counter: document.counter, scanned, position: document.position };
    go_on(&survey, start, settings, watch)
}

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn recognised(name: &str, page_bytes: usize) -> Option<Recognised> {
    let format = registry::ALL.iter().find(|format| format.name == name)?;
    Some(Recognised { format, page_bytes })
}
