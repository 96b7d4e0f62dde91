//! A measured curve of writes: of a recording, or of a log that fio wrote.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blockstone_base::units::Bytes;
use blockstone_flash::fit::Sample;

use super::rates;
use crate::printer::Printer;
use crate::recordings;
use crate::verb::Global;

pub fn read(curve: &str, io_size: Bytes, global: &Global, printer: Printer) -> Result<Vec<Sample>> {
    let path = Path::new(curve);
    if path.is_file() {
        let text = std::fs::read(path)
            .map_err(|error| anyhow!("read {curve}: {error}\nhint: check its permissions"))?;
        let is_bandwidth = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.contains("_bw") || !name.contains("iops")
        });
        let unit_bytes = if is_bandwidth { 1024.0 } else { io_size.get() as f64 };
        let (samples, bad) = fio_log(&String::from_utf8_lossy(&text), unit_bytes);
        if let Some((line, why)) = bad.first() {
            printer.note(&format!(
                "warning: {} lines of {curve} were skipped; the first is line {line}: {why}",
                bad.len()
            ));
            if bad.len() * 10 > samples.len() + bad.len() {
                bail!(
                    "read {curve}: {} lines cannot be parsed, the first is line {line}: {why}\n\
                     hint: write it with fio --write_bw_log --log_avg_msec=1000",
                    bad.len()
                );
            }
        }
        return Ok(samples);
    }
    let recording = recordings::open(curve, &global.runs_dir)?;
    let seconds = rates::longest_curve(&recording)?.into_iter().enumerate();
    // Seconds in which nothing was written belong to other phases.
    let written = seconds.filter(|(_, (_, written))| *written > 0.0);
    let sample = |(second, (_, bytes))| Sample { from_s: second as f64, duration_s: 1.0, bytes };
    // The phase began and ended in the middle of a second.
    let mut samples: Vec<Sample> = written.map(sample).skip(1).collect();
    samples.pop();
    Ok(samples)
}

/// Lines `time_ms, value, direction, block size[, …]`: KiB/s of a bandwidth log, or operations a
/// second. The value is a mean over the time since the line before. Writes only.
fn fio_log(text: &str, unit_bytes: f64) -> (Vec<Sample>, Vec<(usize, String)>) {
    let (mut samples, mut bad) = (Vec::new(), Vec::new());
    let mut from_s = 0.0;
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if line.trim().is_empty() {
            continue;
        }
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let (Some(ms), Some(value), Some(direction)) = (number(0), number(1), fields.get(2)) else {
            bad.push((index + 1, "not `milliseconds, value, direction`".to_owned()));
            continue;
        };
        // 0 reads, 1 writes, 2 trims.
        if *direction != "1" {
            continue;
        }
        let until_s = ms / 1000.0;
        if !(until_s > from_s && value >= 0.0 && value.is_finite()) {
            bad.push((
                index + 1,
                "timestamps must increase, and the value must be a number".to_owned(),
            ));
            continue;
        }
        let duration_s = until_s - from_s;
        samples.push(Sample { from_s, duration_s, bytes: value * unit_bytes * duration_s });
        from_s = until_s;
    }
    (samples, bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_fio_is_read_and_damaged_lines_are_counted() {
        let text = "1000, 2048, 1, 4096, 0\n2000, 1024, 0, 4096\n2000, 1024, 1, 4096\n\
                    garbage\n1500, 7, 1\n3000, nan, 1, 0\n";
        let (samples, bad) = fio_log(text, 1024.0);
        assert_eq!(samples.len(), 2);
        assert!((samples[0].bytes - 2048.0 * 1024.0).abs() < 1e-6);
        assert!((samples[1].duration_s - 1.0).abs() < 1e-9);
        assert_eq!(bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 5, 6]);
    }
}
