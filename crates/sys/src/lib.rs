//! The operating system as Blockstone sees it: block files, I/O memory, io_uring and the monotonic
//! clock on one side; devices, file systems, control groups, extents and processor time on the
//! other.
//!
//! All of Blockstone's `unsafe` is here, behind interfaces that cannot be misused. This crate knows
//! nothing about loads, latencies or recordings: it reports what the kernel returned, and names the
//! path, the operation and a hint if the kernel refused. Readers of /proc and /sys take the root
//! directory as a parameter, so that another machine can be read from a copy.
//!
//! The main types are [`file::BlockFile`], [`buffer::Arena`] and [`ring::Ring`].
//!
//! ```
//! use blockstone_sys::{buffer::Arena, file::BlockFile};
//!
//! let dir = tempfile::tempdir()?;
//! let file = BlockFile::create_new(&dir.path().join("data"), false)?;
//! let mut arena = Arena::new(1, 8192)?;
//! arena.slot(0).fill(7);
//! assert_eq!(file.write_dsync_at(0, arena.slot(0)), Ok(8192));
//! assert_eq!(file.size_bytes()?, 8192);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(unsafe_code)]

pub mod account;
pub mod batch;
pub mod blocked;
pub mod bpf;
pub mod buffer;
pub mod cached;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod descriptors;
pub mod fiemap;
pub mod file;
pub mod free_space;
pub mod heap;
pub mod held;
pub mod input;
pub mod mapped;
pub mod meeting;
pub mod memory;
mod mounts;
pub mod netns;
pub mod nvme;
pub mod output;
pub mod page_cache;
pub mod path;
pub mod peer;
pub mod perf;
pub mod proc;
pub mod process;
pub mod processors;
pub mod random;
pub mod range_lock;
pub mod ring;
pub mod scratch;
pub mod secret;
pub mod slab;
#[cfg(feature = "sqlite")]
pub mod sqlite_vfs;
pub mod survey;
pub mod tcp;
pub mod thread;
#[cfg(test)]
mod tree;
pub mod unix_sockets;
pub mod usage;
pub mod waiting;
