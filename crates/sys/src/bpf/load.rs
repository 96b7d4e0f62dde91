//! Loads compiled programs, attaches them to their tracepoints and reports their cost.

use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::Map;
use aya::programs::BtfTracePoint;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};

use super::BpfError;

/// Programs that stay attached until this is dropped.
#[derive(Debug)]
pub struct Loaded {
    ebpf: Ebpf,
    /// The kernel's types. They take tens of megabytes, so they are kept only until the programs
    /// are attached.
    btf: Option<Btf>,
    /// While this is open, the kernel measures the cost of all programs, whichever process runs
    /// them. `None` if that is not permitted.
    stats: Option<OwnedFd>,
}

impl Loaded {
    /// Loads the object: its tables exist, but nothing runs yet.
    pub fn new(object: &[u8]) -> Result<Self, BpfError> {
        let btf = Btf::from_sys_fs().map_err(|error| missing(&error))?;
        let loaded = EbpfLoader::new().btf(Some(&btf)).load(object);
        let ebpf = loaded.map_err(|error| missing(&error))?;
        Ok(Self { ebpf, btf: Some(btf), stats: enable_stats(Stats::RunTime).ok() })
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
        let (Map::HashMap(data) | Map::Array(data)) = self.ebpf.map(name).ok_or_else(lost)? else {
            return Err(lost());
        };
        let fd = data.fd().as_fd().try_clone_to_owned();
        fd.map_err(|source| BpfError::Table { operation: "open", table: name, source })
    }

    /// Returns how often the programs ran and the nanoseconds they took, if the kernel measures it.
    pub fn spent(&self) -> Option<(u64, u64)> {
        self.stats.as_ref()?;
        let infos = self.ebpf.programs().filter_map(|(_, program)| program.info().ok());
        Some(infos.fold((0, 0), |(runs, ns), info| {
            (runs + info.run_count(), ns + info.run_time().as_nanos() as u64)
        }))
    }
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
