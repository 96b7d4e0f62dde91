//! Sources and destinations of subsets.

pub mod manifest;
pub mod postgres;
