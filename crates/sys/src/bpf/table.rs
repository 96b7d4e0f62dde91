//! Tables that programs in the kernel fill and this process reads: bpf(2) on maps, also in batches.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// What the kernel may fill in and read byte by byte.
///
/// # Safety
/// `repr(C)` without padding, and any bytes are a valid value.
pub unsafe trait Plain: Copy {}

// SAFETY: any bytes are a number, and a number has no padding.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Commands of bpf(2), linux/bpf.h.
#[derive(Clone, Copy)]
enum Command {
    Lookup = 1,
    Update = 2,
    Delete = 3,
    LookupAndDelete = 21,
    LookupBatch = 24,
}

/// The arguments of bpf(2) for one element.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The arguments of bpf(2) for many elements.
#[repr(C)]
struct Batch {
    from: u64,
    to: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

const BATCH: usize = 512;

#[derive(Debug)]
pub struct Table<K, V> {
    fd: OwnedFd,
    keys: Vec<MaybeUninit<K>>,
    values: Vec<MaybeUninit<V>>,
    types: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> Table<K, V> {
    /// The map behind `fd`; an error if its keys or values have other sizes than these types.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let sizes = sizes(&fd)?;
        if sizes != (size_of::<K>(), size_of::<V>()) {
            return Err(io::Error::other(format!("keys and values have {sizes:?} bytes")));
        }
        Ok(Self { fd, keys: Vec::new(), values: Vec::new(), types: PhantomData })
    }

    pub fn get(&self, key: &K) -> io::Result<Option<V>> {
        self.fetch(Command::Lookup, key)
    }

    /// Removes a key and returns the value it had last.
    pub fn take(&self, key: &K) -> io::Result<Option<V>> {
        self.fetch(Command::LookupAndDelete, key)
    }

    pub fn set(&self, key: &K, value: &V) -> io::Result<()> {
        call(Command::Update, &mut self.element(key, (&raw const *value).addr())).map(drop)
    }

    /// Removes a key, if it is there.
    pub fn remove(&self, key: &K) -> io::Result<()> {
        match call(Command::Delete, &mut self.element(key, 0)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    /// Gives every element once. Those that appear or go meanwhile may or may not be among them.
    pub fn each(&mut self, mut visit: impl FnMut(&K, &V)) -> io::Result<()> {
        self.reserve(BATCH);
        let mut place = [0_u64; 8];
        let mut is_first = true;
        loop {
            let before = place;
            let mut batch = Batch {
                from: if is_first { 0 } else { before.as_ptr().addr() as u64 },
                to: place.as_mut_ptr().addr() as u64,
                keys: self.keys.as_mut_ptr().addr() as u64,
                values: self.values.as_mut_ptr().addr() as u64,
                count: self.keys.len() as u32,
                map: self.fd.as_raw_fd() as u32,
                element_flags: 0,
                flags: 0,
            };
            let done = match call(Command::LookupBatch, &mut batch) {
                Ok(_) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                // One bucket of the map has more elements than there is room for.
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    self.reserve(self.keys.len() * 2);
                    place = before;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let count = (batch.count as usize).min(self.keys.len());
            for (key, value) in self.keys[..count].iter().zip(&self.values[..count]) {
                // SAFETY: the kernel filled the first `count` of both, and any bytes are valid.
                unsafe { visit(key.assume_init_ref(), value.assume_init_ref()) };
            }
            if done {
                return Ok(());
            }
            is_first = false;
        }
    }

    fn reserve(&mut self, count: usize) {
        self.keys.resize(count.max(self.keys.len()), MaybeUninit::uninit());
        self.values.resize(count.max(self.values.len()), MaybeUninit::uninit());
    }

    fn fetch(&self, command: Command, key: &K) -> io::Result<Option<V>> {
        let mut value = MaybeUninit::<V>::uninit();
        let mut element = self.element(key, value.as_mut_ptr().addr());
        match call(command, &mut element) {
            // SAFETY: the kernel filled it, and any bytes are valid.
            Ok(_) => Ok(Some(unsafe { value.assume_init() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn element(&self, key: &K, value: usize) -> Element {
        let key = (&raw const *key).addr() as u64;
        Element { map: self.fd.as_raw_fd() as u32, padding: 0, key, value: value as u64, flags: 0 }
    }
}

/// Bytes of a key and a value, from `/proc/self/fdinfo`.
fn sizes(fd: &OwnedFd) -> io::Result<(usize, usize)> {
    let text = std::fs::read(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let number = |key| crate::proc::numbers_after(&text, key)?.next();
    let both = number("key_size:").zip(number("value_size:"));
    let (key, value) = both.ok_or_else(|| io::Error::other("it is no map"))?;
    Ok((key as usize, value as usize))
}

fn call<T>(command: Command, arguments: &mut T) -> io::Result<i64> {
    let arguments = (&raw mut *arguments).cast::<libc::c_void>();
    // SAFETY: `arguments` is what the command takes, of the size given; addresses in it point to
    // memory that lives during the call and has the map's sizes, which `Table::new` checked.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, arguments, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
