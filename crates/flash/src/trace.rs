//! Recorded requests: MSR Cambridge, blkparse, fio and `DiskSim`, each line checked separately.
//!
//! An unreadable line is counted, and kept with its number and the reason; a file with too many of
//! them is rejected, because it is probably in another format.

mod formats;

use std::str::FromStr;

use blockstone_base::hint::Hint;
use blockstone_base::named;

use crate::workload::{Action, Request};

named! {
    /// Format of a trace.
    Format {
        /// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`; the
        /// timestamp is a Windows file time.
        Msr = "msr",
        /// Default output of blkparse; only issued requests count.
        Blkparse = "blkparse",
        /// fio's `write_iolog`, version 2 or 3.
        Fio = "fio",
        /// `DiskSim`'s ASCII format: arrival in ms, device, block, blocks, flags.
        Disksim = "disksim",
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.iter().copied().find(|format| format.name() == text);
        named.ok_or_else(|| format!("unknown format `{text}`; write msr, blkparse, fio or disksim"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Time since the first request, in nanoseconds.
    pub t_ns: u64,
    pub action: Action,
    pub offset_bytes: u64,
    pub len_bytes: u64,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: u64,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub format: Format,
    /// Requests, ordered by time.
    pub requests: Vec<Recorded>,
    pub lines: u64,
    pub bad_lines: u64,
    pub bad: Vec<BadLine>,
    /// The end of the highest request, in bytes.
    pub end_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum TraceError {
    #[error("read trace: its format is not recognised")]
    #[hint("name it with --trace-format msr, blkparse, fio or disksim")]
    Unknown,
    #[error(
        "read trace as {}: {bad} of {lines} lines are invalid, the first is line {line}: {why}",
        .format.name()
    )]
    #[hint("check format, units and the size of the device")]
    Bad { format: Format, bad: u64, lines: u64, line: u64, why: String },
    #[error("read trace as {}: no request in {lines} lines", .format.name())]
    #[hint("check that it is the right file")]
    Empty { format: Format, lines: u64 },
}

/// Number of bad lines kept with their reason.
const KEPT: usize = 20;
/// At most one line in this many may be bad.
const ONE_BAD_OF: u64 = 10;
const TELLING: usize = 100;
/// Lines after which reading stops if most of them were bad: some files never end.
const ENOUGH: u64 = 100_000;

impl Trace {
    /// Reads a trace of a device of that size. Without a format, the one that fits most of the
    /// first lines is used. At most a tenth of the lines may be invalid.
    pub fn read(
        lines: impl Iterator<Item = String>,
        format: Option<Format>,
        device_bytes: u64,
    ) -> Result<Self, TraceError> {
        let mut lines = lines;
        let first: Vec<String> = lines.by_ref().take(TELLING).collect();
        let format = format.or_else(|| tell(&first)).ok_or(TraceError::Unknown)?;
        let mut trace = Self {
            format,
            requests: Vec::new(),
            lines: 0,
            bad_lines: 0,
            bad: Vec::new(),
            end_bytes: 0,
        };
        let mut reader = formats::Reader::new(format);
        for line in first.into_iter().chain(lines) {
            trace.lines += 1;
            let read = reader.line(&line).and_then(|request| within(request, device_bytes));
            match read {
                Ok(Some(request)) => trace.push(request),
                Ok(None) => {}
                Err(why) => trace.reject(why),
            }
            if trace.lines > ENOUGH && trace.bad_lines > trace.lines / 2 {
                break;
            }
        }
        trace.finish()
    }

    fn push(&mut self, request: Recorded) {
        self.end_bytes = self.end_bytes.max(request.offset_bytes + request.len_bytes);
        self.requests.push(request);
    }

    fn reject(&mut self, why: String) {
        self.bad_lines += 1;
        if self.bad.len() < KEPT {
            self.bad.push(BadLine { line: self.lines, why });
        }
    }

    fn finish(mut self) -> Result<Self, TraceError> {
        let (format, lines, bad) = (self.format, self.lines, self.bad_lines);
        if let Some(first) = self.bad.first().filter(|_| bad * ONE_BAD_OF > lines) {
            let (line, why) = (first.line, first.why.clone());
            return Err(TraceError::Bad { format, bad, lines, line, why });
        }
        // Several processors write to one log, so it is only nearly sorted.
        self.requests.sort_by_key(|request| request.t_ns);
        let Some(start_ns) = self.requests.first().map(|request| request.t_ns) else {
            return Err(TraceError::Empty { format, lines });
        };
        self.requests.iter_mut().for_each(|request| request.t_ns -= start_ns);
        Ok(self)
    }

    pub fn paged(&self, page_bytes: u32) -> impl Iterator<Item = (u64, Request)> + '_ {
        let page_bytes = u64::from(page_bytes);
        self.requests.iter().map(move |request| {
            let first = request.offset_bytes / page_bytes;
            let end = (request.offset_bytes + request.len_bytes).div_ceil(page_bytes);
            let (page, pages) = (first as u32, (end - first) as u32);
            (request.t_ns, Request { action: request.action, page, pages, part: 0 })
        })
    }
}

/// Guesses the format: the one that fits the most lines, if it fits a quarter of them.
fn tell(lines: &[String]) -> Option<Format> {
    let fitting = |format| {
        let mut reader = formats::Reader::new(format);
        lines.iter().filter(|line| matches!(reader.line(line), Ok(Some(_)))).count()
    };
    let counted = Format::ALL.iter().map(|&format| (fitting(format), format));
    let (count, format) = counted.max_by_key(|&(count, _)| count)?;
    if count > 0 && 2 * count >= lines.len() / 2 {
        return Some(format);
    }
    // With wrong units no line fits, but the shape is still recognisable, and reading the file then
    // reports what is wrong.
    let of_msr = lines.iter().filter(|line| line.split(',').count() == 7).count();
    (of_msr > lines.len() / 2).then_some(Format::Msr)
}

fn within(request: Option<Recorded>, device_bytes: u64) -> Result<Option<Recorded>, String> {
    let Some(Recorded { offset_bytes, len_bytes, .. }) = request else { return Ok(None) };
    if len_bytes == 0 {
        return Err("a request of zero bytes".to_owned());
    }
    match offset_bytes.checked_add(len_bytes) {
        Some(end) if end <= device_bytes => Ok(request),
        _ => Err(format!(
            "{len_bytes} bytes at {offset_bytes} are beyond the device of {device_bytes} bytes"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: Option<Format>) -> Result<Trace, TraceError> {
        Trace::read(text.lines().map(str::to_owned), format, 1 << 30)
    }

    const MSR: &str = "\
128166372003061629,hm,0,Read,1048576,4096,151
128166372016382155,hm,0,Write,8192,8192,1200
128166372026382245,hm,0,Write,12288,4096,1200";
    const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  Q   W 2048 + 8 [kjournald]
  8,0    3        2     0.000012000   697  D   W 2048 + 8 [kjournald]
  8,0    3        3     0.500000000   697  D   R 4096 + 16 [dd]
  8,0    3        4     0.500100000     0  C   R 4096 + 16 [0]
  8,0    3        5     0.600000000   697  D  DS 8192 + 64 [fstrim]
CPU3 (sda):
 Reads Queued:           1,        8KiB  Writes Queued:           1,        4KiB";
    const FIO: &str = "\
fio version 3 iolog
0 /dev/sdb add
1 /dev/sdb open
100 /dev/sdb write 4096 8192
250 /dev/sdb read 0 4096
300 /dev/sdb trim 4096 4096
300 /dev/sdb close";
    const DISKSIM: &str = "\
0.000000 0 2048 8 0
0.150000 0 4096 16 1
12.500000 0 100 8 0";

    #[test]
    fn each_format_is_recognised_and_read() {
        for (text, format, count) in [
            (MSR, Format::Msr, 3),
            (BLKPARSE, Format::Blkparse, 3),
            (FIO, Format::Fio, 3),
            (DISKSIM, Format::Disksim, 3),
        ] {
            let trace = read(text, None).unwrap();
            assert_eq!((trace.format, trace.requests.len(), trace.bad_lines), (format, count, 0));
            assert_eq!(trace.requests[0].t_ns, 0);
        }
        let msr = read(MSR, None).unwrap();
        assert_eq!(msr.requests[1].t_ns, 1_332_052_600, "a file time counts 100 ns");
        assert_eq!(msr.requests[1].action, Action::Write);
        let blkparse = read(BLKPARSE, None).unwrap();
        assert_eq!(blkparse.requests[0].offset_bytes, 2048 * 512);
        assert_eq!(blkparse.requests[2].action, Action::Trim);
        let fio = read(FIO, None).unwrap();
        assert_eq!(fio.requests[1].t_ns, 150_000, "a log counts microseconds");
        let disksim = read(DISKSIM, None).unwrap();
        assert_eq!(
            disksim.requests[1],
            Recorded {
                t_ns: 150_000,
                action: Action::Read,
                offset_bytes: 4096 * 512,
                len_bytes: 8192
            }
        );
    }

    #[test]
    fn cut_and_damaged_lines_are_counted_with_their_numbers() {
        let mut text = format!("{MSR}\n").repeat(20);
        text.push_str("128166372003061629,hm,0,Read,10485\n12816637200306");
        let trace = read(&text, None).unwrap();
        assert_eq!((trace.bad_lines, trace.bad[0].line, trace.bad[1].line), (2, 61, 62));
        assert_eq!(trace.requests.len(), 60);
    }

    #[test]
    fn wrong_units_and_addresses_beyond_the_device_are_refused() {
        let seconds = MSR.replace("128166372", "1");
        let refused = read(&seconds, None).unwrap_err().to_string();
        assert!(refused.contains("line 1") && refused.contains("file time"), "{refused}");
        let beyond = MSR.replace(",8192,8192,", ",99999999999,8192,");
        let refused = read(&beyond, None).unwrap_err().to_string();
        assert!(refused.contains("line 2") && refused.contains("beyond"), "{refused}");
        let huge = MSR.replace(",8192,8192,", ",18446744073709551615,8192,");
        assert!(read(&huge, None).is_err(), "the end overflows");
        assert_eq!(read("", None), Err(TraceError::Unknown));
        assert_eq!(read("hello\nworld", None), Err(TraceError::Unknown));
        assert!(matches!(read("", Some(Format::Fio)), Err(TraceError::Empty { .. })));
    }

    #[test]
    fn requests_are_rounded_out_to_pages() {
        let trace = read(MSR, None).unwrap();
        let pages: Vec<(u32, u32)> =
            trace.paged(16_384).map(|(_, request)| (request.page, request.pages)).collect();
        assert_eq!(pages, [(64, 1), (0, 1), (0, 1)]);
    }
}
