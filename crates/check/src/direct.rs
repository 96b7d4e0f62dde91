//! Tests whether I/O that asks to bypass the page cache (`O_DIRECT`) does.
//!
//! That a file was opened with `O_DIRECT`, and that requests succeed, shows nothing: a file system
//! may serve them through the page cache and drop the pages. So each request is followed into the
//! kernel: the pages that it adds to the page cache, and whether the kernel's direct path was
//! entered.

mod classify;
mod files;
pub mod findings;
mod matrix;
mod place;
mod requested;
mod scratch;
mod submission;
mod witness;

use std::fs::File;
use std::path::Path;

use crate::direct::findings::DirectFindings;
use blockstone_base::identity::PathKind;
use blockstone_measure::{Observer, claim};
use blockstone_sys::survey;

use crate::CheckError;
use witness::Witness;

pub(crate) use files::family;
pub use files::{Processes, of_processes};

/// Returns the result of `work`, and how many pages its calls through descriptors with `O_DIRECT`
/// added to the page cache of a file; or why that was not counted.
pub(crate) fn pages_added_by<T>(file: File, work: impl FnOnce() -> T) -> (T, Result<u64, String>) {
    let mut witness = Witness::of_this_process();
    let number = witness.watch(file);
    let done = work();
    let effect = number.and_then(|number| witness.effects()?.get(number).copied());
    let added = effect.map(|effect| effect.all_direct().added_pages);
    (done, added.ok_or_else(|| format!("requests were not counted: {}", witness.why())))
}

/// Tries every operation in every shape on scratch files in a directory, or reads of a file or
/// device, whose content and cached pages are not changed. `id` names the scratch files. Fails if
/// the path cannot be used; a refusal by the kernel is a finding.
pub fn of_path(
    path: &Path,
    id: u64,
    observer: &mut dyn Observer,
) -> Result<DirectFindings, CheckError> {
    let target = survey::target(Path::new("/"), path)?;
    let (kind, options) =
        target.file_system.map_or_else(Default::default, |found| (found.kind, found.options));
    if target.kind == PathKind::Directory {
        claim::directory(path)?;
    }
    let mut witness = Witness::of_this_process();
    let upper = survey::upper_layer(Path::new("/"), path);
    let place = place::Place {
        path: Path::new(&target.path),
        id,
        file_system: &kind,
        is_device: target.kind == PathKind::BlockDevice,
        upper: upper.as_ref(),
    };
    let tried = if target.kind == PathKind::Directory {
        matrix::all(&place, &mut witness, observer)?
    } else {
        matrix::reads(&place, &mut witness)?
    };
    Ok(DirectFindings {
        subject: path.display().to_string(),
        file_system: kind,
        mount_options: options,
        statx: Some(tried.statx),
        kernel: witness.capability(),
        cells: tried.cells,
        files: Vec::new(),
        submitters: Vec::new(),
        submissions_unmeasured: None,
        submission_setting: None,
        unseen_files: 0,
        observed_s: 0.0,
        unfinished: tried.unfinished,
        signal: observer.interrupted().map(str::to_owned),
    })
}
