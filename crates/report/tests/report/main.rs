//! Renderings of one realistic calibration, clean, condemned and interrupted, and of a run.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod chromium;
mod fixture;
mod html;
mod json;
mod page;
mod run;
#[allow(dead_code, reason = "the rules' own tests use more of it")]
#[path = "../../../judge/tests/run/fixture.rs"]
mod run_fixture;
mod terminal;
