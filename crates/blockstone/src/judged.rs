//! Pages of verbs that have no report yet.

use std::path::Path;

use anyhow::{Context, Result};

use crate::printer::{Printer, answer};

/// Writes an HTML page to `file`, or to standard output for `-`.
pub fn write_page(page: &str, file: &Path, printer: Printer) -> Result<()> {
    if file == Path::new("-") {
        return Ok(answer(page)?);
    }
    std::fs::write(file, page).with_context(|| format!("write {}", file.display()))?;
    printer.note(&format!("report: {}", file.display()));
    Ok(())
}
