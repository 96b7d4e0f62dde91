//! How long threads of this process wait for the locks of some files: the `i_rwsem` of their
//! inodes, which file systems take around reads and writes. docs/bpf.md has the definitions.

use std::fs::File;
use std::path::Path;

use super::load::Loaded;
use super::table::{Plain, Table};
use super::watch::{Watched, own};
use super::{BpfError, count, object, on, open};
use crate::proc::under;

const FRAMES: usize = 16;

/// Waits for the lock of one file, cumulative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waits for shared access.
    pub shared: u64,
    pub shared_ns: u64,
    /// Waits for exclusive access.
    pub exclusive: u64,
    pub exclusive_ns: u64,
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for Waits {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Stack {
    taken: u64,
    frames: [u64; FRAMES],
}

// SAFETY: u64 throughout, and any bytes are valid numbers.
unsafe impl Plain for Stack {}

const EMPTY: Stack = Stack { taken: 0, frames: [0; FRAMES] };

/// Attached in this order, so that the end of a wait is seen if its start is.
const PROGRAMS: [&str; 4] = ["contention_end", "sched_waking", "contention_begin", "sys_enter"];

/// Counts waits until it is dropped, for the files that it holds open.
#[derive(Debug)]
pub struct LockTracer {
    waits: Table<u32, Waits>,
    stack: Table<u32, Stack>,
    holder: Table<u32, Stack>,
    dropped: Table<u32, u64>,
    watched: Watched,
    _loaded: Loaded,
}

impl LockTracer {
    /// Watches the threads of this process. Fails if the kernel does not accept the programs, or if
    /// it is a real-time kernel, whose locks cannot be told apart.
    pub fn start() -> Result<Self, BpfError> {
        if is_real_time(Path::new("/")) {
            let why = "the locks of a real-time kernel have other addresses".to_owned();
            return Err(BpfError::Missing { why });
        }
        let mut loaded = Loaded::new(object!("order"))?;
        own(&loaded, true)?;
        loaded.attach(&PROGRAMS, [])?;
        Ok(Self {
            waits: open(&loaded, "waits")?,
            stack: open(&loaded, "stack")?,
            holder: open(&loaded, "holder")?,
            dropped: open(&loaded, "dropped")?,
            watched: Watched::open(&loaded)?,
            _loaded: loaded,
        })
    }

    /// Counts waits for the lock of this file too from now on, and returns its number. Fails when
    /// there are too many, or when the kernel's program did not see it.
    pub fn watch(&mut self, file: File) -> Result<usize, BpfError> {
        let number = self.watched.add(file)?;
        self.waits.set(&(number as u32), &Waits::default()).map_err(on("write", "waits"))?;
        Ok(number)
    }

    /// Returns the waits for the lock of one file.
    pub fn waits(&self, number: usize) -> Result<Waits, BpfError> {
        let waits = self.waits.get(&(number as u32)).map_err(on("read", "waits"))?;
        Ok(waits.unwrap_or_default())
    }

    /// Forgets all files and their counts.
    pub fn forget(&mut self) -> Result<(), BpfError> {
        self.watched.clear()?;
        self.stack.set(&0, &EMPTY).map_err(on("write", "stack"))?;
        self.holder.set(&0, &EMPTY).map_err(on("write", "holder"))
    }

    /// Returns the kernel stack of the first thread that waited since the files were forgotten: its
    /// addresses, innermost first.
    pub fn first_stack(&self) -> Result<Vec<u64>, BpfError> {
        Ok(addresses(self.stack.get(&0).map_err(on("read", "stack"))?))
    }

    /// Returns the kernel stack of the thread that let the first waiter continue.
    pub fn first_holder(&self) -> Result<Vec<u64>, BpfError> {
        Ok(addresses(self.holder.get(&0).map_err(on("read", "holder"))?))
    }

    /// Returns the number of waits not counted because a table was full.
    pub fn dropped(&self) -> u64 {
        count(&self.dropped)
    }
}

fn addresses(stack: Option<Stack>) -> Vec<u64> {
    let frames = stack.unwrap_or(EMPTY).frames;
    frames.into_iter().take_while(|&frame| frame != 0).collect()
}

/// Returns whether the kernel was built with `PREEMPT_RT`.
fn is_real_time(root: &Path) -> bool {
    let version = std::fs::read_to_string(under(root, "/proc/version"));
    version.is_ok_and(|version| version.contains("PREEMPT_RT"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::thread;

    use blockstone_testkit::{ScratchDir, require};

    use super::*;

    /// Writes through the page cache, holding the lock exclusively while it copies a mebibyte.
    fn write(file: &File, times: usize) {
        let data = vec![7; 1 << 20];
        for _ in 0..times {
            file.write_all_at(&data, 0).unwrap();
        }
    }

    #[test]
    fn waits_for_the_lock_of_a_watched_file_are_counted() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let files = ["one", "two"].map(|name| File::create(scratch.path().join(name)).unwrap());
        let mut tracer = LockTracer::start().unwrap();
        for (number, file) in files.iter().enumerate() {
            assert_eq!(tracer.watch(file.try_clone().unwrap()).unwrap(), number);
        }
        let waited = || {
            thread::scope(|scope| {
                (0..6).for_each(|_| drop(scope.spawn(|| write(&files[0], 50))));
            });
            tracer.waits(0).unwrap().exclusive > 0
        };
        assert!((0..20).any(|_| waited()), "six writers never waited for each other");
        let waits = tracer.waits(0).unwrap();
        assert!(waits.exclusive_ns > 0 && waits.shared == 0, "{waits:?}");
        assert!(!tracer.first_stack().unwrap().is_empty());
        assert!(!tracer.first_holder().unwrap().is_empty());
        assert_eq!(tracer.waits(1).unwrap(), Waits::default(), "it is not written to");
        assert_eq!(tracer.dropped(), 0);
        tracer.forget().unwrap();
        assert!(tracer.first_stack().unwrap().is_empty());
        assert!(tracer.first_holder().unwrap().is_empty());
        assert_eq!(tracer.watch(files[0].try_clone().unwrap()).unwrap(), 0);
        assert_eq!(tracer.waits(0).unwrap(), Waits::default());
    }
}
