//! The kernel's caches of small objects (slabs): entries of directories, inodes and the like.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::proc::under;

/// Objects of one cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slab {
    /// Objects in use, of all processes.
    pub objects: u64,
    /// Bytes of memory for one object, including its share of what the slab wastes.
    pub object_bytes: f64,
}

/// Returns all caches by name, from /proc/slabinfo, which only root may read.
pub fn slabs(root: &Path) -> io::Result<BTreeMap<String, Slab>> {
    Ok(parse(&fs::read_to_string(under(root, "/proc/slabinfo"))?))
}

fn parse(text: &str) -> BTreeMap<String, Slab> {
    let slab = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (objects, _, _) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let (per_slab, pages) = (numbers.next()?, numbers.next()?);
        let page_bytes = rustix::param::page_size() as f64;
        let object_bytes = pages as f64 * page_bytes / per_slab.max(1) as f64;
        Some((name.to_owned(), Slab { objects, object_bytes }))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(slab).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_with_the_memory_of_an_object() {
        let text = "slabinfo - version: 2.1\n\
                    # name            <active_objs> <num_objs> <objsize> <objperslab> …\n\
                    ext4_inode_cache    300    324   1192   27    8 : tunables    0    0    0 : \
                    slabdata     12     12      0\n\
                    dentry            21000  21000    192   21    1 : tunables    0    0    0 : \
                    slabdata   1000   1000      0\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found["dentry"].objects, 21_000);
        let page = rustix::param::page_size() as f64;
        assert!((found["dentry"].object_bytes - page / 21.0).abs() < 1e-9);
    }
}
