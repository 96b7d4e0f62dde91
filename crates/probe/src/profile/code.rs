//! Resolves addresses to code: a kernel function, or a program or library of a process.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_sys::account;
use blockstone_sys::perf::{KernelSymbols, Sample};

use crate::Unmeasured;

#[derive(Debug)]
pub struct CodeLocation {
    pub module: Arc<str>,
    /// Empty for code outside the kernel.
    pub symbol: Arc<str>,
    /// Whether a processor without a task waits for work in this code.
    pub is_idle: bool,
}

#[derive(Debug)]
pub struct Code {
    root: PathBuf,
    kernel: Result<KernelSymbols, Unmeasured>,
    /// When the kernel's names were read.
    kernel_read_ns: u64,
    programs: HashMap<u32, Program>,
    /// Interned strings.
    texts: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct Program {
    /// Start address, end address and name.
    parts: Vec<(u64, u64, Arc<str>)>,
    read_ns: u64,
    ended_ns: Option<u64>,
}

/// Name for an unknown address, or for one whose process has gone.
const UNKNOWN: &str = "unknown";
/// A library may be loaded, or code generated, after a process was first read.
const PROGRAM_AGAIN_NS: u64 = 1_000_000_000;
/// A kernel module may be loaded too; reading all kernel names takes a while.
const KERNEL_AGAIN_NS: u64 = 300_000_000_000;
/// Samples of an ended thread may still arrive during this time.
pub const REMEMBER_NS: u64 = 2_000_000_000;
/// Maximum number of entries; the notice that something ended may be lost.
pub const REMEMBER_MAX: usize = 50_000;

impl Code {
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            kernel: read_kernel(root),
            kernel_read_ns: 0,
            programs: HashMap::new(),
            texts: HashSet::new(),
        }
    }

    /// Returns why kernel functions have no names.
    pub fn hidden(&self) -> Option<&Unmeasured> {
        self.kernel.as_ref().err()
    }

    pub fn at(&mut self, sample: &Sample, now_ns: u64) -> CodeLocation {
        if sample.is_kernel {
            return self.in_kernel(sample.address, now_ns);
        }
        let module = self.in_program(sample, now_ns);
        CodeLocation { module, symbol: self.text(""), is_idle: false }
    }

    /// Forgets a process, which now executes another program.
    pub fn forget(&mut self, process: u32) {
        self.programs.remove(&process);
    }

    pub fn ended(&mut self, process: u32, now_ns: u64) {
        if let Some(program) = self.programs.get_mut(&process) {
            program.ended_ns = Some(now_ns);
        }
    }

    pub fn tidy(&mut self, now_ns: u64) {
        let is_needed =
            |program: &Program| program.ended_ns.is_none_or(|ns| ns + REMEMBER_NS > now_ns);
        self.programs.retain(|_, program| is_needed(program));
        if self.programs.len() > REMEMBER_MAX {
            self.programs.clear();
        }
        if self.texts.len() > REMEMBER_MAX {
            self.texts.clear();
        }
    }

    fn in_kernel(&mut self, address: u64, now_ns: u64) -> CodeLocation {
        let known = |kernel: &KernelSymbols| {
            let found = kernel.at(address)?;
            Some((found.module.to_owned(), found.name.to_owned(), found.is_idle))
        };
        let (module, symbol, is_idle) = match &self.kernel {
            // Without names, an interrupt cannot be distinguished from waiting.
            Err(_) => ("kernel".to_owned(), String::new(), true),
            Ok(kernel) => {
                let mut found = known(kernel);
                let is_old = self.kernel_read_ns + KERNEL_AGAIN_NS < now_ns;
                if found.is_none() && is_old {
                    self.kernel_read_ns = now_ns;
                    if let Ok(again) = KernelSymbols::read(&self.root) {
                        found = known(&again);
                        self.kernel = Ok(again);
                    }
                }
                found.unwrap_or_else(|| (UNKNOWN.to_owned(), UNKNOWN.to_owned(), false))
            }
        };
        CodeLocation { module: self.text(&module), symbol: self.text(&symbol), is_idle }
    }

    fn in_program(&mut self, sample: &Sample, now_ns: u64) -> Arc<str> {
        let known = |program: &Program| {
            let holds =
                |(from, to, _): &&(u64, u64, Arc<str>)| (*from..*to).contains(&sample.address);
            program.parts.iter().find(holds).map(|(_, _, module)| Arc::clone(module))
        };
        let program = self.programs.get(&sample.process);
        if let Some(module) = program.and_then(known) {
            return module;
        }
        let is_fresh = |program: &Program| {
            program.ended_ns.is_some() || program.read_ns + PROGRAM_AGAIN_NS > now_ns
        };
        if !program.is_some_and(is_fresh) {
            let parts = account::code(&self.root, sample.process).unwrap_or_default();
            let parts: Vec<_> = parts
                .into_iter()
                .map(|part| (part.start, part.end, self.text(&part.module)))
                .collect();
            let program = Program { parts, read_ns: now_ns, ended_ns: None };
            let module = known(&program);
            self.programs.insert(sample.process, program);
            if let Some(module) = module {
                return module;
            }
        }
        self.text(UNKNOWN)
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }
}

