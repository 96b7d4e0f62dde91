//! Tests of the reader on the records that Oracle writes into SQL traces.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![allow(clippy::float_cmp, reason = "counts and sums of whole microseconds are exact")]

mod edges;
mod figures;
mod prefixes;
mod refused;
mod sessions;
mod support;
