//! The processor that a program is for, and whether it is statically linked.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// `PT_INTERP` of elf.h: the segment that names the dynamic linker.
const INTERPRETER: u32 = 3;

/// `e_machine` of elf.h, and the names that Rust and QEMU have for these processors.
const PROCESSORS: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// Returns the processor that a program is for, if it is one of these.
pub fn processor(program: &Path) -> Option<&'static str> {
    let mut header = [0; 20];
    std::fs::File::open(program).ok()?.read_exact(&mut header).ok()?;
    let machine = u16::from_le_bytes(bytes_at(&header, 18).ok()?);
    let known = PROCESSORS.iter().find(|(of, _)| *of == machine && header.starts_with(b"\x7fELF"));
    known.map(|(_, name)| *name)
}

/// Returns whether a 64-bit little-endian program names no dynamic linker. The offsets are those of
/// `e_phoff`, `e_phentsize` and `e_phnum` in `Elf64_Ehdr`.
pub fn is_static(program: &[u8]) -> Result<bool> {
    let known = program.starts_with(b"\x7fELF\x02\x01");
    ensure!(known, "the program is not a 64-bit little-endian ELF file");
    let table = usize::try_from(u64::from_le_bytes(bytes_at(program, 32)?))?;
    let size = usize::from(u16::from_le_bytes(bytes_at(program, 54)?));
    let count = usize::from(u16::from_le_bytes(bytes_at(program, 56)?));
    for index in 0..count {
        let at = table.saturating_add(index * size);
        if u32::from_le_bytes(bytes_at(program, at)?) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

fn bytes_at<const N: usize>(program: &[u8], at: usize) -> Result<[u8; N]> {
    let found = program.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().context("the program is truncated")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header followed by one segment of this type.
    fn program(segment: u32) -> Vec<u8> {
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(64, 0);
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        program.extend(segment.to_le_bytes());
        program
    }

    #[test]
    fn this_test_is_for_this_processor() {
        let own = Path::new("/proc/self/exe");
        assert_eq!(processor(own), Some(std::env::consts::ARCH));
        assert_eq!(processor(Path::new("Cargo.toml")), None);
    }

    #[test]
    fn a_dynamic_linker_is_found() {
        assert!(is_static(&program(1)).unwrap());
        assert!(!is_static(&program(INTERPRETER)).unwrap());
    }

    #[test]
    fn this_test_is_linked_as_its_compiler_was_told() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(is_static(&own).unwrap(), cfg!(target_feature = "crt-static"));
    }

    #[test]
    fn a_script_and_a_truncated_program_are_errors() {
        assert!(is_static(b"#!/bin/sh\n").is_err());
        assert!(is_static(&program(1)[..65]).is_err());
    }
}
