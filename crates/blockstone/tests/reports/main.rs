//! Reports of one realistic calibration, clean, condemned and interrupted, and of runs.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod calibrate;
mod contract;
mod document;
mod fixture;
mod run;
#[allow(dead_code, reason = "the rules' own tests use more of it")]
#[path = "../../../judge/tests/run/fixture.rs"]
mod run_fixture;
