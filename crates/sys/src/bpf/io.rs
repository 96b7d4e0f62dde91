//! Storage I/O counted inside the kernel, where it is requested and where it reaches a device, by
//! thread, file, operation and mode. docs/bpf.md has the definitions.

use std::collections::BTreeSet;

use super::file::{FileKey, Files, text};
use super::follow::{self, Followed};
use super::load::Loaded;
use super::table::{Plain, Table};
use super::{Audit, BpfError, Cost, Device, Subject, object, on, open};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Requests to block devices.
    Block,
    SystemCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    Write,
    /// Makes the device, or the system, persist earlier writes.
    Flush,
    /// Returns blocks to the device.
    Discard,
    /// Submits requests that complete later: `io_uring_enter` and `io_submit`.
    Submit,
}

/// Whether a thread waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    Synchronous,
    /// No thread waits, or one waits for several requests together.
    Asynchronous,
}

/// Origin and kind of an I/O, in the kernel's representation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoKey {
    file: FileKey,
    pub tgid: u32,
    pub tid: u32,
    layer: u8,
    operation: u8,
    mode: u8,
    kind: u8,
    zero: u32,
}

// SAFETY: its fields fill 32 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for IoKey {}

/// Latency buckets: below 2¹⁰ ns, then four per power of two, then from 2³⁴ ns (17 s) on.
pub const BUCKETS: usize = 98;

/// Sums for one key, cumulative since the start.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoTotals {
    key: IoKey,
    started: u64,
    /// Total nanoseconds of requests from the start to the device's driver.
    pub queue_ns: u64,
    /// Total nanoseconds from the driver to the completion; of calls, all of their time.
    pub device_ns: u64,
    pub bytes: u64,
    pub asked_bytes: u64,
    /// Requests handed over by submitting calls.
    pub submitted: u64,
    /// I/Os by elapsed time; [`bucket_start_ns`] returns where each bucket starts.
    pub buckets: [u64; BUCKETS],
    comm: [u8; 16],
    /// Up to whole cache lines.
    nothing: [u64; 2],
}

// SAFETY: a plain key of 32 bytes, u64 and 16 bytes of text, so without padding, and any bytes are
// valid numbers.
unsafe impl Plain for IoTotals {}

/// Returns the lowest latency of a bucket in nanoseconds.
pub const fn bucket_start_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 0;
    }
    (4 + (bucket as u64 - 1) % 4) << (8 + (bucket - 1) / 4)
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Settings {
    filtered: u32,
    calls: u32,
}

// SAFETY: its fields fill 8 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for Settings {}

/// Attached in this order, so that the end of a request or call is seen if its start is.
const BLOCK_PROGRAMS: [&str; 4] =
    ["block_io_done", "block_rq_merge", "block_rq_issue", "block_io_start"];
const CALL_PROGRAMS: [&str; 2] = ["sys_exit", "sys_enter"];

/// Counts I/O until it is dropped.
#[derive(Debug)]
pub struct IoTracer {
    /// The number of each key: where its sums are.
    numbers: Table<IoKey, u32>,
    totals: Table<u32, IoTotals>,
    /// Numbers of removed keys, to be given again.
    returned: Table<(), u32>,
    files: Files,
    followed: Followed,
    settings: Table<u32, Settings>,
    system_calls: bool,
    dropped: Table<u32, u64>,
    /// Processes set by [`Self::want`] so far.
    set: BTreeSet<u32>,
    loaded: Loaded,
}

impl IoTracer {
    /// Starts to count block requests, and system calls if wanted, of the processes in `tgids`.
    /// Fails when the kernel does not accept the programs.
    pub fn start(system_calls: bool, tgids: &BTreeSet<u32>) -> Result<Self, BpfError> {
        let loaded = Loaded::new(object!("io"))?;
        let mut tracer = Self {
            numbers: open(&loaded, "numbers")?,
            totals: open(&loaded, "totals")?,
            returned: open(&loaded, "returned")?,
            files: Files::open(&loaded)?,
            followed: Followed::open(&loaded)?,
            settings: open(&loaded, "settings")?,
            system_calls,
            dropped: open(&loaded, "dropped")?,
            set: BTreeSet::new(),
            loaded,
        };
        tracer.want(tgids)?;
        let calls: &[&str] = if system_calls { &CALL_PROGRAMS } else { &[] };
        tracer.loaded.attach(&[&follow::PROGRAMS, &BLOCK_PROGRAMS[..], calls].concat(), [])?;
        Ok(tracer)
    }

    /// Counts these processes and their future children from now on, and kernel threads at the
    /// block layer; with an empty set, all processes. Fails when there is no room for that many.
    pub fn want(&mut self, tgids: &BTreeSet<u32>) -> Result<(), BpfError> {
        self.followed.forget(self.set.difference(tgids))?;
        self.followed.want(tgids)?;
        let (filtered, calls) = (u32::from(!tgids.is_empty()), u32::from(self.system_calls));
        let settings = Settings { filtered, calls };
        self.settings.set(&0, &settings).map_err(on("write", "settings"))?;
        self.set.clone_from(tgids);
        Ok(())
    }

