//! Samples of what the processors execute: at a fixed rate of its own clock each processor records
//! which thread it runs, and at which code address (`perf_event_open(2)` with the software event
//! `cpu-clock`, which needs no hardware counter and works in virtual machines).
//!
//! Nothing is written and no thread is woken: the kernel puts samples into one buffer per
//! processor, which [`Sampler::drain`] empties. Records that find no room are lost, and counted.

mod buffer;
mod record;
mod symbols;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use crate::proc::{cpus_of_list, text, under};

pub use record::{Record, Sample};
pub use symbols::{KernelSymbols, Symbol};

use blockstone_base::hint::Hint;
use buffer::SharedBuffer;

/// Samples each processor of the machine, whatever runs there, until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    processors: Vec<Processor>,
    period_ns: u64,
    copied: Vec<u8>,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum PerfError {
    #[error("sample the processors: {source}; kernel.perf_event_paranoid is {paranoid}")]
    #[hint(
        "run as root, `setcap cap_perfmon+ep` on the binary, or set kernel.perf_event_paranoid to \
         0"
    )]
    NotPermitted { paranoid: String, source: io::Error },
    #[error("sample the processors: {source}")]
    #[hint("the kernel must be built with CONFIG_PERF_EVENTS")]
    Absent { source: io::Error },
}

/// The second version of `struct perf_event_attr` in `linux/perf_event.h`, the argument of
/// `perf_event_open(2)`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

const TYPE_SOFTWARE: u32 = 1;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
/// Reading an event also returns how long it was enabled.
const READ_TIME_ENABLED: u64 = 1;
const FLAG_DISABLED: u64 = 1;
/// Also records the names of threads, their start and end, and the programs that they execute.
const FLAG_COMM: u64 = 1 << 9;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_COMM_EXEC: u64 = 1 << 24;
const OPEN_CLOEXEC: libc::c_ulong = 1 << 3;
const IOCTL_ENABLE: libc::Ioctl = 0x2400;

#[derive(Debug)]
struct Processor {
    event: File,
    buffer: SharedBuffer,
}

impl Sampler {
    /// Samples every processor that is online; `root` contains `/proc` and `/sys`.
    ///
    /// # Panics
    /// When `per_second` is zero.
    pub fn start(root: &Path, per_second: u32) -> Result<Self, PerfError> {
        let period_ns = 1_000_000_000 / u64::from(per_second);
        let online = text(&under(root, "/sys/devices/system/cpu/online"));
        let numbers = cpus_of_list(online.as_deref().unwrap_or("0"));
        let mut processors = Vec::with_capacity(numbers.len());
        for number in numbers {
            match Processor::open(number, period_ns) {
                Ok(processor) => processors.push(processor),
                // It went offline in the meantime.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(refusal(root, error)),
            }
        }
        for processor in &processors {
            processor.enable().map_err(|error| refusal(root, error))?;
        }
        Ok(Self { processors, period_ns, copied: Vec::new() })
    }

    /// Returns the time that one sample represents.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Returns the time during which processors were sampled, summed over all of them. Samples
    /// represent slightly less: while the hypervisor has taken a processor away, it records none.
    pub fn watched_ns(&self) -> u64 {
        self.processors.iter().filter_map(Processor::enabled_ns).sum()
    }

    /// Visits everything that was recorded since the last call, in order for each processor.
    pub fn drain(&mut self, mut visit: impl FnMut(Record<'_>)) {
        for processor in &mut self.processors {
            self.copied.clear();
            if !processor.buffer.take(&mut self.copied) {
                visit(Record::Lost { records: 1 });
            }
            record::each(&self.copied, &mut visit);
        }
    }
}

impl Processor {
    fn open(number: u32, period_ns: u64) -> io::Result<Self> {
        let mut attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: SOFTWARE_CPU_CLOCK,
            sample_period: period_ns,
            sample_type: SAMPLE_IP | SAMPLE_TID,
            read_format: READ_TIME_ENABLED,
            flags: FLAG_DISABLED | FLAG_COMM | FLAG_TASK | FLAG_COMM_EXEC,
            ..Attributes::default()
        };
        let (anybody, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
        // SAFETY: `attributes` is what the call takes, of the size that it contains, and lives
        // during the call; the kernel may write its `size`. All other arguments are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw mut attributes,
                anybody,
                number as libc::c_int,
                no_group,
                OPEN_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just returned this descriptor, and nothing else owns it.
        let event = unsafe { File::from_raw_fd(fd as libc::c_int) };
        let buffer = SharedBuffer::map(&event)?;
        Ok(Self { event, buffer })
    }

    fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and this command takes a number and touches no memory.
        match unsafe { libc::ioctl(self.event.as_raw_fd(), IOCTL_ENABLE, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn enabled_ns(&self) -> Option<u64> {
        let mut counts = [0; 16];
        let read = (&self.event).read(&mut counts).ok()?;
        (read == counts.len()).then(|| record::u64_at(&counts, 8)).flatten()
    }
}

fn refusal(root: &Path, source: io::Error) -> PerfError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            PerfError::NotPermitted { paranoid: setting(root, "perf_event_paranoid"), source }
        }
        _ => PerfError::Absent { source },
    }
}

/// Reads a setting of the kernel, for a message.
fn setting(root: &Path, name: &str) -> String {
    text(&under(root, "/proc/sys/kernel").join(name)).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_setting_and_what_would_help() {
        let root = tempfile::tempdir().unwrap();
        let why = |errno| refusal(root.path(), io::Error::from_raw_os_error(errno)).told();
        assert!(why(libc::EACCES).contains("perf_event_paranoid is unknown"), "{}", why(13));
        let dir = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("perf_event_paranoid"), "3\n").unwrap();
        let refused = why(libc::EPERM);
        assert!(refused.contains("paranoid is 3") && refused.contains("cap_perfmon"), "{refused}");
        assert!(why(libc::ENOSYS).contains("CONFIG_PERF_EVENTS"));
    }

    #[test]
    fn processors_are_sampled_at_their_rate_and_this_thread_is_seen_at_work() {
        blockstone_testkit::require!(Perf);
        let mut sampler = Sampler::start(Path::new("/"), 1000).unwrap();
        let thread = crate::account::current_thread();
        let begun_ns = crate::clock::now_ns();
        let (mut own, mut all) = (0, 0);
        // Noise may preempt this thread, but not for ever.
        while own < 100 {
            std::hint::black_box((0..1_000_000_u64).fold(0, |sum, n| sum ^ n));
            sampler.drain(|record| match record {
                Record::Sample(sample) => {
                    all += 1;
                    own += u64::from(sample.thread == thread && !sample.is_kernel);
                    assert!(sample.thread != thread || sample.process == std::process::id());
                }
                Record::Lost { records } => panic!("{records} were lost"),
                _ => {}
            });
            assert!(crate::clock::now_ns() - begun_ns < 60_000_000_000, "{own} of {all}");
        }
        let watched_ns = sampler.watched_ns();
        assert!(all * sampler.period_ns() <= watched_ns + 10_000_000, "{all} in {watched_ns}");
    }

    #[test]
    fn what_threads_call_themselves_is_recorded() {
        blockstone_testkit::require!(Perf);
        let mut sampler = Sampler::start(Path::new("/"), 10).unwrap();
        let work = || crate::account::current_thread();
        let builder = std::thread::Builder::new().name("the-named-one".to_owned());
        let thread = builder.spawn(work).unwrap().join().unwrap();
        let (mut said, mut began) = (Vec::new(), 0);
        sampler.drain(|record| match record {
            Record::Name { thread: who, name, .. } if who == thread => said.push(name.to_owned()),
            Record::Began { thread: new, .. } if new == thread => began += 1,
            _ => {}
        });
        assert_eq!((said, began), (vec!["the-named-one".to_owned()], 1));
    }
}
