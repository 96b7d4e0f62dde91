//! Data sets as files, so that scans can be tried and tested on what is known.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use blockstone_base::Bytes;
use blockstone_reduce::generate::{Kind, Shape, fill};
use blockstone_sys::survey::target;

use crate::error::ScanError;

const PART_BYTES: u64 = 1 << 20;

/// Writes the files of a data set into `dir`, which must not exist or be empty, and returns their
/// bytes. `watch` sees the part that is done; if it returns false, or
/// on an error, all files are removed.
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
    let is_filled = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if is_filled {
        let source = std::io::ErrorKind::DirectoryNotEmpty.into();
        return Err(failed(dir)(source));
    }
    let was_there = dir.exists();
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let all = shape.file_bytes().saturating_mul(shape.files.into());
    if let Err(error) = room(dir, all) {
        if !was_there {
            // The error to report is that there is no room.
            let _ = fs::remove_dir(dir);
        }
        return Err(error);
    }
    let mut done = 0;
    let mut made: Vec<PathBuf> = Vec::new();
    let mut part = vec![0; PART_BYTES as usize];
    let digits = shape.files.to_string().len();
    let result = (|| {
        for number in 0..shape.files {
            let path = dir.join(format!("{}-{:0digits$}.dbf", kind.name, number + 1));
            let mut file = File::create_new(&path).map_err(failed(&path))?;
            made.push(path.clone());
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
        for path in made {
            // The error to report is the reason for removing it.
            let _ = fs::remove_file(path);
        }
        if !was_there {
            let _ = fs::remove_dir(dir);
        }
    }
    result.map(|_| done)
}

/// Filling a file system affects all of its users.
fn room(dir: &Path, bytes: u64) -> Result<(), ScanError> {
    // Where the system does not tell, writing will.
    let Ok(place) = target(Path::new("/"), dir) else { return Ok(()) };
    if place.free_bytes >= bytes {
        return Ok(());
    }
    let (asked, free) = (Bytes(bytes), Bytes(place.free_bytes));
    Err(ScanError::Room { path: dir.to_owned(), asked, free })
}