    /// Visits the current sums of every key.
    pub fn each(&mut self, mut visit: impl FnMut(&IoKey, &IoTotals)) -> Result<(), BpfError> {
        let mut failed = None;
        let each = self.numbers.each(|key, number| match self.totals.get(number) {
            Ok(Some(totals)) => visit(key, &totals),
            Ok(None) => {}
            Err(error) => failed = Some(error),
        });
        each.map_err(on("read", "numbers"))?;
        failed.map_or(Ok(()), Err).map_err(on("read", "totals"))
    }

    /// Removes a key and returns its last sums. Nothing may be counted under it any more.
    pub fn take(&self, key: &IoKey) -> Result<Option<IoTotals>, BpfError> {
        let number = self.numbers.take(key).map_err(on("read", "numbers"))?;
        let Some(number) = number else { return Ok(None) };
        let last = self.totals.get(&number).map_err(on("read", "totals"))?;
        // Its key goes with the sums, or the programs would still find it.
        self.totals.set(&number, &IoTotals::NONE).map_err(on("write", "totals"))?;
        self.returned.set(&(), &number).map_err(on("write", "returned"))?;
        Ok(last)
    }

    /// Returns the path of a key's file within its file system when first seen; `None` if it has no
    /// name.
    pub fn path_of(&self, key: &IoKey) -> Result<Option<String>, BpfError> {
        self.files.path_of(&key.file, key.kind)
    }

    pub fn audit(&self) -> Audit {
        Audit::of(&self.dropped, &self.loaded)
    }

    /// Returns what each program cost while the kernel measured, if it does for this user.
    pub fn costs(&self) -> Option<Vec<Cost>> {
        self.loaded.costs()
    }
}

impl IoKey {
    pub fn layer(&self) -> Layer {
        if self.layer == 0 { Layer::Block } else { Layer::SystemCall }
    }

    pub fn operation(&self) -> Operation {
        match self.operation {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Flush,
            3 => Operation::Discard,
            _ => Operation::Submit,
        }
    }

    pub fn mode(&self) -> Mode {
        if self.mode == 0 { Mode::Synchronous } else { Mode::Asynchronous }
    }

    pub fn subject(&self) -> Subject {
        self.file.subject(self.kind)
    }

    /// Returns the device, or the one that holds the file.
    pub fn device(&self) -> Device {
        self.file.device()
    }
}

impl IoTotals {
    const NONE: Self = Self {
        key: IoKey {
            file: FileKey::NONE,
            tgid: 0,
            tid: 0,
            layer: 0,
            operation: 0,
            mode: 0,
            kind: 0,
            zero: 0,
        },
        started: 0,
        queue_ns: 0,
        device_ns: 0,
        bytes: 0,
        asked_bytes: 0,
        submitted: 0,
        buckets: [0; BUCKETS],
        comm: [0; 16],
        nothing: [0; 2],
    };

    /// Returns the number of I/Os completed: each is in one bucket.
    pub fn ios(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the number of requests started and not completed; calls count when they end.
    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ios())
    }

    /// Returns the total nanoseconds from the start to the completion.
    pub fn elapsed_ns(&self) -> u64 {
        self.queue_ns + self.device_ns
    }

    /// Returns the name of the thread when it was first seen.
    pub fn comm(&self) -> String {
        text(&self.comm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bucket in which the kernel program counts a latency.
    fn bucket_of(ns: u64) -> usize {
        match ns {
            ..0x400 => 0,
            0x400..0x4_0000_0000 => {
                let octave = ns.ilog2();
                1 + (octave as usize - 10) * 4 + (ns >> (octave - 2) & 3) as usize
            }
            _ => BUCKETS - 1,
        }
    }

    #[test]
    fn each_latency_lies_within_its_bucket() {
        for bucket in 0..BUCKETS {
            let start_ns = bucket_start_ns(bucket);
            assert_eq!(bucket_of(start_ns), bucket);
            if bucket > 0 {
                assert_eq!(bucket_of(start_ns - 1), bucket - 1);
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket_start_ns(1), bucket_start_ns(2)), (1024, 1280));
        assert_eq!(bucket_start_ns(BUCKETS - 1), 1 << 34);
    }

    #[test]
    fn writes_of_this_thread_are_counted_under_its_name() {
        blockstone_testkit::require!(Bpf);
        let mut tracer = IoTracer::start(true, &BTreeSet::new()).unwrap();
        let scratch = blockstone_testkit::ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("counted");
        // Sums that were taken are zero when the next thread gets them.
        for _ in 0..3 {
            let written = path.clone();
            let writer = std::thread::Builder::new().name("the-writer".into());
            let writer = writer.spawn(move || std::fs::write(written, [7; 4321]).unwrap());
            writer.unwrap().join().unwrap();
            let mut seen = Vec::new();
            tracer.each(|key, totals| seen.push((*key, *totals))).unwrap();
            seen.retain(|(key, totals)| {
                key.operation() == Operation::Write
                    && key.layer() == Layer::SystemCall
                    && totals.comm() == "the-writer"
            });
            assert_eq!(seen.len(), 1, "{seen:?}");
            let (key, totals) = seen[0];
            assert_eq!((totals.ios(), totals.in_flight(), totals.bytes), (1, 0, 4321));
            let inner = tracer.path_of(&key).unwrap().unwrap();
            assert!(path.to_str().unwrap().ends_with(&inner), "{inner}");
            assert_eq!(tracer.take(&key).unwrap(), Some(totals));
            assert_eq!(tracer.take(&key).unwrap(), None);
        }
    }
}
