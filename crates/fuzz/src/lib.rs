//! Fuzzing of every parser of bytes that Blockstone did not make itself a moment ago: files of
//! recordings and saved scans, files of other monitors and tools, texts of /proc, pages of
//! databases, answers of their servers, requests of scrapers, what sides of a check say to each
//! other, and what the disks of the miniature instance hold.
//!
//! [`TARGETS`] lists the parsers, each with seeds made by code and a function that feeds it. From
//! this list derive the runner (`cargo xtask fuzz`), the step of CI, the test of this crate and the
//! programs of cargo-fuzz in `fuzz/`. To add a target: a function in `targets/` and a line in the
//! list; for cargo-fuzz also its name in `fuzz/Cargo.toml`, which a test compares with the list.
//!
//! A parser must not panic, abort, hang, or take memory without bounds; it may refuse. Where a
//! format has a checksum, the target computes it again after the mutation, as a forger would:
//! otherwise nothing behind the checksum would ever be tried.
//!
//! [`program`] starts the built program with damaged files, odd options, and paths that another
//! user attacks, and checks how it ends.
//!
//! This crate must not be used by any other.
//!
//! ```
//! let target = blockstone_fuzz::find("model").unwrap();
//! assert!((target.seeds)().iter().all(|seed| (target.run)(seed)), "seeds are valid");
//! assert!(!(target.run)(b"about = 7"));
//! ```

pub mod check;
pub mod mutate;
pub mod program;
mod scratch;
pub mod shrink;
mod targets;

pub use targets::{TARGETS, Target};

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// What the programs of cargo-fuzz call.
///
/// # Panics
/// When the target does, and when there is none of that name.
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
