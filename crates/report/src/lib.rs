//! Findings and their recording, rendered three ways: one terminal screen, one versioned JSON
//! document, one self-contained HTML page.
//!
//! This crate derives nothing: every number is a finding of `judge` or a counter of the recording,
//! and it never asks the machine anything, so a recording renders the same wherever and whenever.
//! A condemned number is struck through in all three and is never a headline.
//!
//! Main functions: [`terminal::render`], [`json::document`], [`html::page`], and beside each one
//! its twins for a workload run and for a comparison of two recordings.
//!
//! ```no_run
//! use blockstone_report::terminal::{self, Style};
//!
//! let recording = blockstone_record::Recording::open("blockstone-runs/example".as_ref())?;
//! let findings = blockstone_judge::find(&recording)?;
//! let screen = terminal::render(&recording, &findings, &Style { color: false, width: 100 });
//! assert!(screen.lines().count() > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chart;
pub mod html;
pub mod json;
pub mod render;
pub mod report;
pub mod terminal;

mod awr;
mod chapters;
mod flash;
pub mod format;
mod reduce;
mod select;

pub use awr::awr_info;
pub use format::{short, value as cell};
pub use report::{Block, Card, Detail, Headline, Report, Section, Timeline, Tone};

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The recorded series could not be read.
    #[error("read the series of {recording}: {source}")]
    Series {
        /// The recording's directory.
        recording: String,
        /// What went wrong.
        source: blockstone_record::RecordError,
    },
    /// A page template could not be filled in.
    #[error(
        "render {template}: {source}\nhint: the template is part of this binary; please report it"
    )]
    Template {
        /// The template's name.
        template: &'static str,
        /// What went wrong.
        source: minijinja::Error,
    },
}
