//! Formatting of numbers, the same in every rendering.

use blockstone_base::identity::{CapKind, CgroupCap, DeviceKind, Host};
use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::units::{Bytes, counted, format_ns, thousands, three_digits};
use blockstone_base::{Access, Estimate};
use blockstone_view::{Measure, Missing, Value};

/// From this size on a read is a multiblock read, counted in megabytes rather than in operations.
const LARGE: u64 = 256 << 10;

/// Formats a number in its unit: `33 µs` from nanoseconds, `1.844×`, `4.00:1`, `8 KiB` from bytes,
/// `2 % of DB time` from a share, `76,412 IOPS` from anything else.
pub fn quantity(value: f64, unit: &str) -> String {
    let number = number(value, unit);
    if is_in_number(unit) { number } else { format!("{number} {unit}") }
}

/// Returns whether a number in this unit already includes the unit.
pub fn is_in_number(unit: &str) -> bool {
    matches!(unit, "ns" | "×" | ":1" | "bytes")
}

/// Formats a number without its unit, except a duration or a size, which have no fixed unit, and a
/// ratio. A share is given in percent.
pub fn number(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format_ns(value),
        "×" => format!("{value:.3}×"),
        ":1" => to_one(value),
        "bytes" => Bytes(value.max(0.0).round() as u64).to_string(),
        unit if unit.starts_with("of ") => percent(value),
        _ => three_digits(value),
    }
}

/// Returns the sign before the number of an estimate: a lower bound is shown as one.
pub fn sign(estimate: &Estimate) -> &'static str {
    if estimate.is_lower_bound() { "≥ " } else { "" }
}

/// Formats both ends of the interval: `75,900 – 76,920`, or `≥ 75,900` if it has a lower end only.
/// Empty if one sample gave it no width.
pub fn interval(estimate: &Estimate, unit: &str) -> String {
    if estimate.is_open_above() && !estimate.is_lower_bound() {
        return format!("≥ {}", number(estimate.low, unit));
    }
    if !has_interval(estimate) {
        return String::new();
    }
    format!("{} – {}", number(estimate.low, unit), number(estimate.high, unit))
}

/// Formats the wider side of the interval as a share of the value: `±0.7 %`. Empty if there is no
/// interval.
pub fn plus_minus(estimate: &Estimate) -> String {
    if !has_interval(estimate) || estimate.value == 0.0 {
        return String::new();
    }
    if is_of_ratio(estimate) {
        return format!("({}–{})", three_digits(estimate.low), three_digits(estimate.high));
    }
    let side = (estimate.high - estimate.value).max(estimate.value - estimate.low);
    let percent = side / estimate.value.abs() * 100.0;
    if percent < 0.1 { "±0.1 %".to_owned() } else { format!("±{} %", two_digits(percent)) }
}

/// Formats the interval beside a number of this measure, in its unit: `(68–160 %)` beside `104 %`.
pub fn beside(estimate: &Estimate, measure: Measure) -> String {
    if measure == Measure::Share && has_interval(estimate) && is_of_ratio(estimate) {
        return format!("({}–{})", two_digits(estimate.low * 100.0), percent(estimate.high));
    }
    plus_minus(estimate)
}

/// Returns whether an interval is wide, and its ends are the same factor below and above the value:
/// it is shown by its ends.
fn is_of_ratio(estimate: &Estimate) -> bool {
    let skew = estimate.low * estimate.high / estimate.value.powi(2) - 1.0;
    skew.abs() < 1e-9 && estimate.high > estimate.value * 1.2
}

/// Formats a share as a percentage: `97.3 %`.
pub fn percent(ratio: f64) -> String {
    if ratio.is_nan() {
        return "–".to_owned();
    }
    format!("{} %", two_digits(ratio * 100.0))
}

/// Formats the ratio of what went in to what remains: `4.00:1`.
pub fn to_one(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() => "–".to_owned(),
        // Above a thousand, hundredths say nothing.
        1000.0.. => format!("{}:1", three_digits(ratio)),
        ratio => format!("{ratio:.2}:1"),
    }
}

/// Formats a quantity that may be unmeasured, which is a dash, not a zero.
pub fn optional<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), write)
}

