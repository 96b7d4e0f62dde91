//! Files that copies leave next to their targets, and the manifests that they write.

use std::path::PathBuf;

use blockstone_copy::file::Chunk;
use blockstone_copy::file::manifest::{self, Entry};
use blockstone_copy::file::resume::{Claims, Identity, PartIdentity};

fn chunks() -> Vec<Chunk> {
    let chunk = |number: u64| Chunk {
        offset_bytes: number * 4096,
        len_bytes: if number == 5 { 100 } else { 4096 },
        xxh3_128: u128::from(number) << 77,
    };
    (0..6).map(chunk).collect()
}

pub fn sidecars() -> Vec<Vec<u8>> {
    let source = Identity {
        device: 1,
        inode: 2,
        size_bytes: 5 * 4096 + 100,
        modified_ns: -5,
        changed_ns: 1_700_000_000_000_000_000,
    };
    let part = PartIdentity { device: 1, inode: 3, born_ns: 1_700_000_000_000_000_000 };
    [&chunks()[..0], &chunks()].map(|chunks| Claims::encode(&source, &part, 4096, chunks)).into()
}

pub fn sidecar(input: &[u8]) -> bool {
    let Some(claims) = Claims::parse(input) else { return false };
    let ends = claims.chunks.values().map(|it| it.offset_bytes + u64::from(it.len_bytes));
    let last = ends.max().unwrap_or(0);
    assert!(last <= claims.source.size_bytes, "a claim beyond the end");
    assert!(claims.whole_bytes <= input.len() as u64, "more than there is");
    true
}

pub fn manifests() -> Vec<Vec<u8>> {
    let entry = |chunks: Vec<Chunk>| {
        let entry = Entry { path: PathBuf::from("a/b"), size_bytes: 5 * 4096 + 100, chunks };
        let mut line = Vec::new();
        manifest::write(&mut line, &entry).expect("a vector takes it");
        line
    };
    vec![entry(Vec::new()), entry(chunks())]
}

pub fn manifest(input: &[u8]) -> bool {
    let Ok(entry) = manifest::parse(input) else { return false };
    let mut line = Vec::new();
    manifest::write(&mut line, &entry).expect("a vector takes it");
    assert_eq!(manifest::parse(&line), Ok(entry), "what was read is written and read again");
    true
}
