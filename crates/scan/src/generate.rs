//! Writes data sets as files, so that scans can be tried and tested on known data.

use std::io::Write;
use std::path::Path;

use blockstone_base::Bytes;
use blockstone_reduce::generate::{Kind, Shape, fill};
use blockstone_sys::held::HeldDir;
use blockstone_sys::output;
use blockstone_sys::survey::target;

use crate::error::ScanError;

const PART_BYTES: u64 = 1 << 20;

/// Writes the files of a data set into `dir`, which must not exist or be empty, and returns their
/// bytes. `watch` receives the fraction done; if it returns false, or on an error, all files are
/// removed.
pub fn generate(
    dir: &Path,
    kind: &Kind,
    shape: &Shape,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<u64, ScanError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ScanError::Generate { path, source }
    };
    let was_there = dir.exists();
    let held = output::directory(dir).map_err(failed(dir))?;
    if !held.is_empty().map_err(failed(dir))? {
        let source = std::io::ErrorKind::DirectoryNotEmpty.into();
        return Err(failed(dir)(source));
    }
    let all = shape.file_bytes().saturating_mul(shape.files.into());
    if let Err(error) = room(dir, all) {
        if !was_there {
            remove_dir(&held);
        }
        return Err(error);
    }
    let mut done = 0;
    let mut made = Vec::new();
    let mut part = vec![0; PART_BYTES as usize];
    let digits = shape.files.to_string().len();
    let result = (|| {
        for number in 0..shape.files {
            let name = format!("{}-{:0digits$}.dbf", kind.name, number + 1);
            let path = dir.join(&name);
            let mut file = held.create(Path::new(&name)).map_err(failed(&path))?;
            made.push(name);
            let mut at = 0;
            while at < shape.file_bytes() {
                let len = PART_BYTES.min(shape.file_bytes() - at) as usize;
                fill(shape, kind, number, at, &mut part[..len]);
                file.write_all(&part[..len]).map_err(failed(&path))?;
                at += len as u64;
                done += len as u64;
                if !watch(done as f64 / all.max(1) as f64) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })();
    if !matches!(result, Ok(true)) {
        for name in made {
            // The error to report is the one that led to the removal.
            let _ = held.remove(Path::new(&name));
        }
        if !was_there {
            remove_dir(&held);
        }
    }
    result.map(|_| done)
}

/// Removes a directory created for files that were not written; the cause is reported elsewhere.
fn remove_dir(held: &HeldDir) {
    let above = HeldDir::hold_parent(held.path());
    let _ = above.and_then(|(above, name)| above.remove_dir(name.as_os_str(), held));
}

/// Checks for free space first, because filling a file system affects all of its users.
fn room(dir: &Path, bytes: u64) -> Result<(), ScanError> {
    // If the system does not report it, writing will fail instead.
    let Ok(place) = target(Path::new("/"), dir) else { return Ok(()) };
    if place.free_bytes >= bytes {
        return Ok(());
    }
    let (asked, free) = (Bytes(bytes), Bytes(place.free_bytes));
    Err(ScanError::Room { path: dir.to_owned(), asked, free })
}
