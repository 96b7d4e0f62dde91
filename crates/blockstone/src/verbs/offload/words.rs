//! Numbers with the digits that publications have, and bars of bytes.

use blockstone_base::units::Bytes;
use blockstone_offload::Ledger;
use blockstone_report::percent;
use blockstone_report::render::terminal::Style;

use super::tables::lines;

/// Digits that count.
const DIGITS: i32 = 5;
const GIB: f64 = 1_073_741_824.0;
/// Cells of the longest bar.
const BAR: f64 = 30.0;

/// Five digits that count, without an exponent.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let places = (DIGITS - before).clamp(0, 12) as usize;
    format!("{value:.places$}")
}

pub fn gib(bytes: f64) -> String {
    format!("{:.4}", bytes / GIB)
}

/// The bytes of a run as bars, in their fixed order, each with its share of the first line.
pub fn bars(ledger: &Ledger, style: &Style) -> Vec<String> {
    let lines = lines(ledger);
    let greatest = lines.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let first = ledger.read_bytes;
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let bar = |(line, bytes): &(String, u64)| {
        let cells = (*bytes as f64 / greatest as f64 * BAR).round() as usize;
        let cells = if *bytes > 0 { cells.max(1) } else { 0 };
        let share = if first > 0 { percent(*bytes as f64 / first as f64) } else { String::new() };
        let bar = format!("{:<width$}", "█".repeat(cells), width = BAR as usize);
        let bytes = Bytes(*bytes).to_string();
        format!("  {line:<width$}  {}  {bytes:>10}  {share:>6}", style.dim(&bar))
    };
    lines.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_count() {
        for (value, text) in [
            (0.276_932, "0.27693"),
            (17.1024, "17.102"),
            (1_324.571, "1324.6"),
            (613_665.2, "613665"),
            (0.0, "0"),
        ] {
            assert_eq!(digits(value), text);
        }
    }
}