fn read_kernel(root: &Path) -> Result<KernelSymbols, Unmeasured> {
    KernelSymbols::read(root).map_err(|error| {
        let why = format!("name functions of the kernel: {error}");
        match error.kind() {
            io::ErrorKind::PermissionDenied => Unmeasured::NotPermitted(why),
            io::ErrorKind::NotFound => Unmeasured::NotInVersion(why),
            _ => Unmeasured::NoEvidence(why),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine(symbols: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/7")).unwrap();
        fs::write(root.path().join("proc/kallsyms"), symbols).unwrap();
        root
    }

    fn sample(address: u64, is_kernel: bool) -> Sample {
        Sample { process: 7, thread: 7, address, is_kernel }
    }

    fn place(code: &mut Code, sample: Sample, now_ns: u64) -> (String, String) {
        let place = code.at(&sample, now_ns);
        ((*place.module).to_owned(), (*place.symbol).to_owned())
    }

    #[test]
    fn a_library_that_comes_later_is_found_and_one_that_went_is_unknown() {
        let root = machine("ffffffff81000000 T vfs_read\n");
        let maps = root.path().join("proc/7/maps");
        fs::write(&maps, "1000-2000 r-xp 00000000 00:01 5  /usr/bin/dd\n").unwrap();
        let mut code = Code::new(root.path());
        let mut at =
            |address, now_s: u64| place(&mut code, sample(address, false), now_s * 1_000_000_000).0;
        assert_eq!(at(0x1000, 10), "dd");
        fs::write(&maps, "2000-3000 r-xp 00000000 00:01 5  /usr/lib/libz.so.1\n").unwrap();
        assert_eq!(at(0x2000, 10), UNKNOWN, "it was looked at a moment ago");
        assert_eq!(at(0x2000, 12), "libz.so.1");
        fs::remove_file(&maps).unwrap();
        assert_eq!(at(0x2000, 20), "libz.so.1");
        code.forget(7);
        let gone = place(&mut code, sample(0x2000, false), 30_000_000_000);
        assert_eq!(gone, (UNKNOWN.to_owned(), String::new()));
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_has_no_symbols_and_says_why() {
        let root = machine("0000000000000000 T vfs_read\n");
        let mut code = Code::new(root.path());
        let place = place(&mut code, sample(0xffff_ffff_8100_0000, true), 0);
        assert_eq!(place, ("kernel".to_owned(), String::new()));
        let hidden = format!("{:?}", code.hidden().unwrap());
        assert!(hidden.starts_with("NotPermitted") && hidden.contains("kptr_restrict"), "{hidden}");
    }
}
