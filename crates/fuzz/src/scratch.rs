//! Directories for parsers that read files, one per thread and use.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    static DIRS: RefCell<HashMap<&'static str, TempDir>> = RefCell::default();
}

/// Returns the directory of that name, which `make` fills on first use.
pub fn dir(name: &'static str, make: impl FnOnce(&Path)) -> PathBuf {
    let known = DIRS.with_borrow(|dirs| dirs.get(name).map(|dir| dir.path().to_owned()));
    known.unwrap_or_else(|| {
        let dir = tempfile::tempdir().expect("temporary files can be made");
        make(dir.path());
        let path = dir.path().to_owned();
        DIRS.with_borrow_mut(|dirs| dirs.insert(name, dir));
        path
    })
}

/// Writes `input` as a file of the directory `name`, and returns its path.
pub fn file(name: &'static str, input: &[u8]) -> PathBuf {
    let path = dir(name, |_| {}).join("input");
    put(&path, input);
    path
}

pub fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("temporary files can be written");
}

pub fn get(path: &Path) -> Vec<u8> {
    fs::read(path).expect("the seeds' files can be read")
}
