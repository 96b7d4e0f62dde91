//! Symbols of the kernel by address: /proc/kallsyms.

use std::io;
use std::path::Path;

use super::setting;
use crate::proc::under;

#[derive(Debug)]
pub struct KernelSymbols {
    /// Sorted by address.
    symbols: Vec<Entry>,
    names: String,
    modules: Vec<String>,
    idle: [u64; 2],
}

#[derive(Debug)]
struct Entry {
    start: u64,
    name: (u32, u16),
    module: u16,
    rank: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The module: `vmlinux` for the kernel proper.
    pub module: &'a str,
    /// Name of the function, without what compilers append to it.
    pub name: &'a str,
    /// Whether a processor that executes it is waiting for work.
    pub is_idle: bool,
}

/// No function is longer; an address further behind a symbol belongs to something else.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

impl KernelSymbols {
    /// Reads the symbols. `root` contains `/proc`. Fails when the file cannot be read, with
    /// `PermissionDenied` when it hides the addresses.
    pub fn read(root: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(under(root, "/proc/kallsyms"))?;
        let read = Self::parse(&text);
        if read.symbols.is_empty() {
            let why = format!(
                "the kernel hides its addresses (kernel.kptr_restrict is {}); root or CAP_SYSLOG \
                 sees them unless it is 2",
                setting(root, "kptr_restrict")
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(read)
    }

    pub fn at(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self.symbols.partition_point(|entry| entry.start <= address);
        let entry = &self.symbols[after.checked_sub(1)?];
        if address - entry.start >= FUNCTION_BYTES_MAX {
            return None;
        }
        let (start, len) = (entry.name.0 as usize, usize::from(entry.name.1));
        let name = &self.names[start..start + len];
        let [from, to] = self.idle;
        let is_idle = (from..to).contains(&address) || waits(name);
        Some(Symbol { module: &self.modules[usize::from(entry.module)], name, is_idle })
    }

    fn parse(text: &str) -> Self {
        let mut read = Self {
            symbols: Vec::new(),
            names: String::new(),
            modules: vec!["vmlinux".to_owned()],
            idle: [0; 2],
        };
        for line in text.lines() {
            read.line(line);
        }
        // Of several names for one address the best sorts first, and is kept.
        read.symbols.sort_by_key(|entry| (entry.start, entry.rank));
        read.symbols.dedup_by_key(|entry| entry.start);
        read
    }

    /// Parses `ffffffff81000000 T name`, followed by a tab and `[module]` if it belongs to one.
    fn line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(start), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let start = u64::from_str_radix(start, 16).unwrap_or(0);
        match name {
            "__cpuidle_text_start" => self.idle[0] = start,
            "__cpuidle_text_end" => self.idle[1] = start,
            _ => {}
        }
        // Only code, and not the padding in front of it.
        if start == 0 || !matches!(kind, "t" | "T" | "w" | "W") || name.starts_with("__pfx_") {
            return;
        }
        let plain = name.split_once('.').map_or(name, |(plain, _)| plain);
        let name = if plain.is_empty() { name } else { plain };
        let module = words.next().map_or(0, |module| self.module(module.trim_matches(['[', ']'])));
        let underscores = name.bytes().take_while(|&byte| byte == b'_').count().min(9) as u8;
        let local = u8::from(!matches!(kind, "T"));
        // Section markers, and second names for the time before memory is mapped.
        let no_name = ["_text", "_stext", "__pi_"].iter().any(|no_name| name.starts_with(no_name));
        let at = self.names.len() as u32;
        self.names.push_str(name);
        let name = (at, name.len() as u16);
        let rank = u8::from(no_name) * 100 + local * 10 + underscores;
        self.symbols.push(Entry { start, name, module, rank });
    }

    fn module(&mut self, name: &str) -> u16 {
        let known = self.modules.iter().rposition(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.modules.push(name.to_owned());
            self.modules.len() - 1
        });
        index as u16
    }
}

/// Returns whether a processor waits in it, although it is not in the kernel's idle section.
fn waits(name: &str) -> bool {
    name.contains("safe_halt") || name == "native_halt"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 t __pfx_vfs_read
ffffffff81000110 T vfs_read
ffffffff81000200 t __do_sys_pread64
ffffffff81000200 T pread64.isra.0
ffffffff81000300 T __cpuidle_text_start
ffffffff81000310 t default_idle
ffffffff81000400 T __cpuidle_text_end
ffffffff81000400 T pv_native_safe_halt
ffffffff81000500 D some_data
ffffffffc0000000 t xfs_ilock\t[xfs]
";

    #[test]
    fn an_address_has_the_best_name_of_the_function_that_it_lies_in() {
        let symbols = KernelSymbols::parse(TEXT);
        let at = |address| symbols.at(address).map(|s| (s.module, s.name, s.is_idle));
        for (address, wanted) in [
            (0xffff_ffff_8100_0000, ("vmlinux", "startup_64", false)),
            (0xffff_ffff_8100_01ff, ("vmlinux", "vfs_read", false)),
            (0xffff_ffff_8100_0210, ("vmlinux", "pread64", false)),
            (0xffff_ffff_8100_0311, ("vmlinux", "default_idle", true)),
            (0xffff_ffff_8100_0444, ("vmlinux", "pv_native_safe_halt", true)),
            (0xffff_ffff_c000_0001, ("xfs", "xfs_ilock", false)),
        ] {
            assert_eq!(at(address), Some(wanted), "{address:x}");
        }
        assert_eq!(at(0xffff_ffff_80ff_ffff), None);
        assert_eq!(at(0xffff_ffff_c100_0000), None);
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_says_what_would_show_them() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        let zeros = TEXT.lines().map(|line| format!("{:016}{}\n", 0, &line[16..]));
        std::fs::write(root.path().join("proc/kallsyms"), zeros.collect::<String>()).unwrap();
        std::fs::write(root.path().join("proc/sys/kernel/kptr_restrict"), "1\n").unwrap();
        let error = KernelSymbols::read(root.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let text = error.to_string();
        assert!(text.contains("kptr_restrict is 1") && text.contains("CAP_SYSLOG"), "{text}");
    }

    #[test]
    fn the_running_kernel_has_a_name_for_its_code() {
        blockstone_testkit::require!(Perf);
        let symbols = KernelSymbols::read(Path::new("/")).unwrap();
        let known = |name: &str| {
            let entry = symbols.symbols.iter().find(|entry| {
                let (start, len) = (entry.name.0 as usize, usize::from(entry.name.1));
                &symbols.names[start..start + len] == name
            });
            entry.map(|entry| symbols.at(entry.start).unwrap().name.to_owned())
        };
        assert_eq!(known("vfs_read").as_deref(), Some("vfs_read"));
    }
}
