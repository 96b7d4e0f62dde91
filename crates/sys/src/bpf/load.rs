//! Loads compiled programs, attaches them to their tracepoints and reports their cost.

use std::cell::RefCell;
use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use aya::maps::Map;
use aya::programs::BtfTracePoint;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use aya_obj::btf::BtfKind;

use super::BpfError;

/// Programs that stay attached until this is dropped.
#[derive(Debug)]
pub struct Loaded {
    ebpf: Ebpf,
    /// The kernel's types. They take tens of megabytes, so they are kept only until the programs
    /// are attached.
    btf: Option<Btf>,
    /// `None` if the kernel does not measure for this user.
    measuring: Option<RefCell<Measuring>>,
}

/// When the kernel measures what programs cost. While it does, every run of every program, no
/// matter whose, takes longer by the time of two looks at the clock, which is as much as some
/// programs take themselves; so it measures for a part of the time only.
#[derive(Debug)]
struct Measuring {
    /// The kernel measures while this is open.
    open: Option<OwnedFd>,
    since: Instant,
    /// How long it measured.
    measured: Duration,
}

impl Measuring {
    const AT_LEAST: Duration = Duration::from_millis(200);
    /// Measured is one of so many parts of the time.
    const PARTS: u32 = 16;

    /// Starts to measure; `None` where that is not permitted.
    fn start() -> Option<Self> {
        let open = Some(enable_stats(Stats::RunTime).ok()?);
        Some(Self { open, since: Instant::now(), measured: Duration::ZERO })
    }

    /// Stops when it was long enough, or starts again.
    fn turn(&mut self) {
        let past = self.since.elapsed();
        if self.open.is_some() && past >= Self::AT_LEAST {
            *self = Self { open: None, since: Instant::now(), measured: past };
        } else if self.open.is_none() && past >= self.measured * (Self::PARTS - 1) {
            self.open = enable_stats(Stats::RunTime).ok();
            self.since = Instant::now();
        }
    }
}

/// How often a program ran while the kernel measured, and the nanoseconds that these runs took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub program: String,
    pub runs: u64,
    pub ns: u64,
}

/// The only function of the kernel that programs call by its name (bpf/kernel.h); kernels have it
/// since 6.2.
const CAST: &str = "bpf_rdonly_cast";
/// Its call in compiled programs, with four letters in place of its number.
const CALL_OF_CAST: [u8; 8] = *b"\x85\x20\0\0cast";
/// An instruction that takes its place in a kernel without the function: `r0 = r1`, never reached.
const NO_CAST: [u8; 8] = *b"\xbf\x10\0\0\0\0\0\0";

impl Loaded {
    /// Loads the object: its tables exist, but nothing runs yet.
    pub fn new(object: &[u8]) -> Result<Self, BpfError> {
        let btf = Btf::from_sys_fs().map_err(|error| missing(&error))?;
        let cast = btf.id_by_type_name_kind(CAST, BtfKind::Func).ok();
        let ebpf = loaded(object, &btf, cast).map_err(|error| missing(&error))?;
        Ok(Self { ebpf, btf: Some(btf), measuring: Measuring::start().map(RefCell::new) })
    }

    /// Attaches each program, in this order, to the tracepoint that it is named after, then those
    /// of `optional` whose tracepoints this kernel has; returns for each of these whether it has.
    /// May be called only once.
    pub fn attach<const N: usize>(
        &mut self,
        programs: &[&str],
        optional: [&str; N],
    ) -> Result<[bool; N], BpfError> {
        let attached = || BpfError::Missing { why: "the programs are attached already".into() };
        let btf = self.btf.take().ok_or_else(attached)?;
        programs.iter().try_for_each(|name| self.attach_one(name, &btf))?;
        Ok(optional.map(|name| self.attach_one(name, &btf).is_ok()))
    }

    fn attach_one(&mut self, name: &str, btf: &Btf) -> Result<(), BpfError> {
        let refused = |error: &dyn Error| BpfError::Refused {
            program: name.to_owned(),
            message: in_full(error),
        };
        let found = self.ebpf.program_mut(name);
        let program = found.ok_or_else(|| BpfError::Missing {
            why: format!("the object has no program {name}"),
        })?;
        let program: &mut BtfTracePoint = program.try_into().map_err(|error| refused(&error))?;
        program.load(name, btf).map_err(|error| refused(&error))?;
        program.attach().map(drop).map_err(|error| refused(&error))
    }

