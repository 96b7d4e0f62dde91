//! Tags and a note that a user gives to a recording. They are in a file of their own beside the
//! manifest, so that labelling changes nothing of what was measured.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_sys::held::{HeldDir, read_whole};
use serde::{Deserialize, Serialize};

use crate::disk::write_file;
use crate::error::RecordError;

/// Name of the file in the directory of a recording or a grid.
pub const LABELS: &str = "labels.json";
const FORMAT: &str = "blockstone.labels/1";
const LABELS_MAX: Bytes = Bytes(64 << 10);
const TAGS_MAX: usize = 64;
const TAG_CHARS_MAX: usize = 64;
const NOTE_CHARS_MAX: usize = 1000;

/// Tags and note of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Words without spaces, in alphabetical order.
    pub tags: BTreeSet<String>,
    /// One line; empty if there is none.
    pub note: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    #[serde(default)]
    tags: BTreeSet<String>,
    #[serde(default)]
    note: String,
}

impl Labels {
    /// Reads the labels in the directory of a recording; one that has none has empty labels. Fails
    /// when the file is damaged, too large or a link.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let path = dir.join(LABELS);
        let file = HeldDir::hold(dir).and_then(|held| held.read(Path::new(LABELS)));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened.map_err(RecordError::io("read", &path))?,
        };
        let bytes = read_whole(file, LABELS_MAX).map_err(RecordError::io("read", &path))?;
        let stored: Stored = serde_json::from_slice(&bytes)
            .map_err(|error| RecordError::damaged(&path, error.to_string()))?;
        if stored.format != FORMAT {
            return Err(RecordError::NewerFormat { path, format: stored.format });
        }
        Ok(Self { tags: stored.tags, note: stored.note })
    }

    /// Writes them into the directory of a recording, completely or not at all. Fails when others
    /// could redirect what is written there.
    pub fn write(self, dir: &Path) -> Result<(), RecordError> {
        let stored = Stored { format: FORMAT.to_owned(), tags: self.tags, note: self.note };
        let mut text = serde_json::to_vec_pretty(&stored)
            .map_err(|error| RecordError::rejected(LABELS, error.to_string()))?;
        text.push(b'\n');
        write_file(dir, LABELS, &text)
    }

    /// Adds a tag. Fails with the reason when it is not a word, or when there are too many.
    pub fn tag(&mut self, tag: &str) -> Result<(), String> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.:=+/".contains(c);
        if tag.is_empty() || tag.starts_with('-') || !tag.chars().all(is_plain) {
            return Err("a tag is a word of letters, digits and any of _.:=+/-".to_owned());
        }
        if tag.chars().count() > TAG_CHARS_MAX {
            return Err(format!("a tag has at most {TAG_CHARS_MAX} characters"));
        }
        if self.tags.len() >= TAGS_MAX && !self.tags.contains(tag) {
            return Err(format!("a recording has at most {TAGS_MAX} tags"));
        }
        self.tags.insert(tag.to_owned());
        Ok(())
    }

    /// Sets the note; an empty text removes it. Fails with the reason when it is not one line.
    pub fn annotate(&mut self, note: &str) -> Result<(), String> {
        if note.contains(char::is_control) {
            return Err("a note is one line, without control characters".to_owned());
        }
        if note.chars().count() > NOTE_CHARS_MAX {
            return Err(format!("a note has at most {NOTE_CHARS_MAX} characters"));
        }
        note.trim().clone_into(&mut self.note);
        Ok(())
    }

    /// Returns what people read: `#baseline #nvme before the update`; `None` if there are none.
    pub fn shown(&self) -> Option<String> {
        let tags = self.tags.iter().map(|tag| format!("#{tag}"));
        let parts: Vec<String> =
            tags.chain((!self.note.is_empty()).then(|| self.note.clone())).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}
