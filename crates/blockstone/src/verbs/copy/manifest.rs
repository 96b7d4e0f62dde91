//! The list of hashes that `--manifest` writes.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;
use blockstone_copy::file::{Copied, manifest};
use blockstone_copy::tree::Outcome;
use blockstone_sys::output;

use crate::failure::Failure;

pub struct List {
    out: BufWriter<File>,
    name: String,
}

impl List {
    /// Creates the list before anything is copied: an unwritable list must not cost a copy.
    pub fn create(file: &Path) -> Result<Self> {
        let name = file.display().to_string();
        let out = output::create(file).map_err(|error| {
            let what = format!("write {name}");
            Failure::new(what, "name another file with --manifest").because(error)
        })?;
        Ok(Self { out: BufWriter::new(out), name })
    }

    /// Writes names relative to `target`, where `--check` will find them.
    pub fn write(&mut self, outcome: &Outcome, target: &Path) -> Result<()> {
        let target = target.strip_prefix(".").unwrap_or(target);
        let copied = outcome.files.iter().map(|file| {
            let Copied { bytes, chunks, .. } = &file.copied;
            (&file.target, *bytes, chunks)
        });
        let kept =
            outcome.kept.iter().map(|file| (&file.target, file.kept.bytes, &file.kept.chunks));
        for (file, size_bytes, chunks) in copied.chain(kept) {
            let path = match file.strip_prefix(target) {
                Ok(below) if !below.as_os_str().is_empty() => below,
                // The target is this one file.
                _ => Path::new(file.file_name().unwrap_or_default()),
            };
            let (path, chunks) = (path.to_owned(), chunks.clone());
            let entry = manifest::Entry { path, size_bytes, chunks };
            manifest::write(&mut self.out, &entry).map_err(|error| self.failed(error))?;
        }
        let whole = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        Ok(whole.map_err(|error| self.failed(error))?)
    }

    fn failed(&self, error: io::Error) -> Failure {
        Failure::new(format!("write {}", self.name), "free some space").because(error)
    }
}
