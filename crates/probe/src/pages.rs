//! Saved files of `/proc` and `/sys`, read in place of this machine's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Contents of files by their path on the machine they were saved on, as of one moment. Clones
/// share them: one holder turns the page, and a probe opened on another clone reads it.
#[derive(Clone, Debug, Default)]
pub struct Pages(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Pages {
    /// Replaces all contents, and returns the previous ones.
    pub fn turn(&self, texts: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut page, texts)
    }

    /// Copies the content at a path; returns whether it was saved.
    pub(crate) fn read(&self, path: &str, into: &mut Vec<u8>) -> bool {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.get(path);
        if let Some(text) = text {
            into.clone_from(text);
        }
        text.is_some()
    }

    /// Returns, in order, the part between `before` and `after` of the paths that begin and end
    /// with these.
    pub(crate) fn between(&self, before: &str, after: &str) -> Vec<String> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = texts.keys().filter_map(|path| path.strip_prefix(before)?.strip_suffix(after));
        names.map(str::to_owned).collect()
    }
}