/// Formats a cell of a view's table. A missing value says why in a few letters; a dash means that
/// nothing happened.
pub fn value(value: &Value, measure: Measure) -> String {
    let number = match value {
        Value::Number(number) => *number,
        Value::Estimate(estimate) => {
            return format!("{}{}", sign(estimate), self::value(&estimate.value.into(), measure));
        }
        Value::Text(text) => return text.clone(),
        Value::Flag(is_so) => return yes_or_no(*is_so).to_owned(),
        Value::Missing(missing) => return absent(*missing).to_owned(),
    };
    match measure {
        // A thousandth of a second per transaction is not nothing.
        Measure::Count if number != 0.0 && number.abs() < 0.1 => small(number),
        Measure::Text | Measure::Flag | Measure::Count | Measure::OfRow => three_digits(number),
        Measure::Ratio if number != 0.0 && number.abs() < 1.0 => format!("{number:.3}×"),
        Measure::Ratio => format!("{}×", three_digits(number)),
        Measure::ToOne => to_one(number),
        Measure::Bytes => Bytes(number.max(0.0).round() as u64).to_string(),
        Measure::BytesPerS if number == 0.0 => "0".to_owned(),
        Measure::BytesPerS => rate(number),
        Measure::Nanoseconds => format_ns(number),
        Measure::Share => percent(number),
    }
}

pub const fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

/// A number below a tenth, with two digits that are not zero.
fn small(number: f64) -> String {
    let places = (1.0 - number.abs().log10().floor()).clamp(2.0, 9.0);
    let text = format!("{number:.*}", places as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the beginning of a text, with an ellipsis if it was cut.
pub fn short(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Returns a path of at most `width` characters: of a longer one, its end.
pub fn short_path(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    let end = path.chars().skip(length - width.saturating_sub(1).min(length));
    std::iter::once('…').chain(end).collect()
}

/// Returns the letters for a missing number.
pub fn absent(missing: Missing) -> &'static str {
    match missing {
        Missing::Off => "off",
        Missing::NotInVersion => "n/v",
        Missing::NotInLog => "n/l",
        Missing::NotPermitted => "n/p",
        Missing::Unknown => "?",
        Missing::NoEvidence => "n/e",
        Missing::Nothing => "–",
    }
}

/// Formats bytes per second, in decimal units as is usual for rates.
fn rate(bytes_per_s: f64) -> String {
    const UNITS: [&str; 4] = ["B/s", "kB/s", "MB/s", "GB/s"];
    let (mut value, mut index) = (bytes_per_s, 0);
    while value.abs() >= 999.5 && index + 1 < UNITS.len() {
        value /= 1e3;
        index += 1;
    }
    format!("{} {}", three_digits(value), UNITS[index])
}

/// Formats microseconds with up to three digits and without the unit, for columns headed by it.
pub fn microseconds(value_ns: f64) -> String {
    three_digits(value_ns / 1e3)
}

/// Formats bytes as a database writes a block size: `8K`, `1M`; shortened only if exact.
pub fn block_size(bytes: u64) -> String {
    let (mut value, mut index) = (bytes, 0);
    while value >= 1024 && value.is_multiple_of(1024) && index < 4 {
        value /= 1024;
        index += 1;
    }
    if index == 0 && value >= 1024 {
        return format!("{} B", thousands(value as i64));
    }
    format!("{value}{}", ["", "K", "M", "G", "T"][index])
}

/// Formats a load as a database engineer says it: `16 blocking readers`, `uring, 64 in flight`.
pub fn load(load: &LoadSpec) -> String {
    if let Some(read_pct) = load.read_pct {
        let (writes, in_flight) = (100_u32.saturating_sub(read_pct), load.in_flight());
        return format!("{}, {read_pct}:{writes}, {in_flight} in flight", load.engine);
    }
    if load.engine != "psync" {
        return format!("{}, {} in flight", load.engine, load.in_flight());
    }
    let block = block_size(load.block_bytes);
    let one = match (load.op, load.access) {
        (Op::Read, Access::Random) if load.block_bytes >= LARGE => format!("random {block} stream"),
        (Op::Read, Access::Random) => "blocking reader".to_owned(),
        (Op::Read, _) => format!("sequential {block} stream"),
        (Op::Write, _) => "blocking writer".to_owned(),
        (Op::Commit, _) => "committer".to_owned(),
        (Op::Mixed, _) => "reader and writer".to_owned(),
    };
    counted(load.workers.into(), &one)
}

/// Formats an RFC 3339 instant to the second.
pub fn instant(text: &str) -> String {
    let fraction = text.find('.').map_or(text.len()..text.len(), |dot| {
        let digits = text[dot + 1..].find(|c: char| !c.is_ascii_digit());
        dot..digits.map_or(text.len(), |at| dot + 1 + at)
    });
    format!("{}{}", &text[..fraction.start], &text[fraction.end..])
}

pub fn cap(cap: &CgroupCap) -> String {
    let limit = three_digits(cap.limit as f64);
    let what = match cap.kind {
        CapKind::ReadIops => format!("{limit} read IOPS"),
        CapKind::WriteIops => format!("{limit} write IOPS"),
        CapKind::ReadBytesPerS => format!("{}/s read", Bytes(cap.limit)),
        CapKind::WriteBytesPerS => format!("{}/s written", Bytes(cap.limit)),
    };
    format!("capped at {what} on {} by {}", cap.device, cap.source)
}

/// Returns the kind of a device in a word or two.
pub fn device_kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::DeviceMapper => "device mapper",
        DeviceKind::Raid => "RAID",
        other => other.name(),
    }
}

