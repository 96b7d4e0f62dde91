//! Renderings of verbs that have no report yet.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod chromium;
#[allow(dead_code, reason = "the reports' own tests use more of it")]
#[path = "../../../blockstone/tests/reports/fixture.rs"]
mod fixture;
mod flash;
mod html;
mod json;
mod page;
mod reduce;
mod terminal;
