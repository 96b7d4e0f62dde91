//! Tables that programs in the kernel fill and this process reads: bpf(2) on maps, also in batches.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// Data that the kernel may fill in and read byte by byte.
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
// SAFETY: it has no bytes. The key of a stack.
unsafe impl Plain for () {}

/// Commands of bpf(2), linux/bpf.h.
#[derive(Clone, Copy)]
enum Command {
    Lookup = 1,
    Update = 2,
    Delete = 3,
    LookupAndDelete = 21,
    LookupBatch = 24,
}

/// The arguments of bpf(2) for one element. Addresses are pointers, not numbers: the compiler must
/// know that the kernel reads and writes what they point to.
#[repr(C)]
struct Element<K, V> {
    map: u32,
    padding: u32,
    key: *const K,
    value: *mut V,
    flags: u64,
}

/// The arguments of bpf(2) for many elements.
#[repr(C)]
struct Batch<K, V> {
    from: *const u64,
    to: *mut u64,
    keys: *mut MaybeUninit<K>,
    values: *mut MaybeUninit<V>,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// The kernel's union of arguments has 64 bits for each address.
const _: () = assert!(size_of::<Element<u8, u8>>() == 32 && size_of::<Batch<u8, u8>>() == 56);

const BATCH: usize = 512;

#[derive(Debug)]
pub struct Table<K, V> {
    fd: OwnedFd,
    keys: Vec<MaybeUninit<K>>,
    values: Vec<MaybeUninit<V>>,
    types: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> Table<K, V> {
    /// Wraps the map behind `fd`; fails if its keys or values differ in size from these types.
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

    /// Removes a key and returns its last value.
    pub fn take(&self, key: &K) -> io::Result<Option<V>> {
        self.fetch(Command::LookupAndDelete, key)
    }

    pub fn set(&self, key: &K, value: &V) -> io::Result<()> {
        // The kernel only reads it.
        let value = (&raw const *value).cast_mut();
        bpf(Command::Update, &mut self.element(key, value)).map(drop)
    }

    /// Removes a key, if it exists.
    pub fn remove(&self, key: &K) -> io::Result<()> {
        match bpf(Command::Delete, &mut self.element(key, ptr::null_mut())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    /// Visits every element once. Elements that are added or removed meanwhile may or may not be
    /// included.
    pub fn each(&mut self, mut visit: impl FnMut(&K, &V)) -> io::Result<()> {
        self.reserve(BATCH);
        let mut place = [0_u64; 8];
        let mut is_first = true;
        loop {
            let before = place;
            let mut batch = Batch {
                from: if is_first { ptr::null() } else { before.as_ptr() },
                to: place.as_mut_ptr(),
                keys: self.keys.as_mut_ptr(),
                values: self.values.as_mut_ptr(),
                count: self.keys.len() as u32,
                map: self.fd.as_raw_fd() as u32,
                element_flags: 0,
                flags: 0,
            };
            let done = match bpf(Command::LookupBatch, &mut batch) {
                Ok(_) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                // One bucket of the map has more elements than fit.
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
        let mut element = self.element(key, value.as_mut_ptr());
        match bpf(command, &mut element) {
            // SAFETY: the kernel filled it, and any bytes are valid.
            Ok(_) => Ok(Some(unsafe { value.assume_init() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn element(&self, key: &K, value: *mut V) -> Element<K, V> {
        // The kernel takes no address of a key that has no bytes.
        let key = if size_of::<K>() == 0 { ptr::null() } else { ptr::from_ref(key) };
        Element { map: self.fd.as_raw_fd() as u32, padding: 0, key, value, flags: 0 }
    }
}

/// Returns the sizes in bytes of a key and a value, from `/proc/self/fdinfo`.
fn sizes(fd: &OwnedFd) -> io::Result<(usize, usize)> {
    let text = std::fs::read(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let number = |key| crate::proc::numbers_after(&text, key)?.next();
    let both = number("key_size:").zip(number("value_size:"));
    let (key, value) = both.ok_or_else(|| io::Error::other("it is not a map"))?;
    Ok((key as usize, value as usize))
}

#[cfg(all(test, miri))]
use tests::bpf;

#[cfg(not(all(test, miri)))]
fn bpf<T>(command: Command, arguments: &mut T) -> io::Result<i64> {
    let arguments = (&raw mut *arguments).cast::<libc::c_void>();
    // SAFETY: `arguments` is what the command takes, of the size given; its addresses point to
    // memory that lives during the call and has the map's sizes, which `Table::new` checked.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, arguments, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A stand-in for the kernel's map in this process, for Miri, which has no bpf(2) and checks that
/// each address passed to it may be read and written. `cargo +nightly miri test -p blockstone-sys
/// --no-default-features bpf::table`, with `MIRIFLAGS=-Zmiri-disable-isolation`.
#[cfg(all(test, miri))]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    thread_local! {
        static MAP: RefCell<BTreeMap<u32, u64>> = RefCell::default();
    }

    pub fn bpf<T>(command: Command, arguments: &mut T) -> io::Result<i64> {
        let arguments = &raw mut *arguments;
        MAP.with_borrow_mut(|map| match command {
            // SAFETY: like the kernel, this trusts that the arguments fit the command.
            Command::LookupBatch => unsafe { batch(map, &mut *arguments.cast()) },
            // SAFETY: as above.
            _ => unsafe { element(map, command, &*arguments.cast()) },
        })
    }

    /// # Safety
    /// The element's addresses may be read, and also written if the command writes.
    unsafe fn element(
        map: &mut BTreeMap<u32, u64>,
        command: Command,
        element: &Element<u32, u64>,
    ) -> io::Result<i64> {
        // SAFETY: promised by the caller.
        let key = unsafe { element.key.read() };
        let found = match command {
            Command::Update => {
                // SAFETY: promised by the caller.
                map.insert(key, unsafe { element.value.read() });
                return Ok(0);
            }
            Command::Lookup => map.get(&key).copied(),
            _ => map.remove(&key),
        };
        let found = found.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        if !matches!(command, Command::Delete) {
            // SAFETY: promised by the caller.
            unsafe { element.value.write(found) };
        }
        Ok(0)
    }

    /// # Safety
    /// The batch's addresses may be read and written.
    unsafe fn batch(map: &BTreeMap<u32, u64>, batch: &mut Batch<u32, u64>) -> io::Result<i64> {
        // SAFETY: promised by the caller.
        let start = if batch.from.is_null() { 0 } else { unsafe { batch.from.read() } };
        let rest: Vec<_> = map.iter().skip(start as usize).take(batch.count as usize).collect();
        for (at, (key, value)) in rest.iter().enumerate() {
            // SAFETY: promised by the caller, for `count` of both.
            unsafe {
                batch.keys.add(at).write(MaybeUninit::new(**key));
                batch.values.add(at).write(MaybeUninit::new(**value));
            }
        }
        let end = start as usize + rest.len();
        // SAFETY: promised by the caller.
        unsafe { batch.to.write(end as u64) };
        batch.count = rest.len() as u32;
        if end == map.len() { Err(io::ErrorKind::NotFound.into()) } else { Ok(0) }
    }

    #[test]
    fn what_the_kernel_reads_and_writes_is_what_was_pointed_to() {
        let fd = std::fs::File::open("/dev/null").unwrap().into();
        let mut table: Table<u32, u64> =
            Table { fd, keys: Vec::new(), values: Vec::new(), types: PhantomData };
        for key in 0..600 {
            table.set(&key, &(u64::from(key) * 3)).unwrap();
        }
        assert_eq!(table.get(&7).unwrap(), Some(21));
        assert_eq!(table.take(&7).unwrap(), Some(21));
        assert_eq!(table.get(&7).unwrap(), None);
        table.remove(&8).unwrap();
        table.remove(&8).unwrap();
        let mut seen = Vec::new();
        table.each(|key, value| seen.push((*key, *value))).unwrap();
        assert_eq!(seen.len(), 598);
        assert!(seen.iter().all(|(key, value)| *value == u64::from(*key) * 3));
    }
}
