//! Renderers: one for each medium, each for every report.

pub mod csv;
pub mod html;
pub mod json;
pub mod junit;
pub mod lines;
pub mod terminal;
mod undecided;
