//! A file-system tree in a temporary directory: /proc and /sys of another machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::proc;

pub struct Tree(tempfile::TempDir);

impl Tree {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, path: &str, content: &str) -> &Self {
        let path = proc::under(self.root(), path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
        self
    }

    /// Adds a symbolic link to an absolute path in the tree.
    pub fn link(&self, path: &str, to: &str) -> &Self {
        let path = proc::under(self.root(), path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(proc::under(self.root(), to), path).unwrap();
        self
    }
}
