//! Treats several files or devices as one, in turns of 1 MiB: any load is spread evenly over them.

use std::sync::Arc;

use blockstone_sys::file::BlockFile;
use blockstone_sys::ring::FileOffset;

/// Bytes written to one file before it is the turn of the next.
pub const STRIPE_BYTES: u64 = 1 << 20;

/// One or more files, in the order of their turns.
#[derive(Clone, Debug)]
pub struct Stripes(Arc<[Arc<BlockFile>]>);

impl Stripes {
    /// # Panics
    /// If `files` is empty.
    pub fn new(files: Vec<Arc<BlockFile>>) -> Self {
        assert!(!files.is_empty(), "stripes have files");
        Self(files.into())
    }

    pub fn files(&self) -> &[Arc<BlockFile>] {
        &self.0
    }

    /// Returns the file and offset of the byte at `offset_bytes` of the whole.
    #[inline]
    pub fn place(&self, offset_bytes: u64) -> FileOffset {
        let files = self.0.len() as u64;
        if files == 1 {
            return FileOffset { file: 0, offset_bytes };
        }
        let (stripe, within) = (offset_bytes / STRIPE_BYTES, offset_bytes % STRIPE_BYTES);
        let offset_bytes = stripe / files * STRIPE_BYTES + within;
        FileOffset { file: (stripe % files) as usize, offset_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_take_turns_and_each_is_filled_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = |n: u32| BlockFile::create_new(&dir.path().join(n.to_string()), false).unwrap();
        let three = Stripes::new((0..3).map(|n| Arc::new(file(n))).collect());
        let place = |offset_bytes| {
            let FileOffset { file, offset_bytes } = three.place(offset_bytes);
            (file, offset_bytes)
        };
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(STRIPE_BYTES - 1), (0, STRIPE_BYTES - 1));
        assert_eq!(place(STRIPE_BYTES), (1, 0));
        assert_eq!(place(2 * STRIPE_BYTES + 7), (2, 7));
        assert_eq!(place(3 * STRIPE_BYTES), (0, STRIPE_BYTES));
        let one = Stripes::new(vec![Arc::clone(&three.files()[0])]);
        assert_eq!(
            one.place(9 * STRIPE_BYTES),
            FileOffset { file: 0, offset_bytes: 9 * STRIPE_BYTES }
        );
    }
}