    pub fn map(&self, name: &'static str) -> Result<OwnedFd, BpfError> {
        let lost = || BpfError::Missing { why: format!("the programs have no table {name}") };
        let (Map::HashMap(data) | Map::Array(data) | Map::Stack(data)) =
            self.ebpf.map(name).ok_or_else(lost)?
        else {
            return Err(lost());
        };
        let fd = data.fd().as_fd().try_clone_to_owned();
        fd.map_err(|source| BpfError::Table { operation: "open", table: name, source })
    }

    /// Returns what each program cost while the kernel measured, if it does for this user: a
    /// sixteenth of the time, beginning at the start.
    pub fn costs(&self) -> Option<Vec<Cost>> {
        self.measuring.as_ref()?.borrow_mut().turn();
        let costs = self.ebpf.programs().filter_map(|(name, program)| {
            let info = program.info().ok()?;
            let (runs, ns) = (info.run_count(), info.run_time().as_nanos() as u64);
            Some(Cost { program: name.to_owned(), runs, ns })
        });
        Some(costs.collect())
    }
}

/// Loads the object for a kernel with this number of [`CAST`] among its types, or without it.
fn loaded(object: &[u8], btf: &Btf, cast: Option<u32>) -> Result<Ebpf, EbpfError> {
    let can_cast = u8::from(cast.is_some());
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf)).override_global("can_cast", &can_cast, false);
    loader.load(&with_calls_of(object, cast))
}

fn with_calls_of(object: &[u8], cast: Option<u32>) -> Vec<u8> {
    let mut object = object.to_owned();
    // Sections of instructions begin at multiples of eight bytes.
    for instruction in object.as_chunks_mut().0.iter_mut().filter(|it| **it == CALL_OF_CAST) {
        match cast {
            Some(number) => instruction[4..].copy_from_slice(&number.to_le_bytes()),
            None => *instruction = NO_CAST,
        }
    }
    object
}

fn missing(error: &dyn Error) -> BpfError {
    BpfError::Missing { why: in_full(error) }
}

/// Returns the error and its causes in one line, but only the end of the verifier's log.
fn in_full(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    let last = lines.len().saturating_sub(6).max(1);
    let kept: Vec<&str> =
        lines.iter().take(1).chain(&lines[last.min(lines.len())..]).copied().collect();
    kept.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::object;
    use super::*;

    #[test]
    fn calls_get_the_number_of_the_running_kernel() {
        let with = |call: &[u8]| [&[7; 16][..], call, b"\x85\0\0\0cast"].concat();
        let object = with(&CALL_OF_CAST);
        let expected = with(b"\x85\x20\0\0\x01\x02\0\0");
        assert_eq!(with_calls_of(&object, Some(0x201)), expected);
        assert_eq!(with_calls_of(&object, None), with(&NO_CAST));
    }

    #[test]
    fn programs_do_without_casts_in_older_kernels() {
        blockstone_testkit::require!(Bpf);
        let btf = Btf::from_sys_fs().unwrap();
        for object in [object!("io"), object!("active"), object!("iosize"), object!("effect")] {
            let mut ebpf = loaded(object, &btf, None).unwrap();
            for (name, program) in ebpf.programs_mut() {
                let name = name.to_owned();
                let program: &mut BtfTracePoint = program.try_into().unwrap();
                program.load(&name, &btf).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }

    #[test]
    fn the_kernel_measures_for_a_part_of_the_time() {
        let hour = Duration::from_hours(1);
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let mut measuring =
            Measuring { open: Some(zero.into()), since: Instant::now() + hour, measured: hour };
        let future = measuring.since;
        measuring.turn();
        assert!(measuring.open.is_some(), "not long enough");
        measuring.since = Instant::now().checked_sub(Measuring::AT_LEAST).unwrap();
        measuring.turn();
        assert!(measuring.open.is_none() && measuring.measured >= Measuring::AT_LEAST);
        (measuring.since, measuring.measured) = (future, hour);
        measuring.turn();
        assert_eq!(measuring.since, future, "it rests");
        measuring.measured = Duration::ZERO;
        measuring.turn();
        assert!(measuring.since < future, "it begins again");
    }
}
