//! Reports and their renderers: a verb makes one [`Report`] of tables, charts, cards and verdicts,
//! and [`render`] shows it as text, HTML page, JSON document or CSV.
//!
//! This crate derives nothing and never asks the machine anything, so a report looks the same
//! wherever and whenever it is rendered. A condemned number is struck through in all renderings and
//! is never a headline.
//!
//! ```
//! use blockstone_report::render::terminal::{self, Style};
//! use blockstone_report::{Headline, Report};
//!
//! let headline = Headline { text: "done".to_owned(), ..Headline::default() };
//! let report = Report { headline, ..Report::default() };
//! assert_eq!(terminal::text(&report, false, &Style { color: false, width: 100 }), "done\n");
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod chart;
pub mod expect;
mod expectation;
mod expected;
pub mod format;
pub mod picture;
pub mod render;
pub mod report;
mod timeline;

pub use expected::{EXPECTATIONS, Expected, Outcome};
pub use format::{block_size, percent, short, short_path, to_one, value as cell};
pub use report::{Began, Block, Card, Detail, Headline, Report, Section, Tone};
pub use timeline::{Sliced, Timeline, slices};

/// Reason why a report could not be rendered.
#[derive(Debug, thiserror::Error, blockstone_base::hint::Hint)]
pub enum ReportError {
    #[error("render {template}: {source}")]
    #[hint("the template is part of this binary; please report it")]
    Template { template: &'static str, source: minijinja::Error },
}
