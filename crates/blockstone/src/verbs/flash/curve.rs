//! A measured curve of writes, from a recording or from a log written by fio.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blockstone_base::units::Bytes;
use blockstone_flash::fio;
use blockstone_flash::fit::Sample;
use blockstone_flash::trace::BadLine;

use super::rates;
use crate::failure::Failure;
use crate::input;
use crate::printer::Printer;
use crate::recordings;
use crate::verb::Global;

/// Largest log that is read; more than this is not a log of fio.
const LOG_BYTES: Bytes = Bytes::mib(64);
/// Size of an I/O if it is not known, in bytes.
const IO_BYTES: u64 = 4096;

pub fn read(
    curve: &str,
    io_size: Option<Bytes>,
    global: &Global,
    printer: Printer,
) -> Result<Vec<Sample>> {
    let path = Path::new(curve);
    let is_log = path.is_file();
    let is_bandwidth = path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.contains("_bw") || !name.contains("iops")
    });
    if io_size.is_some() && (is_bandwidth || !is_log) {
        bail!(Failure::new(
            format!("use --io-size: {curve} contains bytes"),
            "it is for logs of IOPS; omit it"
        ));
    }
    if is_log {
        let text = input::report(path, LOG_BYTES).map_err(|error| {
            anyhow!(input::failure(&format!("read {curve}"), &error, "check its permissions"))
        })?;
        let io_bytes = io_size.map_or(IO_BYTES, Bytes::get);
        let unit_bytes = if is_bandwidth { 1024.0 } else { io_bytes as f64 };
        let log = fio::read_log(&text, unit_bytes);
        if let Some(BadLine { line, why }) = log.first_bad {
            let bad = log.bad_lines;
            printer.note(&format!(
                "warning: {bad} lines of {curve} were skipped; the first is line {line}: {why}"
            ));
            if bad * 10 > log.samples.len() as u64 + bad {
                bail!(Failure::new(
                    format!(
                        "read {curve}: {bad} lines cannot be parsed, the first is line {line}: \
                         {why}"
                    ),
                    "write it with fio --write_bw_log --log_avg_msec=1000"
                ));
            }
        }
        return Ok(log.samples);
    }
    let recording = recordings::open(curve, &global.runs_dir)?;
    let seconds = rates::longest_curve(&recording)?.into_iter().enumerate();
    // Seconds without writes belong to other phases.
    let written = seconds.filter(|(_, (_, written))| *written > 0.0);
    let sample = |(second, (_, bytes))| Sample { from_s: second as f64, duration_s: 1.0, bytes };
    // The phase began and ended in the middle of a second: drop the first and the last one.
    let mut samples: Vec<Sample> = written.map(sample).skip(1).collect();
    samples.pop();
    Ok(samples)
}
