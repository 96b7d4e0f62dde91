//! The page of a report, as text and in a browser.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

mod page;
