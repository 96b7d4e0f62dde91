//! A program of cargo-fuzz: feeds the target whose name it has. See `crates/fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| blockstone_fuzz::feed(env!("CARGO_BIN_NAME"), input));
