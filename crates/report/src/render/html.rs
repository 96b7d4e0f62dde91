//! A report as one HTML page.

use crate::ReportError;
use crate::render::terminal::{self, Style};
use crate::report::Report;

/// The page.
///
/// # Errors
/// When a template cannot be filled in.
pub fn page(report: &Report) -> Result<String, ReportError> {
    let text = terminal::text(report, true, &Style { color: false, width: 100 });
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!("<!DOCTYPE html><meta charset=\"utf-8\"><pre>{escaped}</pre>\n"))
}
