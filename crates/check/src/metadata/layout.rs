//! Location and names of files. Names are derived from shape, rank and number: none is stored, so a
//! hundred million files take no memory here.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::metadata::findings::Shape;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// Number of files in a directory of a tree, and of such directories in a branch.
const LEAF: u64 = 256;
const BRANCH: u64 = 64;
/// Digits of a rank in a name.
const OWNER_DIGITS: usize = 4;
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o700);
pub const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A short relative path, without allocation.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    bytes: [u8; 40],
    len: usize,
}

impl Name {
    fn new() -> Self {
        Self { bytes: [0; 40], len: 0 }
    }

    fn push(&mut self, letter: u8) {
        self.bytes[self.len] = letter;
        self.len += 1;
    }

    fn number(&mut self, number: u64, digits: usize) {
        let mut rest = number;
        for at in (self.len..self.len + digits).rev() {
            self.bytes[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.len += digits;
    }

    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Kind of name that a file or directory may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File = b'f' as isize,
    Renamed = b'g' as isize,
    Linked = b'h' as isize,
    Synced = b's' as isize,
    Directory = b'm' as isize,
    Missing = b'x' as isize,
}

/// The directories of a shape, held open.
#[derive(Debug)]
pub struct Dirs {
    pub shape: Shape,
    roots: Vec<OwnedFd>,
}

impl Dirs {
    /// Makes the directories in `parent`.
    pub fn make(parent: BorrowedFd, shape: Shape, ranks: u32) -> io::Result<Self> {
        let made = |name: &str| -> io::Result<OwnedFd> {
            mkdirat(parent, name, DIRECTORY_MODE)?;
            Ok(openat(parent, name, DIRECTORY, Mode::empty())?)
        };
        let roots = match shape {
            Shape::One => vec![made(shape.name())?],
            Shape::Own | Shape::Tree => {
                let name = |rank| format!("{}-{rank:04}", shape.name());
                (0..ranks).map(|rank| made(&name(rank))).collect::<io::Result<_>>()?
            }
        };
        Ok(Self { shape, roots })
    }

    /// Returns the directory below which the files of `owner` are.
    pub fn root(&self, owner: u32) -> BorrowedFd<'_> {
        self.roots[owner as usize % self.roots.len()].as_fd()
    }

    /// Returns the path of file `number` of `owner`, from [`Self::root`].
    pub fn path(&self, kind: Kind, owner: u32, number: u64) -> Name {
        let mut name = Name::new();
        if self.shape == Shape::Tree {
            branch(&mut name, number / LEAF / BRANCH);
            leaf(&mut name, number / LEAF);
        }
        name.push(kind as u8);
        name.number(owner.into(), OWNER_DIGITS);
        name.number(number, 9);
        name
    }

    /// Returns the directory of file `number`, relative to [`Self::root`].
    fn leaf_of(&self, number: u64) -> Option<Name> {
        (self.shape == Shape::Tree).then(|| {
            let mut name = Name::new();
            branch(&mut name, number / LEAF / BRANCH);
            leaf(&mut name, number / LEAF);
            name
        })
    }

    /// Makes the directory of file `number`, if it is the first there.
    pub fn prepare(&self, owner: u32, number: u64) -> Result<(), Errno> {
        let Some(leaf) = self.leaf_of(number).filter(|_| number.is_multiple_of(LEAF)) else {
            return Ok(());
        };
        let mut above = Name::new();
        branch(&mut above, number / LEAF / BRANCH);
        for name in [above, leaf] {
            match mkdirat(self.root(owner), name.as_c_str(), DIRECTORY_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Opens the directory of file `number`, if it is not [`Self::root`].
    pub fn open_leaf(&self, owner: u32, number: u64) -> Result<Option<OwnedFd>, Errno> {
        let Some(leaf) = self.leaf_of(number) else { return Ok(None) };
        Ok(Some(openat(self.root(owner), leaf.as_c_str(), DIRECTORY, Mode::empty())?))
    }

    /// Returns the directories of the first `files` files of `owner`, by the first file of each.
    pub fn leaves(&self, files: u64) -> impl Iterator<Item = u64> {
        let step = if self.shape == Shape::Tree { LEAF } else { files.max(1) };
        (0..files).step_by(step as usize)
    }
}

fn branch(name: &mut Name, number: u64) {
    name.push(b'b');
    name.number(number, 5);
    name.push(b'/');
}

fn leaf(name: &mut Name, number: u64) {
    name.push(b'd');
    name.number(number, 7);
    name.push(b'/');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_tell_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::fs::File::open(dir.path()).unwrap();
        let one = Dirs::make(held.as_fd(), Shape::One, 3).unwrap();
        let tree = Dirs::make(held.as_fd(), Shape::Tree, 3).unwrap();
        let text = |name: Name| name.as_c_str().to_str().unwrap().to_owned();
        assert_eq!(text(one.path(Kind::File, 2, 77)), "f0002000000077");
        let deep = text(tree.path(Kind::Renamed, 4_095, 999_999_999));
        assert_eq!(deep, "b61035/d3906249/g4095999999999");
        tree.prepare(2, 256).unwrap();
        assert!(dir.path().join("tree-0002/b00000/d0000001").is_dir());
        assert_eq!(tree.leaves(600).collect::<Vec<_>>(), [0, 256, 512]);
        assert_eq!(one.leaves(600).collect::<Vec<_>>(), [0]);
    }
}
