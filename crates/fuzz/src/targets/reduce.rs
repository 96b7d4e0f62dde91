//! Models of arrays, and pages of databases.

use blockstone_reduce::model::{BUILT_IN, Model};
use blockstone_reduce::page::{Fields, PageUse, recognise, registry};

pub fn models() -> Vec<Vec<u8>> {
    BUILT_IN.iter().map(|(_, text)| text.as_bytes().to_vec()).collect()
}

pub fn model(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    Model::parse("fuzz", text).is_ok()
}

/// Returns two pages of each format.
pub fn pages() -> Vec<Vec<u8>> {
    let mut seeds = vec![innodb(), oracle(), postgres()];
    let instance = super::instance::blocks().concat();
    let stamped = super::instance::stamps().concat();
    seeds.extend([instance, stamped]);
    seeds
}

fn oracle() -> Vec<u8> {
    let block = |number: u8| {
        let mut block = vec![0; 8192];
        block[..5].copy_from_slice(&[6, 0xa2, 0, 0, number]);
        block[8..12].copy_from_slice(&77_u32.to_le_bytes());
        block[14..18].copy_from_slice(&[1, 4, 77, 9]);
        block[36] = 2;
        block[44..92].fill(7);
        block[8188..].copy_from_slice(&(77_u32 << 16 | 0x601).to_le_bytes());
        block
    };
    [block(1), block(2)].concat()
}

fn innodb() -> Vec<u8> {
    let page = |number: u8, kind: u16| {
        let mut page = vec![0; 4096];
        page[7] = number;
        page[16..24].copy_from_slice(&0x0102_0304_0506_u64.to_be_bytes());
        page[24..26].copy_from_slice(&kind.to_be_bytes());
        page[4092..].copy_from_slice(&0x0304_0506_u32.to_be_bytes());
        page
    };
    let (mut first, mut leaf) = (page(0, 8), page(2, 17855));
    first[46..50].copy_from_slice(&8_u32.to_be_bytes());
    first[50..54].copy_from_slice(&8_u32.to_be_bytes());
    first[54..58].copy_from_slice(&3_u32.wrapping_shl(6).to_be_bytes());
    leaf[42] = 0x80;
    leaf[55] = 5;
    // Five rows of 40 bytes in a chain, each with a plausible pair after a key of 4 bytes.
    leaf[97..99].copy_from_slice(&101_u16.to_be_bytes());
    for row in 0..5_usize {
        let at = 200 + row * 40;
        let next = if row == 4 { 112_u16.wrapping_sub(at as u16) } else { 40 };
        leaf[at - 2..at].copy_from_slice(&next.to_be_bytes());
        leaf[at + 4..at + 10].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
        leaf[at + 10..at + 17].copy_from_slice(&[1, 0, 0, 0, 7, 0, 100]);
    }
    [first, page(1, 5), leaf].concat()
}

fn postgres() -> Vec<u8> {
    let page = |lsn: u32| {
        let mut page = vec![0; 8192];
        page[4..8].copy_from_slice(&lsn.to_le_bytes());
        // Flags, lower, upper, special, size and version.
        page[12..20].copy_from_slice(&[32, 0, 0x80, 0x1f, 0, 0x20, 4, 0x20]);
        for (item, at) in [(24, 0x1fc0_u32), (28, 0x1f80)] {
            let pointer = at | 1 << 15 | 60 << 17;
            page[item..item + 4].copy_from_slice(&pointer.to_le_bytes());
            let at = at as usize;
            page[at..at + 4].copy_from_slice(&700_u32.to_le_bytes());
            page[at + 18] = 2;
            page[at + 22] = 24;
        }
        page
    };
    [page(5), page(9)].concat()
}

/// Does what a scan does with a file: recognises it, then looks at its pages.
pub fn page(input: &[u8]) -> bool {
    let mut fields = Fields::default();
    let mut known = false;
    let found = recognise(input);
    let sizes = found.map(|found| found.page_bytes).into_iter().chain([4096, 8192]);
    for size in sizes {
        for page in input.chunks_exact(size) {
            for format in registry::ALL {
                fields.clear();
                known |= (format.look)(page, &mut fields) != PageUse::Unknown;
                let mut ends = fields.ranges().iter().map(|(_, range)| range.end);
                assert!(ends.all(|end| end <= page.len()), "a field ends behind its page");
            }
        }
    }
    known
}
