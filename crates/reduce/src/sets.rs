//! The files that hold a content: sets of files, each stored once however many contents have it.
//!
//! Files are numbered in the order in which they are read, so a set only ever gains a file after
//! its last one. That makes the sets a tree: a set is its parent plus one file.

use std::collections::HashMap;

/// Number of a file, in the order of the scan.
pub type FileId = u32;

/// A set of files; only valid for the [`Sets`] that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(pub u32);

pub const EMPTY: SetId = SetId(0);

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    last: FileId,
    files: u32,
}

#[derive(Clone, Debug)]
pub struct Sets {
    nodes: Vec<Node>,
    children: HashMap<(u32, FileId), u32>,
    lately: (u32, FileId, u32),
}

impl Default for Sets {
    fn default() -> Self {
        let none = Node { parent: 0, last: FileId::MAX, files: 0 };
        Self { nodes: vec![none], children: HashMap::new(), lately: (u32::MAX, 0, 0) }
    }
}

impl Sets {
    /// Returns `set` with `file` added, which is its last file already or comes after it.
    #[inline]
    pub fn with(&mut self, set: SetId, file: FileId) -> SetId {
        let node = self.nodes[set.0 as usize];
        if node.files > 0 && node.last == file {
            return set;
        }
        debug_assert!(node.files == 0 || node.last < file, "files come in their order");
        if (self.lately.0, self.lately.1) == (set.0, file) {
            return SetId(self.lately.2);
        }
        let nodes = &mut self.nodes;
        let child = *self.children.entry((set.0, file)).or_insert_with(|| {
            nodes.push(Node { parent: set.0, last: file, files: node.files + 1 });
            nodes.len() as u32 - 1
        });
        self.lately = (set.0, file, child);
        SetId(child)
    }

    #[inline]
    pub fn len(&self, set: SetId) -> u32 {
        self.nodes[set.0 as usize].files
    }

    #[inline]
    pub fn ends_with(&self, set: SetId, file: FileId) -> bool {
        let node = self.nodes[set.0 as usize];
        node.files > 0 && node.last == file
    }

    /// Returns the files of a set, the last one first.
    pub fn files(&self, set: SetId) -> impl Iterator<Item = FileId> + '_ {
        let mut at = self.nodes[set.0 as usize];
        std::iter::from_fn(move || {
            let file = (at.files > 0).then_some(at.last)?;
            at = self.nodes[at.parent as usize];
            Some(file)
        })
    }

    /// Returns all sets except the empty one, each as its parent and its last file, parents first.
    pub fn rows(&self) -> impl Iterator<Item = (u32, FileId)> + '_ {
        self.nodes[1..].iter().map(|node| (node.parent, node.last))
    }

    /// Adds a set returned by [`Sets::rows`]. Returns `None` if its parent does not exist.
    pub fn push_row(&mut self, parent: u32, last: FileId) -> Option<SetId> {
        let before = self.nodes.get(parent as usize)?;
        let fits = before.files == 0 || before.last < last;
        fits.then(|| self.with(SetId(parent), last))
    }

    /// Returns the number of sets, including those that exist only as parents.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Memory of one set, in bytes: a node, and its entry in the map of children.
    pub const NODE_BYTES: usize = size_of::<Node>() + 2 * size_of::<((u32, FileId), u32)>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_kept_once_and_knows_its_files() {
        let mut sets = Sets::default();
        let a = sets.with(EMPTY, 3);
        assert_eq!(sets.with(a, 3), a, "a file is in a set once");
        let b = sets.with(a, 5);
        assert_eq!(sets.with(a, 5), b);
        let c = sets.with(EMPTY, 5);
        assert_ne!(b, c);
        assert_eq!(sets.with(a, 5), b, "also behind another");
        assert_eq!((sets.len(EMPTY), sets.len(a), sets.len(b)), (0, 1, 2));
        assert_eq!(sets.files(b).collect::<Vec<_>>(), [5, 3]);
        assert!(sets.ends_with(b, 5) && !sets.ends_with(b, 3) && !sets.ends_with(EMPTY, 0));
        assert_eq!(sets.count(), 4);
    }
}