/// Formats the processors online, and the number of those that may be used if they are fewer: `2 of
/// 8 × Model`. It is empty if they are unknown, as in a recording that was imported.
pub fn processors(host: &Host) -> String {
    let mut count = host.cpus.to_string();
    if host.cpus_allowed_milli < host.cpus * 1000 {
        count = format!("{} of {count}", three_digits(f64::from(host.cpus_allowed_milli) / 1e3));
    }
    match (host.cpus, host.cpu_model.as_str()) {
        (0, _) => String::new(),
        (_, "") if count == "1" => "1 processor".to_owned(),
        (_, "") => format!("{count} processors"),
        (_, model) => format!("{count} × {model}"),
    }
}

fn has_interval(estimate: &Estimate) -> bool {
    estimate.low.is_finite() && estimate.high.is_finite() && estimate.low < estimate.high
}

fn two_digits(value: f64) -> String {
    let text = match value.abs() {
        999.5.. => thousands(value.round() as i64),
        9.95.. => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    };
    text.trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wider_side_of_an_interval_is_the_one_stated() {
        let estimate = |value, low, high| Estimate { value, low, high, samples: 9, duration_ns: 1 };
        assert_eq!(plus_minus(&estimate(100.0, 99.0, 103.0)), "±3 %");
        assert_eq!(plus_minus(&estimate(100.0, 99.99, 100.0)), "±0.1 %");
        assert_eq!(plus_minus(&estimate(100.0, 100.0, 100.0)), "");
        assert_eq!(plus_minus(&estimate(100.0, f64::NEG_INFINITY, f64::INFINITY)), "");
        assert_eq!(interval(&estimate(33e3, 32e3, 34e3), "ns"), "32 µs – 34 µs");
        let ratio = estimate(1.2, 0.6, 2.4);
        assert_eq!(beside(&ratio, Measure::Ratio), "(0.6–2.4)");
        assert_eq!(beside(&ratio, Measure::Share), "(60–240 %)");
        assert_eq!(beside(&estimate(0.5, 0.4, 0.6), Measure::Share), "±20 %");
    }

    #[test]
    fn a_lower_bound_is_shown_as_one() {
        let bound = Estimate::at_least(5e6, 9, 1);
        assert_eq!((plus_minus(&bound), interval(&bound, "ns")), (String::new(), String::new()));
        assert_eq!(value(&bound.into(), Measure::Nanoseconds), "≥ 5 ms");
        let open = Estimate { low: 4e6, ..bound };
        assert_eq!((plus_minus(&open), interval(&open, "ns")), (String::new(), "≥ 4 ms".into()));
        assert_eq!(value(&open.into(), Measure::Nanoseconds), "5 ms");
    }

    #[test]
    fn instants_lose_their_fraction_only() {
        for text in ["2026-11-21T21:28:02.527062989Z", "2026-11-21T21:28:02Z"] {
            assert_eq!(instant(text), "2026-11-21T21:28:02Z");
        }
        assert_eq!(instant("2026-11-21T21:28:02.5+01:00"), "2026-11-21T21:28:02+01:00");
        assert_eq!(instant("2026.5"), "2026");
    }

    #[test]
    fn cells_of_tables_have_their_units_or_say_why_they_are_empty() {
        let text = |number, measure| value(&Value::Number(number), measure);
        assert_eq!(text(0.0, Measure::BytesPerS), "0");
        assert_eq!(text(245_600_000.0, Measure::BytesPerS), "246 MB/s");
        assert_eq!(text(8192.0, Measure::Bytes), "8 KiB");
        assert_eq!(text(0.126, Measure::Share), "13 %");
        assert_eq!(text(14.0, Measure::Share), "1,400 %");
        assert_eq!(text(-0.377, Measure::Share), "-38 %");
        assert_eq!(
            (text(0.0, Measure::Ratio), text(0.25, Measure::Ratio)),
            ("0×".into(), "0.250×".into())
        );
        assert_eq!(text(0.001_94, Measure::Count), "0.0019");
        assert_eq!(text(0.05, Measure::Count), "0.05");
        assert_eq!(value(&Value::Missing(Missing::Off), Measure::Count), "off");
    }

    #[test]
    fn block_sizes_lose_nothing() {
        for (bytes, text) in [(512, "512"), (8192, "8K"), (1 << 20, "1M"), (2300, "2,300 B")] {
            assert_eq!(block_size(bytes), text);
        }
    }
}
