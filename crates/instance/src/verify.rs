//! Defines when a block of each file is intact, for copies that the disk group makes on its own,
//! without a reader who knows which block to expect. A block of an earlier instance is as intact as
//! one of this instance.

use std::sync::Arc;

use crate::block::{self, Fault};
use crate::files::Files;
use crate::group::Verifier;
use crate::redo::RedoHeader;

/// Registers verifiers for the blocks of all files that are copied to a returning disk. The control
/// file does this itself.
pub(crate) fn register(files: &Files, instance: u64) {
    files.data.verify_with(data(instance, files.data.block_bytes()));
    // A double-write area holds whichever block was written last.
    files.double_write.verify_with(Arc::new(move |_, bytes| is_block(bytes, instance)));
    for log in &files.redo {
        log.verify_with(redo(instance, log.size()));
    }
}

fn data(instance: u64, block_bytes: u64) -> Verifier {
    Arc::new(move |offset, bytes| {
        is_block(bytes, instance) && block::number(bytes) == offset / block_bytes
    })
}

fn redo(instance: u64, log_bytes: u64) -> Verifier {
    Arc::new(move |offset, bytes| {
        let header = RedoHeader::read(instance, bytes);
        header.is_some_and(|header| header.address % log_bytes == offset)
    })
}

fn is_block(bytes: &[u8], instance: u64) -> bool {
    let checked = block::check(bytes, instance, block::number(bytes));
    matches!(checked, Ok(()) | Err(Fault::Instance { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Fill, Identity, Table};
    use crate::redo::{Lsn, REDO_BLOCK_BYTES};

    #[test]
    fn a_block_is_intact_in_its_place_alone_whichever_instance_wrote_it() {
        let mut bytes = vec![0; 8192];
        let identity = Identity { instance: 5, number: 3, schema: 0, table: Table::Rows, key: 1 };
        block::format(&mut bytes, &identity, &Fill::new(1, 50), 9);
        let (ours, theirs) = (data(5, 8192), data(6, 8192));
        assert!(ours(3 * 8192, &bytes) && theirs(3 * 8192, &bytes));
        assert!(!ours(4 * 8192, &bytes));
        bytes[5000] ^= 1;
        assert!(!ours(3 * 8192, &bytes) && !theirs(3 * 8192, &bytes));
        assert!(!is_block(&[0; 8192], 5));
    }

    #[test]
    fn a_redo_block_is_intact_in_its_place_of_whichever_round() {
        let log_bytes = 16 * REDO_BLOCK_BYTES as u64;
        let mut bytes = vec![0; REDO_BLOCK_BYTES];
        let address = 7 * log_bytes + 2 * REDO_BLOCK_BYTES as u64;
        let header = RedoHeader { address, first: Lsn(1), index: 0, blocks: 1, payload_bytes: 9 };
        header.seal(5, &mut bytes);
        let verify = redo(5, log_bytes);
        assert!(verify(2 * REDO_BLOCK_BYTES as u64, &bytes));
        assert!(!verify(3 * REDO_BLOCK_BYTES as u64, &bytes));
        bytes[100] ^= 1;
        assert!(!verify(2 * REDO_BLOCK_BYTES as u64, &bytes));
    }
}
