//! Fuzzing of every parser of bytes that Blockstone did not just make itself: files of recordings
//! and saved scans, files of other monitors and tools, texts of /proc, pages of databases, answers
//! of database servers, requests of scrapers, messages between the sides of a check, and the
//! contents of the miniature instance's disks.
//!
//! [`TARGETS`] lists the parsers, each with seeds made by code and a function that feeds it. The
//! runner (`cargo xtask fuzz`), the CI step, the test of this crate and the cargo-fuzz programs in
//! `fuzz/` are derived from this list. To add a target, add a function in `targets/` and a line in
//! the list; for cargo-fuzz also add its name to `fuzz/Cargo.toml`, which a test compares with the
//! list.
//!
//! A parser must not panic, abort, hang, or take memory without bounds; it may refuse. If a format
//! has a checksum, the target recomputes it after the mutation, as a forger would: otherwise
//! nothing behind the checksum would ever be tried.
//!
//! [`program`] starts the built program with damaged files, odd options, and paths that another
//! user attacks, and checks how it ends.
//!
//! No other crate may use this one.
//!
//! ```
//! let target = blockstone_fuzz::find("model").unwrap();
//! assert!((target.seeds)().iter().all(|seed| (target.run)(seed)), "seeds are valid");
//! assert!(!(target.run)(b"about = 7"));
//! ```

// Tried: bolero 0.13.7 in place of this engine. Its engine for stable compilers runs files of a
// corpus as they are and mutates none of them, draws its seeds from the operating system, catches
// panics within its own process, so that an abort or an input that hangs ends or stops the run, and
// measures neither memory nor processor time of an input. Its other engines (libFuzzer, AFL,
// honggfuzz) need instrumented builds, which `fuzz/` makes with cargo-fuzz.

pub mod check;
pub mod mutate;
pub mod program;
mod scratch;
pub mod shrink;
mod targets;

pub use targets::{TARGETS, Target};

/// Returns the target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Entry point for the programs of cargo-fuzz.
///
/// # Panics
/// If the target does, or if there is none of that name.
pub fn feed(name: &str, input: &[u8]) {
    let target = find(name).expect("fuzz/Cargo.toml names a target of this crate");
    (target.run)(input);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Corpus;

    #[test]
    fn every_target_takes_its_seeds_and_survives_some_mutants() {
        for target in TARGETS {
            let corpus = Corpus::new((target.seeds)());
            for (at, seed) in corpus.seeds().iter().enumerate() {
                assert!((target.run)(seed), "{} refuses its seed {at}", target.name);
            }
            let mutants = (0..200).map(|number| corpus.input(1, number));
            let refused = mutants.filter(|input| !(target.run)(input)).count();
            assert!(refused > 0 || target.refuses_nothing, "{} refuses nothing", target.name);
        }
    }

    #[test]
    fn cargo_fuzz_has_a_program_for_every_target() {
        let manifest =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml");
        let text = std::fs::read_to_string(manifest).unwrap();
        let mut programs: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("name = \"")).collect();
        programs.retain(|name| *name != "blockstone-cargo-fuzz\"");
        let names: Vec<String> =
            TARGETS.iter().map(|target| format!("{}\"", target.name)).collect();
        assert_eq!(programs, names, "fuzz/Cargo.toml has other programs than TARGETS");
    }
}
