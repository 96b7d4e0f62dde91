//! Numbers with as many digits as publications have.

/// Significant digits.
const DIGITS: i32 = 5;
const GIB: f64 = 1_073_741_824.0;

/// Formats five significant digits, without an exponent.
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
