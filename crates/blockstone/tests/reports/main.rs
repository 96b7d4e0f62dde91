//! Reports of one realistic calibration, clean, condemned and interrupted, and of runs.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod calibrate;
mod contract;
mod document;
mod fixture;
mod run;
#[path = "../../../judge/tests/run/fixture.rs"]
mod run_fixture;
