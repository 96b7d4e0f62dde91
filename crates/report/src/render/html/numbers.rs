//! Numbers for the script: few digits, few bytes.

use blockstone_base::table::Measure;
use serde_json::{Number, Value as Json};

/// Formats a number to `digits` significant digits, without an exponent if that is shorter.
pub fn number(value: f64, digits: usize) -> String {
    rounded(value, digits).to_string()
}

/// Returns numbers to `digits` significant digits; a missing or non-finite one is null.
pub fn numbers(values: impl IntoIterator<Item = Option<f64>>, digits: usize) -> Json {
    values.into_iter().map(|value| value.map_or(Json::Null, |v| figure(v, digits))).collect()
}

/// Returns a number to `digits` significant digits, as an integer if it is whole.
pub fn figure(value: f64, digits: usize) -> Json {
    let value = rounded(value, digits);
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

fn rounded(value: f64, digits: usize) -> f64 {
    if !value.is_finite() {
        return f64::NAN;
    }
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// Returns the letter for a measure in the script.
pub const fn letter(measure: Measure) -> &'static str {
    match measure {
        Measure::Text | Measure::Flag => "",
        Measure::Count => "c",
        Measure::Bytes => "b",
        Measure::BytesPerS => "f",
        Measure::Nanoseconds => "t",
        Measure::Share => "s",
        Measure::Ratio => "r",
        Measure::ToOne => "q",
        Measure::OfRow => "o",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_beyond_those_asked_for_are_rounded_away() {
        assert_eq!(number(1_234_567.8, 6), "1234570");
        assert_eq!(number(0.000_123_456_789, 4), "0.0001235");
        let row = numbers([Some(2.0), None, Some(f64::INFINITY), Some(0.1 + 0.2)], 6);
        assert_eq!(row.to_string(), "[2,null,null,0.3]");
    }
}
