//! fio logs (`write_bw_log`, `write_iops_log`) as curves of the write rate.

use crate::fit::Sample;
use crate::trace::BadLine;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub samples: Vec<Sample>,
    pub bad_lines: u64,
    pub first_bad: Option<BadLine>,
}

/// Reads lines of the form `time_ms, value, direction, block size[, …]`. The value is KiB/s in a
/// bandwidth log, or operations per second, each of `unit_bytes`; it is a mean over the time since
/// the line before. Only writes are kept.
pub fn read_log(text: &str, unit_bytes: f64) -> Log {
    let mut log = Log::default();
    let mut from_s = 0.0;
    for (line, fields) in (1..).zip(text.lines()).filter(|(_, fields)| !fields.trim().is_empty()) {
        match sample(fields, from_s, unit_bytes) {
            Ok(Some(sample)) => {
                from_s = sample.from_s + sample.duration_s;
                log.samples.push(sample);
            }
            Ok(None) => {}
            Err(why) => {
                log.bad_lines += 1;
                log.first_bad.get_or_insert_with(|| BadLine { line, why: why.to_owned() });
            }
        }
    }
    log
}

/// Parses one line; `None` unless it is about writes.
fn sample(line: &str, from_s: f64, unit_bytes: f64) -> Result<Option<Sample>, &'static str> {
    let mut fields = line.split(',').map(str::trim);
    let mut number = || fields.next()?.parse::<f64>().ok();
    let (Some(ms), Some(value), Some(direction)) = (number(), number(), fields.next()) else {
        return Err("not `milliseconds, value, direction`");
    };
    // 0 reads, 1 writes, 2 trims.
    if direction != "1" {
        return Ok(None);
    }
    let duration_s = ms / 1000.0 - from_s;
    let bytes = value * unit_bytes * duration_s;
    if !(duration_s > 0.0 && duration_s.is_finite() && bytes >= 0.0 && bytes.is_finite()) {
        return Err("timestamps must increase, and the value must be a number");
    }
    Ok(Some(Sample { from_s, duration_s, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_and_damaged_lines_are_counted() {
        let text = "1000, 2048, 1, 4096, 0\n2000, 1024, 0, 4096\n2000, 1024, 1, 4096\n\
                    garbage\n1500, 7, 1\n3000, nan, 1, 0\n";
        let log = read_log(text, 1024.0);
        assert_eq!(log.samples.len(), 2);
        assert!((log.samples[0].bytes - 2048.0 * 1024.0).abs() < 1e-6);
        assert!((log.samples[1].duration_s - 1.0).abs() < 1e-9);
        assert_eq!((log.bad_lines, log.first_bad.map(|bad| bad.line)), (3, Some(4)));
    }

    #[test]
    fn what_is_not_finite_is_a_damaged_line_and_no_sample() {
        let log = read_log("inf, 0, 1\n1000, 1e306, 1\n-1, 7, 1\n1000, 7, 1\n", 1024.0);
        assert_eq!((log.samples.len(), log.bad_lines), (1, 3));
        assert!((log.samples[0].bytes - 7.0 * 1024.0).abs() < 1e-9);
    }
}
